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
import sys
import time
import typing as t
from pathlib import Path

from steps import HERE, UNIT, URL, Step, beside, collect, gpu_beside, invocation, keep_row, look_at_gpu, play, read_result, read_step

TRIAL = Path("/run/systemd/system") / f"{UNIT}.d" / "90-candidate.conf"
SERVES = ("deployed", "unchanged")
UNTOUCHED = ("refused", "unchanged")
# Longer than one request of the client may take.
SERVED_WITHIN = 6.0


def serves(client: t.Mapping[str, t.Any]) -> bool:
    return client["since_last_good"] is not None and client["since_last_good"] <= SERVED_WITHIN


def surprises(step: Step, status: int, result: t.Mapping[str, t.Any], client: t.Mapping[str, t.Any], same: bool) -> list[str]:
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
    step = read_step(steps, name)
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    look_at_gpu(folder, "before")
    before = invocation()
    with contextlib.ExitStack() as stack:
        stack.enter_context(beside([sys.executable, str(HERE / "rollback_client.py"), f"{URL}/generate", str(folder / "client.json")], folder / "client.log"))
        if "leave_gib" in step:
            stack.enter_context(beside([python, str(HERE / "rollback_holder.py"), str(TRIAL), str(step["leave_gib"])], folder / "holder.log"))
        stack.enter_context(gpu_beside(folder / "memory.csv"))
        variables = {"sglang_server_flags": step.get("flags", {}), "sglang_rollback_to": step.get("target", "")}
        status, seconds = play("rollback.yml" if "target" in step else "main.yml", variables, folder, inventory)
        time.sleep(1)
    same = invocation() == before
    look_at_gpu(folder, "after")
    collect(folder, work)
    result = read_result(folder, "release")
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
    keep_row(work, row)
    if not serves(client):
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:6]))
