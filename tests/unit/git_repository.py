# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories of git for tests, without anybody's configuration."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
WHO = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def alone(monkeypatch, tmp_path):
    """Neither the checkout's repository nor anybody's configuration."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


def git(folder, *words, **environment):
    """Returns what a command of git prints."""
    done = subprocess.run(["git", "-C", str(folder), *words], env={**os.environ, **WHO, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def put(root, name, text="x"):
    """Writes a file, and the directories that it needs."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit(root, message, day=1, author="a@b", **texts):
    """Commits files on a day of November 2026; returns the commit's id.

    Args:
        root: the repository, made where it is not there.
        message: of the commit.
        day: of its author and committer.
        author: name.
        texts: by the name of a file of the inventory, with __ for /.
    """
    if not (root / ".git").exists():
        root.mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q", "-b", "main")
    for name, text in texts.items():
        put(root, f"inventory/{name.replace('__', '/')}", text)
    date = f"2026-11-{day:02d}T09:00:00Z"
    git(root, "add", "--all")
    git(root, "commit", "-q", "--allow-empty", "-m", message, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date, GIT_AUTHOR_NAME=author)
    return git(root, "rev-parse", "HEAD")
