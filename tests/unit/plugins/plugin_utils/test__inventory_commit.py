# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import subprocess

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _git
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import inventory_of
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, git, needs_git, put

pytestmark = needs_git
FILE = "inventories/prod/host_vars/ct129.yml"
RECORD = "inventories/prod/benchmarks/ct129/20261130T101500Z-decode-3494591af2ee.json"


@pytest.fixture(autouse=True)
def fixture_git_alone(monkeypatch, tmp_path):
    alone(monkeypatch, tmp_path)


@pytest.fixture(name="root")
def fixture_root(tmp_path):
    """A repository with one commit, whose inventory is in inventories/prod."""
    root = tmp_path / "repository"
    for name in (FILE, "deploy.yml"):
        put(root, name)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def records_dir(root):
    return root / "inventories" / "prod" / "benchmarks"


def a_record(root):
    put(root, RECORD)


def a_record_changed(root):
    put(root, RECORD)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "record")
    put(root, RECORD, "y")


def ignored(root):
    put(root, ".git/info/exclude", "*.log\n")
    put(root, "inventories/prod/run.log")


def ignored_inventory(root):
    git(root, "rm", "-rq", "--cached", "inventories")
    put(root, ".gitignore", "inventories\n")
    git(root, "add", ".gitignore")
    git(root, "commit", "-q", "-m", "ignored")


@pytest.mark.parametrize(
    "change, dirty",
    [
        pytest.param(lambda root: None, False, id="clean"),
        pytest.param(a_record, False, id="a-new-record"),
        pytest.param(a_record_changed, False, id="a-record-changed"),
        pytest.param(ignored, False, id="an-ignored-file"),
        pytest.param(lambda root: put(root, "inventories/prod/deployed/ct129.json"), False, id="what-was-deployed"),
        pytest.param(lambda root: put(root, "inventories/prod/snapshots/ct129/host.json"), False, id="a-snapshot"),
        pytest.param(lambda root: put(root, "reports/history.md"), False, id="a-report"),
        pytest.param(lambda root: put(root, FILE, "y"), True, id="changed"),
        pytest.param(lambda root: (put(root, FILE, "y"), git(root, "add", ".")), True, id="staged"),
        pytest.param(lambda root: (root / FILE).unlink(), True, id="removed"),
        pytest.param(lambda root: put(root, "inventories/prod/new.yml"), True, id="untracked"),
        pytest.param(lambda root: put(root, "roles/x/tasks/main.yml"), True, id="outside-the-inventory"),
        pytest.param(lambda root: put(root, "inventories/other/benchmarks/x.json"), True, id="records-of-another-inventory"),
        pytest.param(ignored_inventory, True, id="an-inventory-that-is-not-tracked"),
    ],
)
def test_a_repository(root, change, dirty):
    change(root)
    found = inventory_of(records_dir(root))
    assert found == (git(root, "rev-parse", "HEAD"), dirty, "")
    assert re.fullmatch("[0-9a-f]{40}", found.commit) and found.data() == {"commit": found.commit, "dirty": dirty}


def test_an_inventory_in_a_directory_of_the_root(tmp_path):
    """git lists nothing of a directory below the root when a path of the root is to be left out."""
    root = tmp_path / "repository"
    put(root, "inventory/hosts.yml")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    put(root, "reports/history.md")
    assert inventory_of(root / "inventory" / "deployed").dirty is False


def test_a_name_is_no_pattern(root):
    put(root, "inventories/prod/bench/x.yml")
    assert inventory_of(root / "inventories" / "prod" / "bench*").dirty


def test_records_that_are_a_link(root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    records_dir(root).symlink_to(tmp_path / "elsewhere")
    assert not inventory_of(records_dir(root)).dirty


def test_another_repository_of_the_environment(root, tmp_path, monkeypatch):
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / "index"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    found = inventory_of(records_dir(root))
    monkeypatch.delenv("GIT_DIR")
    assert found == (git(root, "rev-parse", "HEAD"), False, "")


def test_the_index_stays_as_it_is(root):
    index = root / ".git" / "index"
    os.utime(root / FILE, (1, 1))
    before = index.read_bytes()
    assert inventory_of(records_dir(root)).dirty is False
    assert index.read_bytes() == before
    git(root, "status")
    assert index.read_bytes() != before, "an ordinary look refreshes it"


def test_no_repository(tmp_path):
    (commit, dirty, problem) = inventory_of(tmp_path / "benchmarks")
    assert (commit, dirty) == (None, None)
    assert problem.startswith("the record names no commit of the inventory: fatal: not a git repository") and "\n" not in problem


def test_no_commit_yet(tmp_path):
    git(tmp_path, "init", "-q")
    assert inventory_of(tmp_path / "benchmarks") == (None, None, "the record names no commit of the inventory: it has no commit yet")


def never_ends(words, timeout, **options):
    raise subprocess.TimeoutExpired(words, timeout)


def not_executable(words, **options):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    "run, problem",
    [(never_ends, "git status takes longer than 10 s"), (not_executable, "git does not run: [Errno 13] Permission denied")],
)
def test_git_does_not_answer(root, monkeypatch, run, problem):
    monkeypatch.setattr(_git.subprocess, "run", run)
    assert inventory_of(records_dir(root)) == (None, None, f"the record names no commit of the inventory: {problem}")


def test_without_git(root, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert inventory_of(records_dir(root)).problem == "the record names no commit of the inventory: there is no git on this controller"
