# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._patience import STALL_SECONDS
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store, StoreBusy, StoreError
from ansible_collections.llmops.inference.plugins.module_utils._standing import Settings
from ansible_collections.llmops.inference.plugins.module_utils._switch import Switch
from ansible_collections.llmops.inference.tests.unit.machine import EPOCH, UNIT, Machine

SECRET = "s3cret-of-the-server"
EXPECT = Expectation(30000, "qwen", timeout=60.0, stalls=dict.fromkeys(STALL_SECONDS, 20.0))
TEXT = """\
[Unit]
Description=SGLang server main

[Service]
EnvironmentFile=@RELEASE@/environment
ExecStart=/opt/e/bin/python -m sglang.launch_server {}
Restart=always

[Install]
WantedBy=multi-user.target
"""
HAND_MADE = "[Service]\nExecStart=/usr/bin/python3 -m sglang.launch_server --by-hand\n"


def candidate(*words):
    return Candidate(TEXT.format(" ".join(words)), words)


ONE, TWO, BAD = candidate("--one"), candidate("--two"), candidate("--bad")
DIES = {"--bad": ["server_args=ServerArgs(api_key='other')", f"ValueError: no such thing {SECRET}", "Received sigquit"]}


class Bench:
    """One instance on one machine."""

    def __init__(self, path):
        self.machine = Machine.below(path, dies=dict(DIES))
        self.store = Store(path / "store" / "main")
        self.etc = self.machine.places.etc / UNIT
        self.trial_unit = self.machine.places.run / UNIT
        self.trial_dropin = self.machine.places.run / f"{UNIT}.d" / "90-candidate.conf"
        self.manual_dropin = self.machine.places.etc / f"{UNIT}.d" / "override.conf"
        self.progress = []

    def switch(self, **settings):
        return Switch(
            self.store,
            self.machine,
            self.machine.run,
            EXPECT,
            Settings(UNIT, **settings),
            report=lambda phase, seconds, detail: self.progress.append(phase),
            places=self.machine.places,
        )

    def deploy(self, release, **settings):
        self.machine.commands.clear()
        return self.switch(**settings).deploy(release)

    def state(self, release):
        return self.store.read(release.id, "state")

    def write_dropin(self, when=EPOCH):
        self.manual_dropin.parent.mkdir()
        self.manual_dropin.write_text("[Service]\nNice=5\n")
        os.utime(self.manual_dropin, (when, when))

    def edit_unit(self, when):
        self.etc.write_text(self.etc.read_text() + "# edited\n")
        os.utime(self.etc, (when, when))

    def edit_environment(self, when=0):
        """Writes a variable into the environment of ONE; without a time it takes the file away."""
        path = self.store.directory(ONE.id) / "environment"
        if when is None:
            path.unlink()
            return
        path.write_text('NCCL_DEBUG="INFO"\n')
        os.utime(path, (when, when))

    def text_of(self, release):
        return release.unit.replace("@RELEASE@", str(self.store.directory(release.id)))


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch):
    """The engine's interpreter is there."""
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: str(path).startswith("/opt/e") or exists(path))
    return Bench(tmp_path)


@pytest.fixture(name="served")
def fixture_served(bench):
    """A bench whose machine serves release ONE."""
    assert bench.deploy(ONE).action == "deployed"
    bench.machine.commands.clear()
    bench.machine.now += 10
    return bench


def tree(path):
    return {str(item.relative_to(path)): item.read_bytes() if item.is_file() and not item.is_symlink() else b"" for item in sorted(path.rglob("*"))}


# -- a new server -----------------------------------------------------------------------------------------------------------


def test_the_first_deployment(bench):
    result = bench.deploy(ONE)
    assert (result.action, result.release, result.previous, result.failed) == ("deployed", ONE.id, "", False)
    assert result.reasons == ["no release of this server is known to be good"]
    assert result.outcome.ready and result.outcome.vitals["kv_cache_tokens"] == 8192
    (start,) = bench.machine.starts
    assert (start.etc_unit, start.trial) == ("", [UNIT]), "on trial below /run: a reboot would start nothing"
    assert bench.etc.read_text() == bench.text_of(ONE)
    assert stat.S_IMODE(bench.etc.stat().st_mode) == 0o644
    assert not bench.trial_unit.exists()
    assert bench.store.good == ONE.id
    assert bench.machine.enabled is True
    assert bench.machine.loaded.endswith("--one"), "systemd knows the unit in /etc"


def test_what_a_deployment_leaves_with_the_release(bench):
    bench.deploy(ONE)
    assert bench.state(ONE) == {"state": "good", "since": EPOCH, "invocation": "run-1"}
    assert bench.store.read(ONE.id, "vitals")["vitals"] == {"kv_cache_tokens": 8192, "max_running_requests": 4}
    assert bench.store.read(ONE.id, "release") == ONE.document()


def test_the_states_of_a_release(bench):
    """Whatever dies, the store says how far a release came."""
    seen, play = {}, bench.machine.run

    def run(command):
        seen.setdefault(command[1], bench.state(ONE).get("state"))
        return play(command)

    bench.machine.run = run
    bench.deploy(ONE)
    assert {word: seen[word] for word in ("verify", "restart", "enable")} == {"verify": "staged", "restart": "starting", "enable": "ready"}


def test_secrets_are_there_before_the_server_starts(bench):
    written = []
    bench.machine._reset_failed = lambda command: written.append((bench.store.path / "secrets" / "environment").read_text())
    bench.deploy(ONE, secret_environment={"HF_TOKEN": SECRET})
    assert written == [f'HF_TOKEN="{SECRET}"\n']


