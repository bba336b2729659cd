# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import os
import subprocess
import tarfile

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _trees
from ansible_collections.llmops.inference.plugins.plugin_utils._trees import TreeError, copy_commit, copy_work, open_repository, place_in, root_of
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, git, needs_git, put

pytestmark = needs_git


@pytest.fixture(name="root")
def fixture_root(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path)
    return tmp_path / "r"


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in sorted(folder.rglob("*")) if path.is_file()}


def branch(root):
    """A repository whose branch left main one commit ago, and whose main moved on."""
    first = commit(root, "first", hosts="a")
    git(root, "switch", "-q", "-c", "work")
    second = commit(root, "second", hosts="b")
    git(root, "switch", "-q", "main")
    commit(root, "third", hosts="c")
    git(root, "switch", "-q", "work")
    return first, second


def test_a_branch_is_compared_from_where_it_left(root):
    first, second = branch(root)
    found = open_repository(root / "inventory", "main")
    assert found == (root, first, second, False)
    assert open_repository(root / "inventory" / "hosts", "main") == found, "an inventory may be a file"
    put(root, "inventory/hosts", "changed")
    assert open_repository(root, "main").dirty


def test_untracked_files_count(root):
    commit(root, "first", hosts="a")
    put(root, "inventory/new", "x")
    assert open_repository(root, "main").dirty


@pytest.mark.parametrize("base", ["origin/main", "--output=x", "-h", "main:inventory", "", "../main"])
def test_a_base_that_is_not_there(root, base):
    commit(root, "first", hosts="a")
    with pytest.raises(TreeError) as raised:
        open_repository(root, base)
    assert str(raised.value).startswith(f"sglang_check_base {base} cannot be compared with: ") and "unshallow" not in str(raised.value)
    assert sorted(path.name for path in root.iterdir()) == [".git", "inventory"]


def test_no_commit_in_common(root):
    commit(root, "first", hosts="a")
    git(root, "switch", "-q", "--orphan", "other")
    commit(root, "other", hosts="a")
    with pytest.raises(TreeError, match="it has no commit in common with the work tree$"):
        open_repository(root, "main")


def test_a_repository_without_a_commit(root):
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    with pytest.raises(TreeError, match="the repository has no commit yet"):
        open_repository(root, "main")


def test_a_shallow_clone(root, tmp_path):
    branch(root)
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", f"file://{root}", "clone")
    with pytest.raises(TreeError, match=r"no commit in common .*; this clone was made with a depth .*: git fetch --unshallow origin .*$"):
        open_repository(tmp_path / "clone", "origin/main")


def test_no_repository(tmp_path, root):
    (tmp_path / "inventory").mkdir()
    for path in (tmp_path / "inventory", tmp_path / "inventory" / "hosts.yml", tmp_path / "none" / "inventory"):
        with pytest.raises(TreeError, match="is in no git repository: "):
            root_of(path)


def test_no_git(tmp_path, root, monkeypatch):
    commit(root, "first", hosts="a")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TreeError, match="there is no git"):
        root_of(root)
    for copy in (lambda: copy_work(root, tmp_path / "w"), lambda: copy_commit(root, "HEAD", tmp_path / "c")):
        with pytest.raises(TreeError, match="there is no git"):
            copy()


def test_a_place_in_a_repository(tmp_path, root):
    commit(root, "first", hosts="a")
    (tmp_path / "link").symlink_to(root / "inventory")
    assert str(place_in(root, root / "inventory" / "hosts")) == "inventory/hosts"
    assert str(place_in(root, tmp_path / "link")) == "inventory", "git tells the root as it is without links"
    assert str(place_in(root, root)) == "."
    with pytest.raises(TreeError, match=r"is not in the repository"):
        place_in(root, tmp_path)


def test_both_copies_are_alike(root, tmp_path):
    put(root, ".gitignore", "*.secret\n")
    put(root, "a b/c\nd", "x")
    put(root, "inventory/dynamic.py", "#!/bin/sh\n")
    (root / "inventory/dynamic.py").chmod(0o755)
    first = commit(root, "first", hosts="a")
    put(root, "local.secret", "hidden")
    assert copy_commit(root, first, tmp_path / "c") == copy_work(root, tmp_path / "w") == []
    assert (
        files(tmp_path / "c")
        == files(tmp_path / "w")
        == {".gitignore": "*.secret\n", "a b/c\nd": "x", "inventory/dynamic.py": "#!/bin/sh\n", "inventory/hosts": "a"}
    )
    for side in "cw":
        modes = {name: (tmp_path / side / "inventory" / name).stat().st_mode & 0o777 for name in ("dynamic.py", "hosts")}
        assert modes == {"dynamic.py": 0o755, "hosts": 0o644}, "an inventory that is a program stays one"
    assert not (tmp_path / "c.tar").exists()


