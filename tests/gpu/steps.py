#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of steps.sh share: a playbook with a step's variables, commands beside it, and everything that the host keeps of it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INSTANCE = "main"
UNIT = f"sglang-{INSTANCE}.service"
STORE = Path("/var/lib/llmops-inference") / INSTANCE
URL = os.environ.get("URL", "http://127.0.0.1:30000")

Step = t.Mapping[str, t.Any]


def read_step(steps: str, name: str) -> Step:
    found: Step = next(one for one in json.loads(Path(steps).read_text()) if one["name"] == name)
    return found


def read_result(folder: Path, name: str) -> dict[str, t.Any]:
    """What a task said; nothing where it did not run."""
    path = folder / f"{name}.json"
    found: dict[str, t.Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


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


@contextlib.contextmanager
def gpu_beside(log: Path) -> t.Iterator[None]:
    """Memory and utilization of the GPUs meanwhile, where there are any."""
    if not shutil.which("nvidia-smi"):
        yield
        return
    command = ["nvidia-smi", "--query-gpu=timestamp,memory.used,utilization.gpu", "--format=csv,noheader", "--loop-ms=500"]
    with beside(command, log):
        yield


def play(tasks: str, variables: t.Mapping[str, t.Any], folder: Path, inventory: str) -> tuple[int, float]:
    """Runs these tasks of the role; returns the playbook's status and seconds."""
    given = {**variables, "step_tasks": tasks, "step_folder": str(folder)}
    command = [*shlex.split(os.environ.get("ANSIBLE_PLAYBOOK", "ansible-playbook")), "-i", inventory, str(HERE / "step.yml"), "-e", json.dumps(given)]
    settings = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_FORCE_COLOR": "0", "COLUMNS": "160"}
    begun = time.monotonic()
    with (folder / "ansible.txt").open("w") as stream:
        status = subprocess.run(command, check=False, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, env={**os.environ, **settings}).returncode
    return status, time.monotonic() - begun


def keep_row(work: Path, row: t.Mapping[str, t.Any]) -> None:
    """A line of the table."""
    with (work / "table.jsonl").open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)
