# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Benchmark records in the order of time, in series of one server and workload: what a record is held against is the one before it that counts."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record


@dataclass(frozen=True, eq=False)
class Entry:
    """A record in its series.

    Attributes:
        place: among all records, in the order of time.
        name: of its file.
        record: the record.
        series: host, instance and workload.
        baseline: whether the host's baseline names it.
    """

    place: int
    name: str
    record: Record
    series: tuple[str, str, str]
    baseline: bool

    @property
    def commit(self) -> str:
        """The commit of the inventory that it names; empty where it names none."""
        return commit_of(self.record)


def entries(records_by_host: t.Mapping[str, t.Mapping[str, Record]], baselines: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[Entry]:
    """Returns all records in the order of time.

    Args:
        records_by_host: by the host that they are of and the name of their file.
        baselines: by host, what its ``baseline.json`` holds.
    """
    found = [(host, name, record) for host, records in records_by_host.items() for name, record in records.items()]
    found.sort(key=lambda entry: (str(entry[2].get("measured_at")), *entry[:2]))
    return [
        Entry(place, name, record, (host, str(record.get("instance")), view.workload_name(record)), name in _accepted(record, baselines.get(host, {})))
        for place, (host, name, record) in enumerate(found)
    ]


def series_of(found: t.Iterable[Entry]) -> dict[tuple[str, str, str], list[Entry]]:
    """Returns entries by their series, each in the order of time."""
    made: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in found:
        made.setdefault(entry.series, []).append(entry)
    return made


def before(own: t.Sequence[Entry], place: int) -> Entry | None:
    """Returns what an entry of a series is held against: the newest before it whose numbers count; None where there is none.

    Args:
        own: the series.
        place: of the entry in it.
    """
    return next((other for other in reversed(own[:place]) if counts(other.record)), None)


def counts(record: Record) -> bool:
    """Returns whether all points of a record were measured undisturbed."""
    rows = view.rows(record)
    return bool(rows) and all(row.status == "ok" for row in rows)


def commit_of(record: Record) -> str:
    """Returns the commit that a record names, whatever that is; empty where it names none."""
    return str(view.part(record, "inventory").get("commit") or "")


def server_name(series: tuple[str, str, str]) -> str:
    """Returns the server of a series in words: the host, and the instance where it is not the only one by name."""
    host, instance, _workload = series
    return view.shown(host) if instance == "main" else f"{view.shown(host)}/{view.shown(instance)}"


def commits_wanted(records_by_host: t.Mapping[str, t.Mapping[str, Record]]) -> tuple[list[str], list[tuple[str, str]]]:
    """Returns the commits that records name, and the pairs of them that a record and the one before it name."""
    found = entries(records_by_host, {})
    pairs = [
        (other.commit, entry.commit)
        for own in series_of(found).values()
        for place, entry in enumerate(own)
        for other in [before(own, place)]
        if other and other.commit and entry.commit
    ]
    return [entry.commit for entry in found], pairs


def _accepted(record: Record, baseline: t.Mapping[str, t.Any]) -> list[str]:
    """Names of the files that the record's workload is judged by."""
    names = (baseline.get("baselines") or {}).get(view.workload_name(record), {}).get("records")
    return names if isinstance(names, list) else []
