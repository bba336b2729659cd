# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller around an action plugin, played: modules, the background job, the clock and the screen."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.llmops.inference.plugins.plugin_utils import follow

STARTED = {"ansible_job_id": "j1.1", "results_file": "/root/.ansible_async/j1.1", "started": True, "finished": False, "changed": False}
# States of the job, as a look at the host tells them.
RUNNING, ENDED, GONE = "running", "ended", "gone"


def fail(error):
    """Raises it."""
    raise error


class Task(SimpleNamespace):
    """A task that can be copied."""

    def copy(self):
        return Task(**vars(self))


class Controller:
    """Runs one action plugin.

    Args:
        monkeypatch: pytest's.
        answers: results of direct module calls, in order.
        job: what starting the background job returns.
        looks: (state of the job, progress, seconds since the step began unless 0) of each look at the host, in order; the last one stays; an exception
            is raised, a text is all that is printed.
        result: what async_status returns when the job has ended.
        statuses: what async_status says before the result, in order; an exception is raised.
        waits: seconds that a look waits on the host when it has nothing new to tell.
    """

    def __init__(self, monkeypatch, answers=(), job=None, looks=((ENDED, ""),), result=None, statuses=(), waits=5.1):
        self.answers = list(answers)
        self.job = STARTED if job is None else job
        self.looks = list(looks)
        self.result = result or {"changed": True, "action": "deployed"}
        self.statuses = list(statuses)
        self.waits = waits
        self.calls, self.jobs, self.commands, self.lines, self.warnings = [], [], [], [], []
        self.now, self.step = 1000.0, ""
        monkeypatch.setattr(follow, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(follow, "_DISPLAY", SimpleNamespace(display=self.lines.append, warning=self.warnings.append))

    def sleep(self, seconds):
        self.now += seconds

    def run(self, action_class, check_mode=False, **args):
        """Returns the result of the action plugin."""
        self.task = Task(args=args, check_mode=check_mode, async_val=0, action="x")
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp"))
        action = action_class(self.task, connection, None, None, None, None)
        action._execute_module = self.execute
        action._low_level_execute_command = self.look
        return action.run(task_vars={"inventory_hostname": "ct129"})

    def execute(self, module_name, module_args=None, task_vars=None, wrap_async=False):
        assert task_vars == {"inventory_hostname": "ct129"}
        if module_name == "ansible.legacy.async_status":
            self.jobs.append(module_args)
            return self.status() if module_args["mode"] == "status" else self.clean_up()
        self.calls.append((module_name, module_args, wrap_async))
        assert bool(self.task.async_val) is wrap_async
        if wrap_async and isinstance(self.job, Exception):
            raise self.job
        return self.job if wrap_async else self.answers.pop(0)

    def look(self, command):
        self.commands.append(command)
        looked = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(looked, BaseException):
            fail(looked)
        if isinstance(looked, str):
            return {"rc": 1, "stdout": looked, "stderr": ""}
        state, progress, *age = looked
        step = progress.partition("\n")[0]
        self.now += self.waits if (state, step) == (RUNNING, self.step) else 0.1
        self.step = step
        return {"rc": 0, "stdout": f"\n{follow._MARK} {state} {age[0] if age else 0} 77\n{progress}\n", "stderr": ""}

    def clean_up(self):
        return {"erased": "x"}

    def status(self):
        if self.statuses:
            status = self.statuses.pop(0)
            if isinstance(status, Exception):
                raise status
            return status
        return {**STARTED, "finished": True, "stdout": "", "stdout_lines": [], "stderr": "", "stderr_lines": [], **self.result}
