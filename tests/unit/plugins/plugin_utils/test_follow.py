# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.llmops.inference.plugins.module_utils._progress import FOLDER, Progress
from ansible_collections.llmops.inference.plugins.plugin_utils import follow
from ansible_collections.llmops.inference.plugins.plugin_utils.follow import FollowedAction, Look, Screen, look_command, parse_look
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, GONE, RUNNING, STARTED, Controller

MODULES = Path(follow.__file__).resolve().parents[1] / "modules"
LOST = {"failed": True, "changed": False, "msg": follow._LOST}
UNREAD = {**STARTED, "stdout": ""}
BROKEN = {**UNREAD, "finished": True, "failed": True, "msg": "x"}
AWAY = AnsibleConnectionFailure("ssh: no route to host")


class Action(FollowedAction):
    module_name = "sglang_ready"


def test_the_result_is_the_modules_own(monkeypatch):
    controller = Controller(monkeypatch, result={"changed": False, "ready": True, "failed": False, "msg": "m"})
    assert controller.run(Action, instance="main") == {"changed": False, "ready": True, "failed": False, "msg": "m"}
    assert controller.calls == [("llmops.inference.sglang_ready", {"instance": "main"}, True)]
    job = {"jid": "j1.1", "_async_dir": "/root/.ansible_async"}
    assert controller.jobs == [{**job, "mode": "status"}, {**job, "mode": "cleanup"}], "nothing of the job stays on the host, wherever its HOME is"
    assert controller.task.args == {"instance": "main"} and controller.task.async_val == 0


def test_check_mode_needs_no_job(monkeypatch):
    controller = Controller(monkeypatch, answers=[{"changed": True}])
    assert controller.run(Action, check_mode=True, instance="main") == {"changed": True}
    assert controller.calls == [("llmops.inference.sglang_ready", {"instance": "main"}, False)]
    assert controller.commands == controller.jobs == []


@pytest.mark.parametrize(
    "job",
    [{"failed": True, "msg": "no python", "ansible_job_id": "j1.1"}, {"changed": False, "msg": "module did not start"}],
    ids=["failed", "no-job"],
)
def test_a_job_that_does_not_start(monkeypatch, job):
    controller = Controller(monkeypatch, job=job)
    assert controller.run(Action) == job
    assert controller.commands == controller.jobs == []


def test_the_task_is_left_as_it_was_when_starting_raises(monkeypatch):
    controller = Controller(monkeypatch, job=RuntimeError("unreachable"))
    with pytest.raises(RuntimeError, match="unreachable"):
        controller.run(Action)
    assert controller.task.async_val == 0


@pytest.mark.parametrize(
    "looks, lines",
    [
        pytest.param(["", "loading weights", "loading weights", "capturing"], ["loading weights (0 s)", "capturing (0 s)"], id="steps"),
        pytest.param(["loading weights\nshard 1 of 8"], ["loading weights: shard 1 of 8 (0 s)"], id="detail"),
        pytest.param(["loading weights\r\nshard 1 of 8\r"], ["loading weights: shard 1 of 8 (0 s)"], id="a-terminal-ends-lines-otherwise"),
        pytest.param(["loading\x1b[2J\x07 weights\n\x1b[1mbold"], ["loading[2J weights: [1mbold (0 s)"], id="a-terminal-obeys-nothing"),
        pytest.param(["loading weights", ""], ["loading weights (0 s)"], id="no-step-is-no-news"),
        pytest.param(["loading weights"] * 5, ["loading weights (0 s)", "loading weights (10 s)", "loading weights (20 s)"], id="still"),
        pytest.param(
            [f"loading weights\nshard {number} of 4" for number in range(4)],
            [f"loading weights: shard {number} of 4 ({seconds} s)" for number, seconds in enumerate((0, 5, 10, 15))],
            id="a-detail-that-changes",
        ),
        pytest.param(["a\n1 %", "b\n1 %", "b\n2 %", "c"], ["a: 1 % (0 s)", "b: 1 % (0 s)", "b: 2 % (5 s)", "c (0 s)"], id="a-new-step-at-once"),
    ],
)
def test_what_is_shown(monkeypatch, looks, lines):
    controller = Controller(monkeypatch, looks=[*((RUNNING, text) for text in looks), (ENDED, "never shown")])
    controller.run(Action, instance="main")
    assert controller.lines == [f"    ct129 | {line}" for line in lines] and controller.warnings == []


def test_a_detail_that_changes_all_the_time_is_shown_every_few_seconds(monkeypatch):
    controller = Controller(monkeypatch)
    screen = Screen("ct129")
    for number in range(110):
        screen.show("loading weights", f"{number} %")
        controller.now += 0.1
    assert controller.lines == [f"    ct129 | loading weights: {number} % ({number // 10} s)" for number in (0, 40, 80)]


