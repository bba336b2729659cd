# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Benchmark records as Markdown, made for a comment on a change: the verdict first, one table, conditions folded.

Model names, values of flags and texts of errors are anybody's. They become character references wherever Markdown or HTML would read them as their own:
a reference is never structure in either, not in a table nor in folded HTML.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import subject_changes
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record, Row, number, shown

_NONE = "-"
# An engine has hundreds of effective flags, and a comment has a limit.
_MOST = 40
# An underscore inside a word is none of Markdown's.
_STRUCTURE = re.compile(r"[\\`*\[\]{}#+!|~<&\"'@$]|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_|(?<!-)>|:(?=//)|(?i:(?<=www)\.)")
# Nobody is mentioned and nothing is linked across a space of no width.
_MENTION = re.compile(r"(?<=@|#)(?=\w)")
_PLAIN = re.compile(r"(?!\d+[.)] )[A-Za-z0-9](?:[A-Za-z0-9 ,.()%:=>-]|(?<=[A-Za-z0-9])[_/](?=[A-Za-z0-9]))*")
_TITLES = {
    "output_tok_per_s": "tok/s",
    "total_tok_per_s": "total tok/s",
    "request_per_s": "requests/s",
    "goodput_per_s": "goodput/s",
    "ttft_ms": "TTFT ms",
    "tpot_ms": "TPOT ms",
    "itl_ms": "ITL ms",
    "e2e_ms": "E2E ms",
}
_SLOWER_FASTER = ("faster", "slower")


def escape(value: t.Any) -> str:
    """Returns a value as text that neither Markdown nor HTML reads as structure, on one line."""
    apart = _MENTION.sub("\u200b", shown(value))
    return _STRUCTURE.sub(lambda found: f"&#{ord(found[0])};", apart).replace("\u200b", "&#8203;")


def code(value: t.Any) -> str:
    """Returns a value as code, so that no mention or link is made of it; words that cannot become one stay words."""
    text = shown(value)
    return text if _PLAIN.fullmatch(text) else f"<code>{escape(text)}</code>"