def test_the_unit_is_checked_before_it_is_started(bench):
    bench.deploy(ONE)
    assert bench.machine.verified == [bench.text_of(ONE)]
    assert [command[:2] for command in bench.machine.commands[:2]] == [["systemd-analyze", "verify"], ["systemctl", "daemon-reload"]]
    assert not (bench.store.directory(ONE.id) / "verify").exists()


def test_the_start_limit_is_reset_before_a_start(bench):
    bench.deploy(ONE)
    words = [command[1] for command in bench.machine.commands if command[0] == "systemctl"]
    assert words == ["daemon-reload", "reset-failed", "restart", "daemon-reload", "enable"]


def test_progress_is_reported(bench):
    bench.deploy(ONE)
    assert list(dict.fromkeys(bench.progress)) == ["stopping the running server", "starting the HTTP server"]


def test_a_server_that_shall_not_start_at_boot(bench):
    bench.deploy(ONE, enabled=False)
    assert bench.machine.enabled is False


def test_a_failing_first_deployment_leaves_nothing_to_start(bench):
    result = bench.deploy(BAD)
    assert (result.action, result.failed, result.previous, result.rollback) == ("failed", True, "", None)
    assert result.outcome.diagnosis.code == "exception"
    assert list(bench.machine.places.etc.iterdir()) == []
    assert not bench.trial_unit.exists()
    assert not bench.machine.state.alive and bench.machine.called("stop") == 1
    assert bench.machine.called("reset-failed") == 2, "once for the start; once for the end, so that systemctl --failed does not list it"
    assert bench.machine.enabled is None
    assert (bench.store.good, bench.state(BAD)["state"]) == ("", "failed")
    assert bench.deploy(ONE).action == "deployed", "the next one is not in its way"


# -- a change ---------------------------------------------------------------------------------------------------------------


def test_a_change_is_tried_out_beside_the_good_unit(served):
    good = served.etc.read_text()
    result = served.deploy(TWO)
    assert (result.action, result.previous) == ("deployed", ONE.id)
    assert result.reasons == [f"the release changes from {ONE.id} to {TWO.id}"]
    start = served.machine.starts[-1]
    assert (start.etc_unit, start.trial) == (good, [f"{UNIT}.d/90-candidate.conf"])
    assert start.exec_start.endswith("--two")
    assert not served.trial_dropin.exists()
    assert served.etc.read_text() == served.text_of(TWO)
    assert served.store.good == TWO.id
    assert served.machine.called("restart") == 1, "promoted without another start"


def test_a_failing_change_brings_the_good_release_back(served):
    before = served.etc.read_bytes()
    result = served.deploy(BAD)
    assert (result.action, result.failed, result.previous) == ("rolled_back", True, ONE.id)
    assert (result.outcome.ready, result.rollback.ready) == (False, True)
    assert served.etc.read_bytes() == before
    assert not served.trial_dropin.exists()
    assert served.store.good == ONE.id and served.state(ONE)["state"] == "good"
    assert served.machine.starts[-1].exec_start.endswith("--one") and served.machine.starts[-1].trial == []
    assert served.machine.state.alive
    assert served.deploy(ONE).action == "unchanged"


def test_a_rollback_is_proven_where_the_good_release_answers(bench):
    """A candidate on another port: probing that port for the good release would never end."""
    asked = []

    def revive(probe):
        asked.append(dict(probe))
        return bench.machine, EXPECT

    bench.deploy(replace(ONE, probe={"port": 30000, "model_name": "one"}))
    switch = bench.switch()
    switch._revive = revive
    assert switch.deploy(BAD).rollback.ready
    assert asked == [{"port": 30000, "model_name": "one"}]


def test_a_failure_is_kept_without_its_secrets(served):
    """U09: the engine prints keys, and journals are often volatile."""
    served.deploy(BAD, secret_flags={"api_key": SECRET})
    state = served.state(BAD)
    assert (state["state"], state["diagnosis"]["code"]) == ("failed", "exception")
    assert state["diagnosis"]["cause"] == "the engine stopped with ValueError: no such thing ********"
    assert state["journal"] == ["server_args=ServerArgs(api_key='********')", "ValueError: no such thing ********", "Received sigquit"]
    for path in served.store.releases.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_text(), path


@pytest.mark.parametrize(
    "said, journal",
    [
        pytest.param("Job failed", ["Failed to set up credentials", "OSError: [Errno 28] No space left on device"], id="the-journal-says-why"),
        pytest.param("Failed to set up: No space left on device", ["Stopping"], id="systemctl-says-why"),
    ],
)
def test_a_start_that_systemd_refuses(served, said, journal):
    served.machine.refuses["--two"] = said
    served.machine.dies["--two"] = journal
    result = served.deploy(TWO)
    assert (result.action, result.outcome.diagnosis.code) == ("rolled_back", "disk_full")
    assert result.outcome.journal_tail == journal
    assert served.machine.starts[-1].exec_start.endswith("--one")


def test_an_exception_in_the_trial_is_its_failure(served):
    served.machine.breaks["--two"] = RuntimeError("the journal is corrupt")
    result = served.deploy(TWO)
    assert (result.action, result.outcome.diagnosis.code) == ("rolled_back", "trial_broke")
    assert result.outcome.diagnosis.cause == "the trial broke off: RuntimeError: the journal is corrupt"
    assert result.rollback.ready and not served.trial_dropin.exists()
    assert served.state(TWO)["state"] == "failed"


