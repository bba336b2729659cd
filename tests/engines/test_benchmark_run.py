# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A benchmark of which a part fails, against a real engine: what was measured stays, and the rest is measured while the server serves."""

from __future__ import annotations

import urllib.parse
from dataclasses import replace

from ansible_collections.llmops.inference.plugins.module_utils._benchmark import Target
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_run import BenchmarkRun, Job
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._workload import shipped
from ansible_collections.llmops.inference.tests.tiny_server import NAME, cache, python_of, tiny_server

VERSION = "0.5.23"
# The server's context is 2048 tokens.
TOO_LONG = shipped("random_ids", input_tokens=3000)
SHORT = replace(shipped("decode"), requests=2, output_tokens=16)


def run(url, folder, points, workloads):
    target = Target("127.0.0.1", urllib.parse.urlparse(url).port, False, NAME, str(cache() / "models" / NAME))
    job = Job(target, python_of(VERSION), workloads, points, repetitions=2, warmup_limit=1, seconds=120.0, salt=folder.name)
    folder.mkdir()
    return BenchmarkRun(job, folder, lambda *words: None, False, lambda *words: None)


def test_a_part_that_fails(tmp_path):
    with tiny_server(VERSION, tmp_path) as (server, url):
        benchmark = run(url, tmp_path / "lives", [Point(1)], [TOO_LONG, SHORT])
        found = benchmark.start()
        (failed,), (measured,) = found["random_ids"], found["decode"]
        assert (failed["status"], measured["status"]) == ("failed", "ok") and len(benchmark.failures) == 1
        assert benchmark.failures[0].startswith("random_ids, concurrency 1: ") and failed["remarks"][-1] in benchmark.failures[0]
        for entry in measured["repetitions"]:
            assert (entry["counted_by"], entry["output_tokens"], entry["server"]["generation_tokens"]) == ("server usage", 32, 32)
            assert (entry["accept_length"], entry["accept_length_of"], entry["gpus"]) == (None, None, [])
        assert server.request("/health_generate", timeout=30).status == 200
    benchmark = run(url, tmp_path / "gone", [Point(1), Point(2)], [SHORT])
    (failed,) = benchmark.start()["decode"]
    assert failed["status"] == "failed" and "not tried after it: decode, concurrency 2" in failed["remarks"]
