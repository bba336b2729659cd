# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Runs a long module in the background on the host and shows what it is doing. The host finishes the job without the controller."""

from __future__ import annotations

import math
import os
import posixpath
import re
import shlex
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

_DISPLAY = Display()
# A look takes up to five seconds, its way to the host and back included: a new detail is shown with every look, an unchanged step with every other one.
_LOOK_SECONDS, _DETAIL_SECONDS, _REPEAT_SECONDS = 4.6, 4.0, 8.5
_PATIENCE_SECONDS = 3600.0
_PAUSE_SECONDS = 1.0
# A host that boots, or a network that is away for a moment, is asked again for so long.
_RECONNECT_SECONDS, _RETRY_SECONDS = 300.0, 3.0
_LIMIT_SECONDS = 24 * 3600
_FOLDER = "/run/llmops-inference"
_UNREAD_LOOKS = 3
_LOST = "the job on the host was killed before it ended, the host went down, or its disk is full: run again, it finds out where the host stands"
_GOES_ON = "the job on the host goes on without the controller; the next run follows it or finds out how it ended"

# What async_status adds to the module's own result.
_OF_THE_JOB = ("ansible_job_id", "results_file", "started", "finished", "stdout", "stdout_lines", "stderr", "stderr_lines")

_MARK = "llmops-inference-job"
# One command waits on the host until the step changes, the job ends, or some seconds are over: asking a host again and again takes its processor away from
# the server that starts there. What is done five times a second is done by the shell itself; all processes are looked through once, at the end.
# The async wrapper writes "started" into the job's file until the module has ended. An empty or truncated file (disk full) is no end.
_LOOK = r"""
exec 2>/dev/null
word=running begun=$known age=0
look() {
  job= step= detail=
  if [ -n "$results" ]; then
    { IFS= read -r job; } <"$results"
    case $job in '{"started": true, "finished": false'*) ;; '{'*'}') word=ended ;; esac
    [ "$progress" -nt "$results" ] || return
  elif [ -n "$pid" ]; then
    { IFS= read -r job; } <"/proc/$pid/stat"
    set -- ${job##*) }
    begun=${20}
    [ -n "$begun" ] && [ "$begun" = "${known:-$begun}" ] || word=ended
  fi
  { IFS= read -r step; IFS= read -r detail; } <"$progress"
}
clock() {
  IFS=' .' read -r whole hundredths job </proc/uptime
  now=$whole$hundredths
}
alive() {
  [ -z "$name" ] || grep -ls '[a]sync_wrapper' /proc/[0-9]*/cmdline | xargs grep -qs "$name" /dev/null
}
clock
end=$((now + wait))
while look; [ $word = running ]; do
  [ -z "$step" ] || [ "$step" = "$seen" ] || break
  clock
  [ "$now" -lt "$end" ] || {
    alive || { sleep 1; alive; } || { look; [ $word = ended ] || word=gone; }
    break
  }
  sleep 0.2
done
if [ -n "$pid" ] && [ -z "$known" ]; then
  now=$(date +%s) made=$(stat -c %Y "$progress")
  age=$((now - ${made:-$now}))
fi
printf '\n%s %s %d %s\n%s\n%s\n' "$mark" "$word" "$age" "$begun" "$step" "$detail"
"""
_ANSWER = re.compile(rf"^{_MARK} (running|ended|gone) (-?\d+) (\d*)\r?\n(.*)\n(.*)", re.MULTILINE)

_Answer = t.TypeVar("_Answer")


class Look(t.NamedTuple):
    """What one look at a job on the host found.

    Attributes:
        state: ``running``, ``ended``, or ``gone`` (it did not end, and its process is not there).
        age: seconds since the step began, in the first look at a process that runs already.
        begun: when the followed process began, in the kernel's ticks; empty where a job is known by its file.
        step: as the progress file has it; empty where there is none.
        detail: the file's second line.
    """

    state: str
    age: int
    begun: str
    step: str
    detail: str


