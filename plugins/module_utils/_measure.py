# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Measures one point of a workload on a running server: warm-up until it is stable, repetitions, and whether anybody else was served meanwhile."""

from __future__ import annotations

import time
import typing as t
from dataclasses import asdict, dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._hardware import GpuSampler
from ansible_collections.llmops.inference.plugins.module_utils._record_points import CONTENDED, FAILED, LATENCIES, OK, RATES, unsettled, value_of
from ansible_collections.llmops.inference.plugins.module_utils._repetition import UNKNOWN, BenchmarkError, check_failures, histogram_ms, repetition
from ansible_collections.llmops.inference.plugins.module_utils._server_counts import ServerCounts
from ansible_collections.llmops.inference.plugins.module_utils._server_load import ServerLoad
from ansible_collections.llmops.inference.plugins.module_utils._stats import estimate

FLUSHED, SALTED, WARM = "flushed", "salted", "warm"
_LOAD_SECONDS, _GPU_SECONDS = 2.0, 5.0
_IDLE_ATTEMPTS, _PAUSE_SECONDS = 6, 0.5
# Warm-up prompts are none of those that are measured.
_WARMUP = 1000


class Point(t.NamedTuple):
    """One point of a sweep: a number of requests in flight, or a rate at which they arrive.

    Attributes:
        concurrency: requests in flight; None for no limit.
        request_rate: arrivals per second (Poisson process); None for as fast as the concurrency lets them.
    """

    concurrency: int | None = 1
    request_rate: float | None = None

    def __str__(self) -> str:
        rate = f"{self.request_rate:g} requests/s" if self.request_rate else ""
        return ", ".join(filter(None, (f"concurrency {self.concurrency}" if self.concurrency else "", rate)))


@dataclass(frozen=True)
class Manner:
    """How a workload is measured.

    Attributes:
        name: of the workload, for who waits.
        output_tokens: tokens of every answer; None where answers end by themselves.
        repetitions: measured ones, at least 1.
        warmup_limit: repetitions before that, at most.
        stable_pct: difference between two of them in a row from which the server counts as warm, percent.
        cache: ``flushed`` before every repetition, ``salted`` (prompts that were never seen) or ``warm``.
        slo: objectives for goodput, see :func:`_repetition.goodput`.
        failed_pct: share of failed requests that is put up with, percent.
        seconds: limit of one repetition.
    """

    name: str
    output_tokens: int | None = None
    repetitions: int = 5
    warmup_limit: int = 4
    stable_pct: float = 3.0
    cache: str = SALTED
    slo: t.Mapping[str, float] = field(default_factory=dict)
    failed_pct: float = 0.0
    seconds: float = 900.0


class Generator(t.Protocol):
    """A load generator that is running."""

    def run(self, repetition_number: int, point: Point, seconds: float, tick: t.Callable[[], None]) -> t.Mapping[str, t.Any]:
        """Performs one repetition and returns what was measured of each request, see :func:`_repetition.requests_of`."""


class Report(t.Protocol):
    """Tells whoever waits (step, seconds, detail), as :class:`_progress.Progress`."""

    def __call__(self, step: str, seconds: float = 0.0, detail: str = "") -> None: ...


class Clock(t.NamedTuple):
    """Time, injected.

    Attributes:
        monotonic: seconds that only grow.
        now: wall clock, seconds.
        sleep: waits so many seconds.
    """

    monotonic: t.Callable[[], float] = time.monotonic
    now: t.Callable[[], float] = time.time
    sleep: t.Callable[[float], None] = time.sleep


REAL = Clock()


@dataclass
class _Found:
    """What is known of a point so far.

    Attributes:
        step: what is done now, in words.
        remarks, warmup, repetitions: as in the record.
        gaps: times between tokens, seconds.
    """

    step: str = "warming up"
    remarks: list[str] = field(default_factory=list)
    warmup: dict[str, t.Any] = field(default_factory=lambda: {"repetitions": 0, "stable": False})
    repetitions: list[dict[str, t.Any]] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)


