# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a report shows of a benchmark record (format 2): rows of numbers, remarks, conditions. Records come from files that anybody may have edited, so
whatever is absent or null is left out, and nothing here is escaped: that is up to the format it is put into.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._record import FORMAT, KIND
from ansible_collections.llmops.inference.plugins.module_utils._record_points import LATENCIES, unsettled
from ansible_collections.llmops.inference.plugins.module_utils._stats_repetitions import too_noisy

Record = t.Mapping[str, t.Any]

RATES = ("output_tok_per_s", "total_tok_per_s", "request_per_s")
PERCENTILES = ("p50", "p90", "p99")
# The change that a person would want to see, percent.
OF_INTEREST_PCT = 3.0
# The server's count includes the first token of requests that were cut off.
_SAME_TOKENS = 0.01
_LONG = 200
_TEXTS = ("host", "instance", "measured_at")
_MAPPINGS = ("client", "engine", "environment", "hardware", "inventory", "model", "release", "workload")
_LISTS = ("flags", "starts")


@dataclass(frozen=True)
class Range:
    """A median with its interval, in the unit of its metric."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """One point of a sweep.

    Attributes:
        concurrency, request_rate: what makes the point; one of them may be None (requests per second for the rate).
        status: ``ok``, ``contended`` or ``failed``: the worst of its starts.
        starts, repetitions: how many are behind the numbers.
        ranges: by metric; of latencies it is the repetitions' p50.
        percentiles: by latency and percentile, in ms: medians over the repetitions.
        goodput_per_s, accept_length, cache_hit_rate: medians over the repetitions; None where they were not measured.
        spread_pct: the largest of its starts.
        completed, failed: requests of all repetitions.
    """

    concurrency: int | None
    request_rate: float | None
    status: str
    starts: int
    repetitions: int
    ranges: dict[str, Range]
    percentiles: dict[str, dict[str, float]]
    goodput_per_s: float | None
    accept_length: float | None
    cache_hit_rate: float | None
    spread_pct: float | None
    completed: int
    failed: int

    @property
    def name(self) -> str:
        """The point in words."""
        return point_name(self.concurrency, self.request_rate)

    @property
    def rate(self) -> Range | None:
        """Output tokens per second."""
        return self.ranges.get("output_tok_per_s")


def problem(document: t.Any) -> str:
    """Returns why a document is no record that a report can show; empty when it is one."""
    if not isinstance(document, dict) or document.get("kind") != KIND:
        return "it is no record of a benchmark"
    if document.get("format") != FORMAT:
        return f"its format is {shown(document.get('format'))}, and {FORMAT} is the one that is known here"
    for names, kind, title in ((_TEXTS, str, "text"), (_MAPPINGS, dict, "a mapping"), (_LISTS, list, "a list")):
        wrong = next((name for name in names if not isinstance(document.get(name), kind)), "")
        if wrong:
            return f"{wrong} is not {title}"
    return _misshapen(document)


def _misshapen(document: t.Mapping[str, t.Any]) -> str:
    """What is wrong inside of a record whose parts are there."""
    if any(not isinstance(entry, dict) or not {"name", "value"} <= entry.keys() for entry in document["flags"]):
        return "flags has an entry without name and value"
    if not isinstance(document["release"].get("subject"), str):
        return "release has no subject"
    points = [point for start in document["starts"] for point in _listed(start, "points")]
    repetitions = [entry for point in points for entry in _listed(point, "repetitions")]
    if any(not isinstance(entry, dict) for entry in repetitions) or not all("status" in point for point in points):
        return "starts has a point without status and repetitions"
    return ""


def is_number(value: t.Any) -> t.TypeGuard[float]:
    """Whether a value of a record is a number that can be shown."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def number(value: float) -> str:
    """Returns a number as people read it: three digits that matter, thousands set apart."""
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 or size == 0 else 3
    return f"{value:,.{digits}f}"