DISTURBED = {
    "edited": lambda path: path.write_text(HAND_MADE),
    "not-parsed": lambda path: path.write_text(HAND_MADE + "?\n"),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("disturb", DISTURBED.values(), ids=DISTURBED)
def test_a_failing_change_brings_the_good_release_back_whatever_etc_holds(served, disturb):
    """The server that runs is the good release; what an edit made of its unit was never proven."""
    disturb(served.etc)
    served.machine.run(["systemctl", "daemon-reload"])
    result = served.deploy(BAD)
    assert (result.action, result.rollback.ready) == ("rolled_back", True)
    assert served.etc.read_text() == served.text_of(ONE)
    assert served.machine.starts[-1].exec_start.endswith("--one")


def test_a_rollback_that_fails_says_so(served):
    served.machine.dies["--one"] = ["torch.OutOfMemoryError: CUDA out of memory."]
    result = served.deploy(BAD)
    assert (result.action, result.outcome.diagnosis.code) == ("rolled_back", "exception")
    assert (result.rollback.ready, result.rollback.diagnosis.code) == (False, "gpu_memory")
    assert served.store.good == ONE.id


def test_old_releases_go(bench):
    releases = [candidate(f"--release={n}") for n in range(4)]
    for release in releases:
        bench.machine.now += 100
        bench.deploy(release, keep=2)
    assert {path.name for path in bench.store.releases.iterdir()} == {releases[2].id, releases[3].id}


# -- refused before the running server is touched ----------------------------------------------------------------------------


@pytest.mark.parametrize("release", [TWO, BAD], ids=["would-serve", "would-fail"])
def test_a_port_held_by_another(served, release):
    """N08"""
    served.machine.strangers = [Listener(455, "python3 -m http.server 30000")]
    before = tree(served.machine.places.etc), tree(served.store.path), served.machine.state
    result = served.deploy(release)
    assert (result.action, result.outcome.diagnosis.code) == ("failed", "port_in_use")
    assert result.outcome.diagnosis.cause == "port 30000 is held by another process (pid 455: python3 -m http.server 30000)"
    assert result.outcome.diagnosis.hint.endswith("nothing was changed")
    assert served.machine.commands == []
    lock = served.store.path / "lock"
    lock.write_text(before[1]["lock"].decode())
    assert (tree(served.machine.places.etc), tree(served.store.path), served.machine.state) == before


def test_a_unit_that_systemd_refuses(served):
    served.machine.verify_says = (
        f"/etc/systemd/system/cloud.service:3: Unknown key name 'X' in section 'Service', ignoring.\n"
        f"/x/verify/{UNIT}:12: Unknown key name 'Nicee' in section 'Service', ignoring.\n"
    )
    before = served.machine.state
    result = served.deploy(TWO)
    assert (result.action, result.outcome.diagnosis.code) == ("failed", "unit_refused")
    assert result.outcome.diagnosis.evidence == [f"/x/verify/{UNIT}:12: Unknown key name 'Nicee' in section 'Service', ignoring."]
    assert (served.machine.state, served.machine.called()) == (before, 1), "one command, and that is systemd-analyze"
    assert served.etc.read_text() == served.text_of(ONE) and served.store.good == ONE.id


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("/etc/systemd/system/cloud.service:3: Unknown key name 'X' in section 'Service', ignoring.\n", id="another-unit"),
        pytest.param(f"{UNIT}: Command 'man sglang' failed with code 16\n", id="no-complaint"),
    ],
)
def test_what_systemd_says_of_others_does_not_count(served, said):
    served.machine.verify_says = said
    assert served.deploy(TWO).action == "deployed"


def test_two_runs_at_once(served):
    with Store(served.store.path).locked("deploying x", "x", by="alice@laptop"):
        for attempt in (served.deploy, served.switch().look, served.switch().roll_back):
            with pytest.raises(StoreBusy, match=r"deploying x, since \S+ \S+, by alice@laptop; wait") as busy:
                attempt(TWO if attempt != served.switch().roll_back else "good")
            assert busy.value.holder["pid"] == os.getpid()
    assert served.machine.commands == [] and served.store.good == ONE.id


# -- the same release again ---------------------------------------------------------------------------------------------------


def test_an_unchanged_release(served):
    before = tree(served.machine.places.etc), served.machine.state
    result = served.deploy(ONE)
    assert (result.action, result.reasons, result.failed) == ("unchanged", [], False)
    assert result.outcome.ready
    assert served.machine.commands == []
    assert (tree(served.machine.places.etc), served.machine.state) == before


@pytest.mark.parametrize("seconds, action, restarts", [(+5, "repaired", 0), (-5, "restarted", 1)], ids=["after-the-start", "before-the-start"])
def test_a_unit_edited_by_hand(served, seconds, action, restarts):
    """Edited after the process was started, the process is still the release; edited before, it is not."""
    served.edit_unit(served.machine.state.started + seconds)
    result = served.deploy(ONE)
    assert (result.action, result.reasons) == (action, ["the unit in /etc was edited by hand"])
    assert served.etc.read_text() == served.text_of(ONE)
    assert (served.machine.called("daemon-reload"), served.machine.called("restart")) == (1, restarts)
    assert served.deploy(ONE).action == "unchanged"


