# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault drills: whatever is killed, cut off or full, what boots is a proven release, and one more deployment ends where an undisturbed one does.

A few of them run with the scenario. LLMOPS_DRILLS=all runs them all and writes the table that LLMOPS_DRILLS_TABLE names (`make drills`).
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import drill
import pytest

ALL = os.environ.get("LLMOPS_DRILLS") == "all"
_NUMBERS = itertools.count(10 + int(time.time()) % 900)
ROWS = []


def good_change():
    """Variables of a change that serves; each is another release."""
    return {"sglang_server_flags": {"max_running_requests": next(_NUMBERS)}}


def bad_change():
    """Variables of a change that passes the preflight and dies at its start; each is another release."""
    return {"sglang_server_flags": {"tokenizer_path": "/srv/models", "max_running_requests": next(_NUMBERS)}}


@pytest.fixture(name="base", scope="module")
def fixture_base(playbook):
    """A good release that serves before the first drill."""
    playbook("deploy", **good_change())


@pytest.fixture(name="before")
def fixture_before(base, generate, eventually):
    """Id of the release that serves before a drill."""
    eventually(lambda: generate()[0] == 200, what="the server before the drill")
    return drill.good()


@pytest.fixture(name="answers")
def fixture_answers(generate, eventually):
    """Waits until the server answers."""
    return lambda what: eventually(lambda: generate()[0] == 200, seconds=240, what=what)


@pytest.fixture(name="after")
def fixture_after(before, playbook, host, generate):
    """Deploys once more and checks that the host is where it should be; notes a row of the table."""
    known = drill.releases()

    def check(name, before, variables, client, *, serves=True, **options):
        newest = [release for release in drill.releases() if release not in known]
        found = {release: drill.state_of(release) for release in newest}
        at_boot = host.file(f"/etc/systemd/system/{drill.UNIT}.service").content_string
        units = [host.file(f"{drill.STORE}/releases/{release}/unit.service") for release in [before, *newest]]
        assert at_boot in [unit.content_string for unit in units if unit.exists]
        run = playbook("deploy", expect=0 if serves else 1, **variables, **options)
        client.end()
        now = drill.good()
        assert (now != before) is serves, run.text[-3000:]
        assert generate()[0] == 200
        unit = host.file(f"/etc/systemd/system/{drill.UNIT}.service").content_string
        assert unit == host.file(f"{drill.STORE}/releases/{now}/unit.service").content_string, "what boots is the good release"
        assert host.run(f"ls /run/systemd/system/{drill.UNIT}.service.d/*").stdout == "", "no trial is left"
        assert host.service(drill.UNIT).is_enabled
        assert before in drill.releases(), "nothing is lost"
        if serves:
            assert playbook("deploy", **variables, **options).changed == []
        ROWS.append((name, client.seconds, ", ".join(sorted(set(found.values()))) or "nothing staged", outcome(run)))

    return check


def told(at):
    """A point of a deployment in words."""
    kind, wanted, serves = at
    what = {"task": "in the preflight", "state": f"state {wanted}", "step": wanted}[kind]
    return f"{what}{'' if serves else ', of a failing change'}"


def outcome(run):
    """What the last deployment did, for the table."""
    told = re.findall(r"\[(unchanged|deployed|repaired|started|restarted), release", run.text)
    if told:
        return told[-1]
    return "refused, good release serves" if "is not tried again" in run.text else "rolled back, good release serves"


@pytest.fixture(name="asked")
def fixture_asked(before):
    """A client that asks the server from before the drill until it is over."""
    client = drill.Client()
    yield client
    client.end()


CONTROLLER = [
    pytest.param(("task", "Let the engine parse", True), id="in-the-preflight"),
    pytest.param(("state", "staged", True), id="staged"),
    pytest.param(("state", "starting", True), id="starting"),
    pytest.param(("step", "starting the process", True), id="process"),
    pytest.param(("step", "resolving the arguments", True), id="arguments"),
    pytest.param(("step", "warming up", True), id="warm-up"),
    pytest.param(("state", "ready", True), id="ready"),
    pytest.param(("state", "good", True), id="good"),
    pytest.param(("state", "starting", False), id="failing-starting"),
    pytest.param(("state", "failed", False), id="failing-failed"),
    pytest.param(("step", "back to", False), id="failing-rolling-back"),
]