def shown(value: t.Any, most: int = _LONG) -> str:
    """Returns any value as one line of printable text, cut where it is long; nothing is escaped yet."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= most else f"{text[:most]}..."


def point_name(concurrency: t.Any, request_rate: t.Any) -> str:
    """Returns what makes a point of a sweep, in words."""
    streams = "1 stream" if concurrency == 1 else f"{concurrency} streams" if is_number(concurrency) else ""
    if is_number(request_rate):
        return f"{request_rate:g} requests/s{f', at most {streams}' if streams else ''}"
    return streams or "no limit"


def record_name(record: Record) -> str:
    """Returns the name that a record's files have, without directory and suffix.

    A name comes from untrusted values: only letters that any file system takes remain.
    """
    stamp = re.sub(r"[-:]", "", str(record.get("measured_at", "")))
    parts = (stamp, str(part(record, "workload").get("name", "")), str(part(record, "release").get("id", "")))
    return "-".join(re.sub(r"[^A-Za-z0-9_.]+", "_", part) or "unknown" for part in parts)


def workload_name(record: Record) -> str:
    """Returns the name of a record's workload."""
    return shown(part(record, "workload").get("name") or "unknown")


def rows(record: Record) -> list[Row]:
    """Returns the points of a sweep, those with a request rate last, each in growing order."""
    found: dict[tuple[t.Any, t.Any], list[Record]] = {}
    for point in _points(record):
        found.setdefault((point.get("concurrency"), point.get("request_rate")), []).append(point)
    made = [_row(*key, points) for key, points in found.items()]
    return sorted(made, key=lambda row: (is_number(row.request_rate), row.request_rate or 0.0, row.concurrency or 0))


def main_row(record: Record) -> Row | None:
    """Returns the point that stands for the record: the first that has a throughput, a single stream where there is one."""
    return next((row for row in rows(record) if row.rate is not None), None)


def histogram(record: Record) -> tuple[list[float], list[float]] | None:
    """Returns edges (ms) and counts of the inter-token latencies of the first point that has them."""
    for point in _points(record):
        told = point.get("itl_histogram_ms")
        edges, counts = (told.get("edges"), told.get("counts")) if isinstance(told, dict) else (None, None)
        if isinstance(edges, list) and isinstance(counts, list) and len(edges) == len(counts) + 1 and all(map(is_number, edges + counts)) and sum(counts) > 0:
            return edges, counts
    return None


def repetition_rates(record: Record) -> list[float]:
    """Returns output tok/s of the repetitions of the point that stands for the record, in order, start after start."""
    row = main_row(record)
    points = [point for point in _points(record) if row and (point.get("concurrency"), point.get("request_rate")) == (row.concurrency, row.request_rate)]
    values = [entry.get("output_tok_per_s") for point in points for entry in _entries(point, "repetitions")]
    return [value for value in values if is_number(value)]


def remarks(record: Record) -> list[str]:
    """Returns what a reader has to know before believing the numbers, what matters most first."""
    found = [f"The workload is {label}." for label in [part(record, "workload").get("label")] if label]
    for point in _points(record):
        where = point_name(point.get("concurrency"), point.get("request_rate"))
        found += [f"{where}: {text}" for text in _point_remarks(point)]
    client, inventory = part(record, "client"), part(record, "inventory")
    if client.get("where") not in (None, "", "server"):
        found.append(f"Measured from {client['where']}: the network is part of the numbers.")
    if inventory.get("dirty"):
        found.append("The inventory had changes that were not committed.")
    silent = record.get("silent_changes")
    if isinstance(silent, list) and silent:
        found.append(f"The engine changed {len(silent)} of the settings that were asked for: {'; '.join(map(_silent, silent))}.")
    return [shown(text) for text in dict.fromkeys(found)]


def brief(change: str) -> str:
    """Returns a change of a flag in fewer words: "+ flag value", "- flag", or as it was."""
    name, _space, values = change.partition(" ")
    old, _arrow, new = values.partition(" -> ")
    if old == "not set":
        return f"+ {name} {new}" if new != "true" else f"+ {name}"
    return f"- {name}" if new == "not set" else change


