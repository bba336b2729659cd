#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection adds to the engine's own benchmark: the share of a run that is not the engine's, and the throughput with and without looking at the
server meanwhile. One real CPU engine."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.llmops.inference.plugins.module_utils import _engine_client
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import EngineGenerator, Target, benchmark_module
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_run import Job, make_batch
from ansible_collections.llmops.inference.plugins.module_utils._client_process import ClientProcess, client_environment
from ansible_collections.llmops.inference.plugins.module_utils._hardware import GpuSampler
from ansible_collections.llmops.inference.plugins.module_utils._measure import Manner, Measure, Point
from ansible_collections.llmops.inference.plugins.module_utils._record_points import FAILED
from ansible_collections.llmops.inference.plugins.module_utils._server_load import ServerLoad
from ansible_collections.llmops.inference.plugins.module_utils._workload import shipped
from ansible_collections.llmops.inference.tests.tiny_server import NAME, START_SECONDS, cache, python_of, tiny_server

VERSION = "0.5.23"
REPETITIONS = 8
GOAL_PCT = 2.0


class Timed:
    """A load generator that adds up its own seconds."""

    def __init__(self, inner):
        self.inner = inner
        self.seconds = 0.0
        self.ticks = True

    def run(self, number, point, seconds, tick):
        begun = time.monotonic()
        looked = 0.0

        def counted():
            nonlocal looked
            before = time.monotonic()
            tick()
            looked += time.monotonic() - before

        found = self.inner.run(number, point, seconds, counted if self.ticks else lambda: None)
        self.seconds += time.monotonic() - begun - looked
        return found


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(1))
    with tempfile.TemporaryDirectory() as name, tiny_server(VERSION, Path(name)) as (server, url):
        python, folder = python_of(VERSION), Path(name)
        port = int(url.rpartition(":")[2])
        workload = shipped("decode", requests=4)
        job = Job(Target("127.0.0.1", port, False, NAME, str(cache() / "models" / NAME)), python, [workload], salt="bench")
        command = [python, "-s", str(Path(_engine_client.__file__).resolve()), benchmark_module(python)]
        with ClientProcess(command, client_environment(os.environ, name), folder) as process:
            process.expect("ready", START_SECONDS)
            timed = Timed(EngineGenerator(process, job.target, lambda number, point: make_batch(job, workload, number, point), folder, True))
            manner = Manner("decode", workload.output_tokens, repetitions=REPETITIONS)
            measure = Measure(timed, ServerLoad(server.request), GpuSampler(lambda *words: None, False), manner, report=lambda *words: None)
            rates: dict[bool, list[float]] = {True: [], False: []}
            shares = []
            for turn in range(4):
                timed.ticks, timed.seconds, begun = turn % 2 == 0, 0.0, time.monotonic()
                found = measure.point(Point(1))
                if found["status"] == FAILED:
                    sys.exit(found["remarks"][-1])
                rates[timed.ticks] += [entry["output_tok_per_s"] for entry in found["repetitions"]]
                if timed.ticks:
                    shares.append(100 * (1 - timed.seconds / (time.monotonic() - begun)))
    with_looks, without = (statistics.median(rates[ticks]) for ticks in (True, False))
    print(f"{'share of the run that is not the engine benchmark, %':58} {statistics.mean(shares):6.2f} {GOAL_PCT:6.2f}")
    print(f"{'throughput, looked at / left alone':58} {with_looks / without:6.3f} {1 - GOAL_PCT / 100:6.2f}   {with_looks:.1f} / {without:.1f} tok/s")


if __name__ == "__main__":
    main()
