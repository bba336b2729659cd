#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures this collection against what an operator does by hand, on one host in one run, and prints ratios."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PODMAN = str(ROOT / "tools" / "podman")
HOST = "llmops-bench"
ENGINES = "/opt/sglang/bench/engines"
LOCK = ROOT / "roles/sglang_engine/files/locks/0.5.23-cpu-py311.txt"
OUTAGE = (ROOT / "tests" / "outage.py").read_text(encoding="utf-8")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def on_host(*command: str) -> str:
    """Runs a command on the host and returns its output."""
    return subprocess.run([PODMAN, "exec", HOST, *command], check=True, capture_output=True, text=True).stdout


def play(playbook: Path | str, **variables: object) -> tuple[float, int]:
    """Runs a playbook; returns its seconds and how many tasks ran."""
    command = ["ansible-playbook", "-i", str(HERE / "hosts.yml"), str(playbook), "-e", json.dumps(variables)]
    begun = time.monotonic()
    process = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    seconds = time.monotonic() - begun
    if process.returncode:
        sys.exit(process.stdout[-5000:] + process.stderr[-2000:])
    return seconds, int(re.findall(r"\bok=(\d+)", process.stdout)[-1])


def timed(*command: str) -> float:
    begun = time.monotonic()
    on_host(*command)
    return time.monotonic() - begun


def installation_seconds() -> float:
    """Seconds of the last installation without the proof, from the engine's own marker."""
    steps = json.loads(on_host("sh", "-c", f"cat {ENGINES}/*/engine.json"))["seconds"]
    return sum(seconds for step, seconds in steps.items() if step != "proving the engine")


def measure_installation() -> dict[str, float]:
    """pip against the engine role, with an empty and with a filled cache of uv."""
    on_host("mkdir", "-p", "/opt/plain")
    on_host("python3", "-m", "venv", "/opt/plain/venv")
    subprocess.run([PODMAN, "cp", str(LOCK), f"{HOST}:/opt/plain/requirements.txt"], check=True)
    say("pip install ...")
    options = ["--quiet", "--no-index", "--find-links=/srv/wheelhouse", "--no-deps", "-r", "/opt/plain/requirements.txt"]
    plain = timed("/opt/plain/venv/bin/pip", "install", *options)
    say("engine role, cold cache ...")
    play(HERE / "engine.yml")
    cold = installation_seconds()
    on_host("sh", "-c", f"rm -rf {ENGINES}/*")
    say("engine role, warm cache ...")
    play(HERE / "engine.yml")
    return {"pip": plain, "cold": cold, "warm": installation_seconds()}


def measure_unchanged() -> dict[str, tuple[float, int]]:
    """The second, unchanged run of each; the median of three."""
    say("first runs ...")
    play(ROOT / "deploy.yml")
    play(HERE / "plain.yml")
    found = {}
    for name, playbook in (("ours", ROOT / "deploy.yml"), ("plain", HERE / "plain.yml"), ("facts", HERE / "facts.yml")):
        say(f"unchanged run: {name} ...")
        runs = [play(playbook) for _round in range(3)]
        found[name] = (statistics.median(seconds for seconds, tasks in runs), runs[-1][1])
    return found