@pytest.mark.parametrize("seconds, action, restarts", [(+5, "repaired", 0), (-5, "restarted", 1), (None, "repaired", 0)], ids=["after", "before", "gone"])
def test_an_environment_edited_by_hand(served, seconds, action, restarts):
    path = served.store.directory(ONE.id) / "environment"
    served.edit_environment(seconds and served.machine.state.started + seconds)
    result = served.deploy(ONE)
    assert (result.action, result.reasons) == (action, ["the environment of the release was edited by hand"])
    assert (path.read_text(), served.machine.called("restart")) == ("", restarts)
    assert served.deploy(ONE).action == "unchanged"


def test_a_release_that_is_damaged_in_the_store(served):
    (served.store.directory(ONE.id) / "unit.service").unlink()
    assert served.deploy(ONE).action == "repaired"
    assert served.etc.read_text() == served.store.unit_text(ONE.id) == served.text_of(ONE)


def test_a_unit_that_is_gone(served):
    served.etc.unlink()
    result = served.deploy(ONE)
    assert (result.action, served.machine.called("restart")) == ("repaired", 0)
    assert served.etc.read_text() == served.text_of(ONE)


@pytest.mark.parametrize("seconds, action", [(+5, "repaired"), (-5, "restarted")], ids=["after-the-start", "before-the-start"])
def test_a_dropin_added_by_hand_is_set_aside(served, seconds, action):
    served.write_dropin(served.machine.state.started + seconds)
    result = served.deploy(ONE)
    assert (result.action, result.reasons) == (action, [f"the drop-in {served.manual_dropin} was added by hand"])
    assert not served.manual_dropin.exists()
    (kept,) = served.store.path.glob("set-aside/*/override.conf")
    assert kept.read_text() == "[Service]\nNice=5\n"


def test_a_dropin_added_by_hand_does_not_bend_a_trial(served):
    served.write_dropin()
    result = served.deploy(TWO)
    assert (result.action, len(result.reasons)) == ("deployed", 2)
    assert not served.manual_dropin.exists()


@pytest.mark.parametrize(
    "started, release, action",
    [(False, ONE, "repaired"), (True, ONE, "restarted"), (False, TWO, "deployed"), (True, TWO, "deployed")],
    ids=["good-not-yet-started", "good", "other-not-yet-started", "other"],
)
def test_an_interrupted_trial(served, started, release, action):
    """Not started yet, it was only a file: the server goes on."""
    served.trial_dropin.parent.mkdir()
    served.trial_dropin.write_text("[Service]\nExecStart=\nExecStart=/opt/e/bin/python --interrupted\n")
    served.machine.run(["systemctl", "daemon-reload"])
    if started:
        served.machine.run(["systemctl", "restart", UNIT])
    result = served.deploy(release)
    assert result.action == action
    assert "an earlier trial was interrupted" in result.reasons
    assert not served.trial_dropin.exists()
    assert served.machine.starts[-1].exec_start.endswith(release.argv[0])


def test_an_interrupted_first_trial(bench):
    bench.trial_unit.parent.mkdir()
    bench.trial_unit.write_text(bench.text_of(BAD))
    result = bench.deploy(ONE)
    assert (result.action, result.reasons) == ("deployed", ["no release of this server is known to be good"])
    assert not bench.trial_unit.exists() and bench.etc.read_text() == bench.text_of(ONE)


def test_a_changed_secret_restarts_once(served):
    result = served.deploy(ONE, secret_flags={"api_key": SECRET})
    assert (result.action, result.reasons, served.machine.called("restart")) == ("restarted", ["a secret changed"], 1)
    assert SECRET in (served.store.path / "secrets" / "secrets.yaml").read_text()
    assert served.deploy(ONE, secret_flags={"api_key": SECRET}).action == "unchanged"
    assert served.machine.commands == []
    assert served.deploy(ONE, secret_environment={"HF_TOKEN": SECRET}).action == "restarted"
    assert served.deploy(ONE).action == "restarted", "none is another one as well"


@pytest.mark.parametrize(
    "secrets, action",
    [({}, "unchanged"), ({"secret_flags": {"api_key": SECRET}}, "restarted"), ({"secret_environment": {"HF_TOKEN": SECRET}}, "restarted")],
    ids=["none", "flag", "variable"],
)
def test_a_server_of_which_is_not_known_with_what_it_was_started(served, secrets, action):
    (served.store.path / "secrets" / "mac").unlink()
    assert served.deploy(ONE, **secrets).action == action


def test_secrets_are_not_rolled_back(served):
    result = served.deploy(BAD, secret_flags={"api_key": SECRET})
    assert result.action == "rolled_back"
    assert served.deploy(ONE, secret_flags={"api_key": SECRET}).action == "unchanged", "the good release was started with the new secret"


@pytest.mark.parametrize(
    "enabled, reason", [(True, "the unit is not started at boot"), (False, "the unit is started at boot")], ids=["disabled-by-hand", "enabled-by-hand"]
)
def test_whether_it_starts_at_boot_is_repaired(served, enabled, reason):
    served.machine.enabled = not enabled
    result = served.deploy(ONE, enabled=enabled)
    assert (result.action, result.reasons, served.machine.enabled) == ("repaired", [reason], enabled)
    assert (served.machine.called("restart"), served.machine.called()) == (0, 1)
    assert served.deploy(ONE, enabled=enabled).action == "unchanged"


def test_a_server_that_does_not_run_is_started(served):
    served.machine.run(["systemctl", "stop", UNIT])
    result = served.deploy(ONE)
    assert (result.action, result.reasons, served.machine.called("restart")) == ("started", ["the server is not running"], 1)
    assert served.machine.state.alive
    assert served.state(ONE)["since"] == served.machine.wall_clock() > EPOCH + 10


