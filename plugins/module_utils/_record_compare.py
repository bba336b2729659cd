# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Compares benchmark records: whether they may be compared at all, and then what their numbers say (see ``_stats``).

A comparison is data with these keys, all of them always:

============== ===============================================================================================================================
verdict        ``faster``, ``slower``, ``no measurable difference``, ``not comparable`` or ``invalid baseline``; of several points the worst
reason         one sentence
metric         what was compared
ratio          current / baseline, with the ends of its interval ``low`` and ``high``; of a latency more is slower; None where there is none
differs        conditions that differ: name, baseline, current, text
told           what differs and is not held against the comparison, alike
changed        what was changed from the one release to the other, in words
effective      what the engine runs with otherwise without having been asked to, in words
points         one entry for each concurrency and request rate that either side has: concurrency, request_rate, verdict, reason, ratio, low, high,
               loss_pct (how much worse the current one is: negative is better), loss_low_pct and loss_high_pct (its interval), smallest_pct (the
               smallest difference that could have been told), starts_needed, repetitions_needed, boot_spread (pct, starts, noise_pct: what the
               host's history says, or None), remarks; baseline and current: median, starts, repetitions
============== ===============================================================================================================================
"""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import asdict

from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import (
    Difference,
    differing,
    effective_changes,
    subject_changes,
    told_differences,
)
from ansible_collections.llmops.inference.plugins.module_utils._record_points import (
    METRICS,
    OK,
    Load,
    Record,
    Starts,
    by_load,
    higher_is_better,
    refusal,
    remarks,
    start_keys,
    values_of,
    words_of,
)
from ansible_collections.llmops.inference.plugins.module_utils._stats import BootSpread, boot_spread, compare

FASTER, SLOWER, SAME = "faster", "slower", "no measurable difference"
NOT_COMPARABLE, INVALID = "not comparable", "invalid baseline"
# What a comparison of several points says: the first of these that one of them says.
_WORST = (SLOWER, INVALID, FASTER, SAME, NOT_COMPARABLE)
_NUMBERS = ("ratio", "low", "high", "loss_pct", "loss_low_pct", "loss_high_pct", "smallest_pct", "starts_needed", "repetitions_needed")

_Refusal = t.Optional[t.Tuple[str, str]]
_Values = t.List[t.List[t.Optional[float]]]


def compare_records(
    baseline: t.Sequence[Record],
    current: t.Sequence[Record],
    *,
    metric: str = "output_tok_per_s",
    history: t.Iterable[Record] = (),
    concurrency: int | None = None,
    ignore: t.Iterable[str] = (),
) -> dict[str, t.Any]:
    """Returns the comparison, as described at the head of this module.

    Args:
        baseline: records of one release.
        current: records of the release that is judged.
        metric: one of ``_record_points.METRICS``.
        history: further records; how far starts differ is taken from those of the current one's host under equal conditions, whatever their release.
        concurrency: only points of this one; None for all of a sweep.
        ignore: conditions that may differ.

    Raises:
        ValueError: the metric is unknown.
    """
    if metric not in METRICS:
        raise ValueError(f"{metric} is no metric of a record: {', '.join(METRICS)}")
    ignored = tuple(ignore)
    found: dict[str, t.Any] = {"verdict": NOT_COMPARABLE, "reason": "", "metric": metric, "ratio": None, "low": None, "high": None}
    found.update(differs=[], told=[], changed=[], effective=[], points=[])
    if not baseline or not current:
        return {**found, "reason": f"there is no {'current record' if baseline else 'baseline'}"}
    first = baseline[0], current[0]
    differs = dict.fromkeys(one for old in baseline for new in current for one in differing(old, new, metric=metric, ignore=ignored))
    found["differs"] = [one.data() for one in [*differs] or _not_measured(baseline, current, concurrency)]
    found["told"] = [one.data() for one in told_differences(*first)]
    found.update(changed=subject_changes(*first), effective=effective_changes(*first))
    if found["differs"]:
        return {**found, "reason": f"measured under other conditions: {'; '.join(one['text'] for one in found['differs'])}"}
    for records, verdict, side in ((baseline, INVALID, "baseline is"), (current, NOT_COMPARABLE, "current records are")):
        if len({record["release"]["subject"] for record in records}) > 1:
            return {**found, "verdict": verdict, "reason": f"the {side} of several releases"}
    alike = [record for record in history if record["host"] == first[1]["host"] and not differing(record, first[1], metric=metric, ignore=ignored)]
    found["points"] = _points((by_load(baseline, concurrency), by_load(current, concurrency)), metric, _others(alike, start_keys([*baseline, *current])))
    return {**found, **_headline(found["points"])}


def _not_measured(baseline: t.Sequence[Record], current: t.Sequence[Record], concurrency: int | None) -> list[Difference]:
    """The difference where one side was not measured at the concurrency that is asked about."""
    if concurrency is None:
        return []
    measured = [list(dict.fromkeys(load[0] for load in by_load(records))) for records in (baseline, current)]
    if all(concurrency in side for side in measured):
        return []
    lists = [", ".join(str(one or "unlimited") for one in side) for side in measured]
    words = [str(concurrency) if concurrency in side else f"{listed} and not {concurrency}" for side, listed in zip(measured, lists)]
    return [Difference("concurrency", *words)]


def _others(records: t.Iterable[Record], apart: t.Container[t.Any]) -> list[dict[Load, Starts]]:
    """The starts of each release but those that are compared: they speak for themselves."""
    releases: dict[str, list[Record]] = {}
    for record in records:
        releases.setdefault(record["release"]["subject"], []).append(record)
    return [
        {load: {key: points for key, points in starts.items() if key not in apart} for load, starts in by_load(group).items()} for group in releases.values()
    ]


def _points(sides: tuple[dict[Load, Starts], dict[Load, Starts]], metric: str, others: t.Sequence[dict[Load, Starts]]) -> list[dict[str, t.Any]]:
    """One entry for each load, the smallest first."""
    rows = []
    for load in sorted({*sides[0], *sides[1]}, key=lambda one: [(value is None, value or 0) for value in one]):
        known = _spread([release[load] for release in others if load in release], metric)
        point = _point((sides[0].get(load, {}), sides[1].get(load, {})), metric, known)
        rows.append({"concurrency": load[0], "request_rate": load[1], **point})
    return rows


def _spread(releases: t.Iterable[Starts], metric: str) -> BootSpread | None:
    """How far starts of one release differ on this host, from what is left when points and numbers that cannot be compared are taken out."""
    groups = []
    for starts in releases:
        whole = [values_of(points, metric) for points in starts.values() if all(point["status"] == OK for point in points)]
        groups.append([[value for value in values if value] for values in whole if values and all(map(_is_positive, values))])
    return boot_spread(groups)


def _point(sides: tuple[Starts, Starts], metric: str, known: BootSpread | None) -> dict[str, t.Any]:
    """The comparison at one load."""
    values = [[values_of(points, metric) for points in starts.values()] for starts in sides]
    row: dict[str, t.Any] = {**dict.fromkeys(_NUMBERS), "boot_spread": asdict(known) if known else None}
    row["remarks"] = remarks(point for starts in sides for points in starts.values() for point in points)
    row.update({side: _counts(found) for side, found in zip(("baseline", "current"), values)})
    refused = _refused(sides, values, metric)
    if refused:
        return {**row, "verdict": refused[0], "reason": refused[1]}
    numbers = [[[value or 0.0 for value in start] for start in side] for side in values]
    higher = higher_is_better(metric)
    if not any(value for start in numbers[1] for value in start):
        # A ratio of 0 has no logarithm, and needs no statistics.
        fell = {"verdict": SLOWER, "reason": f"slower: {metric} fell to 0", **dict.fromkeys(("ratio", "low", "high"), 0.0)}
        return {**row, **fell, **_losses((0.0, 0.0, 0.0), higher)}
    found = asdict(compare(*numbers, known=known, higher_is_better=higher))
    return {**row, **found, **_losses((found["ratio"], found["low"], found["high"]), higher)}


def _losses(ratios: tuple[float, float | None, float | None], higher: bool) -> dict[str, float | None]:
    losses = [None if ratio is None else round(100.0 * (1.0 - ratio if higher else ratio - 1.0), 2) for ratio in ratios]
    ends = sorted(loss for loss in losses[1:] if loss is not None)
    return {"loss_pct": losses[0], "loss_low_pct": ends[0] if ends else None, "loss_high_pct": ends[-1] if ends else None}


def _counts(values: _Values) -> dict[str, t.Any]:
    numbers = [value for start in values for value in start if value is not None and math.isfinite(value)]
    return {"median": round(statistics.median(numbers), 3) if numbers else None, "starts": len(values), "repetitions": sum(map(len, values))}


def _is_positive(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0.0


def _refused(sides: tuple[Starts, Starts], values: t.Sequence[_Values], metric: str) -> _Refusal:
    """Verdict and reason at a load that cannot be compared: points before numbers, for a failed point has none."""
    for side, starts in zip(("baseline", "current record"), sides):
        refused = [refusal(point) for points in starts.values() for point in points if point["status"] != OK]
        if refused or not starts:
            return NOT_COMPARABLE, f"the {side} {f'is {refused[0]}' if refused else 'has no such point'}"
    return _without_baseline(values[0], metric) or _without_number(values[1], metric)


def _without_baseline(values: _Values, metric: str) -> _Refusal:
    flat = [value for start in values for value in start]
    wrong = [value for value in flat if not _is_positive(value)]
    if flat and not wrong and all(values):
        return None
    shown = "missing" if not wrong or wrong[0] is None else f"{wrong[0]:g}"
    return INVALID, f"{metric} of the baseline is {shown}: nothing can be compared with it"


def _without_number(values: _Values, metric: str) -> _Refusal:
    flat = [value for start in values for value in start]
    if all(values) and all(map(_is_positive, flat)):
        return None
    if not (all(values) and all(value == 0.0 or _is_positive(value) for value in flat) and higher_is_better(metric)):
        return NOT_COMPARABLE, f"the current record has no {metric}"
    return (NOT_COMPARABLE, f"{metric} of the current record is 0 in some repetitions: no ratio can be told") if any(flat) else None


def _headline(points: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """What the whole says: its worst point, and how many say what."""
    worst = min(points, key=lambda point: (_WORST.index(point["verdict"]), -(point["loss_pct"] or 0.0)))
    found = {name: worst[name] for name in ("verdict", "reason", "ratio", "low", "high")}
    if len(points) > 1:
        counts = {verdict: sum(point["verdict"] == verdict for point in points) for verdict in _WORST}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        found["reason"] = f"{words_of((worst['concurrency'], worst['request_rate']))}: {worst['reason']} (of {len(points)} points: {said})"
    return found
