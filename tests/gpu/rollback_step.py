#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of rollback.sh: a deployment with these flags, what a client saw of it, and everything that the host keeps of it.

rollback_step.py STEPS NAME WORK INVENTORY ENGINE_PYTHON; ANSIBLE_PLAYBOOK is the command, URL the server. Exits 1 when it was otherwise than STEPS says, 2
when nothing serves after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSTANCE = "main"
UNIT = f"sglang-{INSTANCE}.service"
STORE = Path("/var/lib/llmops-inference") / INSTANCE
TRIAL = Path("/run/systemd/system") / f"{UNIT}.d" / "90-candidate.conf"
URL = os.environ.get("URL", "http://127.0.0.1:30000")
SERVES = ("deployed", "unchanged")
UNTOUCHED = ("refused", "unchanged")
# Longer than one request of the client may take.
SERVED_WITHIN = 6.0


def run(*command: str) -> str:
    """Output of a command with its status, also where it fails or is not there."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        return f"$ {shlex.join(command)}\n{error}\n"
    return f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}rc={done.returncode}\n"


def invocation() -> str:
    return subprocess.run(["systemctl", "show", UNIT, "--property=InvocationID", "--value"], check=True, capture_output=True, text=True).stdout.strip()


def look_at_gpu(folder: Path, when: str) -> None:
    apps = run("nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv")
    (folder / f"nvidia-smi-{when}.txt").write_text(run("nvidia-smi") + apps)


def collect(folder: Path, work: Path) -> None:
    """What the host has of it: the journal since the last step, the unit, the releases without secrets."""
    entries = ["journalctl", "--all", "--no-pager", "--output=json", f"--unit={UNIT}", f"--cursor-file={work / 'cursor'}"]
    with (folder / "journal.json").open("w") as stream:
        # A unit that has no entries yet is no success for journalctl.
        subprocess.run(entries, check=False, stdout=stream)
    (folder / "systemctl-show.txt").write_text(run("systemctl", "show", UNIT))
    (folder / "unit.txt").write_text(run("systemctl", "cat", UNIT))
    if (STORE / "releases").is_dir():
        shutil.copytree(STORE / "releases", folder / "releases", dirs_exist_ok=True)
        good = os.readlink(STORE / "good") if (STORE / "good").is_symlink() else ""
        (folder / "good.txt").write_text(f"{good}\n")


@contextlib.contextmanager
def beside(command: t.Sequence[str], log: Path) -> t.Iterator[None]:
    """A process that runs as long as the block does, and is asked to end after it."""
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def play(step: t.Mapping[str, t.Any], folder: Path, inventory: str) -> tuple[int, float]:
    """Runs the playbook; returns its status and seconds."""
    variables = {"sglang_server_flags": step.get("flags", {}), "step_target": step.get("target", ""), "step_folder": str(folder)}
    command = [*shlex.split(os.environ.get("ANSIBLE_PLAYBOOK", "ansible-playbook")), "-i", inventory, str(HERE / "rollback.yml"), "-e", json.dumps(variables)]
    settings = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_FORCE_COLOR": "0", "COLUMNS": "160"}
    begun = time.monotonic()
    with (folder / "ansible.txt").open("w") as stream:
        status = subprocess.run(command, check=False, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, env={**os.environ, **settings}).returncode
    return status, time.monotonic() - begun


def serves(client: t.Mapping[str, t.Any]) -> bool:
    return client["since_last_good"] is not None and client["since_last_good"] <= SERVED_WITHIN


def surprises(step: t.Mapping[str, t.Any], status: int, result: t.Mapping[str, t.Any], client: t.Mapping[str, t.Any], same: bool) -> list[str]:
    """What was otherwise than expected, in words."""
    action = result.get("action", "none")
    found = [f"action {action}, not {step['action']}"] if action != step["action"] else []
    if (status == 0) != (step["action"] in SERVES):
        found.append(f"ansible-playbook ended with {status}")
    if step["action"] in UNTOUCHED and not same:
        found.append("the server was restarted")
    if not serves(client):
        found.append("nothing serves at the end")
    return found


def main(steps: str, name: str, work: Path, inventory: str, python: str) -> int:
    step = next(one for one in json.loads(Path(steps).read_text()) if one["name"] == name)
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    look_at_gpu(folder, "before")
    before = invocation()
    with contextlib.ExitStack() as stack:
        stack.enter_context(beside([sys.executable, str(HERE / "rollback_client.py"), f"{URL}/generate", str(folder / "client.json")], folder / "client.log"))
        if "leave_gib" in step:
            stack.enter_context(beside([python, str(HERE / "rollback_holder.py"), str(TRIAL), str(step["leave_gib"])], folder / "holder.log"))
        if shutil.which("nvidia-smi"):
            memory = ["nvidia-smi", "--query-gpu=timestamp,memory.used,utilization.gpu", "--format=csv,noheader", "--loop-ms=500"]
            stack.enter_context(beside(memory, folder / "memory.csv"))
        status, seconds = play(step, folder, inventory)
        time.sleep(1)
    same = invocation() == before
    look_at_gpu(folder, "after")
    collect(folder, work)
    result = json.loads((folder / "release.json").read_text()) if (folder / "release.json").exists() else {}
    client = json.loads((folder / "client.json").read_text())
    wrong = surprises(step, status, result, client, same)
    longest = max((gap["seconds"] for gap in client["gaps"]), default=0.0)
    diagnosis = result.get("diagnosis") or {}
    row = {
        "step": name,
        "action": result.get("action", "none"),
        "status": status,
        "play_s": round(seconds, 1),
        "without_service_s": longest,
        "gaps": len(client["gaps"]),
        "same_invocation": same,
        "release": result.get("release", ""),
        "start_s": result.get("elapsed"),
        "code": diagnosis.get("code", ""),
        "where": diagnosis.get("where", ""),
        "cause": diagnosis.get("cause", ""),
        "suspects": result.get("suspects", ""),
        "surprises": wrong,
    }
    with (work / "table.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)
    if not serves(client):
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:6]))
