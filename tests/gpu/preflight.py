#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a machine with an NVIDIA GPU: says what servers will run, then starts them and asks them.

preflight.py COLLECTIONS OUT MODELS: COLLECTIONS holds ansible_collections/llmops/inference, the interpreter has the engine. For each candidate the record holds
what preflight said before the start, what the server said of itself after it, and where they differ. Nothing is changed on the machine.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PORT = 31700
CANDIDATES = {
    "fp8-cache": ["--kv-cache-dtype", "fp8_e5m2", "--mem-fraction-static", "0.7", "--max-running-requests", "64", "--page-size", "64", "--disable-cuda-graph"],
    "small-graphs": ["--context-length", "8192", "--attention-backend", "triton", "--chunked-prefill-size", "2048", "--cuda-graph-max-bs", "8"],
    "overlap": ["--enable-single-batch-overlap", "--speculative-num-steps", "3", "--mem-fraction-static", "0.6", "--disable-cuda-graph"],
}
SECONDS = 170


def run_command(command, text="", environment=None):
    done = subprocess.run(command, input=text, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def server_info(argv, log):
    """Starts a server, returns what it says of itself, and ends it."""
    with open(log, "w", encoding="utf-8") as stream:
        server = subprocess.Popen([sys.executable, "-m", "sglang.launch_server", *argv], stdout=stream, stderr=stream, start_new_session=True)
    deadline = time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline and server.poll() is None:
            time.sleep(1)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health_generate", timeout=20) as answer:
                    if answer.status == 200:
                        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/server_info", timeout=20) as told:
                            return json.load(told)
            except OSError:
                continue
        return {}
    finally:
        if server.poll() is None:
            os.killpg(server.pid, 15)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, 9)
            server.wait()


def main(collections: str, out: str, models: str) -> None:
    sys.path.insert(0, collections)
    from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost
    from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy, Subject
    from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache
    from ansible_collections.llmops.inference.plugins.module_utils._preflight_host import Preflight, Request
    from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import report
    from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe

    def ask(*command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        except OSError:
            return None
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    facts = GpuHost(ask, Files.here()).collect()
    version = importlib.metadata.version("sglang")
    engine = {"name": version, "version": version, "flavour": "cuda", "cuda": importlib.import_module("torch").version.cuda}
    for name, words in CANDIDATES.items():
        argv = ["--model-path", f"{models}/qwen3-8b", "--load-format", "dummy", "--host", "127.0.0.1", "--port", str(PORT), *words]
        started = time.monotonic()
        request = Request(Probe(sys.executable), engine, argv, gpu_facts=facts)
        result = Preflight(request, Subject(engine, {}, {}, Policy("warn", "warn")), Cache(None), run_command, run_command).result()
        print(f"== {name}: preflight took {time.monotonic() - started:.1f} s")
        print("\n".join(report(result)), flush=True)
        started = time.monotonic()
        told = server_info(argv, f"{out}/{name}.log")
        told.pop("internal_states", None)
        print(f"-- {name}: server took {time.monotonic() - started:.1f} s, told {len(told)} fields")
        effective = result["effective"]
        different = {field: [effective[field], told[field]] for field in effective if field in told and effective[field] != told[field]}
        print(f"-- claimed {len(set(effective) & set(told))}, different: {different}")
        print(
            f"-- KV tokens: {(result['memory'] or {}).get('kv_tokens')} said, {told.get('max_total_num_tokens')} measured; touched {result['probe']}",
            flush=True,
        )
        record = {"name": name, "argv": argv, "engine": engine, "preflight": {**result, "changes": []}, "server_info": told}
        Path(out, f"{name}.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
