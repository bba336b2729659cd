# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller around an action plugin, played: modules, the background job, the clock and the screen."""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.llmops.inference.plugins.plugin_utils import follow

STARTED = {"ansible_job_id": "j1.1", "results_file": "/root/.ansible_async/j1.1", "started": True, "finished": False, "changed": False}
RUNNING = '{"started": true, "finished": false, "ansible_job_id": "j1.1'
ENDED = '{"changed": true, "action": "deployed"}'


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
        looks: (state of the job, progress) of each look at the host, in order; the last one stays.
        result: what async_status returns when the job has ended.
        unfinished: how often async_status says first that the job still runs.
    """

    def __init__(self, monkeypatch, answers=(), job=None, looks=((ENDED, ""),), result=None, unfinished=0):
        self.answers = list(answers)
        self.job = STARTED if job is None else job
        self.looks = list(looks)
        self.result = result or {"changed": True, "action": "deployed"}
        self.unfinished = unfinished
        self.calls, self.jobs, self.commands, self.lines = [], [], [], []
        self.now = 0.0
        monkeypatch.setattr(follow, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(follow, "_DISPLAY", SimpleNamespace(display=self.lines.append))

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
            return self.status() if module_args["mode"] == "status" else {"erased": "x"}
        self.calls.append((module_name, module_args, wrap_async))
        assert bool(self.task.async_val) is wrap_async
        if wrap_async and isinstance(self.job, Exception):
            raise self.job
        return self.job if wrap_async else self.answers.pop(0)

    def look(self, command):
        self.commands.append(command)
        job, progress = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {"rc": 0, "stdout": f"{job}\n{progress}"}

    def status(self):
        if self.unfinished:
            self.unfinished -= 1
            return {**STARTED, "stdout": ""}
        return {**STARTED, "finished": True, "stdout": "", "stdout_lines": [], "stderr": "", "stderr_lines": [], **self.result}
