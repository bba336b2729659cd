#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures a preflight against the engine's own bare import and parse, for each engine of tools/engines.sh, in turns, and prints ratios."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = "ansible_collections.llmops.inference.plugins.modules.sglang_preflight"
PLACE = {"PYTHONPATH": str(ROOT / "collections")}
ARGV = ["--model-path", str(ROOT / "tests/engines/models/qwen3-8b"), "--mem-fraction-static", "0.88"]
BARE = """
import argparse, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
parser.parse_args(sys.argv[1:])
"""
TURNS = 3
COLD_GOAL = 1.3
CACHED_GOAL_SECONDS = 0.3


def run_command(command: list[str], text: str = "", environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(command, input=text, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=True)
    return done.returncode, done.stdout, done.stderr


def seconds(work) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def main() -> None:
    cache = Path(os.environ.get("LLMOPS_CACHE") or Path.home() / ".cache" / "llmops-inference")
    engines = json.loads((cache / "engines" / "index.json").read_text())
    facts = json.loads((ROOT / "tests/gpu/records/h200-x2/facts.json").read_text())
    print(f"{'engine':<10}{'bare import + parse':>22}{'preflight, cold':>18}{'ratio':>8}{'goal':>8}{'cached':>10}{'goal':>8}")
    for version, python in engines.items():
        with tempfile.TemporaryDirectory() as folder:

            def preflight(kept: str, version: str = version, python: str = python) -> bool:
                """The module in a process of its own, as Ansible starts it on a host."""
                engine = {"name": version, "version": version, "flavour": "cpu", "cuda": "13.0"}
                options = {"python": python, "engine": engine, "argv": ARGV, "gpu_facts": facts, "recorded": True, "cache": kept}
                _status, output, _error = run_command([sys.executable, "-m", MODULE], json.dumps({"ANSIBLE_MODULE_ARGS": options}), PLACE)
                return bool(json.loads(output)["cached"])

            preflight(folder)
            bare, cold, cached = [], [], []
            for _turn in range(TURNS):
                bare.append(seconds(lambda python=python: run_command([python, "-s", "-c", BARE, *ARGV])))
                cold.append(seconds(lambda: preflight("")))
                cached.append(seconds(lambda: preflight(folder)))
            assert preflight(folder), "the answer was not kept"
        ratio = statistics.median(cold) / statistics.median(bare)
        print(
            f"{version:<10}{statistics.median(bare):>20.1f} s{statistics.median(cold):>16.1f} s{ratio:>8.2f}{COLD_GOAL:>8}"
            f"{statistics.median(cached):>8.3f} s{CACHED_GOAL_SECONDS:>8}"
        )


if __name__ == "__main__":
    main()
