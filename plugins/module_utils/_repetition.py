# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""One repetition of a benchmark: from what a load generator measured of each request to numbers with their units in the names."""

from __future__ import annotations

import math
import typing as t

Latencies = t.Dict[str, float]

SERVER_USAGE, UNKNOWN = "server usage", "unknown"
_PERCENTILES = (50, 90, 99)
SLO = ("ttft_ms", "tpot_ms", "e2e_ms")


class BenchmarkError(RuntimeError):
    """A benchmark that gives no number; the message is for the operator."""


class BenchmarkFailed(BenchmarkError):
    """A benchmark of which a part failed.

    Args:
        reason: for the operator.
        records: of what was measured, the failed points among them.
    """

    def __init__(self, reason: str, records: t.Sequence[t.Mapping[str, t.Any]]) -> None:
        super().__init__(reason)
        self.records = list(records)


class Request(t.NamedTuple):
    """One request.

    Attributes:
        ttft: time to first token, seconds.
        gaps: time between tokens, seconds; several tokens of one chunk share its gap.
        input_tokens: as the server or the tokenizer counts them.
        output_tokens: as the server counts them; None when it does not say.
        error: what went wrong, empty when nothing did.
    """

    ttft: float
    gaps: t.Sequence[float]
    input_tokens: int
    output_tokens: int | None
    error: str

    @property
    def e2e(self) -> float:
        """Seconds from sending the request to its last token."""
        return self.ttft + math.fsum(self.gaps)

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first one."""
        return math.fsum(self.gaps) / (self.output_tokens - 1) if self.output_tokens and self.output_tokens > 1 else None


def percentile(values: t.Sequence[float], percent: float) -> float:
    """Returns a percentile, linear between the two nearest ranks (as numpy's default, which the engine's benchmark uses).

    Args:
        values: at least one.
        percent: 0 to 100.
    """
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def distribution_ms(seconds: t.Sequence[float]) -> Latencies:
    """Returns mean and percentiles in milliseconds; empty when there is nothing to describe."""
    if not seconds:
        return {}
    found = {"mean": math.fsum(seconds) / len(seconds), **{f"p{percent}": percentile(seconds, percent) for percent in _PERCENTILES}}
    return {name: round(value * 1000, 3) for name, value in found.items()}


def requests_of(raw: t.Mapping[str, t.Any], output_tokens: int | None) -> list[Request]:
    """Returns the requests of one run as the load generators write them (the engine's own with ``--output-details``).

    An answer with other than the asked number of tokens is a failed request, and so is one without a first token: the engine's client takes a stream that
    breaks off, or one that carries an error event, for a success; when no token came at all it writes down the number that was asked for.

    Args:
        raw: one run.
        output_tokens: what every answer must have, where the end-of-sequence token is ignored; None where answers end by themselves.

    Raises:
        BenchmarkError: the details are missing.
    """
    columns = ("ttfts", "itls", "input_lens", "output_lens", "errors")
    missing = [name for name in columns if name not in raw]
    if missing:
        raise BenchmarkError(f"the load generator's result has no {', '.join(missing)}")
    found = [Request(*row) for row in zip(*(raw[name] for name in columns))]
    return [request._replace(error=request.error or _shortfall(request, output_tokens)) for request in found]


def _shortfall(request: Request, expected: int | None) -> str:
    if request.output_tokens == 0 or request.ttft <= 0:
        return "no token came"
    if expected is None or request.output_tokens is None or request.output_tokens == expected:
        return ""
    return f"the answer has {request.output_tokens} of {expected} tokens"


def rates(requests: t.Sequence[Request], duration: float) -> dict[str, float | None]:
    """Returns throughput over all streams, of the requests that succeeded; without the server's own count of tokens there is none.

    Args:
        requests: all of a run.
        duration: wall time of the run, seconds.
    """
    fine = [request for request in requests if not request.error]
    known = bool(fine) and duration > 0 and all(request.output_tokens is not None for request in fine)
    output = sum(request.output_tokens or 0 for request in fine)
    total = output + sum(request.input_tokens for request in fine)
    return {
        "output_tok_per_s": round(output / duration, 3) if known else None,
        "total_tok_per_s": round(total / duration, 3) if known else None,
        "request_per_s": round(len(fine) / duration, 5) if fine and duration > 0 else None,
    }


def goodput(requests: t.Sequence[Request], duration: float, slo: t.Mapping[str, float]) -> float | None:
    """Returns requests per second that met every stated objective, failed ones not counted; None without objectives.

    Args:
        requests: all of a run.
        duration: wall time of the run, seconds.
        slo: upper limits by name (``ttft_ms``, ``tpot_ms``, ``e2e_ms``).
    """
    if not slo or duration <= 0:
        return None
    met = 0
    for request in requests:
        found = {"ttft_ms": request.ttft, "tpot_ms": request.tpot or 0.0, "e2e_ms": request.e2e}
        met += not request.error and all(found[name] * 1000 <= limit for name, limit in slo.items())
    return round(met / duration, 5)


def repetition(raw: t.Mapping[str, t.Any], output_tokens: int | None, slo: t.Mapping[str, float]) -> dict[str, t.Any]:
    """Returns the record's entry of one repetition.

    Args:
        raw: one run, see :func:`requests_of`.
        output_tokens: see :func:`requests_of`.
        slo: see :func:`goodput`.
    """
    requests, duration = requests_of(raw, output_tokens), float(raw["duration"])
    fine = [request for request in requests if not request.error]
    counted = all(request.output_tokens is not None for request in fine)
    errors = sorted({request.error.strip().splitlines()[-1][:300] for request in requests if request.error.strip()})
    return {
        "duration_s": round(duration, 4),
        "requests": len(requests),
        "completed": len(fine),
        "failed": len(requests) - len(fine),
        "errors": errors[:5],
        "input_tokens": sum(request.input_tokens for request in fine),
        "output_tokens": sum(request.output_tokens or 0 for request in fine) if counted else None,
        "counted_by": SERVER_USAGE if counted else UNKNOWN,
        **rates(requests, duration),
        "ttft_ms": distribution_ms([request.ttft for request in fine]),
        "tpot_ms": distribution_ms([request.tpot for request in fine if request.tpot is not None]),
        "itl_ms": distribution_ms([gap for request in fine for gap in request.gaps]),
        "e2e_ms": distribution_ms([request.e2e for request in fine]),
        "goodput_per_s": goodput(requests, duration, slo),
    }


def check_failures(entry: t.Mapping[str, t.Any], allowed_pct: float) -> None:
    """Stops a benchmark whose requests failed.

    Args:
        entry: of one repetition.
        allowed_pct: share of failed requests that is put up with, percent.

    Raises:
        BenchmarkError: too many failed, or all did (then there is no number at all).
    """
    failed, asked = entry["failed"], entry["requests"]
    if failed and (failed == asked or failed * 100 > allowed_pct * asked):
        reason = f": {entry['errors'][0]}" if entry["errors"] else ""
        raise BenchmarkError(f"{failed} of {asked} requests failed{reason}")


def histogram_ms(seconds: t.Sequence[float], bins: int = 40) -> dict[str, list[t.Any]]:
    """Returns how often which inter-token latency was seen, in bins of equal ratio, up to the longest one.

    Args:
        seconds: the latencies.
        bins: how many.
    """
    values = [value * 1000 for value in seconds if value > 0]
    if not values:
        return {"edges": [], "counts": []}
    low, high = min(values), max(*values, min(values) * 1.01)
    step = math.log(high / low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(int(math.log(value / low) / step), bins - 1)] += 1
    return {"edges": [round(low * math.exp(step * place), 5) for place in range(bins + 1)], "counts": counts}