@pytest.mark.parametrize(
    "up, run, limit",
    [
        pytest.param(EXPECT.timeout + 1, "run-0", 30, id="long-up"),
        pytest.param(EXPECT.timeout - 1, "run-1", 30, id="has-served"),
        pytest.param(EXPECT.timeout - 1, "run-0", 60, id="still-starting"),
    ],
)
def test_a_server_that_does_not_answer_is_restarted(served, up, run, limit):
    """Up for longer than a start may take, or proven before, it gets half a minute."""
    served.machine.now = up
    served.store.write(ONE.id, "state", {"state": "good", "since": EPOCH, "invocation": run})
    served.machine.journal = lambda invocation, cursor, whole=False: ([Line(0.0, "still here")], "")
    served.machine.replies["/ready"] = Reply(503)
    served.machine._reset_failed = lambda command: served.machine.replies.update({"/ready": Reply(200)})
    result = served.deploy(ONE)
    assert result.action == "restarted"
    assert result.reasons == [f"the server did not answer: not ready within {limit} s, while starting the process (health: HTTP 503)"]


def test_a_good_release_that_starts_no_more(served):
    served.machine.dies["--one"] = ["torch.OutOfMemoryError: CUDA out of memory."]
    served.machine.now += 10
    result = served.deploy(ONE)
    assert (result.action, result.failed, result.outcome.diagnosis.code) == ("failed", True, "gpu_memory")
    assert served.store.good == ONE.id and served.etc.exists()
    assert served.machine.called("stop") == 0, "systemd goes on trying: the release is good, so the cause is the host's"


# -- a unit that somebody else made -------------------------------------------------------------------------------------------


@pytest.fixture(name="hand_made")
def fixture_hand_made(bench):
    bench.etc.write_text(HAND_MADE)
    bench.machine.run(["systemctl", "daemon-reload"])
    bench.machine.run(["systemctl", "restart", UNIT])
    return bench


def test_a_unit_made_by_hand_is_taken_over(hand_made):
    result = hand_made.deploy(ONE)
    assert (result.action, result.previous) == ("deployed", "")
    assert hand_made.machine.starts[-1].etc_unit == HAND_MADE
    assert hand_made.etc.read_text() == hand_made.text_of(ONE)


@pytest.mark.parametrize("text", [HAND_MADE, HAND_MADE + "no directive\n"], ids=["well-formed", "not-parsed"])
def test_a_unit_made_by_hand_serves_on_when_the_candidate_fails(hand_made, text):
    hand_made.etc.write_text(text)
    result = hand_made.deploy(BAD if text == HAND_MADE else ONE)
    assert (result.action, result.rollback.ready, result.previous) == ("rolled_back", True, "")
    assert hand_made.etc.read_text() == text
    assert hand_made.machine.starts[-1].exec_start.endswith("--by-hand")
    assert hand_made.store.good == ""


@pytest.mark.parametrize("release", [ONE, BAD], ids=["taken-over", "fails"])
def test_dropins_of_a_unit_made_by_hand_belong_to_it(hand_made, release):
    hand_made.write_dropin()
    hand_made.deploy(release)
    assert hand_made.manual_dropin.exists() is (release is BAD)
    if release is BAD:
        assert hand_made.machine.starts[-1].dropins == ["override.conf"], "it is there again when the server starts"


# -- looking ------------------------------------------------------------------------------------------------------------------


def test_look_proves_that_nothing_is_to_do(served):
    result = served.switch().look(ONE)
    assert (result.action, result.release, result.previous, result.reasons) == ("unchanged", ONE.id, ONE.id, [])
    assert result.outcome.ready and served.machine.commands == []


def unanswering(served):
    served.machine.replies["/ready"] = Reply(503)


LOOKS = [
    pytest.param(TWO, lambda served: None, ["the release changes from {one} to {two}"], id="another-release"),
    pytest.param(ONE, lambda served: served.edit_unit(0), ["the unit in /etc was edited by hand"], id="edited"),
    pytest.param(ONE, lambda served: served.edit_environment(), ["the environment of the release was edited by hand"], id="environment"),
    pytest.param(ONE, lambda served: served.write_dropin(), ["the drop-in {dropin} was added by hand"], id="dropin"),
    pytest.param(ONE, lambda served: served.machine.run(["systemctl", "stop", UNIT]), ["the server is not running"], id="stopped"),
    pytest.param(ONE, lambda served: setattr(served.machine, "enabled", False), ["the unit is not started at boot"], id="disabled"),
    pytest.param(ONE, unanswering, [], id="does-not-answer"),
]


@pytest.mark.parametrize("release, disturb, reasons", LOOKS)
def test_look_changes_nothing(served, release, disturb, reasons):
    disturb(served)
    served.machine.commands.clear()
    before = tree(served.store.path), tree(served.machine.places.etc)
    names = {"one": ONE.id, "two": TWO.id, "dropin": served.manual_dropin}
    result = served.switch().look(release)
    assert (result.action, result.outcome) == ("pending", None)
    assert result.reasons == [reason.format(**names) for reason in reasons]
    assert (tree(served.store.path), tree(served.machine.places.etc), served.machine.commands) == (*before, [])


def test_look_at_a_host_without_a_server(bench):
    result = bench.switch(secret_flags={"api_key": SECRET}).look(ONE)
    assert (result.action, result.previous) == ("pending", "")
    assert not bench.store.path.exists()


def test_the_unit_now_and_then(served):
    switch = served.switch()
    assert switch.files.text == served.text_of(ONE)
    assert switch.candidate_unit(TWO) == served.text_of(TWO)
    served.etc.unlink()
    assert switch.files.text == ""


