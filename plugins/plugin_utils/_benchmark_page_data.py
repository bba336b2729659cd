# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the page of all benchmark records shows, as data for its script: the page counts nothing itself, so every verdict is made here."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import _record_compare, _record_conditions
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_series import Entry, before, entries, series_of, server_name
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record, Row, shown
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commits

Compare = t.Callable[..., t.Mapping[str, t.Any]]
# Any two of the newest records of a series have a verdict; all pairs of years of them would make the page big.
PAIRED = 20
_METRIC = "output_tok_per_s"


def page_data(
    records_by_host: t.Mapping[str, t.Mapping[str, Record]],
    baselines: t.Mapping[str, t.Mapping[str, t.Any]],
    skipped: t.Sequence[str] = (),
    compare: Compare = _record_compare.compare_records,
    commits: Commits | None = None,
) -> dict[str, t.Any]:
    """Returns the page's data.

    Args:
        records_by_host: records as :func:`_benchmark_view.problem` lets them pass, by the host that they are of and the name of their file.
        baselines: by host, what its ``baseline.json`` holds.
        skipped: a sentence for each file that is no record.
        compare: tells what two groups of records say, as ``compare_records`` does.
        commits: what git tells of the commits that the records name; None where it was not asked.

    Returns:
        ``records`` in the order of time, ``facts`` (group, name and value of all conditions, which the records name by number), ``pairs`` (by the numbers of
        two records "older,newer") and ``skipped``.
    """
    all_entries = entries(records_by_host, baselines)
    facts: dict[tuple[str, str, str], int] = {}
    records = [{**_identity(entry), **_shown_record(entry.record, facts)} for entry in all_entries]
    pairs: dict[str, dict[str, t.Any]] = {}
    for own in series_of(all_entries).values():
        history = [entry.record for entry in own]
        reference = [entry for entry in own if entry.baseline]
        for place, entry in enumerate(own):
            last = before(own, place)
            told = records[entry.place]
            told.update(_told_commits(entry, last, commits))
            told["before"] = last.place if last else None
            told["changed"] = [view.brief(shown(text)) for text in _record_conditions.subject_changes(last.record, entry.record)] if last else []
            told["verdict"] = _verdict(compare([last.record], [entry.record], metric=_METRIC, history=history)) if last else None
            against = [other.record for other in reference if other is not entry]
            told["against_baseline"] = _verdict(compare(against, [entry.record], metric=_METRIC, history=history)) if against and not entry.baseline else None
            newest = own[len(own) - PAIRED if len(own) > PAIRED else 0 :]
            others = {other.place: other for other in [*(newest if entry in newest else []), *([last] if last else [])] if other.place < entry.place}
            for other in others.values():
                pairs[f"{other.place},{entry.place}"] = _pair(compare([other.record], [entry.record], metric=_METRIC, history=history))
    return {"records": records, "facts": [list(fact) for fact in facts], "pairs": pairs, "skipped": [shown(text) for text in skipped]}


def _identity(entry: Entry) -> dict[str, t.Any]:
    host, _instance, workload = entry.series
    return {
        "id": shown(f"{host}/{entry.name[: -len('.json')] if entry.name.endswith('.json') else entry.name}"),
        "host": server_name(entry.series),
        "workload": workload,
        "baseline": entry.baseline,
    }


def _told_commits(entry: Entry, last: Entry | None, commits: Commits | None) -> dict[str, t.Any]:
    """The message of a record's commit (None where git does not know it), and the commits of the inventory since the record before it."""
    asked = commits or Commits()
    own, between = asked.known.get(entry.commit), asked.between.get((last.commit if last else "", entry.commit), Between([]))
    return {
        "message": shown(own.subject) if own else None if commits and entry.commit else "",
        "others": [[commit.id[:7], commit.date[:10], shown(commit.subject)] for commit in between.commits],
        "left_out": between.left_out,
        "apart": between.remark,
    }


def _shown_record(record: Record, facts: dict[tuple[str, str, str], int]) -> dict[str, t.Any]:
    rows = view.rows(record)
    main = view.main_row(record)
    told = [(group, name, value) for group, pairs in view.conditions(record) for name, value in pairs]
    inventory, release, engine, model, workload = (view.part(record, name) for name in ("inventory", "release", "engine", "model", "workload"))
    histogram = view.histogram(record)
    return {
        "date": shown(record.get("measured_at")),
        "commit": shown(inventory.get("commit") or "")[:7],
        "dirty": bool(inventory.get("dirty")),
        "release": shown(release.get("id") or ""),
        "version": shown(engine.get("version") or ""),
        "model": shown(model.get("name") or ""),
        "label": shown(workload.get("label") or ""),
        "status": next((state for state in ("failed", "contended") if any(row.status == state for row in rows)), "ok"),
        "main": rows.index(main) if main else None,
        "rows": [_shown_row(row) for row in rows],
        "histogram": histogram and {"edges": histogram[0], "counts": histogram[1]},
        "remarks": view.remarks(record),
        "facts": [facts.setdefault(fact, len(facts)) for fact in told],
    }


def _shown_row(row: Row) -> dict[str, t.Any]:
    return {
        "name": row.name,
        "rated": row.request_rate is not None,
        "load": row.request_rate if row.request_rate is not None else row.concurrency,
        "status": row.status,
        "starts": row.starts,
        "repetitions": row.repetitions,
        "ranges": {metric: [found.median, found.low, found.high] for metric, found in row.ranges.items()},
        "percentiles": {metric: [values.get(name) for name in view.PERCENTILES] for metric, values in row.percentiles.items()},
        "goodput": row.goodput_per_s,
        "acceptance": row.accept_length,
        "hits": row.cache_hit_rate,
        "spread": row.spread_pct,
    }


def _verdict(comparison: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The verdict with its ratio. Without an interval there is a ratio but nothing that it tells."""
    numbers = {name: comparison.get(name) if view.is_number(comparison.get(name)) else None for name in ("ratio", "low", "high")}
    told = comparison.get("verdict")
    words = "no verdict" if told == _record_compare.SAME and numbers["low"] is None else shown(told or "no verdict")
    return {"verdict": words, "reason": shown(comparison.get("reason") or ""), **numbers}


def _pair(comparison: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    points = {view.point_name(point.get("concurrency"), point.get("request_rate")): _verdict(point) for point in comparison.get("points") or []}
    differs = [[shown(entry.get(name, "")) for name in ("name", "baseline", "current")] for entry in comparison.get("differs") or []]
    changed = [view.brief(shown(text)) for text in comparison.get("changed") or []]
    return {**_verdict(comparison), "differs": differs, "changed": changed, "points": points}
