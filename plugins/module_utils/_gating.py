# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The gate of a deployment: the release on trial is measured and held against the host's baseline before it may stay."""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass, replace

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import RELEASE, Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._gate import ACCEPT, PASSED, REGRESSION, Judgement, judge, read_settings, undecided
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._record import stored, subject
from ansible_collections.llmops.inference.plugins.module_utils._record_points import FAILED, refusals
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError, BenchmarkFailed

Records = t.List[t.Dict[str, t.Any]]
# A loss beyond the tolerance that is not shown is measured once more before it may pass.
_TIMES = 2


@dataclass(frozen=True)
class Gated:
    """What came of a gate.

    Attributes:
        told: outcome, text and comparison, as data.
        refused: why the release must not stay; None where it may.
    """

    told: t.Mapping[str, t.Any]
    refused: Diagnosis | None = None


class Gate:
    """Judges releases on trial.

    Args:
        asked: settings, baseline, history, host and flags, as the controller put them together.
        store: releases of the instance.
        measure: measures the running release of this id and returns its records.
    """

    def __init__(self, asked: t.Mapping[str, t.Any], store: Store, measure: t.Callable[[str], Records]) -> None:
        self._asked = asked
        self._settings = read_settings(asked["settings"])
        self._store = store
        self._measure = measure

    def __call__(self, release: str, good: str) -> Gated:
        """Measures a release and judges it. What was measured is kept with the release, whatever is said of it.

        Args:
            release: id of the release on trial.
            good: id of the release that it replaces; empty where there is none.
        """
        records: Records = []
        judgement = None
        try:
            while judgement is None or (undecided(self._settings, judgement) and len(records) < _TIMES):
                records += self._measure(release)
                self._store.write(release, "benchmark", stored(records))
                judgement = self._judge(records, good)
        except (BenchmarkError, HostError) as error:
            if isinstance(error, BenchmarkFailed):
                self._store.write(release, "benchmark", stored([*records, *error.records]))
            return Gated({"outcome": FAILED, "text": str(error), "comparison": {}}, _failed(str(error)))
        return Gated(asdict(judgement), _regression(judgement) if judgement.rolls_back else None)

    def _judge(self, records: Records, good: str) -> Judgement:
        """What is known so far, by the accepted baseline; where that is of an earlier release, also by what the one that is replaced did when it came.

        The first alone would let a release go back on what one since has won and nobody has accepted, the second alone each release lose a little.
        """
        asked, before = self._asked, subject(self._store.read(good, "release")) if good else ""
        first, *again = self._as_known_there(records)
        judgement = judge(self._settings, asked["baseline"], first, before, again=again, history=asked["history"])
        if judgement.outcome != PASSED or before in {record["release"]["subject"] for record in asked["baseline"]}:
            return judgement
        replaced = self._replaced(good)
        held = judge(self._settings, replaced, first, before, again=again, history=[*asked["history"], *asked["baseline"]]) if replaced else judgement
        if held.outcome != REGRESSION:
            return judgement
        return replace(held, text=f"{held.text}; that is against the release that it replaces, for the accepted baseline is of an earlier one")

    def _replaced(self, good: str) -> Records:
        """What was measured of the release that is replaced, where it can be judged by."""
        kept = self._store.read(good, "benchmark").get("records") or [] if good else []
        whole = self._as_known_there([record for record in kept if record.get("workload", {}).get("name") == self._settings.workload])
        return [] if refusals(whole, self._settings.concurrency) else whole

    def _as_known_there(self, records: Records) -> Records:
        """The host does not know how the controller calls it."""
        return [{**record, "host": self._asked["host"], "flags": self._asked["flags"]} for record in records]


def _failed(text: str) -> Diagnosis:
    """A server that does not answer all of a benchmark's requests is none to keep; whose fault it is, is not known."""
    return Diagnosis("gate_failed", f"the release started and its benchmark failed: {text}", [], "see the server's journal for what it did meanwhile")


def _regression(judgement: Judgement) -> Diagnosis:
    changed = [str(text) for text in judgement.comparison.get("changed") or []]
    hint = f"take the change back, or accept it: measure it with sglang_server_gate: {{}} and {ACCEPT}"
    return Diagnosis("slower_than_baseline", f"the gate does not let it stay: {judgement.text}", changed, hint, RELEASE)