# -- taking it away -----------------------------------------------------------------------------------------------------------


def test_remove(served):
    served.write_dropin()
    assert served.switch().remove() is True
    assert list(served.machine.places.etc.iterdir()) == []
    assert not served.store.path.exists()
    assert (served.machine.state.alive, served.machine.enabled, served.machine.loaded) == (False, False, "")
    assert served.machine.called("reset-failed") == 1
    served.machine.commands.clear()
    assert served.switch().remove() is False
    assert served.machine.commands == []


def test_remove_what_a_trial_left(bench):
    bench.trial_unit.parent.mkdir()
    bench.trial_unit.write_text(bench.text_of(BAD))
    assert bench.switch().remove() is True
    assert not bench.trial_unit.exists()


def test_remove_a_server_whose_unit_is_gone(served):
    """systemd holds a running unit whose file was deleted."""
    served.etc.unlink()
    assert served.switch().remove() is True
    assert not served.machine.state.alive


def test_remove_waits_for_nobody(served):
    with Store(served.store.path).locked("deploying x"), pytest.raises(StoreError, match="another run holds the lock"):
        served.switch().remove()
    assert served.machine.state.alive and served.etc.exists()


# -- a release that failed before ----------------------------------------------------------------------------------------------

NO_TOKENIZER = ["ValueError: no such thing"]
NO_ROOM = ["OSError: [Errno 28] No space left on device"]
STRANGE = ["something nobody has seen"]


def test_a_release_that_failed_for_a_cause_of_its_own_is_not_tried_again(served):
    served.deploy(BAD)
    starts = len(served.machine.starts)
    for attempt in (served.deploy, served.switch().look):
        served.machine.commands.clear()
        result = attempt(BAD)
        assert (result.action, result.failed, result.rollback) == ("refused", True, None)
        assert result.outcome.diagnosis.code == "exception"
        assert result.outcome.diagnosis.cause.startswith("it failed here on ") and "no such thing" in result.outcome.diagnosis.cause
        assert result.outcome.diagnosis.hint.endswith("-e sglang_server_retry_failed_enabled=true")
        assert result.reasons == [f"the release changes from {ONE.id} to {BAD.id}"], "what is refused is not said to be tried again"
    assert (len(served.machine.starts), served.machine.state.alive) == (starts, True)
    assert served.deploy(BAD, retry_failed=True).action == "rolled_back"
    assert served.state(BAD)["tries"] == 2
    assert served.deploy(TWO).action == "deployed", "a changed release is another one"


@pytest.mark.parametrize(
    "journal, answers",
    [
        pytest.param(NO_TOKENIZER, ["rolled_back", "refused", "refused"], id="its-own"),
        pytest.param(NO_ROOM, ["rolled_back", "rolled_back", "rolled_back"], id="the-host"),
        pytest.param(STRANGE, ["rolled_back", "rolled_back", "refused"], id="unknown-twice"),
    ],
)
def test_who_gets_another_try(served, journal, answers):
    served.machine.dies["--bad"] = journal
    results = [served.deploy(BAD) for _try in answers]
    assert [result.action for result in results] == answers
    if answers[1] == "rolled_back":
        assert "and is tried again" in results[1].reasons[-1]


def test_with_another_secret_it_is_another_try(served):
    served.deploy(BAD, secret_flags={"api_key": "a"})
    assert served.deploy(BAD, secret_flags={"api_key": "b"}).action == "rolled_back"
    assert served.deploy(BAD, secret_flags={"api_key": "b"}).action == "refused"


def test_a_refusal_over_a_server_that_is_down_brings_the_good_one_back(served):
    """The job was killed when it had written what failed, before the good release was started."""
    served.deploy(BAD)
    served.machine.run(["systemctl", "stop", UNIT])
    assert served.switch().look(BAD).action == "pending"
    result = served.deploy(BAD)
    assert (result.action, result.rollback.ready, served.machine.state.alive) == ("rolled_back", True, True)
    assert served.deploy(BAD).action == "refused"


def test_what_is_suspected_of_a_failure(bench):
    good = Candidate(TEXT.format("--tp-size 2"), ("--tp-size", "2"))
    bad = Candidate(TEXT.format("--tp-size 2 --bad"), ("--tp-size", "2", "--bad"))
    bench.deploy(good)
    result = bench.deploy(bad)
    assert "--bad" in result.suspects
    assert bench.store.read(bad.id, "state")["suspects"] == result.suspects
    assert bench.deploy(bad).suspects == result.suspects, "a refusal tells it again"


# -- without a rollback --------------------------------------------------------------------------------------------------------


def test_without_a_rollback_the_trial_stays_for_a_look(served):
    result = served.deploy(BAD, rollback=False)
    assert (result.action, result.rollback, served.machine.state.alive) == ("failed", None, False)
    assert served.trial_dropin.exists() and served.store.good == ONE.id and served.etc.read_text() == served.text_of(ONE)
    (remark,) = result.outcome.remarks
    assert "the server is down" in remark and str(served.trial_dropin) in remark
    assert served.switch().roll_back("good").action == "restarted"
    assert served.machine.state.alive and not served.trial_dropin.exists()


# -- going back by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["previous", ONE.id, ONE.id[:5]], ids=["previous", "id", "beginning"])
def test_roll_back(served, target):
    served.deploy(TWO)
    served.machine.now += 10
    result = served.switch().roll_back(target)
    assert (result.action, result.release, result.previous) == ("deployed", ONE.id, TWO.id)
    assert served.etc.read_text() == served.text_of(ONE) and served.store.good == ONE.id
    assert served.machine.starts[-1].exec_start.endswith("--one")
    assert served.switch().roll_back("good").action == "unchanged"
    assert served.switch().roll_back("previous").release == TWO.id, "there and back again"


