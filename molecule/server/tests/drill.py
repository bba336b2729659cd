# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fault drill needs: a deployment that can be killed, an eye on the host that says when, and a client that is never without work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PODMAN = str(ROOT / "tools" / "podman")
NAME = "llmops-server"
UNIT = "sglang-main"
STORE = "/var/lib/llmops-inference/main"
PROGRESS = "/run/llmops-inference/sglang_release-main"

CLIENT = (ROOT / "tests" / "outage.py").read_text(encoding="utf-8")

# Runs on the host: waits until a release that is not listed has a state, or until the job's step begins with a text.
EYE = """
import glob, json, os, sys, time
kind, wanted, store, progress, known = sys.argv[1:6]
def state():
    for path in glob.glob(store + "/releases/*/state.json"):
        if os.path.basename(os.path.dirname(path)) not in known.split(","):
            try:
                if json.load(open(path))["state"] == wanted:
                    return True
            except (OSError, ValueError):
                pass
def step():
    try:
        return open(progress).read().startswith(wanted)
    except OSError:
        return False
deadline = time.monotonic() + 240
while not (state() if kind == "state" else step()):
    if time.monotonic() > deadline:
        sys.exit(f"{kind} {wanted} was not seen within 240 s")
    time.sleep(0.002)
"""


def on_host(*command, check=True):
    """Runs a command on the host and returns its output."""
    return subprocess.run([PODMAN, "exec", NAME, *command], check=check, capture_output=True, text=True).stdout.strip()


def releases():
    """Ids of the releases on the host."""
    return [path for path in on_host("sh", "-c", f"ls {STORE}/releases").split() if path]


def state_of(release):
    """State of a release as the store has it."""
    text = on_host("cat", f"{STORE}/releases/{release}/state.json", check=False)
    return json.loads(text)["state"] if text else "none"


def good():
    """Id of the good release."""
    return os.path.basename(on_host("readlink", f"{STORE}/good"))


def command(options=(), **variables):
    """The command of a deployment."""
    inventory = os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"])
    return ["ansible-playbook", "-i", inventory, str(ROOT / "playbooks" / "deploy.yml"), *options, "-e", json.dumps(variables)]


def family(pid):
    """A process and all that descend from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


class Deployment:
    """A deployment that runs, in a process group of its own."""

    def __init__(self, options=(), **variables):
        self._known = ",".join(releases())
        self.process = subprocess.Popen(
            # What runs in the background of a shell ignores Ctrl-C, and so would its children.
            ["env", "--default-signal=INT", *command(options, **variables)],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def until(self, kind, wanted):
        """Waits until the job on the host is that far."""
        eye = [PODMAN, "exec", NAME, "python3", "-c", EYE, kind, wanted, STORE, PROGRESS, self._known]
        seen = subprocess.run(eye, check=False, capture_output=True, text=True)
        assert seen.returncode == 0, f"{seen.stderr}{self.output() if self.process.poll() is not None else ''}"

    def until_task(self, text):
        """Waits until the play is at a task."""
        for line in self.process.stdout:
            if text in line:
                return
        raise AssertionError(f"the play ended before {text}")

    def end(self, number=signal.SIGKILL):
        """Ends the controller and whatever it started here (Ansible's workers are sessions of their own); the job on the host is left alone."""
        for pid in [self.process.pid] if number == signal.SIGINT else family(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        self.process.communicate(timeout=60)

    def output(self):
        """Waits for the end and returns what it printed."""
        return self.process.communicate(timeout=600)[0]


class Client:
    """Asks the server all the time and knows how long it was without an answer."""

    def __init__(self):
        self._stop = f"/run/drill-client-{uuid.uuid4().hex}"
        self._process = subprocess.Popen(
            [PODMAN, "exec", NAME, "python3", "-c", CLIENT, "http://127.0.0.1:30000/ready", self._stop], text=True, stdout=subprocess.PIPE
        )
        self.seconds = None

    def end(self):
        """Stops asking; a client whose host went down knows nothing."""
        if self._process.poll() is None:
            on_host("touch", self._stop)
        text = self._process.communicate(timeout=30)[0].strip() if not self._process.stdout.closed else ""
        self.seconds = float(text) if text else self.seconds


def kill_job():
    """Kills the job on the host: the wrapper that runs it, and its module."""
    on_host("pkill", "-KILL", "-f", "[a]sync_wrapper|[s]glang_release", check=False)


def boot_after_power_cut():
    """Stops the host without a word to any of its processes, and starts it again."""
    subprocess.run([PODMAN, "kill", "--signal", "KILL", NAME], check=True, capture_output=True)
    subprocess.run([PODMAN, "start", NAME], check=True, capture_output=True)
    deadline = time.monotonic() + 60
    while on_host("systemctl", "is-system-running", check=False) not in ("running", "degraded"):
        assert time.monotonic() < deadline, "the host does not boot"
        time.sleep(0.3)
