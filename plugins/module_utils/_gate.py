# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether a change may stay: its benchmark against the host's baseline.

A change is a regression when it is measurably slower (the 95 % interval of the difference does not reach "no change") and when the loss that was measured is
larger than the tolerance. The interval answers whether a loss is real, the tolerance how large a loss is accepted. To ask for the whole interval beyond the
tolerance instead would accept larger losses the noisier the host is. Simulated with five repetitions of 1 % noise, 1 % between starts, three of them in the
baseline and a tolerance of 5 %: of true losses of 10 % this finds 92 %, the whole interval would find 52 %; without a loss both find none in 1,500 gates
(less than 1 % with 2 % between starts). A loss of just the tolerance is found at best every other time. A loss that may be beyond the tolerance and is not
shown to be is told, and passes.

A baseline is what the host was accepted to do; it stays the measure until another one is accepted. So releases that pass one after another cannot each lose a
little: all of them are held against the same number, and where the baseline is of an earlier release than the one that the change replaces, what changed
since is told. One that was measured under other conditions is stale: it decides nothing unless ``stale`` is ``gate``.
"""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import dataclass, field, fields, replace

from ansible_collections.llmops.inference.plugins.module_utils._record_compare import INVALID, NOT_COMPARABLE, SLOWER, compare_records
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import KEYS, subject_changes
from ansible_collections.llmops.inference.plugins.module_utils._record_points import (
    CONTENDED,
    FAILED,
    METRICS,
    Record,
    by_load,
    refusals,
    start_keys,
    unsettled,
)
from ansible_collections.llmops.inference.plugins.module_utils._variables import kind_of

PASSED, REGRESSION, STALE, NO_BASELINE, NOT_ENOUGH_STARTS = "passed", "regression", "stale", "no baseline", "not enough starts"
OUTCOMES = (PASSED, REGRESSION, STALE, NO_BASELINE, INVALID, NOT_COMPARABLE, CONTENDED, FAILED, NOT_ENOUGH_STARTS)
ACCEPT = "-e sglang_benchmark_accept=true"
_STALE = ("pass", "gate")
_REDO = f"measure a new one and accept it with {ACCEPT}"


class GateError(ValueError):
    """Settings that cannot be used; the message is for the operator, one sentence for each."""


@dataclass(frozen=True)
class Settings:
    """How a change is judged.

    Attributes:
        metric: which number, for example ``output_tok_per_s`` or ``ttft_ms_p99``.
        tolerance_pct: how much worse it may be, in percent of the baseline.
        workload: the workload whose baseline counts.
        concurrency: only this one of a sweep; None for each, and one regression among them is one.
        ignore_conditions: conditions under which baseline and change may differ (``driver``, ``gpu_power_limit``).
        stale: what a stale baseline does: ``pass`` lets everything pass, ``gate`` judges by it all the same.
    """

    metric: str = "output_tok_per_s"
    tolerance_pct: float = 5.0
    workload: str = "decode"
    concurrency: int | None = None
    ignore_conditions: tuple[str, ...] = ()
    stale: str = "pass"


@dataclass(frozen=True)
class Judgement:
    """What the gate says.

    Attributes:
        outcome: one of :data:`OUTCOMES`.
        text: one sentence for the operator.
        comparison: see ``_record_compare``; empty where nothing was compared.
    """

    outcome: str
    text: str
    comparison: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def rolls_back(self) -> bool:
        """Whether the change must not stay. A server whose requests fail is worse at any rate; whatever cannot be judged stays, and is told."""
        return self.outcome in (REGRESSION, FAILED)


def read_settings(value: t.Any, variable: str = "sglang_server_gate", workloads: t.Iterable[str] = ()) -> Settings:
    """Returns the settings of an inventory.

    Args:
        value: what the variable holds.
        variable: its name, for the messages.
        workloads: the names that are known; without any, every name will do.

    Raises:
        GateError: variable, value, what is expected and the nearest right name, for each setting that is wrong.
    """
    if not isinstance(value, t.Mapping):
        raise GateError(f"{variable} must be a mapping of settings, not {kind_of(value)}: {value!r}")
    known = [one.name for one in fields(Settings)]
    problems = [f"{variable}.{name} is no setting of the gate{_near(str(name), known)}" for name in value if name not in known]
    given = {name: value[name] for name in known if value.get(name) is not None}
    choices = {"metric": METRICS, "workload": tuple(workloads), "stale": _STALE}
    for name, choice in choices.items():
        problems += _unknown(f"{variable}.{name}", given[name], choice) if name in given else []
    problems += _wrong_numbers(variable, given)
    ignored = given.get("ignore_conditions", [])
    if isinstance(ignored, (list, tuple)):
        problems += [problem for one in ignored for problem in _unknown(f"{variable}.ignore_conditions", one, KEYS)]
    else:
        problems.append(f"{variable}.ignore_conditions must be a list of conditions, not {kind_of(ignored)}: {ignored!r}")
    if problems:
        raise GateError(" ".join(problem if problem.endswith("?") else f"{problem}." for problem in problems))
    return Settings(**{**given, "ignore_conditions": tuple(ignored), "tolerance_pct": float(given.get("tolerance_pct", Settings.tolerance_pct))})


def judge(
    settings: Settings,
    baseline: t.Sequence[Record],
    current: Record,
    good_subject: str = "",
    *,
    again: t.Sequence[Record] = (),
    history: t.Iterable[Record] = (),
) -> Judgement:
    """Returns what the gate says about a change.

    Args:
        settings: how it is judged.
        baseline: the records that were accepted for this workload; none where there are none.
        current: the record of the change.
        good_subject: subject of the release that was good before; empty where there was none.
        again: further records of the same change; of one start they are more repetitions.
        history: all records of the host, for how far its starts differ.
    """
    measured = [current, *again]
    refused = refusals(measured, settings.concurrency)
    for outcome, consequence in ((FAILED, "this cannot stay"), (CONTENDED, "nothing was judged")):
        reasons = [reason for status, reason in refused if status == outcome]
        if reasons:
            return Judgement(outcome, f"benchmark {reasons[0]}: {consequence}")
    if not baseline:
        return Judgement(NO_BASELINE, f"there is no baseline of {settings.workload} for this host: recorded, and nothing judged; accept it with {ACCEPT}")
    past = list(history)
    comparison = _compare(settings, baseline, measured, past, settings.ignore_conditions)
    stale = "; ".join(one["text"] for one in comparison["differs"])
    if stale and settings.stale == "gate":
        ignored = (*settings.ignore_conditions, *(one["name"] for one in comparison["differs"]))
        comparison = _compare(settings, baseline, measured, past, ignored)
    if stale and (settings.stale != "gate" or comparison["differs"]):
        return Judgement(STALE, f"the baseline of {settings.workload} is stale and judges nothing: {stale}; {_REDO}", comparison)
    found = _decide(settings, comparison, len(start_keys(baseline)))
    told = [*_warm_ups(settings, baseline, "of the baseline"), *_warm_ups(settings, measured, "of this change"), *_earlier(baseline, current, good_subject)]
    found = replace(found, text="; ".join([found.text, *told]))
    return Judgement(found.outcome, f"{found.text}; judged by a stale baseline: {stale}", comparison) if stale else found


def _warm_ups(settings: Settings, records: t.Sequence[Record], whose: str) -> list[str]:
    """Remarks on points that were measured while the server was still warming up."""
    points = [point for starts in by_load(records, settings.concurrency).values() for found in starts.values() for point in found]
    return [f"{text} ({whose})" for text in dict.fromkeys(map(unsettled, points)) if text]


def undecided(settings: Settings, judgement: Judgement) -> bool:
    """Whether a change passes only since its loss is not shown: it was measured as more than is tolerated, by too few or too noisy repetitions."""
    if judgement.outcome != PASSED:
        return False
    return any(point["loss_pct"] is not None and point["loss_pct"] > settings.tolerance_pct for point in judgement.comparison["points"])


def _compare(
    settings: Settings, baseline: t.Sequence[Record], current: t.Sequence[Record], history: t.Sequence[Record], ignore: t.Sequence[str]
) -> dict[str, t.Any]:
    return compare_records(baseline, current, metric=settings.metric, history=history, concurrency=settings.concurrency, ignore=ignore)


def _earlier(baseline: t.Sequence[Record], current: Record, good_subject: str) -> list[str]:
    """Says that a baseline is of an earlier release than the one that the change replaces, and what changed since."""
    subjects = {record["release"]["subject"] for record in baseline}
    if len(subjects) > 1 or subjects <= {good_subject, current["release"]["subject"]}:
        return []
    changes = ", ".join(subject_changes(baseline[0], current))
    return [f"the baseline is of an earlier release{f' (from it to this one: {changes})' if changes else ''}"]


def _decide(settings: Settings, comparison: t.Mapping[str, t.Any], starts: int) -> Judgement:
    """What the numbers say, where they may be compared."""
    points = comparison["points"]
    if comparison["verdict"] == INVALID:
        return Judgement(INVALID, f"the baseline of {settings.workload} cannot be used: {comparison['reason']}; {_REDO}", comparison)
    lost = [point for point in points if point["verdict"] == SLOWER and point["loss_pct"] > settings.tolerance_pct]
    if lost:
        worst = max(lost, key=lambda point: point["loss_pct"])
        return Judgement(REGRESSION, f"{settings.metric} of {_where(settings, worst)} is worse by {_loss(worst)}, tolerated {_pct(settings)}", comparison)
    judged = [point for point in points if point["low"] is not None]
    if not judged and any(point["ratio"] is not None for point in points):
        return Judgement(NOT_ENOUGH_STARTS, _too_few(settings, starts), comparison)
    if not judged:
        return Judgement(NOT_COMPARABLE, f"{comparison['reason']}: nothing was judged", comparison)
    worst = max(judged, key=lambda point: (point["loss_high_pct"], point["loss_pct"]))
    text = f"{settings.metric} of {_where(settings, worst)}: {worst['reason']}; tolerated {_pct(settings)}"
    if worst["loss_high_pct"] > settings.tolerance_pct:
        text += f"; a loss of up to {worst['loss_high_pct']:.1f} % cannot be excluded"
    return Judgement(PASSED, text, comparison)


def _too_few(settings: Settings, starts: int) -> str:
    counted = f"{starts} start{'' if starts == 1 else 's'}"
    return (
        f"the baseline of {settings.workload} spans {counted} and this host's records do not tell how far its starts differ: nothing was judged; "
        f"measure it on 3 starts and accept it with {ACCEPT}"
    )


def _where(settings: Settings, point: t.Mapping[str, t.Any]) -> str:
    rate = "" if point["request_rate"] is None else f" and {point['request_rate']:g} requests per s"
    return f"{settings.workload} at concurrency {point['concurrency'] or 'unlimited'}{rate}"


def _loss(point: t.Mapping[str, t.Any]) -> str:
    return f"{point['loss_pct']:.1f} % ({point['loss_low_pct']:.1f} to {point['loss_high_pct']:.1f} %)"


def _pct(settings: Settings) -> str:
    return f"{settings.tolerance_pct:g} %"


def _near(name: str, known: t.Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _unknown(setting: str, value: t.Any, choices: t.Sequence[str]) -> list[str]:
    """What is wrong with a word."""
    if not isinstance(value, str) or not value:
        return [f"{setting} must be a word, not {kind_of(value)}: {value!r}"]
    if not choices or value in choices:
        return []
    return [f"{setting} must be one of {', '.join(choices)}, not {value!r}{_near(value, choices)}"]


def _wrong_numbers(variable: str, given: t.Mapping[str, t.Any]) -> list[str]:
    problems = []
    tolerance, concurrency = given.get("tolerance_pct", 0.0), given.get("concurrency", 1)
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0.0 <= tolerance < 100.0:
        problems.append(f"{variable}.tolerance_pct must be a number of percent from 0 to less than 100, not {tolerance!r}")
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        problems.append(f"{variable}.concurrency must be a whole number from 1, not {concurrency!r}")
    return problems
