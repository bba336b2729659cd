# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
import time

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _host
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError, LocalHost, parse_show, parse_state, run_checked
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, Reply
from ansible_collections.llmops.inference.plugins.module_utils._patience import Activity
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener, Process
from ansible_collections.llmops.inference.plugins.module_utils._watch import UnitState

SHOW = """\
ActiveState=active
SubState=running
Result=success
MainPID=4711
InvocationID=8f0f5c4ae2e94dd1bd76d3ccd86f7c01
NRestarts=2
ControlGroup=/system.slice/sglang-main.service
ExecMainStartTimestampMonotonic=12500000
"""
STATE = UnitState("active", "running", "success", 4711, "8f0f5c4ae2e94dd1bd76d3ccd86f7c01", 2, "/system.slice/sglang-main.service", 1012.5)


class Answers:
    """Plays run_command: answers by the first word."""

    def __init__(self, **answers):
        self.answers = answers
        self.commands = []

    def __call__(self, command):
        self.commands.append(command)
        return self.answers[command[0]]


def test_run_checked():
    run = Answers(true=(0, "out", "warning"), false=(3, "", " no such unit\n"), quiet=(1, "said on stdout", ""))
    assert run_checked(run, ["true"]) == "out"
    with pytest.raises(HostError, match="^false --now failed with status 3: no such unit$"):
        run_checked(run, ["false", "--now"])
    with pytest.raises(HostError, match="^quiet failed with status 1: said on stdout$"):
        run_checked(run, ["quiet"])


def test_parse_show():
    assert parse_show("A=1\n\nnonsense\nB=x=y\nC=\n") == {"A": "1", "B": "x=y", "C": ""}


@pytest.mark.parametrize(
    "output, state",
    [
        pytest.param(SHOW, STATE, id="running"),
        pytest.param("", UnitState(), id="nothing"),
        pytest.param("ActiveState=failed\nSubState=failed\nResult=oom-kill\nMainPID=0\n", UnitState("failed", "failed", "oom-kill"), id="failed"),
        pytest.param(
            "ActiveState=inactive\nSubState=dead\nMainPID=\nNRestarts=\nExecMainStartTimestampMonotonic=\nInvocationID=\n", UnitState(), id="empty-values"
        ),
        pytest.param("ExecMainStartTimestampMonotonic=0\n", UnitState(), id="never-started"),
    ],
)
def test_parse_state(output, state):
    assert parse_state(output, 1000.0) == state


def host(run, leader=None):
    return LocalHost(run, "sglang-main.service", 30000, Client("http://127.0.0.1:1"), leader)


def test_the_state_of_the_unit(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1100.0)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 100.0 if clock == time.CLOCK_MONOTONIC else 0.0)
    run = Answers(systemctl=(0, SHOW, ""))
    assert host(run).unit_state() == STATE
    (command,) = run.commands
    assert command[:3] == ["systemctl", "show", "sglang-main.service"]
    assert set(command[3].split("=")[1].split(",")) == set(parse_show(SHOW))


@pytest.mark.parametrize(
    "look", [lambda host: host.unit_state(), lambda host: host.journal("x", ""), lambda host: host.kernel_log(1.0)], ids=["state", "journal", "kernel"]
)
def test_a_host_that_cannot_be_read(look):
    with pytest.raises(HostError, match="failed with status 1: Failed to connect to bus"):
        look(host(Answers(systemctl=(1, "", "Failed to connect to bus"), journalctl=(1, "", "Failed to connect to bus"))))


def test_the_journal_is_read_on_from_the_last_entry():
    entry = json.dumps({"__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1000000", "MESSAGE": "line"})
    run = Answers(journalctl=(0, entry + "\n", ""))
    lines, cursor = host(run).journal("abc", "")
    assert ([line.text for line in lines], cursor) == (["line"], "s=1")
    assert "_SYSTEMD_INVOCATION_ID=abc" in run.commands[0] and "UNIT=sglang-main.service" in run.commands[0]
    run.answers["journalctl"] = (0, "", "")
    assert host(run).journal("abc", "s=1") == ([], "s=1"), "no new line, no new cursor"
    assert "--after-cursor=s=1" in run.commands[1]


@pytest.mark.parametrize("whole, limited", [(False, True), (True, False)], ids=["the-last-lines", "whole"])
def test_how_much_of_the_journal_is_read(whole, limited):
    run = Answers(journalctl=(0, "", ""))
    assert host(run).journal("abc", "", whole) == ([], "")
    assert ("--lines=2000" in run.commands[0]) is limited


