# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _git
from ansible_collections.llmops.inference.plugins.plugin_utils._git import GitError
from ansible_collections.llmops.inference.tests.unit import git_repository
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, needs_git

pytestmark = needs_git


@pytest.fixture(name="root")
def fixture_root(monkeypatch, tmp_path):
    alone(monkeypatch, tmp_path)
    commit(tmp_path / "repository", "first", hosts="x")
    return tmp_path / "repository"


def test_an_answer(root):
    assert _git.git(root / "inventory", "log", "--format=%s") == "first\n"


@pytest.mark.parametrize("setting", ["core.fsmonitor", "gpg.program"])
def test_no_program_of_the_configuration_runs(root, setting):
    trap = root / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {root}/caught\n")
    trap.chmod(0o755)
    for name, value in ((setting, str(trap)), ("log.showSignature", "true")):
        git_repository.git(root, "config", name, value)
    _git.git(root, "status", "--porcelain")
    _git.git(root, "log")
    assert not (root / "caught").exists()


def test_another_repository_of_the_environment(root, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert _git.git(root, "log", "--format=%s") == "first\n"


def never_ends(words, timeout, **options):
    raise subprocess.TimeoutExpired(words, timeout)


def not_executable(words, **options):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    "run, problem", [(never_ends, "git log takes longer than 10 s"), (not_executable, r"git does not run: \[Errno 13\] Permission denied")]
)
def test_it_does_not_answer(root, monkeypatch, run, problem):
    monkeypatch.setattr(_git.subprocess, "run", run)
    with pytest.raises(GitError, match=problem):
        _git.git(root, "log")


def test_it_is_not_there(root, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="there is no git on this controller"):
        _git.git(root, "log")


def test_it_fails(root, tmp_path):
    with pytest.raises(GitError, match=r"^fatal: not a git repository[^\n]*$"):
        _git.git(tmp_path, "log")
    with pytest.raises(GitError, match="^there is none$"):
        _git.git(root, "rev-parse", "--quiet", "--verify", "nothing", silent="there is none")
    with pytest.raises(GitError, match="^git rev-parse ends with 1$"):
        _git.git(root, "rev-parse", "--quiet", "--verify", "nothing")
