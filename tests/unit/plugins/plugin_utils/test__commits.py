# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _commits
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits, read_commits
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, git, needs_git, put

pytestmark = needs_git
NOBODY = "0123456789abcdef0123456789abcdef01234567"
HOSTILE = "</script> | **@all** $(touch x) \u2028 --output=x"


@pytest.fixture(name="root")
def fixture_root(monkeypatch, tmp_path):
    alone(monkeypatch, tmp_path)
    return tmp_path / "repository"


def records(root):
    return root / "inventory" / "benchmarks"


def subjects(between):
    return [one.subject for one in between.commits]


def test_messages_and_what_lies_between(root):
    first = commit(root, "Two GPUs", 1, hosts="a")
    put(root, "README.md")
    commit(root, "Words only", 2)
    commit(root, "Record of the decode benchmark", 3, benchmarks__ct129__x="a")
    commit(root, "Deployed", 4, deployed__ct129="a")
    second = commit(root, "Fewer steps\n\nbecause", 5, "Ada", host_vars__ct129="a")
    last = commit(root, f"More memory {HOSTILE}", 6, "Ada", host_vars__ct129="b")
    found = read_commits(records(root), [first, last, first, ""], [(first, last), (first, last), (first, first)])
    assert found.known == {
        first: Commit(first, "2026-11-01T09:00:00+00:00", "a@b", "Two GPUs"),
        last: Commit(last, "2026-11-06T09:00:00+00:00", "Ada", f"More memory {HOSTILE}"),
    }
    assert found.between == {(first, last): Between([Commit(second, "2026-11-05T09:00:00+00:00", "Ada", "Fewer steps")])}
    assert found.remarks == []


def test_a_branch_that_was_merged(root):
    first = commit(root, "first", 1, hosts="a")
    git(root, "checkout", "-q", "-b", "tune")
    commit(root, "on the branch", 2, host_vars__ct129="a")
    git(root, "checkout", "-q", "main")
    commit(root, "on main", 3, hosts="b")
    git(root, "merge", "-q", "--no-ff", "-m", "merge", "tune")
    last = git(root, "rev-parse", "HEAD")
    assert subjects(read_commits(records(root), [first, last], [(first, last)]).between[first, last]) == ["on main", "on the branch"]


def test_many_are_cut(root, monkeypatch):
    monkeypatch.setattr(_commits, "MOST", 3)
    monkeypatch.setattr(_commits, "_AT_ONCE", 2)
    made = [commit(root, f"change {number}", number, hosts=str(number)) for number in range(1, 7)]
    found = read_commits(records(root), made, [(made[0], made[5])])
    assert list(found.known) == made
    between = found.between[made[0], made[5]]
    assert (subjects(between), between.left_out, between.remark) == (["change 5", "change 4", "change 3"], 1, "")


def test_a_commit_that_is_not_known(root):
    known = commit(root, "first", 1, hosts="a")
    found = read_commits(records(root), [NOBODY, known], [(NOBODY, known), (known, NOBODY)])
    assert list(found.known) == [known] and found.between == {}
    assert found.remarks == ["1 of the commits that records name is not known to git here: the history was rewritten, or they are on a branch that is not here"]
    assert read_commits(records(root), [NOBODY], []).known == {}


@pytest.mark.parametrize("name", ["HEAD", "main", "--output=caught", "--all", "..", "HEAD~0", NOBODY.upper(), NOBODY[:12], "x" * 3000])
def test_what_is_no_id_is_not_given_to_git(root, name):
    commit(root, "first", 1, hosts="a")
    found = read_commits(records(root), [name], [(name, name)])
    assert found.known == {} and found.remarks[0].startswith("1 of the commits that records name is not known")
    assert not (root / "inventory" / "caught").exists()


def test_a_blob_is_no_commit(root):
    commit(root, "first", 1, hosts="a")
    assert read_commits(records(root), [git(root, "rev-parse", "HEAD:inventory/hosts"), git(root, "rev-parse", "HEAD^{tree}")], []).known == {}


def test_a_shallow_clone(root, tmp_path):
    made = [commit(root, f"change {number}", number, hosts=str(number)) for number in range(1, 4)]
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{root}", "clone")
    found = read_commits(records(tmp_path / "clone"), made, [(made[0], made[2]), (made[1], made[2])])
    assert sorted(found.known) == sorted(made[1:]) and list(found.between) == [(made[1], made[2])]
    assert found.remarks == ["1 of the commits that records name is not known to git here: the clone is shallow: git fetch --unshallow brings them"]


def test_a_history_that_was_rewritten(root):
    first = commit(root, "first", 1, hosts="a")
    old = commit(root, "old wording", 2, hosts="b")
    git(root, "commit", "-q", "--amend", "-m", "new wording")
    new = commit(root, "next", 3, hosts="c")
    found = read_commits(records(root), [first, old, new], [(old, new)])
    assert found.known[old].subject == "old wording"
    assert subjects(found.between[old, new]) == ["new wording"]
    assert found.between[old, new].remark == f"{old[:7]} is no ancestor of {new[:7]}: the history was rewritten, or they are of two branches"


def test_without_commits_git_is_not_asked(root, monkeypatch):
    monkeypatch.setattr(_commits, "git", None)
    assert read_commits(records(root), ["", ""], []) == Commits()


def test_git_does_not_answer(root, tmp_path):
    os.makedirs(records(root))
    (remark,) = read_commits(records(root), [NOBODY], []).remarks
    assert remark.startswith("commits are told without all of their messages: fatal: not a git repository")
