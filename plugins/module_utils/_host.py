# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The real host behind the watch: systemctl, journalctl, /proc and HTTP."""

from __future__ import annotations

import shutil
import time
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._http import Client, Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line, journal_command, kernel_command, parse_entries
from ansible_collections.llmops.inference.plugins.module_utils._patience import Activity
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener, cgroup_pids, find_listeners, read_process
from ansible_collections.llmops.inference.plugins.module_utils._watch import UnitState

# (arguments) -> (status, standard output, standard error), as AnsibleModule.run_command
Run = t.Callable[[t.List[str]], t.Tuple[int, str, str]]

_PROPERTIES = "ActiveState,SubState,Result,MainPID,InvocationID,NRestarts,ControlGroup,ExecMainStartTimestampMonotonic"
# A driver in trouble never answers; the watch has limits of its own to keep.
_GPU_SECONDS = 20


class HostError(RuntimeError):
    """A command of the host failed that should not; the message names it and what it said."""


def run_checked(run: Run, command: list[str]) -> str:
    """Runs a command and returns its output.

    Raises:
        HostError: it exits with another status than 0.
    """
    status, output, error = run(command)
    if status != 0:
        raise HostError(f"{' '.join(command)} failed with status {status}: {(error or output).strip()}")
    return output


def parse_show(output: str) -> dict[str, str]:
    """Returns the properties that ``systemctl show`` prints as ``NAME=value``."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def parse_state(output: str, boot_time: float) -> UnitState:
    """Returns the unit's state from ``systemctl show``.

    Args:
        output: what it printed.
        boot_time: wall-clock seconds at monotonic zero.
    """
    show = parse_show(output)
    started = int(show.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    return UnitState(
        active=show.get("ActiveState", "inactive"),
        sub=show.get("SubState", "dead"),
        result=show.get("Result", ""),
        main_pid=int(show.get("MainPID") or 0),
        invocation=show.get("InvocationID", ""),
        restarts=int(show.get("NRestarts") or 0),
        control_group=show.get("ControlGroup", ""),
        started=boot_time + started if started else 0.0,
    )


class LocalHost:
    """Implements :class:`_watch.Host` for the machine the module runs on.

    Args:
        run: runs a command, as ``AnsibleModule.run_command``.
        unit: the unit's full name.
        port: the server's HTTP port.
        client: HTTP client for that server.
        leader: HTTP client for rank 0 of a server on several nodes, where this is another rank.
    """

    def __init__(self, run: Run, unit: str, port: int, client: Client, leader: Client | None = None) -> None:
        self._run = run
        self._unit = unit
        self._port = port
        self._client = client
        self._leader = leader

    def unit_state(self) -> UnitState:
        output = run_checked(self._run, ["systemctl", "show", self._unit, f"--property={_PROPERTIES}"])
        return parse_state(output, time.time() - time.clock_gettime(time.CLOCK_MONOTONIC))

    def journal(self, invocation: str, cursor: str, whole: bool = False) -> tuple[list[Line], str]:
        lines, last = parse_entries(run_checked(self._run, journal_command(self._unit, invocation, cursor, whole)))
        return lines, last or cursor

    def kernel_log(self, since: float) -> list[str]:
        """Empty where the host's kernel log is not its own to read, as in most containers."""
        return [line.text for line in parse_entries(run_checked(self._run, kernel_command(since)))[0]]

    def activity(self, pids: t.Collection[int]) -> Activity:
        found = [one for one in map(read_process, sorted(pids)) if one]
        compilers = [one for one in found if one.is_compiler]
        return Activity(
            read_bytes=sum(one.read_bytes for one in found),
            resident_bytes=sum(one.resident_bytes for one in found),
            gpu_bytes=self._gpu_bytes(),
            compilers=tuple(sorted({one.name for one in compilers})),
            compiler_ticks=sum(one.ticks + one.pid for one in compilers),
        )

    def _gpu_bytes(self) -> int:
        if not shutil.which("nvidia-smi"):
            return 0
        status, output, error = self._run(["timeout", str(_GPU_SECONDS), "nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"])
        return sum(int(word) << 20 for word in output.split() if word.isdigit()) if status == 0 else 0

    def listeners(self) -> list[Listener]:
        return find_listeners(self._port)

    def unit_pids(self, control_group: str) -> set[int]:
        return cgroup_pids(control_group)

    def request(self, path: str, body: t.Any = None, timeout: float = 5.0) -> Reply:
        return self._client.request(path, body, timeout)

    def leader(self, path: str) -> Reply:
        return self._leader.request(path) if self._leader else Reply(0, error="rank 0 is not known")

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_clock(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