def some(parameters, *ids):
    """All of them for `make drills`, a few otherwise."""
    return parameters if ALL else [one for one in parameters if one.id in ids]


only_all = pytest.mark.skipif(not ALL, reason="make drills runs it")


@pytest.mark.parametrize("at", some(CONTROLLER, "process"))
def test_the_controller_is_killed(before, asked, after, at):
    """The job on the host goes on; the next run attaches to it, or finds its end."""
    kind, wanted, serves = at
    variables = good_change() if serves else bad_change()
    deployment = drill.Deployment(**variables)
    if kind == "task":
        deployment.until_task(wanted)
    else:
        deployment.until(kind, wanted)
    deployment.end()
    after(f"controller killed: {told(at)}", before, variables, asked, serves=serves)


@only_all
def test_ctrl_c_ends_the_following_and_not_the_rollback(before, asked, after, generate, eventually):
    variables = bad_change()
    deployment = drill.Deployment(**variables)
    deployment.until("step", "resolving the arguments")
    deployment.end(signal.SIGINT)
    eventually(lambda: "failed" in map(drill.state_of, drill.releases()) and generate()[0] == 200, what="the rollback without a controller")
    after("Ctrl-C while a failing change starts", before, variables, asked, serves=False)


JOB = [
    pytest.param(("state", "staged", True), id="staged"),
    pytest.param(("state", "starting", True), id="starting"),
    pytest.param(("state", "ready", True), id="ready"),
    pytest.param(("state", "starting", False), id="failing-starting"),
    pytest.param(("state", "failed", False), id="failing-failed"),
]


@only_all
@pytest.mark.parametrize("at", JOB)
def test_the_job_on_the_host_is_killed(before, asked, after, at):
    kind, wanted, serves = at
    variables = good_change() if serves else bad_change()
    deployment = drill.Deployment(**variables)
    deployment.until(kind, wanted)
    drill.kill_job()
    assert "run again, it finds out where the host stands" in " ".join(deployment.output().split()) or deployment.process.returncode == 0
    after(f"job killed: {told(at)}", before, variables, asked, serves=serves)


POWER = [
    pytest.param(("state", "starting", True), id="starting"),
    pytest.param(("step", "resolving the arguments", True), id="arguments"),
    pytest.param(("state", "ready", True), id="ready"),
    pytest.param(("state", "failed", False), id="failing-failed"),
]


@only_all
@pytest.mark.parametrize("at", POWER)
def test_the_host_goes_down_and_boots(before, asked, after, answers, at):
    """What boots is a good release, before any deployment."""
    kind, wanted, serves = at
    variables = good_change() if serves else bad_change()
    deployment = drill.Deployment(**variables)
    deployment.until(kind, wanted)
    drill.boot_after_power_cut()
    deployment.end()
    asked.end()
    asked = drill.Client()
    answers("the server after the boot")
    after(f"host down and booted: {told(at)}", before, variables, asked, serves=serves)


@only_all
def test_the_server_is_killed_during_its_start(before, asked, after):
    """The first death ends the trial, whatever systemd restarts."""
    variables = good_change()
    deployment = drill.Deployment(**variables)
    deployment.until("step", "resolving the arguments")
    drill.on_host("systemctl", "kill", "--signal=KILL", drill.UNIT)
    text = " ".join(deployment.output().split())
    assert deployment.process.returncode != 0 and "is serving again" in text
    after("server killed while it starts", before, variables, asked)


@only_all
def test_the_server_is_killed_when_it_is_ready(before, asked, after):
    variables = good_change()
    deployment = drill.Deployment(**variables)
    deployment.until("state", "good")
    drill.on_host("systemctl", "kill", "--signal=KILL", drill.UNIT)
    deployment.output()
    after("server killed when it was ready", before, variables, asked)


@only_all
def test_a_crash_loop(before, asked, after, show, eventually):
    """A server that was given up by systemd is started again by the next deployment."""
    variables = good_change()
    limit = {"sglang_server_start_limit_burst": 2, "sglang_server_restart_delay_seconds": 1}
    drill.Deployment(**variables, **limit).output()
    for _kill in range(3):
        drill.on_host("systemctl", "kill", "--signal=KILL", drill.UNIT)
        eventually(lambda: show(drill.UNIT, "ActiveState") == "failed" or int(show(drill.UNIT, "MainPID")) > 0, what="systemd's answer")
        time.sleep(1.5)
    assert show(drill.UNIT, "Result") == "start-limit-hit"
    after("crash loop until systemd gives up", before, variables, asked, **limit)


