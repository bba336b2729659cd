# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the kernel's log says of one run: what it logs of other processes and of GPUs that the run does not use is no cause.

The OOM killer writes two lines (mm/oom_kill.c): ``oom-kill:constraint=...,task_memcg=...,pid=...`` with the cgroups, then ``Killed process PID (NAME)``.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._gpu_kernel import find_xids, is_serious

_OOM_TASK = re.compile(r"oom-kill:constraint=.*?\btask_memcg=(?P<group>[^,]*),task=[^,]*,pid=(?P<pid>\d+)")
_KILLED = re.compile(r"\bKilled process (?P<pid>\d+)\b")
# A crash ("python[4711]: segfault at", "traps: python[4711] trap invalid opcode") and a system call that a filter refused (seccomp, audit type 1326).
_FAULT = re.compile(r"\[(?P<pid>\d+)\](?:: segfault at| trap | general protection)|\btype=1326 .*?\bpid=(?P<pid_2>\d+)")
# How processes of the engine are called, for the case that nothing else tells them from others.
_ENGINE = re.compile(r"(?:\(|\btask=|\bcomm=\"|(?:^|\s))(?:python|sglang|pt_)")
_XID = re.compile(r"NVRM: Xid \(")
_XID_PROCESS = re.compile(r"NVRM: Xid .*?\bpid='?(?P<pid>\d+)")
_DRIVER = re.compile(r"\bNVRM:")


@dataclass(frozen=True)
class Run:
    """What identifies a run in the kernel's log.

    Attributes:
        pids: its processes, also those that are gone.
        control_group: of its unit, ``/system.slice/sglang-main.service``; empty: not known.
        gpus: PCI addresses of the GPUs that it uses, with or without function; empty: not known.
    """

    pids: t.Collection[int] = ()
    control_group: str = ""
    gpus: t.Collection[str] = ()

    @property
    def known(self) -> bool:
        """Whether its processes can be told from others."""
        return bool(self.pids or self.control_group)

    def uses(self, pci: str) -> bool:
        """Whether a GPU is, or may be, one of its GPUs."""
        return not self.gpus or _slot(pci) in map(_slot, self.gpus)


UNKNOWN_RUN = Run()


def is_kernel_line(line: str) -> bool:
    """Returns whether a line is one that :func:`own_lines` judges."""
    return any(pattern.search(line) for pattern in (_OOM_TASK, _KILLED, _FAULT, _DRIVER))


def own_lines(lines: t.Sequence[str], run: Run) -> list[str]:
    """Returns the lines about the run's processes and about the driver; about any engine's where it is not known which processes are its own.

    Args:
        lines: the kernel's log since the run began.
        run: whose lines are wanted.
    """
    pids = {*run.pids, *_ended_in(lines, run.control_group)}
    return [line for line in lines if is_kernel_line(line) and (_is_own(line, pids) if run.known else _DRIVER.search(line) or _ENGINE.search(line))]


def killed_by_kernel(lines: t.Sequence[str], run: Run, contained: bool = False) -> list[str]:
    """Returns the lines that say that the OOM killer ended a process of the run.

    Args:
        lines: the kernel's log since the run began.
        run: whose lines are wanted.
        contained: instead those of a unit of the run's name in some container, which may be the run's when the kernel is shared.
    """
    pids = {*_ended_in(lines, run.control_group, contained), *(() if contained else run.pids)}
    return [line for line in lines if _pid(_OOM_TASK, line) in pids or _pid(_KILLED, line) in pids]


def gpu_errors(lines: t.Sequence[str], run: Run) -> list[dict[str, t.Any]]:
    """Returns the entries of ``find_xids`` that can be the run's, with ``certain``: whether the GPU is known to be one of its GPUs.

    Args:
        lines: of :func:`own_lines`, or a journal with kernel lines in it.
        run: whose errors are wanted.
    """
    roots = [root for root in find_xids(lines) if run.uses(root["pci"])]
    return [{**root, "certain": is_serious(root) and bool(run.gpus or _pid(_XID_PROCESS, root["line"]) in run.pids)} for root in roots]


def _is_own(line: str, pids: t.Collection[int]) -> bool:
    """A GPU in doubt concerns all that use it; an error of a process concerns that process."""
    if _XID.search(line):
        pid = _pid(_XID_PROCESS, line)
        return pid is None or pid in pids or any(map(is_serious, find_xids([line])))
    if _DRIVER.search(line):
        return True
    return any(_pid(pattern, line) in pids for pattern in (_OOM_TASK, _KILLED, _FAULT))


def _pid(pattern: t.Pattern[str], line: str) -> int | None:
    found = pattern.search(line)
    return next((int(text) for name, text in found.groupdict().items() if name.startswith("pid") and text), None) if found else None


def _ended_in(lines: t.Sequence[str], group: str, contained: bool = False) -> list[int]:
    """Processes that the OOM killer ended in a control group or below it; ``contained``: in one of that name below a container's own."""
    tasks = [found for found in map(_OOM_TASK.search, lines) if found and group]
    return [int(task["pid"]) for task in tasks if (f"{group}/" in f"{task['group']}/" if contained else f"{task['group']}/".startswith(f"{group}/"))]


def _slot(pci: str) -> tuple[int, str]:
    """``00000000:41:00.0`` of nvidia-smi and ``0000:41:00`` of the kernel are one slot."""
    domain, _colon, place = pci.lower().partition(".")[0].partition(":")
    return int(domain, 16), place