def test_the_work_tree_with_changes(root, tmp_path):
    first = commit(root, "first", hosts="a", gone="x")
    put(root, "inventory/hosts", "changed")
    put(root, "inventory/new", "new")
    (root / "inventory/gone").unlink()
    copy_work(root, tmp_path / "w")
    copy_commit(root, first, tmp_path / "c")
    assert files(tmp_path / "w") == {"inventory/hosts": "changed", "inventory/new": "new"}
    assert files(tmp_path / "c") == {"inventory/hosts": "a", "inventory/gone": "x"}


LINKS = {
    "inside": "hosts",
    "folder": "../shared",
    "chain": "inside",
    "out": "/etc/passwd",
    "up": "../../x",
    "gone": "nothing",
    "back": "back",
    "through": "folder/../../../x",
}


def test_links(root, tmp_path):
    """Inventories share group_vars by links; what leads elsewhere is told."""
    put(root, "shared/all.yml", "a: 1\n")
    put(tmp_path, "x", "outside")
    put(root, "inventory/hosts", "a")
    for name, lead in LINKS.items():
        (root / "inventory" / name).symlink_to(lead)
    first = commit(root, "first")
    left_out = sorted(f"inventory/{name}" for name in ("out", "up", "gone", "back", "through"))
    assert copy_commit(root, first, tmp_path / "t" / "c") == copy_work(root, tmp_path / "t" / "w") == left_out
    for side in "cw":
        folder = tmp_path / "t" / side / "inventory"
        assert sorted(path.name for path in folder.iterdir()) == ["chain", "folder", "hosts", "inside"]
        assert (folder / "folder" / "all.yml").read_text() == "a: 1\n" and (folder / "chain").read_text() == "a"


def test_submodules_are_left_out_on_both_sides(root, tmp_path):
    commit(tmp_path / "other", "other", x="y")
    commit(root, "first", hosts="a")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "other"), "roles")
    second = commit(root, "second")
    assert copy_commit(root, second, tmp_path / "c") == copy_work(root, tmp_path / "w") == []
    assert files(tmp_path / "c").keys() == files(tmp_path / "w").keys() == {".gitmodules", "inventory/hosts"}


def test_a_commit_that_is_not_there(root, tmp_path):
    commit(root, "first", hosts="a")
    with pytest.raises(TreeError, match="the files of commit 0123 cannot be had: "):
        copy_commit(root, "0123", tmp_path / "c")


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_names_that_lead_out(root, tmp_path, monkeypatch, name):
    """git makes none; a server that is not git may send one."""

    def archive(folder, command, *words, **more):
        if command != "archive":
            return ""
        with tarfile.open(words[1].partition("=")[2], "w") as packed:
            member = tarfile.TarInfo(name)
            member.size = 1
            packed.addfile(member, io.BytesIO(b"x"))
        return ""

    monkeypatch.setattr(_trees, "git", archive)
    with pytest.raises(TreeError, match="leads out of it"):
        copy_commit(root, "HEAD", tmp_path / "t" / "c")
    monkeypatch.setattr(_trees, "git", lambda *words, **more: f"{name}\0")
    with pytest.raises(TreeError, match="leads out of it"):
        copy_work(root, tmp_path / "t" / "w")
    assert not (tmp_path / "evil").exists() and not (tmp_path / "t" / "evil").exists()


def test_a_damaged_archive(root, tmp_path, monkeypatch):
    monkeypatch.setattr(_trees, "git", lambda *words, **more: words[1] == "archive" and open(words[3].partition("=")[2], "w").close() or "")
    with pytest.raises(TreeError, match="the files of commit HEAD cannot be had: "):
        copy_commit(root, "HEAD", tmp_path / "c")


def test_programs_that_a_repository_names_do_not_run(root, tmp_path):
    """A branch brings attributes; programs for them only a configuration names."""
    put(root, ".gitattributes", "* filter=evil\n")
    first = commit(root, "first", hosts="a")
    copy_commit(root, first, tmp_path / "c")
    assert files(tmp_path / "c")["inventory/hosts"] == "a"


def test_attributes_that_hide_files(root, tmp_path):
    put(root, ".gitattributes", "inventory/secret* export-ignore\n")
    commit(root, "first", hosts="a", secrets="b")
    with pytest.raises(TreeError, match=r"^inventory/secrets is kept out of copies by export-ignore in \.gitattributes"):
        copy_commit(root, "HEAD", tmp_path / "c")


def test_a_name_that_is_no_text(root, tmp_path):
    root.mkdir()
    name = os.fsencode(root) + b"/\xff"
    try:
        with open(name, "wb"):
            pass
    except OSError:
        pytest.skip("this file system takes no such name")
    commit(root, "first", hosts="a")
    copy_commit(root, "HEAD", tmp_path / "c")
    copy_work(root, tmp_path / "w")
    assert (tmp_path / "w" / "inventory" / "hosts").is_file()


def test_a_hook_of_git_does_not_turn_it_elsewhere(root, tmp_path, monkeypatch):
    commit(root, "first", hosts="a")
    commit(tmp_path / "other", "other", hosts="b")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert subprocess.run(["git", "-C", str(root), "rev-parse", "--git-dir"], capture_output=True, text=True, check=True).stdout.strip().endswith("other/.git")
    assert root_of(root / "inventory") == root
