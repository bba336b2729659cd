# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The commit of the inventory that a record was measured with, as git on the controller tells it."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils._git import GitError, git

if t.TYPE_CHECKING:
    from pathlib import Path

# What playbooks write beside an inventory's hosts and variables.
WRITTEN = ("benchmarks", "deployed", "snapshots")


class Inventory(t.NamedTuple):
    """State of an inventory.

    Attributes:
        commit: 40 hex digits; None where there is none.
        dirty: whether anything in its repository was changed or is not tracked, what playbooks write aside; None where that is not known.
        problem: why something is not known; empty when all is.
    """

    commit: str | None
    dirty: bool | None
    problem: str = ""

    def data(self) -> dict[str, t.Any]:
        """Returns the record's ``inventory``."""
        return {"commit": self.commit, "dirty": self.dirty}


def inventory_of(records_dir: Path) -> Inventory:
    """Returns the state of the inventory that a directory of records lies in.

    Args:
        records_dir: the directory, absolute; need not exist yet. Its parent is the inventory.
    """
    aside = [f":(exclude,literal){name}" for name in (records_dir.name, *WRITTEN)]
    try:
        changes = git(records_dir.parent, "status", "--porcelain", "-z", "--untracked-files=all", "--", ":/", *aside, ":(exclude,top,literal)reports")
        # git says nothing of an inventory that it ignores.
        tracked = git(records_dir.parent, "ls-files", "-z", "--", ".", *aside)
        commit = git(records_dir.parent, "rev-parse", "--quiet", "--verify", "HEAD", silent="it has no commit yet").strip()
    except GitError as error:
        return Inventory(None, None, f"the record names no commit of the inventory: {error}")
    return Inventory(commit, bool(changes) or not tracked)