def look_command(progress: str, seen: Look | None = None, *, results: str = "", name: str = "", pid: int = 0) -> str:
    """Returns the shell command that looks at a job.

    Args:
        progress: path of the progress file.
        seen: what the last look found.
        results: path of the async job's file.
        name: what the async wrapper's command line holds.
        pid: of the process to follow, where there is no file.
    """
    values = {
        "mark": _MARK,
        "wait": round(_LOOK_SECONDS * 100),
        "progress": progress,
        "seen": seen.step if seen else "",
        "known": seen.begun if seen else "",
        "results": results,
        "name": name,
        "pid": pid or "",
    }
    # Ansible puts something behind it, so it ends without a newline.
    return "\n".join(f"{key}={shlex.quote(str(value))}" for key, value in values.items()) + _LOOK.rstrip()


def parse_look(output: str, error: str = "") -> Look:
    """Returns what the look printed, whatever the host says before it.

    Raises:
        AnsibleConnectionFailure: it did not run; not every connection plugin says so.
    """
    found = _ANSWER.search(output)
    if not found:
        raise AnsibleConnectionFailure(error.strip() or "the host does not answer")
    return Look(found[1], int(found[2]), found[3], found[4].rstrip("\r"), found[5].rstrip("\r"))


def _printable(text: str) -> str:
    """A host's text for a terminal that is not to obey it."""
    return "".join(filter(str.isprintable, text)).strip()


