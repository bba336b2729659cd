# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The commit of the inventory that a record was measured with, as git on the controller tells it."""

from __future__ import annotations

import os
import subprocess
import typing as t
from pathlib import Path

_SECONDS = 10.0
# In a git hook these would turn git to the committing repository, or read a path as a pattern.
_PLACES = ("DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "COMMON_DIR", "OBJECT_DIRECTORY")
_MISLEADING = tuple(f"GIT_{word}" for word in (*_PLACES, *(f"{kind}_PATHSPECS" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE"))))


class Inventory(t.NamedTuple):
    """State of an inventory.

    Attributes:
        commit: 40 hex digits; None where there is none.
        dirty: whether anything in its repository was changed or is not tracked, records aside; None where that is not known.
        problem: why something is not known; empty when all is.
    """

    commit: str | None
    dirty: bool | None
    problem: str = ""

    def data(self) -> dict[str, t.Any]:
        """Returns the record's ``inventory``."""
        return {"commit": self.commit, "dirty": self.dirty}


class _GitError(Exception):
    """git does not answer; the message is its own."""


def inventory_of(records_dir: Path) -> Inventory:
    """Returns the state of the inventory that a directory of records lies in.

    Args:
        records_dir: the directory, absolute; need not exist yet. Its parent is the inventory.
    """
    aside = f":(exclude,literal){records_dir.name}"
    try:
        changes = _git(records_dir.parent, "status", "--porcelain", "-z", "--untracked-files=all", "--", ":/", aside)
        # git says nothing of an inventory that it ignores.
        tracked = _git(records_dir.parent, "ls-files", "-z", "--", ".", aside)
        commit = _git(records_dir.parent, "rev-parse", "--quiet", "--verify", "HEAD", silent="it has no commit yet").strip()
    except _GitError as error:
        return Inventory(None, None, f"the record names no commit of the inventory: {error}")
    return Inventory(commit, bool(changes) or not tracked)


def _git(folder: Path, command: str, *args: str, silent: str = "") -> str:
    """What a command of git prints.

    Args:
        folder: where it runs.
        command: of git that changes nothing.
        args: its arguments.
        silent: what it means when it fails without a word.

    Raises:
        _GitError: it is missing, takes too long, or fails.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    # It runs beside an operator's own git, whose index it must not lock.
    environment.update(GIT_OPTIONAL_LOCKS="0", LC_ALL="C")
    # A monitor of files is a program that the repository names.
    words = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), command, *args]
    try:
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS)
    except FileNotFoundError:
        raise _GitError("there is no git on this controller") from None
    except subprocess.TimeoutExpired:
        raise _GitError(f"git {command} takes longer than {_SECONDS:g} s") from None
    except OSError as error:
        raise _GitError(f"git does not run: {error}") from None
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise _GitError(told or silent or f"git {command} ends with {done.returncode}")
    return done.stdout.decode(errors="replace")