@only_all
def test_a_full_disk_while_staging(before, asked, after, generate):
    variables = good_change()
    store = "/var/lib/llmops-inference"
    drill.on_host("sh", "-c", f"cp -a {store} /run/drill-store && mount -t tmpfs -o size=2m,mode=700 tmpfs {store} && cp -a /run/drill-store/. {store}/")
    try:
        drill.on_host("sh", "-c", f"dd if=/dev/zero of={store}/filler bs=4k", check=False)
        deployment = drill.Deployment(**variables)
        text = " ".join(deployment.output().split())
        assert deployment.process.returncode != 0 and "No space left on device" in text, text[-2000:]
        assert generate()[0] == 200 and "Traceback" not in text
        drill.on_host("rm", f"{store}/filler")
        after("disk full while staging", before, variables, asked)
    finally:
        drill.on_host("sh", "-c", f"rm -rf /run/drill-store && cp -a {store} /run/drill-store && umount {store} && cp -a /run/drill-store/. {store}/")


@only_all
def test_a_store_that_cannot_be_read(before, asked, after, generate):
    variables = good_change()
    drill.on_host("sh", "-c", f"mv {drill.STORE}/releases /run/drill-releases && touch {drill.STORE}/releases")
    try:
        deployment = drill.Deployment(**variables)
        text = " ".join(deployment.output().split())
        assert deployment.process.returncode != 0 and f"{drill.STORE}/releases is no directory" in text, text[-2000:]
        assert generate()[0] == 200 and "Traceback" not in text
    finally:
        drill.on_host("sh", "-c", f"rm {drill.STORE}/releases && mv /run/drill-releases {drill.STORE}/releases")
    after("store that cannot be read", before, variables, asked)


@only_all
def test_two_deployments_at_once(before, asked, after):
    """The second one follows the first one's job, and then does its own."""
    variables = good_change()
    first = drill.Deployment(**good_change())
    first.until("state", "starting")
    second = drill.Deployment(**variables)
    text = " ".join(second.output().split())
    assert second.process.returncode == 0, text[-2000:]
    assert re.search(r"attaching to: deploying [0-9a-f]{12}, since ", text), text[-3000:]
    first.output()
    assert first.process.returncode == 0
    after("two deployments at once", before, variables, asked)


# A clock that is an hour behind from the tenth second of each program on.
CLOCK = """
import time
_real, _begun = time.time, time.monotonic()
time.time = lambda: _real() - (3600 if time.monotonic() - _begun > 10 else 0)
"""


@only_all
def test_a_clock_that_jumps_back(before, asked, after, host):
    variables = good_change()
    drill.on_host("mkdir", "-p", "/opt/clock")
    drill.on_host("sh", "-c", f"cat > /opt/clock/sitecustomize.py <<'END'\n{CLOCK}\nEND")
    drill.on_host("sh", "-c", "printf '#!/bin/sh\\nPYTHONPATH=/opt/clock exec /usr/bin/python3 \"$@\"\\n' > /opt/clock/python3 && chmod 755 /opt/clock/python3")
    deployment = drill.Deployment(ansible_python_interpreter="/opt/clock/python3", **variables)
    text = " ".join(deployment.output().split())
    assert deployment.process.returncode == 0, text[-3000:]
    after("clock jumps back an hour", before, variables, asked)


def test_the_table():
    """The drills of this run, as a table; committed with the commit that it ran on."""
    assert ROWS, "no drill ran"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=drill.ROOT, text=True, capture_output=True, check=False).stdout.strip()
    lines = ["| drill | longest time without an answer, s | state found | the next deployment |", "|---|---|---|---|"]
    lines += [f"| {name} | {'-' if seconds is None else seconds} | {state} | {result} |" for name, seconds, state, result in ROWS]
    print("\n" + "\n".join(lines))
    if os.environ.get("LLMOPS_DRILLS_TABLE"):
        Path(os.environ["LLMOPS_DRILLS_TABLE"]).write_text(f"Commit {commit or 'unknown'}, {len(ROWS)} drills.\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