def conditions(record: Record, most: int | None = None) -> list[tuple[str, list[tuple[str, str]]]]:
    """Returns the conditions of a record by group, as pairs of name and value; empty groups are left out.

    Args:
        record: the benchmark record.
        most: so many of each group, and how many there are beyond; None for all.
    """
    hardware = part(record, "hardware")
    gpus = hardware.get("gpus")
    machine = {"gpus": gpu_words(gpus), **{key: value for key, value in hardware.items() if key not in ("gpus", "links_measured")}}
    machine["links_measured"] = part(hardware, "links_measured").get("text")
    flags = [(f"{entry.get('name')} ({entry.get('layer', '')})", entry.get("value")) for entry in _entries(record, "flags")]
    release = {key: value for key, value in part(record, "release").items() if key != "argv"}
    groups: list[tuple[str, t.Iterable[tuple[t.Any, t.Any]]]] = [
        ("Run", [(key, record.get(key)) for key in ("host", "instance", "measured_at", "collection")]),
        ("Inventory", part(record, "inventory").items()),
        ("Release", release.items()),
        ("Engine", part(record, "engine").items()),
        ("Model", part(record, "model").items()),
        ("Workload", part(record, "workload").items()),
        ("Client", part(record, "client").items()),
        ("Hardware", machine.items()),
        ("Requested flags", flags),
        ("Environment", part(record, "environment").items()),
        ("Changed by the engine", [(entry.get("field"), _silent(entry)) for entry in _entries(record, "silent_changes")]),
        ("Effective flags", part(record, "effective").items()),
        ("Vital signs", part(record, "vitals").items()),
    ]
    told = [(title, [(shown(name), shown(value)) for name, value in pairs if value not in (None, "", [], {})]) for title, pairs in groups]
    return [(title, _first(pairs, most)) for title, pairs in told if pairs]


def _first(pairs: list[tuple[str, str]], most: int | None) -> list[tuple[str, str]]:
    if most is None or len(pairs) <= most:
        return pairs
    return [*pairs[:most], (f"and {len(pairs) - most} more", "in the record")]


def gpu_words(gpus: t.Any) -> str:
    """Returns the GPUs of a record in words, such as "2x NVIDIA RTX A6000, 49140 MiB, 300 W"; empty without."""
    kinds: dict[str, int] = {}
    for gpu in gpus if isinstance(gpus, list) else []:
        if isinstance(gpu, dict):
            parts = [str(gpu.get("name", "GPU"))]
            parts += [f"{gpu[key]:.0f} {unit}" for key, unit in (("memory_mib", "MiB"), ("power_limit_w", "W")) if is_number(gpu.get(key))]
            kinds[", ".join(parts)] = kinds.get(", ".join(parts), 0) + 1
    return "; ".join(f"{count}x {kind}" for kind, count in kinds.items())


def part(record: Record, name: str) -> dict[str, t.Any]:
    """Returns a part of a record; empty where it has none, or something else."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _entries(record: Record, name: str) -> list[dict[str, t.Any]]:
    value = record.get(name)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _listed(value: t.Any, name: str) -> list[t.Any]:
    """The list of that name, or one bad entry where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else [None]


def _points(record: Record) -> list[dict[str, t.Any]]:
    return [point for start in _entries(record, "starts") for point in _entries(start, "points")]


def _row(concurrency: t.Any, request_rate: t.Any, points: list[Record]) -> Row:
    repetitions = [entry for point in points for entry in _entries(point, "repetitions")]
    summaries = [part(point, "summary") for point in points]
    ranges = {metric: found for metric in (*RATES, *LATENCIES) for found in [_range([part(summary, metric) for summary in summaries])] if found}
    percentiles = {metric: _percentiles([part(entry, metric) for entry in repetitions]) for metric in LATENCIES}
    spreads = [value for summary in summaries for value in [part(summary, "output_tok_per_s").get("spread_pct")] if is_number(value)]
    states = [point.get("status") for point in points]
    goodput, accepted, hits = (_median([entry.get(key) for entry in repetitions]) for key in ("goodput_per_s", "accept_length", "cache_hit_rate"))
    completed, failed = (int(sum(entry[key] for entry in repetitions if is_number(entry.get(key)))) for key in ("completed", "failed"))
    return Row(
        int(concurrency) if is_number(concurrency) else None,
        request_rate if is_number(request_rate) else None,
        next((state for state in ("failed", "contended") if state in states), "ok"),
        len(points),
        len(repetitions),
        ranges,
        {metric: values for metric, values in percentiles.items() if values},
        goodput_per_s=goodput,
        accept_length=accepted,
        cache_hit_rate=hits,
        spread_pct=max(spreads, default=None),
        completed=completed,
        failed=failed,
    )


