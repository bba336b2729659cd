# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the scenarios' checks: what an operator does next, with the scenario's own inventory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def one_line(output):
    """What ansible-playbook printed, without YAML's line breaks and doubled quotes."""
    return " ".join(output.split()).replace("''", "'")


class Run:
    """A finished ansible-playbook run."""

    def __init__(self, process):
        self.rc = process.returncode
        self.output = process.stdout
        self.text = one_line(process.stdout)
        self.changed = [line.split("TASK [")[-1].split("]")[0] for line in self._changed_tasks()]

    def _changed_tasks(self):
        task = ""
        for line in self.output.splitlines():
            if line.startswith("TASK ["):
                task = line
            elif line.startswith("changed:"):
                yield task


@pytest.fixture(scope="session")
def playbook():
    """Runs a playbook of the collection against the scenario's hosts; extra variables as a mapping."""

    def run(name, *options, expect=0, **variables):
        inventory = os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"])
        command = ["ansible-playbook", "-i", inventory, str(ROOT / "playbooks" / f"{name}.yml"), *options]
        if variables:
            command += ["-e", json.dumps(variables)]
        finished = Run(subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False))
        assert (finished.rc == 0) == (expect == 0), finished.output[-6000:]
        return finished

    return run


@pytest.fixture(scope="session")
def deploy(playbook):
    """Runs the deploy playbook."""

    def run(*options, **variables):
        return playbook("deploy", *options, **variables)

    return run


@pytest.fixture
def show(host):
    """Reads one property of a unit."""

    def read(unit, name):
        return host.check_output("systemctl show %s --property=%s --value", unit, name)

    return read


@pytest.fixture
def generate(host):
    """Asks a server on the host for tokens and returns (HTTP status, body)."""

    def ask(port=30000, key="", model="tiny-qwen3"):
        header = f"-H 'Authorization: Bearer {key}'" if key else ""
        body = json.dumps({"model": model, "prompt": "Hello", "max_tokens": 4})
        answer = host.run(
            f"curl -s -m 60 -w '\\n%{{http_code}}' {header} -H 'Content-Type: application/json' -d '{body}' http://127.0.0.1:{port}/v1/completions"
        )
        text, _newline, status = answer.stdout.rpartition("\n")
        return int(status), text

    return ask


@pytest.fixture
def eventually():
    """Waits until a condition holds."""

    def wait(condition, seconds=120, what="the condition"):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.5)
        pytest.fail(f"{what} did not come true within {seconds} s")

    return wait
