# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._progress import FOLDER
from ansible_collections.llmops.inference.plugins.plugin_utils import follow
from ansible_collections.llmops.inference.plugins.plugin_utils.follow import FollowedAction
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, RUNNING, STARTED, Controller

MODULES = Path(follow.__file__).resolve().parents[1] / "modules"


class Action(FollowedAction):
    module_name = "sglang_ready"


def test_the_result_is_the_modules_own(monkeypatch):
    controller = Controller(monkeypatch, result={"changed": False, "ready": True, "failed": False, "msg": "m"})
    assert controller.run(Action, instance="main") == {"changed": False, "ready": True, "failed": False, "msg": "m"}
    assert controller.calls == [("llmops.inference.sglang_ready", None, True)]
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


def test_steps_are_shown_as_they_change(monkeypatch):
    looks = [(RUNNING, ""), (RUNNING, "loading weights"), (RUNNING, "loading weights"), (RUNNING, "capturing CUDA graphs"), (ENDED, "capturing CUDA graphs")]
    controller = Controller(monkeypatch, looks=looks)
    controller.run(Action, instance="main")
    assert controller.lines == ["    ct129 | loading weights (0 s)", "    ct129 | capturing CUDA graphs (0 s)"]


def test_without_a_step_nothing_is_shown(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, " \n")] * 60 + [(ENDED, "")])
    controller.run(Action, instance="main")
    assert controller.lines == [] and controller.now > 20


def test_a_terminal_ends_lines_otherwise(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights\r\n"), (ENDED, "")])
    controller.run(Action, instance="main")
    assert controller.lines == ["    ct129 | loading weights (0 s)"]


def test_a_long_step_is_shown_again(monkeypatch):
    """Nobody looks at a still screen for longer than ten seconds."""
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights")] * 60 + [(ENDED, "")])
    controller.run(Action, instance="main")
    seconds = [int(re.search(r"\((\d+) s\)", line)[1]) for line in controller.lines]
    assert seconds == [0, 10, 20] and controller.now == pytest.approx(24.0)


@pytest.mark.parametrize(
    "job, running",
    [
        pytest.param('{"started": true, "finished": false, "ansible_job_id": "j1', True, id="core-2.19"),
        pytest.param('{"started": 1, "finished": 0, "ansible_job_id": "j1.1"}', True, id="numbers"),
        pytest.param('{"changed": true, "finished": false}', False, id="result"),
        pytest.param('{"failed": true, "msg": "x"', False, id="failure"),
        pytest.param("", False, id="file-gone"),
    ],
)
@pytest.mark.parametrize("progress", ["", "loading weights"])
def test_when_the_job_no_longer_runs(monkeypatch, job, running, progress):
    controller = Controller(monkeypatch, looks=[(job, progress), (ENDED, "")])
    controller.run(Action)
    assert len(controller.commands) == (2 if running else 1)


def test_a_look_that_is_not_understood_loses_no_result(monkeypatch):
    controller = Controller(monkeypatch, looks=[("Welcome to Ubuntu", ""), (RUNNING, ""), (ENDED, "")], result={"changed": True}, unfinished=1)
    assert controller.run(Action) == {"changed": True}
    assert [job["mode"] for job in controller.jobs] == ["status", "status", "cleanup"]


def test_a_job_that_is_lost_is_a_failure(monkeypatch):
    controller = Controller(monkeypatch, looks=[("", "")], result={"failed": True, "msg": "could not find job", "finished": False})
    assert controller.run(Action) == {"changed": False, "failed": True, "msg": "could not find job"}


@pytest.mark.parametrize("written", [True, False])
def test_the_look_is_a_command_of_a_plain_shell(monkeypatch, tmp_path, written):
    """It prints the head of the job's file, a newline, and the step when there is one; a missing file is no failure."""
    monkeypatch.setattr(follow, "_FOLDER", str(tmp_path))
    results_file = tmp_path / "it's a job j98765432123.1"
    results_file.write_text(RUNNING + "x" * 500)
    if written:
        (tmp_path / "sglang_ready-main").write_text("loading weights")
    controller = Controller(monkeypatch, job={**STARTED, "ansible_job_id": "j98765432123.1", "results_file": str(results_file)})
    controller.run(Action, instance="main")
    answer = subprocess.run(["/bin/sh", "-c", controller.commands[0]], text=True, capture_output=True, check=True)
    assert (answer.stdout, answer.stderr) == (RUNNING[:60] + " gone\n" + ("loading weights" if written else ""), "")


def test_a_job_whose_process_is_gone_ends_the_wait(monkeypatch):
    """Killed, or the host went down: its file says for ever that it runs."""
    controller = Controller(monkeypatch, looks=[(RUNNING, "loading weights"), (RUNNING + " gone", ""), (RUNNING, ""), *[(RUNNING + " gone", "")] * 3])
    assert controller.run(Action, instance="main") == {"failed": True, "changed": False, "msg": follow._LOST}
    assert len(controller.commands) == 6


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
    assert controller.commands[0].endswith(f"; test ! -e {FOLDER}/{name} || cat {FOLDER}/{name}")