def _range(estimates: list[dict[str, t.Any]]) -> Range | None:
    """The median of the starts' medians; the interval spans those of all starts."""
    told = [found for found in estimates if all(is_number(found.get(key)) for key in ("median", "low", "high"))]
    if not told:
        return None
    return Range(statistics.median(found["median"] for found in told), min(found["low"] for found in told), max(found["high"] for found in told))


def _median(values: t.Iterable[t.Any]) -> float | None:
    told = [value for value in values if is_number(value)]
    return statistics.median(told) if told else None


def _percentiles(entries: list[dict[str, t.Any]]) -> dict[str, float]:
    values = {name: _median(entry.get(name) for entry in entries) for name in PERCENTILES}
    return {name: value for name, value in values.items() if value is not None}


def _point_remarks(point: Record) -> t.Iterator[str]:
    status, repetitions = point.get("status"), _entries(point, "repetitions")
    told = [str(text) for text in point.get("remarks") or []]
    if status not in (None, "ok"):
        yield f"{status}, so it counts for nothing{': ' + '; '.join(told) if told else ''}"
    else:
        yield from told
    failed = sum(entry["failed"] for entry in repetitions if is_number(entry.get("failed")))
    if failed:
        asked = failed + sum(entry["completed"] for entry in repetitions if is_number(entry.get("completed")))
        errors = [str(error) for entry in repetitions for error in entry.get("errors") or []]
        yield f"{failed} of {asked} requests failed{': ' + errors[0] if errors else ''}"
    drift = part(part(point, "summary"), "output_tok_per_s").get("drift")
    if drift:
        yield f"throughput {drift}"
    yield from _noise(repetitions)
    yield from _throttling(repetitions)
    # In records of today it stands among their remarks.
    if status != "failed" and unsettled({"warmup": part(point, "warmup")}) not in ("", *told):
        yield unsettled({"warmup": part(point, "warmup")})
    if any(entry.get("accept_length_of") == "server mean" for entry in repetitions):
        yield "the acceptance length is the server's running mean, not that of the repetitions"
    counters = {str(entry["counted_by"]) for entry in repetitions if entry.get("counted_by")} - {"server usage", "unknown"}
    if counters:
        yield f"tokens were counted by {', '.join(sorted(counters))}, not by the server's usage"
    yield from _token_difference(repetitions)


def _throttling(repetitions: list[dict[str, t.Any]]) -> t.Iterator[str]:
    seen: dict[tuple[t.Any, str], int] = {}
    for entry in repetitions:
        for gpu in _entries(entry, "gpus"):
            for reason in gpu.get("throttle") or []:
                key = (gpu.get("index"), str(reason))
                seen[key] = seen.get(key, 0) + 1
    for (index, reason), count in sorted(seen.items(), key=lambda item: ("thermal" not in item[0][1], str(item[0]))):
        what = "was throttled by heat" if "thermal" in reason else "was held back"
        yield f"GPU {index} {what} ({reason}) in {count} of {len(repetitions)} repetitions"


def _token_difference(repetitions: list[dict[str, t.Any]]) -> t.Iterator[str]:
    pairs = [(entry.get("output_tokens"), part(entry, "server").get("generation_tokens")) for entry in repetitions]
    known = [(client, server) for client, server in pairs if is_number(client) and is_number(server)]
    client, server = (sum(pair[place] for pair in known) for place in (0, 1))
    if abs(client - server) > _SAME_TOKENS * max(server, 1):
        yield f"the client counted {number(client)} output tokens, the server's own counters {number(server)}"


def _noise(repetitions: list[dict[str, t.Any]]) -> t.Iterator[str]:
    values = [entry.get("output_tok_per_s") for entry in repetitions]
    known = [float(value) for value in values if is_number(value) and value > 0]
    if known and len(known) == len(values):
        yield from filter(None, [too_noisy(known, OF_INTEREST_PCT)])


def _silent(entry: t.Any) -> str:
    if not isinstance(entry, dict):
        return shown(entry)
    why = f" ({shown(entry['why'])})" if entry.get("why") else ""
    return f"{entry.get('field')} {shown(entry.get('asked'))} -> {shown(entry.get('runs'))}{why}"