class Screen:
    """Shows the steps of one host, in lines: a new one at once, a new detail every five seconds, an unchanged one every ten.

    Args:
        host: name of the inventory host.
        patience: seconds without a new step after which it warns, once.
    """

    def __init__(self, host: str, patience: float = math.inf) -> None:
        self._host = host
        self._patience = patience
        self._step = self._detail = ""
        self._shown = 0.0
        self._since = time.monotonic()

    def show(self, step: str, detail: str, age: float = 0.0) -> None:
        """Takes what the job's progress file says, and how many seconds ago a new step began."""
        step, detail, now = _printable(step), _printable(detail), time.monotonic()
        changed, quiet = bool(step) and step != self._step, now - self._shown
        if changed:
            self._step, self._since = step, now - max(age, 0)
        if changed or (step and (quiet >= _REPEAT_SECONDS or (detail != self._detail and quiet >= _DETAIL_SECONDS))):
            self._shown, self._detail = now, detail
            self.say(f"{step}{f': {detail}' if detail else ''} ({now - self._since:.0f} s)")
        if now - self._since >= self._patience:
            what = f"has been {self._step}" if self._step else "has not named a step"
            _DISPLAY.warning(f"{self._host}: the job that is followed {what} for {self._patience / 60:.0f} min; look at it on the host if that is too long")
            self._patience = math.inf

    def say(self, text: str) -> None:
        """Shows a line of its own."""
        _DISPLAY.display(f"    {self._host} | {text}")


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

    def _run_followed(self, task_vars: dict[str, t.Any], **options: t.Any) -> dict[str, t.Any]:
        self._task.async_val = _LIMIT_SECONDS
        try:
            job = self._execute_module(f"llmops.inference.{self.module_name}", {**self._task.args, **options}, task_vars=task_vars, wrap_async=True)
        finally:
            self._task.async_val = 0
        if job.get("failed") or "ansible_job_id" not in job:
            return dict(job)
        screen = self._screen(task_vars)
        for _look in range(_UNREAD_LOOKS):
            # The look's own shell names the job too, but not the wrapper.
            if self._follow(screen, results=job["results_file"], name=job["ansible_job_id"].split(".", maxsplit=1)[0]) == "gone":
                break
            answer = self._reach(screen, self._status, job, task_vars)
            if answer["finished"]:
                self._clean_up(screen, job, task_vars)
                return {key: value for key, value in answer.items() if key not in _OF_THE_JOB}
        return {"failed": True, "changed": False, "msg": _LOST}

    def _attach(self, task_vars: dict[str, t.Any], holder: t.Mapping[str, t.Any], again: bool = False) -> None:
        """Follows the job of another run until its process is gone; only waits for a moment where it does not say which process it is.

        Args:
            task_vars: Ansible's.
            holder: purpose, since, by and pid of that job.
            again: whether it was followed already, and still holds the instance though its process is gone.
        """
        screen = self._screen(task_vars, _PATIENCE_SECONDS)
        if not again:
            words = [holder.get("purpose") or "another run", *(f"{key} {holder[key]}" for key in ("since", "by") if holder.get(key))]
            screen.say(f"attaching to: {_printable(', '.join(words))}")
        pid = int(holder.get("pid") or 0)
        if again or not pid:
            time.sleep(_PAUSE_SECONDS)
        if pid:
            self._follow(screen, pid=pid)

    def _screen(self, task_vars: dict[str, t.Any], patience: float = math.inf) -> Screen:
        return Screen(task_vars.get("inventory_hostname", "host"), patience)

    def _status(self, job: t.Mapping[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """The job's result as async_status knows it.

        Raises:
            AnsibleConnectionFailure: the host did not run that.
        """
        answer = self._job(job, "status", task_vars)
        if "finished" not in answer:
            raise AnsibleConnectionFailure(str(answer.get("msg", answer)))
        return answer

    def _clean_up(self, screen: Screen, job: t.Mapping[str, t.Any], task_vars: dict[str, t.Any]) -> None:
        try:
            self._job(job, "cleanup", task_vars)
        except AnsibleConnectionFailure as error:
            screen.say(f"{job['results_file']} is left on the host: {error}")

    def _job(self, job: t.Mapping[str, t.Any], mode: str, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        # The directory as the job named it: where HOME is not the user's own, the action plugin of async_status looks elsewhere.
        arguments = {"jid": job["ansible_job_id"], "mode": mode, "_async_dir": posixpath.dirname(job["results_file"])}
        return dict(self._execute_module("ansible.legacy.async_status", arguments, task_vars=task_vars))

    def _follow(self, screen: Screen, **job: t.Any) -> str:
        """Shows the steps of a job and returns its state when it no longer runs.

        Args:
            screen: where its steps are shown.
            job: by what it is known, see :func:`look_command`.

        Raises:
            AnsibleConnectionFailure: the host has not answered for minutes.
            AnsibleError: the controller was killed, which its workers outlive.
        """
        controller = os.getppid()
        instance = self._task.args.get("instance")
        progress = f"{_FOLDER}/{self.module_name}{f'-{instance}' if instance else ''}"
        seen: Look | None = None
        while True:
            asked = time.monotonic()
            look = self._reach(screen, self._look, look_command(progress, seen, **job))
            if look.state != "running":
                return look.state
            if os.getppid() != controller:
                raise AnsibleError(f"the controller was killed; {_GOES_ON}")
            screen.show(look.step, look.detail, look.age)
            # A shell that does not wait as it was told.
            if seen and look.step == seen.step and time.monotonic() - asked < _PAUSE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            seen = look

    def _look(self, command: str) -> Look:
        answer = self._low_level_execute_command(command)
        return parse_look(str(answer.get("stdout", "")), str(answer.get("stderr", "")))

    def _reach(self, screen: Screen, ask: t.Callable[..., _Answer], *arguments: t.Any) -> _Answer:
        """Asks the host until it answers.

        Raises:
            AnsibleConnectionFailure: it has not answered for minutes.
        """
        begun, failures = time.monotonic(), 0
        while True:
            try:
                return ask(*arguments)
            except AnsibleConnectionFailure as error:
                trouble = _printable(str(error))
            if time.monotonic() - begun >= _RECONNECT_SECONDS:
                raise AnsibleConnectionFailure(f"{trouble}; {_GOES_ON}")
            failures += 1
            # The first one may be a shell that somebody killed.
            if failures == 2:
                screen.say(f"no connection, trying again for {_RECONNECT_SECONDS / 60:.0f} min: {trouble}")
            time.sleep(_RETRY_SECONDS)
