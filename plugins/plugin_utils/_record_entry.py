# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the controller adds to a record that a host has measured, and a record in one line."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._record_compare import FASTER, INVALID, NOT_COMPARABLE, SAME, SLOWER, compare_records
from ansible_collections.llmops.inference.plugins.module_utils._record_points import unsettled, words_of
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import clean
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, Stored

Record = t.Mapping[str, t.Any]


def complete(record: Record, host: str, inventory: Record, flags: t.Sequence[Record], *, links: Record | None = None) -> dict[str, t.Any]:
    """Returns a whole record without a verdict yet, clean of secrets and homes.

    Args:
        record: what the host has measured.
        host: name of the host in the inventory.
        inventory: commit and dirty, see ``_inventory_commit``.
        flags: that the inventory asks for, see ``_requested``.
        links: what was last measured of the host's links, see ``_links_record``; None where nothing was.

    Raises:
        RecordFileError: it is no record of a benchmark.
    """
    whole = {**record, "host": host, "collection": VERSION, "inventory": dict(inventory), "flags": list(flags), "verdict": {}}
    if links and isinstance(record.get("hardware"), dict):
        whole["hardware"] = {**record["hardware"], "links_measured": dict(links)}
    try:
        # Plain data, for values of a task carry marks of Ansible; in the order of the file, so that its report can be made again from it.
        found: dict[str, t.Any] = json.loads(json.dumps(whole, sort_keys=True, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RecordFileError(f"what was measured on {host} cannot be kept: {error}") from None
    wrong = view.problem(found)
    if wrong:
        raise RecordFileError(f"what was measured on {host} cannot be kept: {wrong}; pass the records of sglang_benchmark as they are")
    return clean(found)


def judged(record: Record, stored: Stored, metric: str, ignore: t.Sequence[str] = ()) -> dict[str, t.Any]:
    """Returns a record with the verdict against the baseline of its workload; an empty one where there is none.

    Args:
        record: see :func:`complete`.
        stored: what is there of the host.
        metric: one of ``_record_points.METRICS``.
        ignore: conditions that may differ.

    Raises:
        RecordFileError: the baseline names a record that is not there.
    """
    baseline = stored.baseline_of(view.workload_name(record))
    verdict = compare_records(baseline, [record], metric=metric, history=stored.records.values(), ignore=ignore) if baseline else {}
    return {**record, "verdict": verdict}


def line(record: Record) -> str:
    """Returns a record in one line: workload, throughput, load, and the verdict."""
    bad = [status for status in ("failed", "contended") if any(row.status == status for row in view.rows(record))]
    if bad:
        return f"{numbers(record)}, {bad[0]}, so the numbers count for nothing"
    warm_ups = dict.fromkeys(unsettled(point) for start in record["starts"] for point in start["points"])
    return "; ".join(filter(None, [f"{numbers(record)}, {_verdict(record.get('verdict') or {})}", *warm_ups]))


def numbers(record: Record) -> str:
    """Returns a record in one line, without a verdict: workload, throughput and load."""
    rows = [row for row in view.rows(record) if row.rate]
    parts = [f"{_rate(row)} at {words_of((row.concurrency, row.request_rate))}" for row in _main_and_best(rows)]
    label = str(record["workload"].get("label") or "")
    return f"{view.workload_name(record)}{f' ({label})' if label else ''}: {', '.join(parts or ['no number was measured'])}"


def _main_and_best(rows: t.Sequence[view.Row]) -> list[view.Row]:
    """The first of a sweep and that of the highest throughput."""
    best = sorted(rows, key=lambda row: -row.rate.median if row.rate else 0.0)[:1]
    return [*rows[:1], *(row for row in best if row is not rows[0])]


def _rate(row: view.Row) -> str:
    return f"{view.number(row.rate.median)} tok/s ({view.number(row.rate.low)} to {view.number(row.rate.high)})" if row.rate else ""


def _verdict(comparison: Record) -> str:
    verdict, reason = comparison.get("verdict"), comparison.get("reason")
    measured = f" in {comparison['metric']}" if comparison.get("metric", "output_tok_per_s") != "output_tok_per_s" else ""
    if verdict == SAME:
        return f"no measurable difference from the baseline{measured}" if comparison["low"] is not None else f"no verdict{measured}: {reason}"
    words = {FASTER: "faster than the baseline", SLOWER: "slower than the baseline", NOT_COMPARABLE: "not comparable with the baseline", INVALID: INVALID}
    return f"{words[verdict]}{measured}: {str(reason).replace(f'{verdict}: ', '', 1)}" if verdict in words else "no baseline"