class Measure:
    """Measures points of one workload.

    Args:
        generator: sends the requests.
        server: tells its load.
        gpus: samples the GPUs.
        manner: see :class:`Manner`.
        report: progress.
        clock: see :class:`Clock`.
    """

    def __init__(self, generator: Generator, server: ServerLoad, gpus: GpuSampler, manner: Manner, *, report: Report, clock: Clock = REAL) -> None:
        self._generator = generator
        self._server = server
        self._gpus = gpus
        self._manner = manner
        self._report = report
        self._clock = clock
        self._before = self._strangers = 0
        self._counts = ServerCounts(server, clock.sleep)
        self._peak_queue: int | None = None
        self._peak_usage: float | None = None
        self._next_load = self._next_gpu = 0.0

    def point(self, point: Point) -> dict[str, t.Any]:
        """Returns the record's entry of one point.

        Its status is ``failed`` where requests failed, the cache could not be flushed, or the load generator gave no result; the last of its remarks says why.
        """
        found = _Found()
        try:
            self._measure(point, found)
        except BenchmarkError as error:
            return _entry(point, FAILED, [*found.remarks, *self._remarks(found), f"{error} ({found.step})"], found)
        status = CONTENDED if self._before or self._strangers > 0 else OK
        return _entry(point, status, [*found.remarks, *self._remarks(found)], found)

    def _measure(self, point: Point, found: _Found) -> None:
        """Fills in what is found, as far as it comes.

        Raises:
            BenchmarkError: the point failed.
        """
        found.remarks += self._settle()
        spent = self._warm_up(point, found)
        for number in range(1, self._manner.repetitions + 1):
            left = (self._manner.repetitions - number + 1) * max(spent, default=0.0)
            found.step = f"repetition {number} of {self._manner.repetitions}"
            self._tell(point, found.step, found.repetitions, left)
            begun = self._clock.monotonic()
            entry, gaps = self._repeat(number, point)
            spent = [self._clock.monotonic() - begun]
            found.repetitions.append(entry)
            found.gaps += gaps
            check_failures(entry, self._manner.failed_pct)

    def _remarks(self, found: _Found) -> list[str]:
        """What has to be said beside the numbers, once they are there."""
        count = len(found.repetitions)
        uncounted = sum(entry["counted_by"] == UNKNOWN for entry in found.repetitions)
        told = [
            unsettled({"warmup": found.warmup}) if count else "",
            f"{self._strangers} requests that are not ours were served during the measurement" if self._strangers > 0 else "",
            f"answers did not tell their number of tokens in {uncounted} of {count} repetitions, which have no tok/s" if uncounted else "",
            *self._counts.remarks(count),
            self._gpus.trouble,
        ]
        return [text for text in told if text]

    def _tell(self, point: Point, step: str, entries: t.Sequence[t.Mapping[str, t.Any]], left: float) -> None:
        words = f"{self._manner.name}, {point}: {step}"
        known = [entry["output_tok_per_s"] for entry in entries if entry["output_tok_per_s"] is not None]
        speed = f"{sum(known) / len(known):.1f} tok/s so far" if known else ""
        self._report(words, 0.0, ", ".join(filter(None, (speed, f"about {left:.0f} s left" if left else ""))))

    def _settle(self) -> list[str]:
        """Waits a moment for a server that is still busy with something; what stays is not ours."""
        self._before = self._strangers = 0
        self._counts = ServerCounts(self._server, self._clock.sleep)
        load = None
        for attempt in range(_IDLE_ATTEMPTS):
            if attempt:
                self._clock.sleep(_PAUSE_SECONDS)
            load = self._server.load()
            if load is None or not load.requests:
                break
        if load is None:
            return ["the server does not tell its load: requests that are not ours would not be seen (set enable_metrics)"]
        self._before = load.requests
        return [f"{load.requests} requests that are not ours were served before the measurement"] if load.requests else []

    def _warm_up(self, point: Point, found: _Found) -> list[float]:
        """Repeats until two in a row agree; the first requests of a server compile kernels and fill caches. Returns how long the last one took, seconds.

        Raises:
            BenchmarkError: it failed.
        """
        speeds: list[float] = []
        spent: list[float] = []
        while len(speeds) < self._manner.warmup_limit and not found.warmup["stable"]:
            self._report(f"{self._manner.name}, {point}: warming up ({len(speeds) + 1} of at most {self._manner.warmup_limit})", 0.0, "")
            begun = self._clock.monotonic()
            entry = self._run(0 if self._manner.cache == WARM else _WARMUP + len(speeds), point)[0]
            check_failures(entry, self._manner.failed_pct)
            spent = [self._clock.monotonic() - begun]
            speeds.append(entry["request_per_s"] or 0.0)
            stable = len(speeds) > 1 and abs(speeds[-1] - speeds[-2]) * 100 <= self._manner.stable_pct * speeds[-1]
            found.warmup = {"repetitions": len(speeds), "stable": stable}
        return spent

    def _repeat(self, number: int, point: Point) -> tuple[dict[str, t.Any], list[float]]:
        if self._manner.cache == FLUSHED:
            trouble = self._server.flush()
            if trouble:
                raise BenchmarkError(f"the prefix cache could not be flushed: {trouble}")
        self._peak_queue = self._peak_usage = None
        self._next_load = self._next_gpu = 0.0
        # What was sampled in the warm-up is not of this repetition.
        self._gpus.take()
        self._counts.begin()
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock.now()))
        entry, gaps = self._run(0 if self._manner.cache == WARM else number, point)
        self._gpus.sample()
        entry["started_at"] = started
        entry.update({"queued": self._peak_queue, "kv_usage": self._peak_usage, "gpus": self._gpus.take()})
        entry.update(self._counts.end(entry, self._manner.cache == FLUSHED))
        self._strangers = max(self._strangers, self._counts.strangers)
        return entry, gaps

    def _run(self, number: int, point: Point) -> tuple[dict[str, t.Any], list[float]]:
        raw = self._generator.run(number, point, self._manner.seconds, lambda: self._tick(point))
        return repetition(raw, self._manner.output_tokens, self._manner.slo), [gap for gaps in raw["itls"] for gap in gaps]

    def _tick(self, point: Point) -> None:
        """Looks at the server and its GPUs now and then while requests run."""
        now = self._clock.monotonic()
        if now >= self._next_gpu:
            self._next_gpu = now + _GPU_SECONDS
            self._gpus.sample()
        if now < self._next_load:
            return
        self._next_load = now + _LOAD_SECONDS
        load = self._server.load()
        # A look that saw no request, before the first or after the last one, says nothing of the load.
        if load is None or not load.requests:
            return
        self._peak_queue = max(load.queued, self._peak_queue or 0)
        if load.kv_usage is not None:
            self._peak_usage = round(max(load.kv_usage, self._peak_usage or 0.0), 4)
        if point.concurrency is not None:
            self._strangers = max(self._strangers, load.requests - point.concurrency)


def failed_point(point: Point, reason: str) -> dict[str, t.Any]:
    """Returns the record's entry of a point of which nothing was measured.

    Args:
        point: where it would have been measured.
        reason: in words.
    """
    return _entry(point, FAILED, [reason], _Found())


def _entry(point: Point, status: str, remarks: list[str], found: _Found) -> dict[str, t.Any]:
    return {
        "concurrency": point.concurrency,
        "request_rate": point.request_rate,
        "status": status,
        "remarks": remarks,
        "warmup": found.warmup,
        "repetitions": found.repetitions,
        "itl_histogram_ms": histogram_ms(found.gaps),
        # Of a point that failed there is no number.
        "summary": summary(found.repetitions) if status != FAILED else {},
    }


def summary(entries: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Returns each metric over the repetitions, as far as all of them have it; of latencies their median within each repetition."""
    found = {}
    for metric in (*RATES, *LATENCIES):
        known = [value for value in (value_of(entry, metric) for entry in entries) if value]
        if known and len(known) == len(entries):
            found[metric] = asdict(estimate(known))
    return found
