# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What was measured in a benchmark's records: their metrics, their points by load and start, and why a point gives no number."""

from __future__ import annotations

import typing as t

RATES = ("output_tok_per_s", "total_tok_per_s", "request_per_s", "goodput_per_s")
LATENCIES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_STATISTICS = ("p50", "p90", "p99", "mean")
METRICS = (*RATES, *LATENCIES, *(f"{name}_{statistic}" for name in LATENCIES for statistic in _STATISTICS))
OK, CONTENDED, FAILED = "ok", "contended", "failed"

Record = t.Mapping[str, t.Any]
Point = t.Mapping[str, t.Any]
# Concurrency and request rate, None for unlimited.
Load = t.Tuple[t.Optional[int], t.Optional[float]]
# What tells one start of a server from another: host, instance, invocation.
StartKey = t.Tuple[str, str, str]
Starts = t.Dict[StartKey, t.List[Point]]


def higher_is_better(metric: str) -> bool:
    """Tells a rate from a latency."""
    return metric in RATES


def value_of(repetition: t.Mapping[str, t.Any], metric: str) -> float | None:
    """Returns a repetition's number, or None where it has none; of a latency the median unless the metric names another statistic."""
    value = repetition.get(metric)
    if metric not in RATES:
        latency, _ms, statistic = metric.partition("_ms")
        value = (repetition.get(f"{latency}_ms") or {}).get(statistic[1:] or "p50")
    return None if value is None else float(value)


def values_of(points: t.Iterable[Point], metric: str) -> list[float | None]:
    """Returns the numbers of all repetitions of points."""
    return [value_of(repetition, metric) for point in points for repetition in point["repetitions"]]


def by_load(records: t.Iterable[Record], concurrency: int | None = None) -> dict[Load, Starts]:
    """Returns the points by load, and by the start of the server that they were measured on.

    A start that was measured twice, in one record or in two, is one start: measuring it again says nothing about the next one.

    Args:
        records: in any order.
        concurrency: only points of this one; None for all.
    """
    loads: dict[Load, Starts] = {}
    for i, record in enumerate(records):
        for j, start in enumerate(record["starts"]):
            key = (record["host"], record["instance"], start.get("invocation") or f"unknown {i} {j}")
            for point in start["points"]:
                load = point.get("concurrency"), point.get("request_rate")
                if concurrency in (None, load[0]):
                    loads.setdefault(load, {}).setdefault(key, []).append(point)
    return loads


def start_keys(records: t.Iterable[Record]) -> set[StartKey]:
    """Returns the different starts that were measured."""
    return {key for starts in by_load(records).values() for key in starts}


def refusals(records: t.Iterable[Record], concurrency: int | None = None) -> list[tuple[str, str]]:
    """Returns status and reason of each point that gives no number to compare.

    Args:
        records: in any order.
        concurrency: only points of this one; None for all.
    """
    points = [point for starts in by_load(records, concurrency).values() for found in starts.values() for point in found]
    return [(point["status"], refusal(point)) for point in points if point["status"] != OK]


def refusal(point: Point) -> str:
    """Returns why a point gives no number to compare: "contended: 2 requests that are not ours were running"."""
    reasons = dict.fromkeys([*filter(None, [failures(point)]), *map(str, point.get("remarks") or [])])
    return f"{point['status']}: {'; '.join(reasons)}" if reasons else str(point["status"])


def failures(point: Point) -> str:
    """Returns how many requests failed, over all repetitions: "7 of 10 requests failed"; empty for none."""
    failed, requests = (sum(repetition.get(key) or 0 for repetition in point["repetitions"]) for key in ("failed", "requests"))
    return f"{failed} of {requests} requests failed" if failed else ""


def unsettled(point: Point) -> str:
    """Returns that the server was still warming up when a point was measured, as far as its warm-up tells; empty where it was not."""
    warmup = point.get("warmup") or {}
    if warmup.get("stable") is not False:
        return ""
    count = warmup.get("repetitions")
    return f"the warm-up was not stable after {count} repetition{'' if count == 1 else 's'}"


def uncounted(points: t.Iterable[Point]) -> str:
    """Returns that nobody counted the tokens of some repetitions, and of how many; empty where all were counted."""
    repetitions = [repetition for point in points for repetition in point["repetitions"]]
    count = sum(repetition.get("output_tokens") is None for repetition in repetitions)
    return f"nobody counted the tokens of {count} of {len(repetitions)} repetitions" if count else ""


def remarks(points: t.Iterable[Point]) -> list[str]:
    """Returns what has to be said beside the numbers of points, each once."""
    found: list[str] = []
    for point in points:
        failed = failures(point)
        told = [*map(str, point.get("remarks") or []), unsettled(point)]
        found += [*filter(None, told), *([f"{failed}: the rates count the others only"] if failed else [])]
    return list(dict.fromkeys(found))


def words_of(load: Load) -> str:
    """Returns a load in a few words: "concurrency 4", "concurrency unlimited at 2.5 requests per s"."""
    rate = f" at {load[1]:g} requests per s" if load[1] is not None else ""
    return f"concurrency {load[0] or 'unlimited'}{rate}"
