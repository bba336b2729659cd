# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be read on the machines of the scenario: files, processes while something runs, the journal, units."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import typing as t

from forge import FILES
from leaks import Artefact

PODMAN = os.environ["ANSIBLE_PODMAN_EXECUTABLE"]
WATCHER = (FILES / "processes.py").read_text()


class File(t.NamedTuple):
    """A file or a directory of a host.

    Attributes:
        path: absolute.
        owner: names of user and group.
        mode: its permissions, octal.
        data: content.
    """

    path: str
    owner: str
    mode: str
    data: bytes


class Seen(t.NamedTuple):
    """What was seen of a process: its command line or its environment.

    Attributes:
        what: ``command`` or ``environment``.
        owner: number of the user who may read its environment.
        mode: permissions of its environment, octal.
        data: words or variables, each ended by a zero byte.
    """

    what: str
    owner: int
    mode: str
    data: bytes


class Machine:
    """A host, or with no name the machine that the tests run on.

    Args:
        name: of the host.
        container: it is.
    """

    def __init__(self, name: str, container: str = "") -> None:
        self.name = name
        self._enter = [PODMAN, "exec", "-i", container] if container else []

    def run(self, *command: str) -> bytes:
        """Returns what a command prints; it must succeed."""
        return subprocess.run([*self._enter, *command], check=True, stdin=subprocess.DEVNULL, capture_output=True).stdout

    def files(self, *patterns: str, without: str = "none") -> list[File]:
        """Returns all below some paths, which may have wildcards of the shell.

        Args:
            patterns: without the first slash.
            without: pattern of what is left out.
        """
        # Of a machine that works a file may change, or go, while it is read.
        pack = f"cd / && tar --create --exclude='{without}' --ignore-failed-read {' '.join(patterns)}; [ $? -le 1 ]"
        with tarfile.open(fileobj=io.BytesIO(self.run("sh", "-c", pack))) as archive:
            return [File(f"/{member.name}", f"{member.uname}:{member.gname}", f"{member.mode:o}", _content(archive, member)) for member in archive]

    def artefacts(self, *commands: str) -> t.Iterator[Artefact]:
        """What commands print."""
        for command in commands:
            yield Artefact(f"{self.name}: {command}", self.run("sh", "-c", command))

    @contextlib.contextmanager
    def watched(self, into: list[Seen]) -> t.Iterator[None]:
        """Looks at all its processes, several times a second."""
        python = "python3" if self._enter else sys.executable
        watcher = subprocess.Popen([*self._enter, python, "-c", WATCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield
        finally:
            output, _errors = watcher.communicate()
            into += [Seen(what, owner, mode, data.encode("latin-1")) for what, owner, mode, data in map(json.loads, output.splitlines())]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of a file; of a link, where it leads."""
    stream = archive.extractfile(member) if member.isreg() else None
    return stream.read() if stream else member.linkname.encode()
