# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Asks git on the controller, so that neither its environment nor a repository's configuration decides what is asked or run."""

from __future__ import annotations

import os
import subprocess
import typing as t

if t.TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 10.0
# In a git hook these would turn git to the committing repository, or read a path as a pattern.
_PLACES = ("DIR", "WORK_TREE", "INDEX_FILE", "PREFIX", "COMMON_DIR", "OBJECT_DIRECTORY")
_MISLEADING = tuple(f"GIT_{word}" for word in (*_PLACES, *(f"{kind}_PATHSPECS" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE"))))
# A monitor of files and a check of signatures are programs that a configuration names.
_SETTINGS = ("core.fsmonitor=false", "log.showSignature=false")


class GitError(Exception):
    """git does not answer; the message is its own."""


def git(folder: Path, command: str, *args: str, silent: str = "") -> str:
    """Returns what a command of git prints.

    Args:
        folder: where it runs.
        command: of git that changes nothing.
        args: its arguments.
        silent: what it means when it fails without a word.

    Raises:
        GitError: it is missing, takes too long, or fails.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    # It runs beside an operator's own git, whose index it must not lock.
    environment.update(GIT_OPTIONAL_LOCKS="0", LC_ALL="C")
    words = ["git", *(word for setting in _SETTINGS for word in ("-c", setting)), "-C", str(folder), command, *args]
    try:
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS)
    except FileNotFoundError:
        raise GitError("there is no git on this controller") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {command} takes longer than {_SECONDS:g} s") from None
    except OSError as error:
        raise GitError(f"git does not run: {error}") from None
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise GitError(told or silent or f"git {command} ends with {done.returncode}")
    return done.stdout.decode(errors="replace")
