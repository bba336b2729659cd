# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Runs a long module in the background on the host and shows what it is doing. The host finishes the job without the controller."""

from __future__ import annotations

import posixpath
import re
import shlex
import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

_DISPLAY = Display()
_POLL_SECONDS = 0.4
_REPEAT_SECONDS = 10.0
_LIMIT_SECONDS = 24 * 3600
_FOLDER = "/run/llmops-inference"
# Said in more than one look: a job may end between the look at its file and the one at its process.
_GONE, _GONE_LOOKS = " gone", 3
_LOST = "the job on the host was killed before it ended, or the host went down: run again, it finds out where the host stands"
# What the async wrapper writes into the job's file until the module has ended.
_RUNNING = re.compile(r'^\{"started": (?:true|1), "finished": (?:false|0)')

# What async_status adds to the module's own result.
_OF_THE_JOB = ("ansible_job_id", "results_file", "started", "finished", "stdout", "stdout_lines", "stderr", "stderr_lines")


class FollowedAction(ActionBase):
    """Base of the action plugins. Their modules write progress to ``<module>[-<instance>]`` in a folder under /run."""

    module_name: str

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        result.update(self._answer(task_vars or {}))
        return result

    def _answer(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Returns the module's result."""
        if self._task.check_mode:
            return self._call(task_vars)
        return self._run_followed(task_vars)

    def _call(self, task_vars: dict[str, t.Any], **options: t.Any) -> dict[str, t.Any]:
        return dict(self._execute_module(f"llmops.inference.{self.module_name}", {**self._task.args, **options}, task_vars=task_vars))

    def _run_followed(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        self._task.async_val = _LIMIT_SECONDS
        try:
            job = self._execute_module(f"llmops.inference.{self.module_name}", task_vars=task_vars, wrap_async=True)
        finally:
            self._task.async_val = 0
        if job.get("failed") or "ansible_job_id" not in job:
            return dict(job)
        answer: dict[str, t.Any] = {}
        while not answer.get("finished") and not answer.get("failed"):
            if not self._follow(task_vars.get("inventory_hostname", "host"), job["ansible_job_id"], job["results_file"]):
                return {"failed": True, "changed": False, "msg": _LOST}
            answer = self._job(job, "status", task_vars)
        self._job(job, "cleanup", task_vars)
        return {key: value for key, value in answer.items() if key not in _OF_THE_JOB}

    def _job(self, job: t.Mapping[str, t.Any], mode: str, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        # The directory as the job named it: where HOME is not the user's own, the action plugin of async_status looks elsewhere.
        arguments = {"jid": job["ansible_job_id"], "mode": mode, "_async_dir": posixpath.dirname(job["results_file"])}
        return dict(self._execute_module("ansible.legacy.async_status", arguments, task_vars=task_vars))

    def _follow(self, host: str, job_id: str, results_file: str) -> bool:
        """Returns True when the job's file no longer says that it runs, False when it still does but the job's process is gone."""
        instance = self._task.args.get("instance")
        progress = f"{_FOLDER}/{self.module_name}{f'-{instance}' if instance else ''}"
        # The look's own shell names the job too, but not the wrapper.
        process = f"grep -lsa '[a]sync_wrapper' /proc/[0-9]*/cmdline | xargs grep -qsa {shlex.quote(job_id.split('.', maxsplit=1)[0])} /dev/null"
        command = (
            f"head -c 60 {shlex.quote(results_file)}; {process} || printf '{_GONE}'; echo; test ! -e {shlex.quote(progress)} || cat {shlex.quote(progress)}"
        )
        step, since, shown, gone = "", time.monotonic(), 0.0, 0
        while True:
            job, _newline, text = str(self._low_level_execute_command(command).get("stdout", "")).partition("\n")
            if not _RUNNING.match(job):
                return True
            gone = gone + 1 if job.endswith(_GONE) else 0
            if gone == _GONE_LOOKS:
                return False
            text = text.strip()
            now = time.monotonic()
            changed = bool(text) and text != step
            if changed:
                step, since = text, now
            if step and (changed or now - shown >= _REPEAT_SECONDS):
                shown = now
                _DISPLAY.display(f"    {host} | {step} ({now - since:.0f} s)")
            time.sleep(_POLL_SECONDS)
