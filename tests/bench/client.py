#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throughput that the collection's client reads against the engine's own, both through the chat API of one real CPU engine, in turns; prints ratios."""

from __future__ import annotations

import signal
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "collections"))

from ansible_collections.llmops.inference.plugins.module_utils._workload import requests, shipped
from ansible_collections.llmops.inference.tests.tiny_server import EngineClient, OwnClient, python_of, tiny_server

VERSION = "0.5.23"
CONCURRENCY = (1, 4, 16)
TURNS = 5
OUTPUT_TOKENS = 64
GOAL = 0.98


def throughput(client, server, prompts, concurrency: int) -> float:
    """Output tokens a second with an empty prefix cache."""
    server.request("/flush_cache", {})
    found = client.run(prompts, OUTPUT_TOKENS, concurrency)
    assert found["completed"] == len(prompts), found["errors"]
    return sum(found["output_lens"]) / found["duration"]


def main() -> None:
    # Whoever stops this stops the server with it.
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(1))
    print(f"{'concurrency':<14}{'engine tok/s':>14}{'own tok/s':>12}{'ratio':>8}{'goal':>7}   ratios of the turns")
    with tempfile.TemporaryDirectory() as name, tiny_server(VERSION, Path(name)) as (server, url):
        python, folder = python_of(VERSION), Path(name)
        with OwnClient(python, url, folder / "own") as own, EngineClient(python, url, folder / "engine") as engine:
            for concurrency in CONCURRENCY:
                prompts = requests(shipped("chat"), repetition=0, seed=1, salt=f"{concurrency}", count=max(8, 3 * concurrency))
                both = (engine, own)
                # The first turn warms the server up; the order changes, so that none is always the second.
                turns = [
                    {client: throughput(client, server, prompts, concurrency) for client in (both if turn % 2 else both[::-1])} for turn in range(TURNS + 1)
                ][1:]
                rates = [statistics.median(turn[client] for turn in turns) for client in both]
                ratios = " ".join(f"{turn[own] / turn[engine]:.3f}" for turn in turns)
                print(f"{concurrency:<14}{rates[0]:>14.1f}{rates[1]:>12.1f}{rates[1] / rates[0]:>8.3f}{GOAL:>7}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