def test_it_warns_once_when_nothing_goes_on(monkeypatch):
    controller = Controller(monkeypatch)
    screen = Screen("ct129", patience=3600)
    for text in ("", "loading weights", "capturing"):
        for _minute in range(121 if text == "loading weights" else 50):
            screen.show(text, "")
            controller.now += 60
    assert controller.warnings == ["ct129: the job that is followed has been loading weights for 60 min; look at it on the host if that is too long"]


def test_a_host_is_asked_a_few_times_a_minute(monkeypatch):
    """Each question costs the host several processes, which the server that starts there lacks."""
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights")] * 100 + [(ENDED, "")])
    begun = controller.now
    controller.run(Action, instance="main")
    assert len(controller.commands) / (controller.now - begun) * 60 < 13


def test_a_shell_that_does_not_wait_is_not_asked_without_end(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights")] * 100 + [(ENDED, "")], waits=0.0)
    begun = controller.now
    controller.run(Action, instance="main")
    assert controller.now - begun >= 99


@pytest.mark.parametrize(
    "looks, statuses, result",
    [
        pytest.param([(GONE, "")], [], LOST, id="killed-or-host-down"),
        pytest.param([(ENDED, "")], [], {"changed": True}, id="ended"),
        pytest.param([(ENDED, "")], [UNREAD, UNREAD], {"changed": True}, id="read-late"),
        pytest.param([(ENDED, "")], [UNREAD] * 9, LOST, id="never-read"),
        pytest.param([(ENDED, "")], [BROKEN], {"changed": False, "failed": True, "msg": "x"}, id="wrapper-failed"),
        pytest.param([(RUNNING, "a"), AWAY, AWAY, (RUNNING, "a"), (ENDED, "")], [], {"changed": True}, id="away-for-a-moment"),
        pytest.param([(RUNNING, "a"), AWAY, "", "Welcome to Ubuntu", (GONE, "")], [], LOST, id="host-booted"),
        pytest.param([(ENDED, "")], [AWAY, {"failed": True, "msg": "no python"}], {"changed": True}, id="away-at-the-end"),
    ],
)
def test_how_it_ends(monkeypatch, looks, statuses, result):
    controller = Controller(monkeypatch, looks=looks, statuses=statuses, result={"changed": True})
    assert controller.run(Action, instance="main") == result
    cleaned = "cleanup" in [job["mode"] for job in controller.jobs]
    assert cleaned is (result is not LOST), "what a lost job left is not taken away: it may run after all"


@pytest.mark.parametrize(
    "looks, statuses, message",
    [
        pytest.param([(RUNNING, "loading weights"), AWAY], [], "ssh: no route to host", id="the-plugin-says-so"),
        pytest.param([(RUNNING, "loading weights"), ""], [], "the host does not answer", id="the-plugin-does-not"),
        pytest.param([(ENDED, "")], [{"failed": True, "msg": "MODULE FAILURE"}] * 200, "MODULE FAILURE", id="no-status"),
    ],
)
def test_a_connection_that_stays_away(monkeypatch, looks, statuses, message):
    controller = Controller(monkeypatch, looks=looks, statuses=statuses)
    begun = controller.now
    with pytest.raises(AnsibleConnectionFailure) as raised:
        controller.run(Action, instance="main")
    assert str(raised.value) == f"{message}; the job on the host goes on without the controller; the next run follows it or finds out how it ended"
    assert 300 <= controller.now - begun < 320
    assert [line for line in controller.lines if "connection" in line] == [f"    ct129 | no connection, trying again for 5 min: {message}"]
    assert "cleanup" not in [job["mode"] for job in controller.jobs]


def test_a_result_is_not_lost_for_a_file_that_stays(monkeypatch):
    controller = Controller(monkeypatch, result={"changed": True})
    monkeypatch.setattr(controller, "clean_up", lambda: (nothing for nothing in ()).throw(AWAY))
    assert controller.run(Action) == {"changed": True}
    assert controller.lines == ["    ct129 | /root/.ansible_async/j1.1 is left on the host: ssh: no route to host"]


def test_an_interruption_stops_nothing_on_the_host(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights"), KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        controller.run(Action, instance="main")
    assert controller.jobs == []


def test_a_worker_does_not_outlive_its_controller(monkeypatch):
    """Ansible's workers are sessions of their own: what kills the controller leaves them."""
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights"), (RUNNING, "capturing"), (ENDED, "")])
    parents = iter([4711, 4711, 1])
    monkeypatch.setattr(follow.os, "getppid", lambda: next(parents))
    with pytest.raises(AnsibleError, match="the controller was killed; the job on the host goes on"):
        controller.run(Action, instance="main")
    assert controller.lines == ["    ct129 | loading weights (0 s)"] and controller.jobs == []


@pytest.mark.parametrize(
    "output, look",
    [
        (f"\n{follow._MARK} running 12 77\na\nb\n", Look("running", 12, "77", "a", "b")),
        (f"Welcome to Ubuntu\n\n{follow._MARK} ended 0 \n\n\n", Look("ended", 0, "", "", "")),
        (f"\r\n{follow._MARK} gone -3600 \r\na\r\nb\r\n", Look("gone", -3600, "", "a", "b")),
    ],
)
def test_what_a_look_printed(output, look):
    assert parse_look(output) == look


@pytest.mark.parametrize(
    "output, error, message", [("", "", "the host does not answer"), (f"{follow._MARK} runn", " no such container\n", "no such container")]
)
def test_a_look_that_printed_nothing(output, error, message):
    with pytest.raises(AnsibleConnectionFailure, match=message):
        parse_look(output, error)


# Tests run in several processes at once, and a job is looked for among all processes of the machine.
JOB = f"j98765432123{os.getpid()}"


class Host:
    """A look, run by a real shell, at a file of a job and a progress file that change meanwhile."""

    def __init__(self, path, shell):
        self._shell = shell
        self.results, self.progress = path / f"it's a job {JOB}.1", path / "sglang_ready-main"
        self.say(self.results, f'{{"started": true, "finished": false, "ansible_job_id": "{JOB}.1"}}', at=1)

    @staticmethod
    def say(path, text, at=2):
        path.write_text(text)
        os.utime(path, (at, at))

    def look(self, seen=None, meanwhile=None, after=0.3, known="", **job):
        """Returns (what it found, the seconds that it took)."""
        job = job or {"results": str(self.results), "name": JOB}
        begun = time.monotonic()
        command = look_command(str(self.progress), seen and Look("running", 0, known, *seen), **job)
        process = subprocess.Popen([*self._shell, "-c", f"{command} && sleep 0"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if meanwhile:
            time.sleep(after)
            meanwhile()
        output, error = process.communicate(timeout=60)
        assert (process.returncode, error) == (0, "")
        return parse_look(output), time.monotonic() - begun


@pytest.fixture(name="on_host", params=["sh", "bash --posix", "busybox sh"])
def fixture_on_host(request, tmp_path, monkeypatch):
    shell = request.param.split()
    if subprocess.run(["/bin/sh", "-c", f"command -v {shell[0]}"], check=False, capture_output=True).returncode:
        pytest.skip(f"no {shell[0]} here")
    monkeypatch.setattr(follow, "_LOOK_SECONDS", 0.4)
    return Host(tmp_path, shell)


@pytest.fixture(name="wrapper")
def fixture_wrapper():
    """A process that looks like the async wrapper of the job."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "async_wrapper.py", JOB]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(
    "written, at, seen, look, waits",
    [
        pytest.param("loading weights\n3 %", 2, None, Look("running", 0, "", "loading weights", "3 %"), False, id="first"),
        pytest.param("loading weights", 2, ("starting", ""), Look("running", 0, "", "loading weights", ""), False, id="a-new-step"),
        pytest.param(
            "a 'step' with \\n $HOME\n*", 2, ("a 'step' with \\n $HOME", ""), Look("running", 0, "", "a 'step' with \\n $HOME", "*"), True, id="quoting"
        ),
        pytest.param("loading weights\n4 %", 2, ("loading weights", "3 %"), Look("running", 0, "", "loading weights", "4 %"), True, id="a-detail-wakes-nobody"),
        pytest.param("loading weights", 1, None, Look("running", 0, "", "", ""), True, id="left-by-a-job-that-was-killed"),
        pytest.param(None, 2, None, Look("running", 0, "", "", ""), True, id="no-step-yet"),
    ],
)
def test_a_look_waits_on_the_host_for_a_step(on_host, wrapper, monkeypatch, written, at, seen, look, waits):
    if written is not None:
        on_host.say(on_host.progress, written, at)
    monkeypatch.setattr(follow, "_LOOK_SECONDS", 0.4 if waits else 5)
    found, seconds = on_host.look(seen)
    assert found == look and (seconds >= 0.4 if waits else seconds < 4)


@pytest.mark.parametrize(
    "path, text, look",
    [
        pytest.param("progress", "capturing\n1 %", Look("running", 0, "", "capturing", "1 %"), id="a-new-step"),
        pytest.param("results", '{"changed": true, "x": "\\u00e9"}', Look("ended", 0, "", "", ""), id="the-end"),
        pytest.param("results", '{"failed": true, "msg": "Traceback"}', Look("ended", 0, "", "", ""), id="the-wrapper-failed"),
    ],
)
def test_a_look_comes_back_when_something_changes(on_host, wrapper, monkeypatch, path, text, look):
    monkeypatch.setattr(follow, "_LOOK_SECONDS", 5)
    on_host.say(on_host.progress, "loading weights")
    found, seconds = on_host.look(("loading weights", ""), lambda: on_host.say(getattr(on_host, path), text, at=3))
    assert found == look and seconds < 4


@pytest.mark.parametrize(
    "text, alive, state",
    [
        pytest.param(None, True, RUNNING, id="not-written-yet"),
        pytest.param("", True, RUNNING, id="empty-while-it-runs"),
        pytest.param('{"started": true, "finished": false, "a": 1}', False, GONE, id="killed"),
        pytest.param("", False, GONE, id="empty-for-ever"),
        pytest.param('{"changed": true, "jour', False, GONE, id="truncated"),
        pytest.param(None, False, GONE, id="no-file"),
        pytest.param('{"changed": true}', False, ENDED, id="ended"),
    ],
)
def test_whether_a_job_is_lost(on_host, request, text, alive, state):
    if alive:
        request.getfixturevalue("wrapper")
    if text is None:
        on_host.results.unlink()
    else:
        on_host.say(on_host.results, text, at=1)
    assert on_host.look()[0].state == state


def test_a_job_that_ends_while_its_process_is_looked_for(on_host):
    assert on_host.look(meanwhile=lambda: on_host.say(on_host.results, '{"changed": true}'), after=0.8)[0].state == ENDED


def test_a_process_is_followed_until_it_is_gone(on_host, wrapper, monkeypatch):
    on_host.say(on_host.progress, "loading weights\n3 %", at=time.time() - 300)
    assert on_host.look(("loading weights", ""), pid=wrapper.pid)[1] >= 0.4
    monkeypatch.setattr(follow, "_LOOK_SECONDS", 5)
    found, seconds = on_host.look(pid=wrapper.pid)
    assert found == Look("running", found.age, found.begun, "loading weights", "3 %") and int(found.begun) > 0 and seconds < 4
    assert 300 <= found.age < 320
    ended, seconds = on_host.look(("loading weights", ""), lambda: (wrapper.kill(), wrapper.wait()), known=found.begun, pid=wrapper.pid)
    assert (ended.state, ended.age) == (ENDED, 0) and seconds < 4


def test_a_process_that_tells_nothing(on_host, wrapper):
    found, seconds = on_host.look(pid=wrapper.pid)
    assert found == Look("running", 0, found.begun, "", "") and seconds >= 0.4


def test_another_process_with_its_number_is_not_followed(on_host, wrapper, monkeypatch):
    command = look_command(str(on_host.progress), Look("running", 0, "12", "", ""), pid=wrapper.pid)
    assert parse_look(subprocess.run(["/bin/sh", "-c", command], check=True, text=True, capture_output=True).stdout).state == ENDED


def test_what_the_modules_write_is_what_is_read(on_host, wrapper, tmp_path):
    progress = Progress("sglang_ready-main", tmp_path, {"weights": "loading weights"})
    progress("weights", 1.0, "shard 1 of 8")
    assert on_host.look()[0] == Look("running", 0, "", "loading weights", "shard 1 of 8")
    progress("weights", 1.0)
    assert on_host.look()[0] == Look("running", 0, "", "loading weights", "")


def test_where_the_modules_write_their_progress():
    assert Path(follow._FOLDER) == FOLDER
    names = {path.stem: re.findall(r'Progress\(f?"([^"]+)"', path.read_text()) for path in MODULES.glob("sglang_*.py")}
    assert {name: found for name, found in names.items() if found} == {
        "sglang_benchmark": ["sglang_benchmark-{params['instance']}"],
        "sglang_engine": ["sglang_engine"],
        "sglang_ready": ["sglang_ready-{module.params['instance']}"],
        "sglang_release": ["sglang_release-{params['instance']}"],
    }


@pytest.mark.parametrize("args, name", [({"instance": "main"}, "sglang_ready-main"), ({}, "sglang_ready")])
def test_where_their_progress_is_read(monkeypatch, args, name):
    controller = Controller(monkeypatch)
    controller.run(Action, **args)
    assert f"\nprogress={FOLDER}/{name}\n" in controller.commands[0]
