#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of benchmark.sh: a deployment, a measurement by the role, or the engine's own benchmark by hand, and everything that came of it.

benchmark_step.py STEPS NAME WORK INVENTORY ENGINE_PYTHON; ANSIBLE_PLAYBOOK is the command, URL the server. Exits 1 when it was otherwise than STEPS says, 2
when nothing serves after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import typing as t
import urllib.request
from pathlib import Path

from rollback_client import answers
from steps import UNIT, URL, Step, collect, gpu_beside, invocation, keep_row, look_at_gpu, play, read_result, read_step

SERVES = ("deployed", "unchanged")
SERVES_WITHIN = 10.0
# None of those that the role's own repetitions take.
ENGINE_SEED = 101
ENGINE_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
# All that the server runs with, which the records have already.
NOT_KEPT = ("server_info",)

Row = t.Dict[str, t.Any]


def serves() -> bool:
    """Whether the server answers, at once or within a few seconds."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + SERVES_WITHIN
    while not answers(opener, f"{URL}/generate"):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def numbers(record: t.Mapping[str, t.Any]) -> list[Row]:
    """Each point of a record in a few numbers."""
    found = []
    for start in record["starts"]:
        for point in start["points"]:
            rate = point["summary"].get("output_tok_per_s", {})
            found.append(
                {
                    "start": start["invocation"][:8],
                    "concurrency": point["concurrency"],
                    "status": point["status"],
                    "warmup": point["warmup"]["repetitions"],
                    "tok_per_s": rate.get("median"),
                    "spread_pct": rate.get("spread_pct"),
                    "ttft_ms": point["summary"].get("ttft_ms", {}).get("median"),
                    "remarks": point["remarks"],
                }
            )
    return found


def miscounts(record: t.Mapping[str, t.Any]) -> list[str]:
    """Where the client's tokens are not those that the server counted."""
    found = []
    for start in record["starts"]:
        for point in start["points"]:
            for number, repetition in enumerate(point["repetitions"], 1):
                ours = {"prompt_tokens": repetition["input_tokens"], "generation_tokens": repetition["output_tokens"]}
                if repetition["server"] != ours:
                    found.append(f"concurrency {point['concurrency']}, repetition {number}: {ours}, the server {repetition['server']}")
    return found


def deploy(step: Step, folder: Path, inventory: str, given: t.Mapping[str, t.Any]) -> tuple[Row, list[str]]:
    with gpu_beside(folder / "memory.csv"):
        status, seconds = play("main.yml", given, folder, inventory)
    result = read_result(folder, "release")
    action, gate = result.get("action", "none"), result.get("gate") or {}
    wrong = [f"action {action}, not {step['action']}"] if action != step["action"] else []
    if (status == 0) != (step["action"] in SERVES):
        wrong.append(f"ansible-playbook ended with {status}")
    row = {"action": action, "status": status, "play_s": round(seconds, 1), "release": result.get("release", ""), "start_s": result.get("elapsed")}
    if gate:
        row.update({"outcome": gate.get("outcome"), "text": gate.get("text"), "code": (result.get("diagnosis") or {}).get("code", "")})
        row["points"] = [point for record in (result.get("benchmark") or {}).get("records", []) for point in numbers(record)]
    return row, wrong


def measure(step: Step, folder: Path, inventory: str, given: t.Mapping[str, t.Any]) -> tuple[Row, list[str]]:
    if step.get("restart"):
        subprocess.run(["systemctl", "restart", UNIT], check=True)
    status, seconds = play("measure.yml", given, folder, inventory)
    records, kept = read_result(folder, "measured").get("records") or [], read_result(folder, "kept")
    points = [point for record in records for point in numbers(record)]
    wrong = [f"ansible-playbook ended with {status}"] if status else []
    wrong += [f"concurrency {point['concurrency']} is {point['status']}" for point in points if point["status"] != "ok"]
    wrong += [problem for record in records for problem in miscounts(record)]
    wrong += [] if points else ["no number"]
    row = {
        "status": status,
        "play_s": round(seconds, 1),
        "points": points,
        "records": [one["path"] for one in kept.get("records", [])],
        "texts": [one["text"] for one in kept.get("records", [])],
        "baseline": kept.get("baseline", ""),
        "remarks": kept.get("remarks", []),
    }
    return row, wrong


def engine_words(step: Step, concurrency: int, requests: int, output: Path) -> list[str]:
    """The command line that a person would give: what the role asks for, as its own arguments are."""
    words = ["--backend", "sglang", "--base-url", URL, "--model", step["model"], "--served-model-name", Path(step["model"]).name]
    words += ["--dataset-name", "random-ids", "--random-range-ratio", "1", "--random-input-len", str(step["input_tokens"])]
    words += ["--random-output-len", str(step["output_tokens"]), "--num-prompts", str(requests), "--max-concurrency", str(concurrency)]
    return [*words, "--seed", str(ENGINE_SEED + concurrency), "--flush-cache", "--disable-tqdm", "--output-file", str(output)]


def engine(step: Step, folder: Path, python: str) -> tuple[Row, list[str]]:
    """The engine's own benchmark, one process for each point."""
    points: list[Row] = []
    wrong: list[str] = []
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and name != "PYTHONPATH"}
    for concurrency, requests in step["points"]:
        output, begun = folder / f"raw-{concurrency}.jsonl", time.monotonic()
        command = [python, "-m", "sglang.benchmark.serving", *engine_words(step, concurrency, requests, output)]
        with (folder / f"engine-{concurrency}.log").open("w") as log:
            done = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT, env={**environment, **ENGINE_ENVIRONMENT, "HOME": str(folder)})
        if done.returncode or not output.exists():
            wrong.append(f"concurrency {concurrency}: it ended with {done.returncode}")
            continue
        told = {key: value for key, value in json.loads(output.read_text().splitlines()[-1]).items() if key not in NOT_KEPT}
        output.unlink()
        with (folder / "engine.jsonl").open("a") as stream:
            stream.write(json.dumps({"requests": requests, "invocation": invocation(), **told}, sort_keys=True) + "\n")
        wrong += [f"concurrency {concurrency}: {told['completed']} of {requests} requests"] if told["completed"] != requests else []
        points.append(
            {
                "concurrency": concurrency,
                "seconds": round(time.monotonic() - begun, 1),
                "tok_per_s": round(told["output_throughput"], 1),
                "ttft_ms": round(told["median_ttft_ms"], 1),
            }
        )
    return {"points": points}, wrong


def main(steps: str, name: str, work: Path, inventory: str, python: str) -> int:
    step = read_step(steps, name)
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    look_at_gpu(folder, "before")
    given = {"sglang_benchmark_records_dir": str(work / "benchmarks"), **step.get("variables", {})}
    if step["do"] == "engine":
        row, wrong = engine(step, folder, python)
    else:
        row, wrong = {"deploy": deploy, "measure": measure}[step["do"]](step, folder, inventory, given)
    up = serves()
    wrong += [] if up else ["nothing serves at the end"]
    look_at_gpu(folder, "after")
    collect(folder, work)
    keep_row(work, {"step": name, **row, "invocation": invocation(), "surprises": wrong})
    if not up:
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:6]))
