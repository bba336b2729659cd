# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A host's ``baseline.json``: which of its records a change is judged by, for each workload. It changes on purpose only."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._record import FORMAT as RECORD_FORMAT
from ansible_collections.llmops.inference.plugins.module_utils._record import KIND
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import GOODPUT, differing
from ansible_collections.llmops.inference.plugins.module_utils._record_points import Record, by_load, refusals, start_keys, uncounted
from ansible_collections.llmops.inference.plugins.module_utils._variables import kind_of

FILE = "baseline.json"
FORMAT = 1
ENOUGH_STARTS = 3
_NEEDED = (("host",), ("instance",), ("measured_at",), ("release", "subject"), ("workload", "name"), ("starts",))


class BaselineError(ValueError):
    """A baseline or a record that cannot be used; the message is for the operator."""


@dataclass(frozen=True)
class Accepted:
    """A baseline that was accepted.

    Attributes:
        content: of the new ``baseline.json``.
        starts: how many starts of the server the workload's baseline spans.
        text: one sentence for the operator.
    """

    content: dict[str, t.Any]
    starts: int
    text: str


def parse(text: str, name: str = FILE) -> dict[str, t.Any]:
    """Returns the content of a baseline's file; an empty text is no baseline yet.

    Raises:
        BaselineError: it is damaged, or of another version.
    """
    if not text.strip():
        return empty()
    content = _load(text, name)
    if content.get("format") != FORMAT:
        raise BaselineError(f"{name} has format {content.get('format')!r}, this collection reads format {FORMAT}: use the collection that wrote it")
    baselines = content.get("baselines")
    if not isinstance(baselines, dict):
        raise BaselineError(f"{name} is damaged: baselines is {kind_of(baselines)}; restore it from git")
    for workload, entry in baselines.items():
        names = entry.get("records") if isinstance(entry, dict) else None
        if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
            raise BaselineError(f"{name} is damaged: the entry of {workload} names no records; restore it from git")
    return content


def parse_record(text: str, name: str) -> dict[str, t.Any] | None:
    """Returns a record; None for a file of another kind.

    Raises:
        BaselineError: it is damaged, or of another version.
    """
    content = _load(text, name)
    if content.get("kind") != KIND:
        return None
    if content.get("format") != RECORD_FORMAT:
        raise BaselineError(f"{name} has format {content.get('format')!r}, this collection reads records of format {RECORD_FORMAT}")
    missing = [".".join(path) for path in _NEEDED if not _found(content, path)]
    if missing:
        raise BaselineError(f"{name} is damaged: it has no {', '.join(missing)}; restore it from git")
    return content


def empty() -> dict[str, t.Any]:
    """Returns the content of a baseline's file without a baseline."""
    return {"format": FORMAT, "baselines": {}}


def records_of(content: t.Mapping[str, t.Any], workload: str, records: t.Mapping[str, Record]) -> list[Record]:
    """Returns the records that a workload's baseline is made of; none where it has none.

    Args:
        content: of the baseline's file.
        workload: name of the workload.
        records: the host's records by the name of their file.

    Raises:
        BaselineError: one of them is not there.
    """
    names = content["baselines"].get(workload, {}).get("records", [])
    missing = [name for name in names if name not in records]
    if missing:
        raise BaselineError(f"the baseline of {workload} names {', '.join(missing)}, and there is no such record: restore it from git, or accept another")
    return [records[name] for name in names]


def accept(content: t.Mapping[str, t.Any], name: str, record: Record, others: t.Mapping[str, Record], *, accepted_at: str) -> Accepted:
    """Returns a baseline with this record as that of its workload, the other workloads as they were.

    It takes the server's other records of the same subject under equal conditions as well: how a release does is told by several starts, not by one.

    Args:
        content: of the baseline's file.
        name: of the record's file.
        record: the record to accept.
        others: further records of the host by the name of their file.
        accepted_at: time of acceptance, ``2026-11-30T10:15:00Z``.

    Raises:
        BaselineError: the record is contended or failed, or has repetitions without a speed.
    """
    workload = record["workload"]["name"]
    refused = _unfit(record)
    if refused:
        raise BaselineError(f"{name} cannot be the baseline of {workload}: {refused}")
    alike = {other: found for other, found in others.items() if other != name and _belongs(found, record)}
    chosen = {**alike, name: record}
    starts = len(start_keys(chosen.values()))
    entry = {"records": sorted(chosen), "accepted_at": accepted_at, "commit": (record.get("inventory") or {}).get("commit")}
    baselines = {**content["baselines"], workload: entry}
    return Accepted({"format": FORMAT, "baselines": baselines}, starts, f"baseline of {workload}: {_spans(len(chosen), starts)}")


def _belongs(other: Record, record: Record) -> bool:
    """Whether it tells of the same server under the same conditions, an SLO included."""
    same = (other["host"], other["instance"], other["release"]["subject"]) == (record["host"], record["instance"], record["release"]["subject"])
    return same and not differing(other, record, metric=GOODPUT) and not _unfit(other)


def _unfit(record: Record) -> str:
    """Why a record is no measure for others; empty where it is."""
    refused = refusals([record])
    return refused[0][1] if refused else uncounted(point for starts in by_load([record]).values() for points in starts.values() for point in points)


def _spans(records: int, starts: int) -> str:
    counts = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in ((records, "record"), (starts, "start"))]
    missing = ENOUGH_STARTS - starts
    if missing <= 0:
        return ", ".join(counts)
    return f"{', '.join(counts)}; measure it on {missing} more and accept it again: until then it judges only where this host's records tell its spread"


def _found(content: t.Any, path: tuple[str, ...]) -> t.Any:
    """The value at the end of a path of keys; None where there is none."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _load(text: str, name: str) -> dict[str, t.Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise BaselineError(f"{name} is damaged: {error}; restore it from git") from None
    if not isinstance(content, dict):
        raise BaselineError(f"{name} is damaged: it holds {kind_of(content)}; restore it from git")
    return content
