# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible_collections.llmops.inference.plugins.action.sglang_release import ActionModule, gate_job
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, RUNNING, Controller

ARGS = {"instance": "main", "unit": "[Service]\n"}
NAME = "llmops.inference.sglang_release"
ME = "alice@laptop"
LOOK = (NAME, {**ARGS, "by": ME, "quick": True}, False)
JOB = (NAME, {**ARGS, "by": ME}, True)
HOLDER = {"purpose": "deploying 0f3a", "release": "0f3a", "since": "2026-11-30 05:12:44", "by": "bob@desk", "pid": 4711}
BUSY = {"changed": False, "action": "busy", "holder": HOLDER}
PENDING = {"changed": False, "action": "pending"}
UNCHANGED = {"changed": False, "action": "unchanged"}


@pytest.fixture(autouse=True)
def fixture_me(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")


def test_an_unchanged_release_takes_one_look(monkeypatch):
    looked = {"changed": False, "action": "unchanged", "ready": True}
    controller = Controller(monkeypatch, answers=[looked])
    assert controller.run(ActionModule, **ARGS) == looked
    assert controller.calls == [LOOK]
    assert controller.commands == controller.jobs == controller.lines == []


def test_what_is_to_do_is_done_in_the_background(monkeypatch):
    looks = [(RUNNING, "stopping the running server"), (ENDED, "")]
    controller = Controller(monkeypatch, answers=[{"changed": False, "action": "pending"}], looks=looks, result={"changed": True, "action": "deployed"})
    assert controller.run(ActionModule, **ARGS) == {"changed": True, "action": "deployed"}
    assert controller.calls == [LOOK, JOB]
    assert controller.task.args == ARGS, "the job does not only look"
    assert controller.lines == ["    ct129 | stopping the running server (0 s)"]


def test_a_look_that_fails_is_the_result(monkeypatch):
    looked = {"failed": True, "msg": "another run holds the lock", "action": "failed"}
    controller = Controller(monkeypatch, answers=[looked])
    assert controller.run(ActionModule, **ARGS) == looked
    assert controller.calls == [LOOK]


GATE = {"settings": {"tolerance_pct": 3}, "flags": [], "benchmark": {"python": "/e/bin/python", "tokenizer": "/m"}}


def test_the_gate_is_given_what_the_host_is_judged_by(monkeypatch, tmp_path):
    """The baseline lies beside the inventory, on the controller."""
    asked = {**ARGS, "gate": {**GATE, "records_dir": str(tmp_path)}}
    controller = Controller(monkeypatch, answers=[PENDING], looks=[(ENDED, "")], result={"changed": True, "action": "deployed"})
    controller.run(ActionModule, **asked)
    (_look, (_name, given, in_background)) = controller.calls
    assert in_background and given["gate"]["settings"]["tolerance_pct"] == 3
    assert {name: given["gate"][name] for name in ("baseline", "history", "host", "flags", "benchmark")} == {
        "baseline": [],
        "history": [],
        "host": "ct129",
        "flags": [],
        "benchmark": {**GATE["benchmark"], "workloads": ["decode"], "dataset": "", "repetitions": 5},
    }


@pytest.mark.parametrize(
    ("settings", "measured"),
    [
        pytest.param({"concurrency": None}, {"concurrency": [1, 16], "request_rates": [2.5], "sweep": True}, id="all-points"),
        pytest.param({"concurrency": 16}, {"concurrency": [16], "request_rates": [], "sweep": False}, id="one-point"),
    ],
)
def test_the_gate_measures_what_it_judges(settings, measured):
    job = {"concurrency": [1, 16], "request_rates": [2.5], "sweep": True, "workloads": ["decode", "chat"], "dataset": "{}", "flush": False, "repetitions": 9}
    found = gate_job(job, {"workload": "chat", **settings})
    assert found == {**job, **measured, "workloads": ["chat"], "dataset": ""}, "the cache policy is the baseline's: it is a condition"


def test_a_damaged_baseline_stops_a_deployment_before_it_began(monkeypatch, tmp_path):
    (tmp_path / "ct129").mkdir()
    (tmp_path / "ct129" / "baseline.json").write_text("{")
    controller = Controller(monkeypatch, answers=[PENDING])
    with pytest.raises(AnsibleActionFail, match=r"baseline\.json.*nothing was changed"):
        controller.run(ActionModule, **ARGS, gate={**GATE, "records_dir": str(tmp_path)})
    assert len(controller.calls) == 1


@pytest.mark.parametrize("args, check_mode", [({**ARGS, "state": "absent"}, False), (ARGS, True)], ids=["absent", "check-mode"])
def test_what_needs_neither_a_look_nor_a_job(monkeypatch, args, check_mode):
    controller = Controller(monkeypatch, answers=[{"changed": True, "action": "x"}])
    assert controller.run(ActionModule, check_mode=check_mode, **args) == {"changed": True, "action": "x"}
    assert controller.calls == [(NAME, {**args, "by": ME}, False)]


def test_a_rollback_needs_no_look(monkeypatch):
    controller = Controller(monkeypatch, result={"changed": True, "action": "deployed"})
    args = {"instance": "main", "state": "rolled_back"}
    assert controller.run(ActionModule, **args) == {"changed": True, "action": "deployed"}
    assert controller.calls == [(NAME, {**args, "by": ME}, True)]


ATTACHING = "    ct129 | attaching to: deploying 0f3a, since 2026-11-30 05:12:44, by bob@desk"
OTHER = {**BUSY, "holder": {**HOLDER, "purpose": "rolling back to good", "by": "", "pid": 4712}}
TO_OTHER = "    ct129 | attaching to: rolling back to good, since 2026-11-30 05:12:44"
UNKNOWN = {**BUSY, "holder": {}}


@pytest.mark.parametrize(
    "answers, result, calls, attaching",
    [
        pytest.param([BUSY, UNCHANGED], None, [LOOK, LOOK], [ATTACHING], id="it-did-what-was-asked"),
        pytest.param([BUSY, PENDING], {"changed": True, "action": "deployed"}, [LOOK, LOOK, JOB], [ATTACHING], id="it-did-something-else"),
        pytest.param([BUSY, OTHER, UNCHANGED], None, [LOOK] * 3, [ATTACHING, TO_OTHER], id="another-one-was-first"),
        pytest.param([BUSY, BUSY, BUSY, UNCHANGED], None, [LOOK] * 4, [ATTACHING], id="gone-and-yet-busy"),
        pytest.param([UNKNOWN, UNKNOWN, BUSY, UNCHANGED], None, [LOOK] * 4, ["    ct129 | attaching to: another run", ATTACHING], id="it-has-not-said-yet"),
        pytest.param([BUSY, {"failed": True, "action": "busy"}], None, [LOOK, LOOK], [ATTACHING], id="a-failed-look-is-the-result"),
        pytest.param([BUSY, {"failed": True, "action": "refused"}], None, [LOOK, LOOK], [ATTACHING], id="a-refusal-is-the-result"),
    ],
)
def test_the_job_of_another_run_is_followed_first(monkeypatch, answers, result, calls, attaching):
    looks = [(RUNNING, "loading weights"), (ENDED, "")]
    controller = Controller(monkeypatch, answers=answers, looks=looks, result=result)
    assert controller.run(ActionModule, **ARGS) == (result or answers[-1])
    assert controller.calls == calls
    assert [line for line in controller.lines if "attaching" in line] == attaching
    assert controller.lines.count("    ct129 | loading weights (0 s)") == 1
    busy = answers.count(BUSY) + answers.count(UNKNOWN)
    assert controller.now - 1000 >= busy - 1, "it is not asked without a pause"


def test_it_is_followed_by_its_process(monkeypatch):
    looks = [(RUNNING, "loading weights", 312), (RUNNING, "loading weights"), (RUNNING, "loading weights"), (RUNNING, "capturing"), (ENDED, "")]
    controller = Controller(monkeypatch, answers=[BUSY, UNCHANGED], looks=looks)
    controller.run(ActionModule, **ARGS)
    assert controller.lines[1:] == [f"    ct129 | {text}" for text in ("loading weights (312 s)", "loading weights (322 s)", "capturing (0 s)")]
    assert ["known=''" in command for command in controller.commands] == [True, *[False] * 4], "later looks hold it to the time of its start"
    assert all("\npid=4711\n" in command and "progress=/run/llmops-inference/sglang_release-main\n" in command for command in controller.commands)


def test_a_job_of_another_run_that_does_not_go_on(monkeypatch):
    controller = Controller(monkeypatch, answers=[BUSY, UNCHANGED], looks=[(RUNNING, "loading weights", 1800)] * 1500 + [(ENDED, "")])
    controller.run(ActionModule, **ARGS)
    assert controller.now > 2 * 3600
    assert controller.warnings == ["ct129: the job that is followed has been loading weights for 60 min; look at it on the host if that is too long"]


def test_a_connection_lost_while_attached(monkeypatch):
    controller = Controller(monkeypatch, answers=[BUSY], looks=[(RUNNING, "loading weights"), AnsibleConnectionFailure("ssh: timed out")])
    with pytest.raises(AnsibleConnectionFailure, match="timed out; the job on the host goes on"):
        controller.run(ActionModule, **ARGS)


@pytest.mark.parametrize("args, check_mode", [({**ARGS, "state": "absent"}, False), (ARGS, True)], ids=["absent", "check-mode"])
def test_what_needs_no_job_waits_for_that_of_another_run(monkeypatch, args, check_mode):
    controller = Controller(monkeypatch, answers=[BUSY, {"changed": True, "action": "x"}])
    assert controller.run(ActionModule, check_mode=check_mode, **args) == {"changed": True, "action": "x"}
    assert controller.calls == [(NAME, {**args, "by": ME}, False)] * 2


@pytest.mark.parametrize("answers, calls", [([PENDING, UNCHANGED], [LOOK, JOB, LOOK]), ([PENDING, {"action": "failed"}], [LOOK, JOB, LOOK])])
def test_a_job_that_loses_the_race_follows_the_other(monkeypatch, answers, calls):
    controller = Controller(monkeypatch, answers=answers, result=BUSY)
    assert controller.run(ActionModule, **ARGS) == answers[-1]
    assert controller.calls == calls and controller.lines == [ATTACHING]


def test_who_asks_can_be_told(monkeypatch):
    controller = Controller(monkeypatch, answers=[UNCHANGED])
    controller.run(ActionModule, by="pipeline 12", **ARGS)
    assert controller.calls[0][1]["by"] == "pipeline 12"


@pytest.mark.parametrize(("asked", "measured"), [(2, 5), (5, 5), (20, 20)])
def test_fewer_than_five_repetitions_are_no_judgement(asked, measured):
    assert gate_job({"repetitions": asked}, {"workload": "decode", "concurrency": None})["repetitions"] == measured