def run_report(record: Record, comparisons: t.Sequence[t.Mapping[str, t.Any]] = ()) -> str:
    """Returns the report of one run.

    Args:
        record: the benchmark record.
        comparisons: what ``compare_records`` said of it against its baseline, the one that matters most first; none without a baseline.
    """
    rows = view.rows(record)
    found = view.remarks(record) + [text for comparison in comparisons for text in _comparison_remarks(comparison)]
    parts = [
        f"**{_headline(record, rows, comparisons)}**",
        _table(*_run_table(record, rows)),
        _list(comparisons[1:], lambda entry: f"{_metric(entry)}: {_against(entry)}"),
        _list([escape(text) for text in dict.fromkeys(found)], str),
        _details("Conditions", record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison_report(baseline_records: t.Sequence[Record], current_records: t.Sequence[Record], comparison: t.Mapping[str, t.Any]) -> str:
    """Returns the report of one comparison.

    Args:
        baseline_records: the records that count as before, the newest last.
        current_records: those that are judged, the newest last.
        comparison: what ``compare_records`` said.
    """
    before, after = baseline_records[-1], current_records[-1]
    differs = [_difference(entry) for entry in comparison.get("differs") or []]
    changed = [code(text) for text in comparison.get("changed") or subject_changes(before, after)]
    told = {"": _comparison_remarks(comparison), **_remarks_of_both(view.remarks(before), view.remarks(after))}
    parts = [
        f"**{_comparison_headline(before, after, comparison)}**",
        _table(*_comparison_table(before, after, comparison)),
        _section("Conditions that differ, so the numbers say nothing of the change:" if differs else "", differs),
        _section("Changed on purpose:" if changed else "Nothing was changed on purpose between the two.", changed),
        _section("", [f"{prefix}{escape(text)}" for prefix, texts in told.items() for text in texts]),
        _counted(baseline_records, current_records),
        _details("Conditions of the baseline", before),
        _details("Conditions now", after),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(record: Record, rows: list[Row], comparisons: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    subject = f"{code(view.workload_name(record))} on {code(record.get('host', 'unknown'))}"
    bad = next((row for row in rows if row.status != "ok"), None)
    main = view.main_row(record)
    if main is None or main.rate is None:
        return f"{subject}: {'failed' if bad and bad.status == 'failed' else 'no number was measured'}"
    text = f"{subject}: {_rate(main)}{'' if len(rows) == 1 else f' at {main.name}'}"
    best = max((row for row in rows if row.rate), key=lambda row: row.rate.median if row.rate else 0.0)
    if best.name != main.name:
        text += f", {number(best.rate.median) if best.rate else _NONE} at {best.name}"
    if bad:
        return f"{text}; {bad.status}, so the numbers count for nothing"
    return f"{text}, {_against(comparisons[0])}" if comparisons else text


def _rate(row: Row) -> str:
    return f"{number(row.rate.median)} tok/s ({number(row.rate.low)} to {number(row.rate.high)})" if row.rate else "no throughput"


def _against(comparison: t.Mapping[str, t.Any]) -> str:
    """The verdict in words that follow a number."""
    verdict, reason, point = comparison.get("verdict"), comparison.get("reason"), deciding(comparison)
    because = f": {escape(reason)}" if reason else ""
    if verdict == "not comparable":
        names = [escape(entry.get("name", "") if isinstance(entry, dict) else entry) for entry in comparison.get("differs") or []]
        because = f": {', '.join(names)} differ{'' if len(names) > 1 else 's'}" if names else because
        return f"not comparable with the baseline{because}"
    if verdict in _SLOWER_FASTER:
        return f"{verdict} than the baseline{_at(comparison, point)}{_ratio(comparison)}"
    if verdict == "no measurable difference" and view.is_number(comparison.get("low")):
        return f"no measurable difference from the baseline{_ratio(comparison)}"
    if verdict == "no measurable difference":
        return f"no verdict{because}"
    return f"{escape(verdict or 'no verdict')}{because}"


def deciding(comparison: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any] | None:
    """Returns the point that a comparison's verdict is taken from; None where it has none."""
    points = comparison.get("points") or []
    return next((point for point in points if all(point.get(key) == comparison.get(key) for key in ("verdict", "ratio", "low", "high"))), None)


def _at(comparison: t.Mapping[str, t.Any], point: t.Mapping[str, t.Any] | None) -> str:
    several = point is not None and len(comparison["points"]) > 1
    return f" at {view.point_name(point.get('concurrency'), point.get('request_rate'))}" if point is not None and several else ""


def _ratio(comparison: t.Mapping[str, t.Any]) -> str:
    ratio, low, high = (comparison.get(key) for key in ("ratio", "low", "high"))
    if not view.is_number(ratio):
        return ""
    return f" (ratio {ratio:.2f}, {low:.2f} to {high:.2f})" if view.is_number(low) and view.is_number(high) else f" (ratio {ratio:.2f})"


def _metric(comparison: t.Mapping[str, t.Any]) -> str:
    metric = str(comparison.get("metric", ""))
    base, _mark, percentile = metric.partition("_p")
    return f"{_TITLES[base].split(' ms')[0]} p{percentile}" if percentile and base in _TITLES else escape(_TITLES.get(metric, metric))


def _comparison_headline(before: Record, after: Record, comparison: t.Mapping[str, t.Any]) -> str:
    point = deciding(comparison) or {}
    metric = str(comparison.get("metric", "output_tok_per_s"))
    values = [(point.get(side) or {}).get("median") for side in ("current", "baseline")]
    unit = _TITLES.get(metric, "ms")
    known = [number(value) for value in values if view.is_number(value)]
    figures = f": {known[0]} against {known[1]} {unit.split(' ')[-1]}" if len(known) > 1 else ""
    subject = f"{code(view.workload_name(after))} on {code(after.get('host', 'unknown'))}"
    measured = "" if metric == "output_tok_per_s" else f" ({_metric(comparison)})"
    return f"{subject}{measured}{figures}, {_against(comparison)}"


def _comparison_remarks(comparison: t.Mapping[str, t.Any]) -> list[str]:
    """What a comparison could not tell, and what of it is no comparison."""
    found = []
    several = len(comparison.get("points") or []) > 1
    for point in comparison.get("points") or []:
        where = f"At {view.point_name(point.get('concurrency'), point.get('request_rate'))}: " if several else ""
        smallest = point.get("smallest_pct")
        if point.get("verdict") in ("not comparable", "invalid baseline"):
            found.append(f"{where}{point.get('reason')}")
        elif point.get("verdict") == "no measurable difference" and view.is_number(smallest) and smallest > view.OF_INTEREST_PCT:
            found.append(f"{where}{_unseen(smallest, point.get('starts_needed'), point.get('repetitions_needed'))}")
    return found


def _unseen(smallest_pct: float, starts: t.Any, repetitions: t.Any) -> str:
    parts = [f"{value:g} {words}" for value, words in ((starts, "server starts"), (repetitions, "repetitions each")) if view.is_number(value) and value]
    needs = f", about {' of '.join(parts)}" if parts else ""
    return f"a change below {smallest_pct:.1f} % could not have been seen; to tell {view.OF_INTEREST_PCT:g} % takes more{needs}."


def _run_table(record: Record, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    slo = view.part(view.part(record, "workload"), "slo")
    limits = ", ".join(f"{_TITLES.get(name, shown(name)).split(' ')[0]} {value:g} ms" for name, value in slo.items() if view.is_number(value))
    columns: list[tuple[str, t.Callable[[Row], str]]] = [
        ("Load", lambda row: row.name if row.status == "ok" else f"{row.name} ({escape(row.status)})"),
        ("tok/s", lambda row: _span(row.rate)),
        *((f"{title} p50 / p90 / p99", _percentile_cell(metric)) for metric, title in _TITLES.items() if metric.endswith("_ms")),
        (f"Requests/s within {escape(limits)}" if limits else "Goodput/s", lambda row: _optional(row.goodput_per_s)),
        ("Acceptance length", lambda row: _optional(row.accept_length)),
        ("Cache hits", lambda row: _NONE if row.cache_hit_rate is None else f"{100 * row.cache_hit_rate:.0f} %"),
        ("Spread", lambda row: _NONE if row.spread_pct is None else f"{row.spread_pct:.1f} %"),
        ("Repetitions", lambda row: str(row.repetitions) if row.starts == 1 else f"{row.repetitions} in {row.starts} starts"),
    ]
    return _filled([title for title, _cell in columns], [[cell(row) for _title, cell in columns] for row in rows])


def _percentile_cell(metric: str) -> t.Callable[[Row], str]:
    def cell(row: Row) -> str:
        values = row.percentiles.get(metric, {})
        return " / ".join(number(values[name]) if name in values else _NONE for name in view.PERCENTILES) if values else _NONE

    return cell


def _comparison_table(before: Record, after: Record, comparison: t.Mapping[str, t.Any]) -> tuple[list[str], list[list[str]]]:
    old, new = ({row.name: row for row in view.rows(record)} for record in (before, after))
    ratios = {view.point_name(point.get("concurrency"), point.get("request_rate")): point for point in comparison.get("points") or []}
    names = list(dict.fromkeys([*new, *old]))
    titles, lines = ["Load"], [[name] for name in names]
    for metric in ("output_tok_per_s", "ttft_ms", "tpot_ms", "e2e_ms"):
        title = _TITLES[metric] if metric == "output_tok_per_s" else f"{_TITLES[metric]} p50"
        titles += [f"{title}, baseline", f"{title}, now"]
        for line, name in zip(lines, names):
            line += [_span(rows[name].ranges.get(metric)) if name in rows else _NONE for rows in (old, new)]
        if metric == comparison.get("metric"):
            titles.append("Ratio")
            for line, name in zip(lines, names):
                line.append(_ratio_cell(ratios.get(name, {})))
    return _filled(titles, lines)


def _ratio_cell(point: t.Mapping[str, t.Any]) -> str:
    return f"{_ratio(point)[8:-1]}, {escape(point.get('verdict'))}" if _ratio(point) else _NONE


def _span(found: view.Range | None) -> str:
    return f"{number(found.median)} ({number(found.low)} to {number(found.high)})" if found else _NONE


def _optional(value: float | None) -> str:
    return _NONE if value is None else number(value)


def _filled(titles: list[str], lines: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """A table without the columns that hold nothing."""
    kept = [place for place in range(len(titles)) if any(line[place] != _NONE for line in lines)]
    return [titles[place] for place in kept], [[line[place] for place in kept] for line in lines]


def _table(titles: list[str], lines: list[list[str]]) -> str:
    rule = ["---", *("---:" for _title in titles[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *lines)) if lines and titles else ""


def _list(entries: t.Iterable[t.Any], words: t.Callable[[t.Any], str]) -> str:
    return "\n".join(f"- {words(entry)}" for entry in entries)


def _section(title: str, entries: list[str]) -> str:
    return "\n\n".join(part for part in (title, _list(entries, str)) if part)


def _difference(entry: t.Any) -> str:
    if not isinstance(entry, dict):
        return code(entry)
    return f"{code(entry.get('name'))}: {code(entry.get('baseline'))} -> {code(entry.get('current'))}"


def _remarks_of_both(before: list[str], after: list[str]) -> dict[str, list[str]]:
    return {
        "Now: ": [text for text in after if text not in before],
        "Baseline: ": [text for text in before if text not in after],
        "Both: ": [text for text in after if text in before],
    }


def _counted(baseline: t.Sequence[Record], current: t.Sequence[Record]) -> str:
    counts = [(len(records), sum(len(record.get("starts") or []) for record in records)) for records in (baseline, current)]
    if all(starts <= 1 for _records, starts in counts):
        return ""
    words = [f"{starts} server start{'' if starts == 1 else 's'} in {records} record{'' if records == 1 else 's'}" for records, starts in counts]
    return f"The verdict is from {words[0]} (baseline) and {words[1]} (now); the table shows the newest of each."


def _details(title: str, record: Record) -> str:
    lines = [
        [group if place == 0 else "", code(name), code(value)] for group, pairs in view.conditions(record, _MOST) for place, (name, value) in enumerate(pairs)
    ]
    if not lines:
        return ""
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (["", "Condition", "Value"], ["---"] * 3, *lines))
    return f"<details>\n<summary>{title}</summary>\n\n{table}\n\n</details>"