def test_roll_back_to_one_that_failed_before(served):
    """Asked for by name it is tried, and the good one comes back."""
    served.deploy(BAD)
    result = served.switch().roll_back(BAD.id)
    assert (result.action, result.rollback.ready) == ("rolled_back", True)


@pytest.mark.parametrize("target", ["good", "previous", TWO.id])
def test_roll_back_looks_in_check_mode(served, target):
    served.deploy(TWO)
    served.machine.commands.clear()
    result = served.switch().roll_back(target, look=True)
    assert result.action == ("would_change" if target == "previous" else "unchanged")
    assert served.machine.commands == []


def test_roll_back_is_proven_where_that_release_answers(bench):
    asked = []

    def revive(probe):
        asked.append(dict(probe))
        return bench.machine, EXPECT

    bench.deploy(replace(ONE, probe={"port": 30000, "model_name": "one"}))
    bench.machine.now += 10
    bench.deploy(replace(TWO, probe={"port": 30001, "model_name": "two"}))
    switch = bench.switch()
    switch._revive = revive
    assert switch.roll_back("previous").action == "deployed"
    assert asked[0] == {"port": 30000, "model_name": "one"}


@pytest.mark.parametrize(
    "target, message",
    [("ffff", "there is no release 'ffff' of this server here: "), ("", "there is no release '' of this server here: ")],
    ids=["unknown", "empty"],
)
def test_roll_back_to_what_is_not_there(served, target, message):
    with pytest.raises(StoreError, match=message):
        served.switch().roll_back(target)
    assert served.machine.commands == []


@pytest.mark.parametrize(
    "release, message",
    [
        pytest.param(replace(TWO, secret_names=("api_key",)), "was given secrets that the inventory no longer has: api_key", id="secret"),
        pytest.param(replace(TWO, model={"path": "/nowhere/model"}), "needs what is no longer on this host: /nowhere/model", id="model"),
    ],
)
def test_roll_back_to_what_cannot_be_had(served, release, message):
    served.deploy(release)
    served.deploy(ONE)
    served.machine.commands.clear()
    with pytest.raises(StoreError, match=f"release {release.id} {message}"):
        served.switch().roll_back(release.id)
    assert served.machine.commands == [] and served.store.good == ONE.id


def test_roll_back_to_an_engine_that_is_gone(served, monkeypatch):
    served.deploy(TWO)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="needs what is no longer on this host: /opt/e/bin/python"):
        served.switch().roll_back(ONE.id)


# -- whatever breaks, and wherever -----------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The job is gone: nothing of it runs any more."""


def steps_of(bench, monkeypatch, release, kill_at=None):
    """Deploys and kills the job before its ``kill_at``-th act on the host: a command, or a file that is replaced, removed or linked. Returns the acts."""
    acts = []

    def act(name, real):
        def run(*args, **kwargs):
            acts.append(name(args))
            if kill_at is not None and len(acts) - 1 == kill_at:
                raise Killed
            return real(*args, **kwargs)

        return run

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", act(lambda args: f"replace {os.path.basename(str(args[1]))}", os.replace))
        patched.setattr(os, "unlink", act(lambda args: f"unlink {os.path.basename(str(args[0]))}", os.unlink))
        patched.setattr(bench.machine, "run", act(lambda args: " ".join(args[0][:2]), bench.machine.run))
        with contextlib.suppress(Killed):
            bench.deploy(release)
    return acts


@pytest.mark.parametrize("release, served_after", [(TWO, TWO), (BAD, ONE)], ids=["a-good-change", "a-failing-change"])
def test_a_job_that_is_killed_at_any_step(tmp_path, monkeypatch, release, served_after):
    """What boots is a proven release at every moment, and the next deployment ends where an undisturbed one does, or refuses over the good release."""
    (tmp_path / "whole").mkdir()
    whole = Bench(tmp_path / "whole")
    whole.deploy(ONE)
    acts = steps_of(whole, monkeypatch, release)
    assert len(acts) > 15
    for step, name in enumerate(acts):
        (tmp_path / str(step)).mkdir()
        bench = Bench(tmp_path / str(step))
        bench.deploy(ONE)
        bench.machine.now += 10
        steps_of(bench, monkeypatch, release, step)
        at_boot = bench.etc.read_text()
        assert at_boot in (bench.text_of(ONE), bench.text_of(served_after)), (step, name)
        result = bench.deploy(release)
        assert result.action in (("deployed", "unchanged", "repaired", "restarted") if release is TWO else ("rolled_back", "refused")), (step, name)
        assert bench.machine.state.alive and bench.machine.starts[-1].exec_start.endswith(served_after.argv[0]), (step, name)
        assert (bench.store.good, bench.etc.read_text()) == (served_after.id, bench.text_of(served_after)), (step, name)
        assert not bench.trial_dropin.exists(), (step, name)
        again = bench.deploy(served_after)
        assert (again.action, bench.machine.called("restart")) == ("unchanged", 0), (step, name)


