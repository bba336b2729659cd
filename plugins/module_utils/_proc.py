# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which process listens on a port, and which processes belong to a unit: read from /proc and the cgroup tree (proc(5), cgroups(7))."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._redact import redact

_LISTEN = "0A"
_COMPILER = re.compile(r"nvcc|cicc|ptxas(-blackwell)?|fatbinary|nvlink|cudafe\+\+|ninja|gcc|g\+\+|cc1(plus)?|c\+\+|clang|as|ld|hipcc")


@dataclass(frozen=True)
class Listener:
    """A process that listens on the port asked for. ``pid`` is 0 when it lives in another namespace and cannot be seen."""

    pid: int
    command: str

    def named(self, unit: str = "") -> str:
        """Returns who it is, for a message: secrets masked, cut."""
        return f"pid {self.pid}{f', {unit}' if unit else ''}: {redact(self.command)[:120]}"


@dataclass(frozen=True)
class Process:
    """What a process has done and holds (proc(5): ``stat``, ``statm``, ``io``).

    Attributes:
        pid: its number.
        name: its command's name, 15 characters at most.
        ticks: clock ticks it has used.
        resident_bytes: its memory.
        read_bytes: bytes it had the disk read; 0 where that may not be seen.
    """

    pid: int
    name: str
    ticks: int
    resident_bytes: int
    read_bytes: int

    @property
    def is_compiler(self) -> bool:
        """Whether it compiles or links, or drives those that do."""
        return bool(_COMPILER.fullmatch(self.name))


def read_process(pid: int, proc: Path = Path("/proc")) -> Process | None:
    """Returns a process, or None when it is gone."""
    folder = proc / str(pid)
    try:
        head, _parenthesis, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
        pages = int((folder / "statm").read_text().split()[1])
    except OSError:
        return None
    cells = rest.split()
    return Process(pid, head.partition("(")[2], int(cells[11]) + int(cells[12]), pages * os.sysconf("SC_PAGE_SIZE"), _read_bytes(folder / "io"))


def _read_bytes(path: Path) -> int:
    try:
        found = re.search(r"^read_bytes: (\d+)", path.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def listening_ports(table: str) -> dict[str, int]:
    """Returns socket inode to port for all listeners in the text of ``/proc/net/tcp`` or ``tcp6``."""
    rows = (line.split() for line in table.splitlines()[1:])
    return {cells[9]: int(cells[1].rsplit(":", 1)[1], 16) for cells in rows if len(cells) > 9 and cells[3] == _LISTEN}


def _all_listeners(proc: Path) -> dict[str, int]:
    tables = (proc / "net" / name for name in ("tcp", "tcp6"))
    return {inode: port for table in tables if table.exists() for inode, port in listening_ports(table.read_text()).items()}


def _command(proc: Path, pid: int) -> str:
    try:
        return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def find_listeners(port: int, proc: Path = Path("/proc")) -> list[Listener]:
    """Returns who listens on a TCP port of this network namespace; empty when the port is free."""
    wanted = {f"socket:[{inode}]" for inode, listening in _all_listeners(proc).items() if listening == port}
    if not wanted:
        return []
    owners = [pid for pid in _pids(proc) if wanted & set(_links(proc / str(pid) / "fd"))]
    return [Listener(pid, _command(proc, pid)) for pid in owners] or [Listener(0, "a process outside this namespace")]


def ports_of(pids: t.Iterable[int], proc: Path = Path("/proc")) -> list[int]:
    """Returns the TCP ports on which these processes listen, sorted."""
    ports = {f"socket:[{inode}]": port for inode, port in _all_listeners(proc).items()}
    return sorted({ports[link] for pid in pids for link in _links(proc / str(pid) / "fd") if link in ports})


def unit_in(cgroup: str) -> str:
    """Returns the service that a process belongs to, by the text of its ``/proc/PID/cgroup``; empty where it belongs to none."""
    found = re.findall(r"/([^/\n]+\.service)", cgroup)
    return found[-1] if found else ""


def unit_of(pid: int, proc: Path = Path("/proc")) -> str:
    """Returns the service that a process belongs to; empty where it belongs to none, or cannot be seen."""
    try:
        return unit_in((proc / str(pid) / "cgroup").read_text())
    except OSError:
        return ""


def _pids(proc: Path) -> t.Iterator[int]:
    return (int(entry) for entry in sorted(os.listdir(proc)) if entry.isdigit())


def _links(folder: Path) -> t.Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(folder / name)
        except OSError:
            continue


def cgroup_pids(control_group: str, root: Path = Path("/sys/fs/cgroup")) -> set[int]:
    """Returns the processes of a unit's control group and those below it, whatever the layout (unified, hybrid, v1).

    Args:
        control_group: systemd's ``ControlGroup`` property, e.g. ``/system.slice/sglang-main.service``.
        root: where the hierarchies are mounted.
    """
    if not control_group:
        return set()
    for base in (root, root / "unified", root / "systemd"):
        top = base / control_group.lstrip("/")
        files = sorted(top.rglob("cgroup.procs")) if top.is_dir() else []
        if files:
            return {int(pid) for path in files for pid in path.read_text().split()}
    return set()
