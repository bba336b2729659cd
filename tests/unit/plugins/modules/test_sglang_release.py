# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import os
import shutil

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.module_utils._switch import Switch
from ansible_collections.llmops.inference.plugins.modules import sglang_release
from ansible_collections.llmops.inference.tests.unit.machine import UNIT, Machine

SECRET = "s3cret-of-the-server"
TOKEN = "t0ken-of-the-hub"
TEXT = "[Service]\nEnvironmentFile=@RELEASE@/environment\nExecStart=/opt/e/bin/python -m sglang.launch_server {}\n"


class Bench:
    """The module with one played machine."""

    def __init__(self, path, run_module):
        self.machine = Machine.below(path, dies={"--bad": [f"server_args=ServerArgs(api_key='{SECRET}')", f"ValueError: {TOKEN}"]})
        self.store = Store(path / "store" / "main")
        self.run_module = run_module
        self.probes = []

    def run(self, word="--one", check_mode=False, diff=True, **args):
        self.machine.commands.clear()
        common = {"instance": "main", "port": 30000, "model_name": "qwen", "store": str(self.store.path.parent), "timeout": 60}
        secrets = {"api_key": SECRET, "secret_flags": {"api_key": SECRET}, "secret_environment": {"HF_TOKEN": TOKEN}}
        release = {"unit": TEXT.format(word), "argv": [word], "environment": {"NCCL_DEBUG": "INFO", "N": 1}}
        given = {name: value for name, value in {**common, **secrets, **release, **args}.items() if value is not None}
        return self.run_module(sglang_release, given, command=self.machine.run, check_mode=check_mode, diff=diff)


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch, run_module):
    bench = Bench(tmp_path, run_module)
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: str(path).startswith("/opt/e") or exists(path))
    monkeypatch.setattr(sglang_release, "make_host", lambda run, params: bench.probes.append(params) or bench.machine)
    monkeypatch.setattr(sglang_release, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    monkeypatch.setattr(sglang_release, "Switch", functools.partial(Switch, places=bench.machine.places))
    return bench


@pytest.fixture(name="served")
def fixture_served(bench):
    assert bench.run().result["action"] == "deployed"
    bench.machine.now += 10
    return bench


CASES = [
    pytest.param({}, {"action": "unchanged", "changed": False, "ready": True}, id="unchanged"),
    pytest.param({"quick": True}, {"action": "unchanged", "changed": False, "ready": True}, id="quick-unchanged"),
    pytest.param({"check_mode": True}, {"action": "unchanged", "changed": False}, id="check-unchanged"),
    pytest.param({"word": "--two"}, {"action": "deployed", "changed": True, "ready": True}, id="deployed"),
    pytest.param({"word": "--two", "quick": True}, {"action": "pending", "changed": False, "ready": False}, id="quick-pending"),
    pytest.param({"word": "--two", "check_mode": True}, {"action": "would_change", "changed": True, "ready": False}, id="check-would-change"),
    pytest.param({"secret_flags": {"api_key": SECRET + "2"}}, {"action": "restarted", "changed": True, "ready": True}, id="secret-changed"),
    pytest.param({"word": "--bad"}, {"action": "rolled_back", "changed": True, "failed": True, "ready": False}, id="rolled-back"),
    pytest.param({"unit": "no unit\n"}, {"action": "failed", "failed": True, "ready": False}, id="no-unit"),
    pytest.param({"environment": {"X": "a\nb"}}, {"action": "failed", "failed": True, "ready": False}, id="no-variable"),
    pytest.param({"state": "rolled_back"}, {"action": "unchanged", "changed": False, "ready": True}, id="rolled-back-to-good"),
    pytest.param({"state": "absent"}, {"action": "removed", "changed": True}, id="removed"),
    pytest.param({"state": "absent", "check_mode": True}, {"action": "removed", "changed": True}, id="check-removed"),
]


@pytest.mark.parametrize("args, expected", CASES)
def test_the_same_keys_and_no_secret_whatever_happens(served, documented, args, expected):
    """U09"""
    before = served.machine.starts[:]
    ran = served.run(**args)
    assert {name: ran.result.get(name) for name in expected} == expected
    assert ran.failed is expected.get("failed", False) and ran.status == int(ran.failed)
    assert ran.keys == documented(sglang_release)
    assert SECRET not in ran.output and TOKEN not in ran.output
    if args.get("check_mode") or args.get("quick"):
        assert served.machine.starts == before and served.machine.commands == []


def test_the_first_deployment(bench):
    ran = bench.run()
    assert (ran.result["action"], ran.result["previous"]) == ("deployed", "")
    assert ran.result["release"] == bench.store.good
    assert ran.result["start"]["vitals"] == {"kv_cache_tokens": 8192, "max_running_requests": 4}
    assert (bench.store.directory(bench.store.good) / "environment").read_text() == 'N="1"\nNCCL_DEBUG="INFO"\n'


def test_a_failure_says_what_serves_now(served):
    good = served.store.good
    result = served.run("--bad").result
    assert result["suspects"] == "the evidence points to none of the 2 changes since the good release: one, bad"
    assert result["msg"] == (
        f"{UNIT}: release {result['release']} failed: the engine stopped with ValueError: ******** "
        f"(the lines before it in the journal show where). {result['suspects'][0].upper()}{result['suspects'][1:]}. "
        f"The last good release {good} is serving again"
    )


def test_a_first_failure_has_nothing_to_go_back_to(bench):
    ran = bench.run("--bad")
    assert (ran.result["action"], ran.result["changed"], ran.result["previous"]) == ("failed", False, "")
    assert ran.result["msg"].endswith("failed: the engine stopped with ValueError: ******** (the lines before it in the journal show where)")


def test_a_failed_rollback_says_so(served):
    served.machine.dies["--one"] = ["torch.OutOfMemoryError: CUDA out of memory."]
    text = served.run("--bad").result["msg"]
    assert text.startswith(f"{UNIT}: THE SERVER IS DOWN: putting the last good release {served.store.good} back failed as well: GPU memory ran out")
    assert "Before that, release " in text


def test_a_rollback_is_proven_where_the_good_release_answers(bench):
    bench.run(port=30001, host="10.0.0.5")
    bench.probes.clear()
    assert bench.run("--bad", port=30002, host="0.0.0.0").result["action"] == "rolled_back"
    assert [(probe["port"], probe["host"], probe["api_key"]) for probe in bench.probes] == [(30002, "0.0.0.0", SECRET), (30001, "10.0.0.5", SECRET)]
    assert "api_key" not in bench.store.read(bench.store.good, "release")["probe"]


def test_a_held_port_changes_nothing(served):
    """N08"""
    served.machine.strangers = [Listener(455, "python3 -m http.server")]
    ran = served.run("--two")
    assert (ran.result["action"], ran.result["changed"], ran.result["diagnosis"]["code"]) == ("failed", False, "port_in_use")
    assert served.machine.commands == []


@pytest.mark.parametrize("args", [{}, {"quick": True}, {"check_mode": True}, {"state": "rolled_back"}], ids=["deploy", "look", "check", "rollback"])
def test_a_held_lock(served, documented, args):
    """Whoever follows is told whose job it is, and does nothing."""
    with Store(served.store.path).locked("deploying x", "x", "alice@laptop"):
        ran = served.run("--two", **args)
    assert (ran.failed, ran.result["action"], ran.result["changed"], ran.keys) == (False, "busy", False, documented(sglang_release))
    assert {name: ran.result["holder"][name] for name in ("purpose", "release", "by", "pid")} == {
        "purpose": "deploying x",
        "release": "x",
        "by": "alice@laptop",
        "pid": os.getpid(),
    }


def test_a_held_lock_and_a_server_to_take_away(served):
    with Store(served.store.path).locked("deploying x"):
        assert served.run(state="absent").result["action"] == "busy"


def test_what_failed_before_is_refused(served):
    served.run("--bad")
    for args in ({}, {"quick": True}, {"check_mode": True}):
        ran = served.run("--bad", **args)
        assert (ran.failed, ran.result["action"], ran.result["changed"]) == (True, "refused", False)
        assert f"{UNIT}: release {ran.result['release']} is not tried again: it failed here on " in ran.result["msg"]
        assert "-e sglang_server_retry_failed_enabled=true)" in ran.result["msg"]
        assert ran.result["msg"].endswith("The server was not touched")
        assert served.machine.called("restart") == 0
    assert served.run("--bad", retry_failed=True).result["action"] == "rolled_back"


def test_going_back(served):
    good = served.store.good
    served.run("--two")
    served.machine.now += 10
    ran = served.run(state="rolled_back", to=good[:6], unit=None)
    assert (ran.result["action"], ran.result["release"], ran.result["changed"]) == ("deployed", good, True)
    assert [one["good"] for one in ran.result["releases"]] == [True, False]
    assert served.run(state="rolled_back", unit=None).result["action"] == "unchanged"


def test_going_back_to_nothing(served, documented):
    ran = served.run(state="rolled_back", to="ffff", unit=None)
    assert ran.failed and ran.keys == documented(sglang_release)
    assert ran.result["msg"] == f"{UNIT}: there is no release 'ffff' of this server here: {served.store.good}"


def test_without_a_rollback_the_message_says_that_the_server_is_down(served):
    ran = served.run("--bad", rollback=False)
    assert (ran.result["action"], ran.result["rollback"]) == ("failed", {})
    assert "sglang_server_rollback_enabled is off: the server is down" in ran.result["msg"]


@pytest.mark.parametrize(
    "limits, message",
    [
        ({"weight": 5}, "stall_timeouts.weight: a start has no such phase; did you mean weights?"),
        ({"weights": "long"}, "stall_timeouts.weights: 'long' is no number of seconds"),
        ({"weights": 0}, "stall_timeouts.weights: 0 must be more than 0 seconds"),
    ],
)
def test_a_limit_that_is_none(served, documented, limits, message):
    ran = served.run(stall_timeouts=limits)
    assert ran.failed and ran.result["msg"] == f"{UNIT}: {message}" and ran.keys == documented(sglang_release)


def test_a_store_that_cannot_be_used_is_a_sentence(served, documented):
    """And the server is not touched."""
    shutil.move(str(served.store.releases), str(served.store.path / "aside"))
    served.store.releases.write_text("")
    ran = served.run("--two")
    assert ran.failed and ran.keys == documented(sglang_release)
    assert "releases" in ran.result["msg"] and served.machine.commands == []


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_diff_shows_the_unit_and_the_environment(served, check_mode):
    """U09: a secret that stands in the unit by mistake is masked as well."""
    ran = served.run(f"--two={SECRET}", check_mode=check_mode, environment={"NCCL_DEBUG": "WARN", "N": 1})
    unit, environment = ran.result["diff"]
    assert unit["before_header"] == unit["after_header"] == str(served.machine.places.etc / UNIT)
    assert "launch_server --one" in unit["before"] and "launch_server --two=********" in unit["after"]
    assert (environment["before"], environment["after"]) == ('N="1"\nNCCL_DEBUG="INFO"\n', 'N="1"\nNCCL_DEBUG="WARN"\n')
    assert SECRET not in ran.output


def test_nothing_to_show(served):
    assert served.run().result["diff"] == []


def test_what_is_measured_and_was_seen_comes_with_the_release(served):
    served.store.write(served.store.good, "benchmark", {"output_tok_per_s": 198.1})
    ran = served.run(quick=True)
    assert ran.result["benchmark"] == {"output_tok_per_s": 198.1}
    assert ran.result["start"]["vitals"]["kv_cache_tokens"] == 8192


def test_the_preflight_is_kept_with_the_release(served):
    ran = served.run("--two", preflight={"verdict": "warned", "findings": []})
    assert (ran.result["action"], ran.result["release"]) == ("deployed", served.store.good)
    assert served.store.read(served.store.good, "preflight") == {"verdict": "warned", "findings": []}
    other = served.run("--two", preflight={"verdict": "passed"})
    assert (other.result["action"], other.result["release"]) == ("unchanged", ran.result["release"]), "another judgement is no other release"


def test_without_a_preflight_none_is_kept(served):
    assert not (served.store.directory(served.store.good) / "preflight.json").exists()


def test_absent_twice(served):
    assert served.run(state="absent").result["changed"] is True
    ran = served.run(state="absent")
    assert (ran.result["action"], ran.result["changed"]) == ("unchanged", False)
    assert not served.store.path.exists() and list(served.machine.places.etc.iterdir()) == []


@pytest.mark.parametrize("left", ["unit", "store", "nothing"])
def test_absent_in_check_mode(served, left):
    unit = served.machine.places.etc / UNIT
    if left != "unit":
        unit.unlink()
    if left != "store":
        shutil.rmtree(served.store.path)
    ran = served.run(state="absent", check_mode=True)
    assert ran.result["changed"] is (left != "nothing")
    assert (unit.exists(), served.store.path.exists(), served.machine.state.alive) == (left == "unit", left == "store", True)


def test_no_progress_is_left(served, tmp_path):
    assert list((tmp_path / "progress").iterdir()) == []


def test_a_unit_made_by_hand_serves_again(bench):
    (bench.machine.places.etc / UNIT).write_text("[Service]\nExecStart=/bin/by-hand\n")
    assert bench.run("--bad").result["msg"].endswith("The unit that was there before is serving again")


def test_absent_needs_no_unit(bench):
    assert bench.run(state="absent", unit=None).result["action"] == "unchanged"
    ran = bench.run(unit=None)
    assert ran.failed and ran.result["msg"] == "state is present but all of the following are missing: unit"