def outage(port: int, seconds: int, change: list[str], status: int = 0) -> float:
    """Longest time without a good answer while a change is made that ends with this status."""
    watch = subprocess.Popen([PODMAN, "exec", HOST, "python3", "-c", OUTAGE, f"http://127.0.0.1:{port}/ready", str(seconds)], stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    process = subprocess.run(change, cwd=ROOT, check=False, capture_output=True, text=True, env={**os.environ, "ANSIBLE_NOCOLOR": "1"})
    if process.returncode != status:
        sys.exit(process.stdout[-5000:] + process.stderr[-2000:])
    return float(watch.communicate()[0])


def deployment(**variables: object) -> list[str]:
    """The command that deploys with these variables."""
    return ["ansible-playbook", "-i", str(HERE / "hosts.yml"), "deploy.yml", "-e", json.dumps(variables)]


def measure_outage() -> dict[str, list[float]]:
    """A one-flag change by deployment against a restart by hand of the same server, alternating."""
    found: dict[str, list[float]] = {"ours": [], "hand": []}
    for flag in (4, 5):
        say("outage: one-flag change ...")
        found["ours"].append(outage(30000, 60, deployment(sglang_server_flags={"max_running_requests": flag})))
        say("outage: restart by hand ...")
        found["hand"].append(outage(30000, 35, [PODMAN, "exec", HOST, "systemctl", "restart", "sglang-main"]))
    return found


# What an operator does by hand with a flag that turns out to be wrong: start, see it die, take the flag back, start again. Prints the seconds of both starts.
BY_HAND = """
import json, pathlib, subprocess, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
unit, dropin = "sglang-main.service", pathlib.Path("/run/systemd/system/sglang-main.service.d/99-by-hand.conf")
line = next(line for line in open(f"/etc/systemd/system/{unit}") if line.startswith("ExecStart="))
def systemctl(*words):
    return subprocess.run(["systemctl", *words], check=True, capture_output=True, text=True).stdout
dropin.parent.mkdir(parents=True, exist_ok=True)
dropin.write_text("[Service]\\nRestart=no\\nExecStart=\\n" + line.rstrip() + " --tokenizer-path /srv/models\\n")
systemctl("daemon-reload")
begun = time.monotonic()
systemctl("restart", unit)
while "MainPID=0" not in systemctl("show", unit, "--property=MainPID"):
    time.sleep(0.1)
died = time.monotonic() - begun
dropin.unlink()
systemctl("daemon-reload")
begun = time.monotonic()
systemctl("restart", unit)
while True:
    try:
        if opener.open("http://127.0.0.1:30000/health", timeout=25).status == 200:
            break
    except OSError:
        pass
    time.sleep(0.1)
print(json.dumps([died, time.monotonic() - begun]))
"""
# Times of the host's clock around a failed trial and around a proof. Prints seconds from death to the stored diagnosis, and from the engine's ready line to the
# first question of the proof.
LATENCY = """
import glob, json, os, subprocess
def entries(*words):
    text = subprocess.run(["journalctl", "-o", "json", "--all", "-u", "sglang-main", *words], check=True, capture_output=True, text=True).stdout
    return [(int(one["__REALTIME_TIMESTAMP"]) / 1e6, str(one.get("MESSAGE"))) for one in map(json.loads, text.splitlines())]
states = [json.load(open(path)) for path in glob.glob("/var/lib/llmops-inference/main/releases/*/state.json")]
failed = max((one for one in states if one["state"] == "failed"), key=lambda one: one["since"])
lines = entries()
died = max(when for when, text in lines if "Main process exited" in text and when <= failed["since"])
ready = max(when for when, text in lines if "The server is fired up and ready to roll" in text)
asked = min(when for when, text in lines if "GET /v1/models" in text and when >= ready)
print(json.dumps([failed["since"] - died, asked - ready]))
"""


def measure_failure() -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds without service of a change that dies while it starts, against the two starts that it takes by hand; and how soon the job saw the death, and the
    readiness of the server that it put back.
    """
    say("outage: a change that fails and is rolled back ...")
    flags = {"max_running_requests": 6, "tokenizer_path": "/srv/models"}
    ours = outage(30000, 90, deployment(sglang_server_flags=flags), status=2)
    # Before the start by hand, which nobody proves.
    death, proof = json.loads(on_host("python3", "-c", LATENCY))
    say("the same by hand ...")
    died, good = json.loads(on_host("python3", "-c", BY_HAND))
    return (ours, died + good), (death, proof)


def row(name: str, numbers: tuple[float, float], goal: float, more: str = "") -> None:
    """Prints one line as soon as it is known: a run that is stopped has shown what it measured."""
    ours, other = numbers
    print(f"{name:58} {ours / other:6.2f} {goal:6.2f}   {ours:.1f} s / {other:.1f} s{more}", flush=True)


def show_installation() -> None:
    install = measure_installation()
    row("engine installation against pip, cold cache", (install["cold"], install["pip"]), 0.15)
    row("engine installation against pip, warm cache", (install["warm"], install["pip"]), 0.03)


def show_unchanged() -> None:
    unchanged = measure_unchanged()
    ours, tasks = unchanged["ours"]
    plain, plain_tasks = unchanged["plain"]
    row("unchanged run against the hand-written playbook", (ours, plain), 1.0, f", {tasks} / {plain_tasks} tasks")
    row("unchanged run against facts and a ping", (ours, unchanged["facts"][0]), 3.0)
    on_host("systemctl", "stop", "plain")


def show_outage() -> None:
    say("first run ...")
    play(ROOT / "deploy.yml")
    without = measure_outage()
    row("seconds without service: change against restart", (statistics.median(without["ours"]), statistics.median(without["hand"])), 1.1)
    failed, (death, proof) = measure_failure()
    row("seconds without service: failed change against its starts", failed, 1.15)
    print(f"{'seconds from death to the stored diagnosis':58} {death:6.2f} {2.0:6.2f}")
    print(f"{'seconds from the ready line to the proof (/ready)':58} {proof:6.2f} {1.0:6.2f}", flush=True)


SECTIONS = {"installation": show_installation, "unchanged": show_unchanged, "outage": show_outage}


def main() -> None:
    chosen = sys.argv[1:] or list(SECTIONS)
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    print(f"{'ratio':58} {'is':>6} {'goal':>6}   seconds", flush=True)
    for name in chosen:
        SECTIONS[name]()


if __name__ == "__main__":
    main()
