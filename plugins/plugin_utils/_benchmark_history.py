# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The history of a fleet's performance: each record with its commit, what was changed since the record before it, and what that did."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils import _record_compare
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import Change, changes, differing
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_markdown import deciding
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_series import Entry, before, entries, series_of, server_name
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Range, Record
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits

Compare = t.Callable[..., t.Mapping[str, t.Any]]
_METRIC = "output_tok_per_s"
_MODEL = ("model", "model revision")


@dataclass(frozen=True)
class Step:
    """One record of a history.

    Attributes:
        measured_at: when, as the record says.
        release: its id.
        status: ``ok``, ``contended`` or ``failed``: the worst of its points.
        commit: that the record names, whatever that is; empty where it names none.
        dirty: whether there were changes that were not committed.
        known: what git tells of the commit; None where it does not know it.
        between: the other commits of the inventory since the record before.
        changes: since the record before; of kind ``model`` and ``release`` as well.
        load: the point that the numbers are of, in words; empty where the record has only that one.
        old: output tok/s of the record before; None where there is none.
        new: alike of this one.
        comparison: with the record before, as ``compare_records`` tells it; None without such a record.
        accepted: the record's own comparison with the baseline that was accepted then, by which the gate judged; empty without one.
    """

    measured_at: str
    release: str
    status: str
    commit: str
    dirty: bool
    known: Commit | None
    between: Between
    changes: list[Change]
    load: str
    old: Range | None
    new: Range | None
    comparison: t.Mapping[str, t.Any] | None
    accepted: t.Mapping[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """The history of one server under one workload.

    Attributes:
        server: the host, with its instance where that has a name of its own.
        workload: its name.
        steps: the newest first.
    """

    server: str
    workload: str
    steps: list[Step] = field(default_factory=list)


def history(
    records_by_host: t.Mapping[str, t.Mapping[str, Record]],
    commits: Commits,
    compare: Compare = _record_compare.compare_records,
) -> list[Series]:
    """Returns the history of each server and workload, in the order of their names.

    Args:
        records_by_host: records as :func:`_benchmark_view.problem` lets them pass, by the host that they are of and the name of their file.
        commits: what git tells of the commits that they name.
        compare: tells what two groups of records say, as ``compare_records`` does.
    """
    found = sorted(series_of(entries(records_by_host, {})).items())
    return [Series(server_name(key), key[2], [_step(own, place, commits, compare) for place in reversed(range(len(own)))]) for key, own in found]


def _step(own: t.Sequence[Entry], place: int, commits: Commits, compare: Compare) -> Step:
    entry, last = own[place], before(own, place)
    record = entry.record
    comparison = compare([last.record], [record], metric=_METRIC, history=[one.record for one in own]) if last else None
    rows, load = view.rows(record), _load(record, comparison or {})
    return Step(
        view.shown(record.get("measured_at")),
        view.shown(view.part(record, "release").get("id") or ""),
        next((state for state in ("failed", "contended") if any(row.status == state for row in rows)), "ok"),
        entry.commit,
        bool(view.part(record, "inventory").get("dirty")),
        commits.known.get(entry.commit),
        commits.between.get((last.commit if last else "", entry.commit), Between([])),
        _changes(last.record, record) if last else [],
        load if len(rows) > 1 else "",
        _rate(last.record, load) if last else None,
        _rate(record, load),
        comparison,
        view.part(record, "verdict"),
    )


def _load(record: Record, comparison: t.Mapping[str, t.Any]) -> str:
    """The point that the verdict is taken from, otherwise that which stands for the record."""
    point, main = deciding(comparison), view.main_row(record)
    if point is not None:
        return view.point_name(point.get("concurrency"), point.get("request_rate"))
    return main.name if main else ""


def _rate(record: Record, load: str) -> Range | None:
    return next((row.rate for row in view.rows(record) if row.name == load), None)


def _changes(old: Record, new: Record) -> list[Change]:
    """What was changed; a release that differs in nothing that a record names is told as a whole."""
    models = [Change("model", one.name, one.baseline, one.current) for one in differing(old, new, metric=_METRIC) if one.name in _MODEL]
    found = [*models, *changes(old, new)]
    ids = [view.shown(view.part(record, "release").get("id") or "unknown") for record in (old, new)]
    return found or ([Change("release", "release", *ids)] if ids[0] != ids[1] else [])