@pytest.mark.parametrize(
    "output, lines",
    [
        pytest.param('{"MESSAGE": "NVRM: Xid (PCI:0000:41:00): 79"}\n{"MESSAGE": "a\\nb"}\n', ["NVRM: Xid (PCI:0000:41:00): 79", "a", "b"], id="L14-lines"),
        pytest.param("", [], id="not-its-own-to-read"),
    ],
)
def test_the_kernel_log(output, lines):
    run = Answers(journalctl=(0, output, ""))
    assert host(run).kernel_log(5000.7) == lines
    assert run.commands[0][-3:] == ["--since=@5000", "--lines=2000", "_TRANSPORT=kernel"]


PROCESSES = {
    900: Process(900, "python", 5000, 300, 70),
    901: Process(901, "sglang::schedul", 9000, 4000, 900),
    950: Process(950, "ninja", 3, 10, 1),
    951: Process(951, "cicc", 200, 20, 2),
    952: Process(952, "cicc", 100, 30, 4),
}


@pytest.mark.parametrize(
    "pids, activity",
    [
        pytest.param(set(), Activity(), id="none"),
        pytest.param({900, 901}, Activity(970, 4300), id="the-server"),
        pytest.param({901, 77}, Activity(900, 4000), id="one-is-gone"),
        pytest.param({900, 950}, Activity(71, 310, 0, ("ninja",), 3 + 950), id="a-compiler"),
        pytest.param(set(PROCESSES), Activity(977, 4360, 0, ("cicc", "ninja"), 303 + 950 + 951 + 952), id="several"),
    ],
)
def test_activity(monkeypatch, pids, activity):
    monkeypatch.setattr(_host, "read_process", PROCESSES.get)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert host(Answers()).activity(pids) == activity


def test_one_compiler_after_another_is_progress(monkeypatch):
    """Also when both have used as many ticks, and have the same name."""
    monkeypatch.setattr(_host, "read_process", {7: Process(7, "cicc", 5, 0, 0), 8: Process(8, "cicc", 5, 0, 0)}.get)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    machine = host(Answers())
    assert machine.activity({8}).moved(machine.activity({7})) and not machine.activity({7}).moved(machine.activity({7}))


@pytest.mark.parametrize(
    "path, answer, mebibytes",
    [
        pytest.param("/usr/bin/nvidia-smi", (0, "44210\n", ""), 44210, id="one"),
        pytest.param("/usr/bin/nvidia-smi", (0, "44210\n17\n", ""), 44227, id="two"),
        pytest.param("/usr/bin/nvidia-smi", (0, "[N/A]\n17\n", ""), 17, id="one-does-not-say"),
        pytest.param("/usr/bin/nvidia-smi", (0, "[Insufficient Permissions]\n", ""), 0, id="not-allowed"),
        pytest.param("/usr/bin/nvidia-smi", (0, "", ""), 0, id="no-gpu"),
        pytest.param("/usr/bin/nvidia-smi", (9, "NVIDIA-SMI 18 has failed\n", ""), 0, id="L12-failed"),
        pytest.param("/usr/bin/nvidia-smi", (124, "17\n", ""), 0, id="L14-never-answers"),
        pytest.param(None, None, 0, id="missing"),
    ],
)
def test_gpu_memory(monkeypatch, path, answer, mebibytes):
    monkeypatch.setattr(shutil, "which", {"nvidia-smi": path}.get)
    run = Answers(timeout=answer)
    assert host(run).activity(()) == Activity(gpu_bytes=mebibytes << 20)
    command = ["timeout", "20", "nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    assert run.commands == ([command] if path else [])


def test_rank_0_is_asked_where_it_is_known(monkeypatch):
    monkeypatch.setattr(Client, "request", lambda self, path: Reply(200, f"{self.url}{path}"))
    assert host(Answers(), Client("http://10.0.0.1:30000")).leader("/health") == Reply(200, "http://10.0.0.1:30000/health")
    assert host(Answers()).leader("/health") == Reply(0, error="rank 0 is not known")


def test_the_rest_is_asked_of_proc_and_http(monkeypatch):
    monkeypatch.setattr(_host, "find_listeners", lambda port: [Listener(port, "x")])
    monkeypatch.setattr(_host, "cgroup_pids", lambda group: {len(group)})
    monkeypatch.setattr(Client, "request", lambda self, path, body, timeout: Reply(200, f"{path} {body} {timeout}"))
    machine = host(Answers())
    assert machine.listeners() == [Listener(30000, "x")]
    assert machine.unit_pids("/a/b") == {4}
    assert machine.request("/ready", {"a": 1}, 7.0).body == "/ready {'a': 1} 7.0"


def test_the_clocks(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "time", lambda: 5.0)
    monkeypatch.setattr(time, "monotonic", lambda: 7.0)
    machine = host(Answers())
    machine.sleep(0.25)
    assert (slept, machine.wall_clock(), machine.monotonic()) == ([0.25], 5.0, 7.0)