@pytest.mark.parametrize("release, served_after", [(TWO, TWO), (BAD, ONE)], ids=["a-good-change", "a-failing-change"])
def test_a_host_that_goes_down_at_any_step(tmp_path, monkeypatch, release, served_after):
    """After a boot /run is empty, and systemd starts what /etc holds."""
    (tmp_path / "whole").mkdir()
    whole = Bench(tmp_path / "whole")
    whole.deploy(ONE)
    for step, name in enumerate(steps_of(whole, monkeypatch, release)):
        (tmp_path / str(step)).mkdir()
        bench = Bench(tmp_path / str(step))
        bench.deploy(ONE)
        bench.machine.now += 10
        steps_of(bench, monkeypatch, release, step)
        bench.trial_dropin.unlink(missing_ok=True)
        bench.machine.run(["systemctl", "daemon-reload"])
        bench.machine.run(["systemctl", "restart", UNIT])
        assert bench.machine.starts[-1].exec_start.split()[-1] in ("--one", served_after.argv[0]), (step, name)
        bench.machine.now += 10
        result = bench.deploy(release)
        assert result.failed is (release is BAD), (step, name)
        assert bench.machine.starts[-1].exec_start.endswith(served_after.argv[0]), (step, name)
        assert bench.store.good == served_after.id, (step, name)


def test_a_proven_trial_is_promoted_without_another_start(served, monkeypatch):
    steps_of(served, monkeypatch, TWO)
    served.store.mark_good(ONE.id)
    served.etc.write_text(served.text_of(ONE))
    served.store.write(TWO.id, "state", {"state": "ready", "since": EPOCH, "invocation": served.machine.state.invocation})
    result = served.deploy(TWO)
    assert (result.action, served.machine.called("restart")) == ("deployed", 0)
    assert served.store.good == TWO.id


def full_disk(place, step, written):
    """An ``os.replace`` for a disk that takes so many files and no more."""
    real = os.replace

    def replace_file(source, target):
        written.append(target)
        if len(written) > step and str(target).startswith(str(place)):
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return real(source, target)

    return replace_file


@pytest.mark.parametrize("release, served_after", [(TWO, ONE), (BAD, ONE)], ids=["a-good-change", "a-failing-change"])
def test_a_disk_that_fills_up_at_any_step(tmp_path, monkeypatch, release, served_after):
    """Whatever can no longer be written, a server answers afterwards, and with room again the next deployment ends as it should."""
    for step in range(30):
        (tmp_path / str(step)).mkdir()
        bench = Bench(tmp_path / str(step))
        bench.deploy(ONE)
        bench.machine.now += 10
        written = []
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", full_disk(tmp_path, step, written))
            try:
                bench.deploy(release)
            except OSError as error:
                assert error.errno == errno.ENOSPC, step
        assert bench.machine.state.alive, step
        assert bench.machine.starts[-1].exec_start.split()[-1] in ("--one", "--two"), step
        if len(written) <= step:
            break
        bench.deploy(release)
        assert bench.machine.state.alive, step
        assert bench.store.good == (TWO.id if release is TWO else ONE.id), step
    else:
        raise AssertionError("a deployment writes more than 30 files")


# -- what a start tells ----------------------------------------------------------------------------------------------------------


def test_a_kv_cache_that_shrank_is_told(served):
    served.machine.journal = lambda invocation, cursor, whole=False: ([Line(EPOCH, "max_total_num_tokens=4096, max_running_requests=4")], "seen")
    result = served.deploy(TWO)
    assert any("8,192 -> 4,096" in text for text in result.changes), result.changes


def test_a_server_that_runs_otherwise_than_promised_is_told(served):
    served.machine.replies["/get_server_info"] = Reply(200, json.dumps({"attention_backend": "triton"}))
    promised = replace(TWO, preflight={"verdict": "passed", "effective": {"attention_backend": "fa3"}})
    result = served.deploy(promised)
    assert any("attention_backend" in text for text in result.differences), result.differences


def test_what_cannot_be_compared_fails_nothing(served):
    served.store.write(ONE.id, "vitals", {"vitals": 5, "phases": 3, "seconds": "x"})
    result = served.deploy(TWO)
    assert (result.action, result.changes) == ("deployed", [])
    assert result.outcome.remarks[0].startswith("the start could not be compared with the last one: ")


def test_memory_that_another_process_held_is_no_fault_of_the_release(served):
    """Seen on an H200: the engine blames mem_fraction_static."""
    begun = "[2026-11-30 07:12:00] Load weight begin. avail mem={} GB"
    served.machine.journal = lambda invocation, cursor, whole=False: ([Line(EPOCH, begun.format("138.90"))], "seen")
    served.deploy(TWO)
    del served.machine.journal
    served.machine.dies["--bad"] = [begun.format("4.60"), "ValueError: Not enough memory. Please try to increase --mem-fraction-static."]
    results = [served.deploy(BAD) for _try in range(3)]
    assert [result.action for result in results] == ["rolled_back"] * 3, "a cause of the host is tried again"
    assert (results[0].outcome.diagnosis.code, results[0].outcome.diagnosis.where) == ("gpu_busy", "host")


@pytest.mark.parametrize("name", ["release", "vitals", "state"])
def test_a_damaged_document_of_the_good_release_does_not_keep_it_from_coming_back(served, name):
    switch = served.switch()
    run = served.machine.run

    def damage(command):
        """The document breaks when the trial has begun."""
        if command[:2] == ["systemctl", "restart"]:
            (served.store.directory(ONE.id) / f"{name}.json").write_text("{")
        return run(command)

    switch._run = damage
    result = switch.deploy(BAD)
    assert (result.action, result.rollback.ready, served.machine.state.alive) == ("rolled_back", True, True)
    assert served.machine.starts[-1].exec_start.endswith("--one")
