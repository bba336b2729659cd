# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Copies of a repository as it was at a commit and as it lies in the work tree, to be read and thrown away."""

from __future__ import annotations

import os
import shutil
import tarfile
import typing as t
from pathlib import Path, PurePosixPath

from ansible_collections.llmops.inference.plugins.plugin_utils._git import GitError, git


class TreeError(ValueError):
    """A copy cannot be made; the message is for the operator."""


class Repository(t.NamedTuple):
    """A repository and what is compared in it.

    Attributes:
        root: of the work tree.
        base: commit that the branch began from, 40 hex digits.
        head: commit of the work tree.
        dirty: whether the work tree differs from it.
    """

    root: Path
    base: str
    head: str
    dirty: bool


def root_of(path: Path) -> Path:
    """Returns the root of the work tree that a file or directory lies in.

    Raises:
        TreeError: it lies in none.
    """
    folder = path if path.is_dir() else path.parent
    try:
        return Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    except GitError as error:
        raise TreeError(f"{path} is in no git repository: {error}") from None


def place_in(root: Path, path: Path) -> Path:
    """Returns where a path is in a repository; the links that lead to it are followed.

    Raises:
        TreeError: it is not in it.
    """
    try:
        return Path(os.path.realpath(path)).relative_to(os.path.realpath(root))
    except ValueError:
        raise TreeError(f"{path} leads to {os.path.realpath(path)}, which is not in the repository {root}") from None


def open_repository(path: Path, base: str) -> Repository:
    """Returns the repository that a path lies in, and where the work tree left the base.

    Args:
        path: any file or directory of it.
        base: a branch, tag or commit.

    Raises:
        TreeError: there is no repository, or the base is not in it.
    """
    root = root_of(path)
    try:
        head = git(root, "rev-parse", "--quiet", "--verify", "HEAD^{commit}", silent="the repository has no commit yet").strip()
        git(root, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{base}^{{commit}}", silent=f"there is no such commit in {root}")
        # What a branch changes counts from where it began: main may have moved on since.
        start = git(root, "merge-base", "--end-of-options", base, "HEAD", silent="it has no commit in common with the work tree").strip()
        dirty = bool(git(root, "status", "--porcelain"))
    except GitError as error:
        raise TreeError(f"sglang_check_base {base} cannot be compared with: {error}{_depth(root)}") from None
    return Repository(root, start, head, dirty)


def _depth(root: Path) -> str:
    """What to do about a clone without its history."""
    try:
        shallow = git(root, "rev-parse", "--is-shallow-repository").strip() == "true"
    except GitError:
        shallow = False
    return (
        "; this clone was made with a depth and does not have all commits: git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'"
        if shallow
        else ""
    )


def copy_commit(root: Path, commit: str, folder: Path) -> list[str]:
    """Writes the files of a commit into a new directory.

    Returns:
        Links that were left out, because they lead out of the repository or to nothing.

    Raises:
        TreeError: git does not give them.
        OSError: they cannot be written.
    """
    folder.mkdir(parents=True)
    packed = folder.with_name(f"{folder.name}.tar")
    links = {}
    try:
        git(root, "archive", "--format=tar", f"--output={packed}", commit)
        listed = git(root, "ls-tree", "-r", "-z", commit).split("\0")
        with tarfile.open(packed) as archive:
            _check_whole(listed, set(archive.getnames()))
            for member in archive.getmembers():
                target = _inside(folder, member.name)
                if member.issym():
                    links[target] = member.linkname
                elif member.isfile():
                    _write(target, t.cast(t.IO[bytes], archive.extractfile(member)), bool(member.mode & 0o100))
    except (GitError, tarfile.TarError) as error:
        raise TreeError(f"the files of commit {commit} cannot be had: {error}") from None
    packed.unlink()
    return _link(folder, links)


def _check_whole(listed: t.Sequence[str], archived: t.Container[str]) -> None:
    """Attributes of a repository keep files out of archives, which a deployment has.

    Raises:
        TreeError: there is such a file.
    """
    for entry in filter(None, listed):
        kind, _tab, name = entry.partition("\t")
        # A name that is no text is told in two ways.
        if " blob " in kind and name not in archived and "\ufffd" not in name:
            raise TreeError(f"{name} is kept out of copies by export-ignore in .gitattributes, so that what it makes of a release cannot be told")


def copy_work(root: Path, folder: Path) -> list[str]:
    """Writes the files of the work tree into a new directory, without those that git ignores.

    Returns:
        Links that were left out, because they lead out of the repository or to nothing.

    Raises:
        TreeError: git does not list them.
        OSError: they cannot be written.
    """
    try:
        names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    except GitError as error:
        raise TreeError(f"the files of {root} cannot be listed: {error}") from None
    folder.mkdir(parents=True)
    links = {}
    for name in filter(None, names):
        source, target = root / name, _inside(folder, name)
        if source.is_symlink():
            links[target] = os.readlink(source)
        elif source.is_file():
            with source.open("rb") as stream:
                _write(target, stream, os.access(source, os.X_OK))
    return _link(folder, links)


def _inside(folder: Path, name: str) -> Path:
    """The place of a file in a copy.

    Raises:
        TreeError: its name leads out of it; git itself makes no such name.
    """
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise TreeError(f"the repository has a file with the name {name!r}, which leads out of it")
    return folder / pure


def _write(target: Path, content: t.IO[bytes], executable: bool) -> None:
    """Writes a file of a copy; an inventory that is a program has to stay one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as stream:
        shutil.copyfileobj(content, stream)
    target.chmod(0o755 if executable else 0o644)


def _link(folder: Path, links: t.Mapping[Path, str]) -> list[str]:
    """Makes the links of a copy, last of all, so that nothing is ever written through one; returns those that were left out."""
    root = os.path.realpath(folder)
    for path, lead in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(lead)
    wrong = [path for path in links if not path.exists() or os.path.commonpath([root, os.path.realpath(path)]) != root]
    for path in wrong:
        path.unlink()
    return sorted(str(path.relative_to(folder)) for path in wrong)
