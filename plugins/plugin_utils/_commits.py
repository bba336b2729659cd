# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The commits that records name, and those of the inventory between two records, as git on the controller tells them. What git does not know is said."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.plugin_utils._git import GitError, git

if t.TYPE_CHECKING:
    from pathlib import Path

# So many are told between two records.
MOST = 20
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FIELDS = "%H%n%cI%n%aN%n%s"
# A command line has a limit.
_AT_ONCE = 500
# Files of an inventory that a deployment writes: what they say was caused by another commit.
_WRITTEN = ("deployed",)
_Pair = t.Tuple[str, str]


class Commit(t.NamedTuple):
    """One commit.

    Attributes:
        id: 40 hex digits, or 64.
        date: when it was committed, ISO 8601.
        author: name of its author.
        subject: of its message, on one line.
    """

    id: str
    date: str
    author: str
    subject: str


class Between(t.NamedTuple):
    """What a record has and the record before it has not.

    Attributes:
        commits: that touch the inventory, records aside, the newest first; that of the record itself is not among them.
        left_out: how many more there are.
        remark: why these are not the whole truth; empty when they are.
    """

    commits: list[Commit]
    left_out: int = 0
    remark: str = ""


@dataclass
class Commits:
    """What git tells.

    Attributes:
        known: commits by their id.
        between: by the ids of the commits of two records, the older first.
        remarks: what is not known, and why.
    """

    known: dict[str, Commit] = field(default_factory=dict)
    between: dict[_Pair, Between] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def read_commits(records_dir: Path, ids: t.Iterable[str], pairs: t.Iterable[_Pair]) -> Commits:
    """Returns what git tells of commits; without any, git is not asked.

    Args:
        records_dir: directory of the records, absolute. Its parent is the inventory.
        ids: of the commits that records name; they may be anything.
        pairs: of them, the older first, between which commits are wanted.
    """
    found, wanted = Commits(), list(dict.fromkeys(one for one in ids if one))
    if not wanted:
        return found
    # Whatever else a record holds would be an option of git, or another revision than the record's.
    names = [one for one in wanted if _ID.fullmatch(one)]
    try:
        for place in range(0, len(names), _AT_ONCE):
            told = _log(records_dir.parent, "--no-walk=unsorted", "--ignore-missing", *names[place : place + _AT_ONCE])
            found.known.update((commit.id, commit) for commit in told if commit.id in names)
        for before, after in dict.fromkeys(pairs):
            if before != after and before in found.known and after in found.known:
                found.between[before, after] = _between(records_dir, before, after)
        found.remarks += _missing(records_dir, len(wanted) - len(found.known))
    except GitError as error:
        found.remarks.append(f"commits are told without all of their messages: {error}")
    return found


def _log(folder: Path, *args: str) -> list[Commit]:
    """Commits as ``git log`` tells them.

    Raises:
        GitError: it does not answer.
    """
    told = git(folder, "log", "-z", "--encoding=UTF-8", f"--format={_FIELDS}", *args)
    return [Commit(*entry.split("\n", 3)) for entry in told.split("\0") if entry]


def _between(records_dir: Path, before: str, after: str) -> Between:
    aside = [f":(exclude,literal){name}" for name in (records_dir.name, *_WRITTEN)]
    told = [commit for commit in _log(records_dir.parent, f"{before}..{after}", "--", ".", *aside) if commit.id != after]
    apart = git(records_dir.parent, "rev-list", "--count", f"{after}..{before}").strip() != "0"
    remark = f"{before[:7]} is no ancestor of {after[:7]}: the history was rewritten, or they are of two branches" if apart else ""
    return Between(told[:MOST], max(0, len(told) - MOST), remark)


def _missing(records_dir: Path, count: int) -> list[str]:
    """Why git does not know some commits, in one sentence.

    Raises:
        GitError: it does not answer.
    """
    if not count:
        return []
    shallow = git(records_dir.parent, "rev-parse", "--is-shallow-repository").strip() == "true"
    why = "the clone is shallow: git fetch --unshallow brings them" if shallow else "the history was rewritten, or they are on a branch that is not here"
    return [f"{count} of the commits that records name {'is' if count == 1 else 'are'} not known to git here: {why}"]
