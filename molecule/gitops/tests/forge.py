# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A forge of two directories: a bare repository, and what its CI would run, which is the scripts of the repository that `init` wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = Path(__file__).resolve().parents[1] / "files"
CACHE = Path(os.environ["LLMOPS_CACHE"])
# What a run must not show, planted where people put secrets.
SECRETS = {"api_key": "sk-planted-4f1c77ab", "hub_token": "hf_PlantedTokenOfTheHub", "proxy": "planted-proxy-password"}
VAULT = "planted-vault-password"


class Site:
    """The clone that somebody works in, its origin, and a clone for each run of CI.

    Args:
        folder: for all of them.
        written: the repository as `init` wrote it.
    """

    def __init__(self, folder, written):
        self.folder = folder
        self.origin = folder / "origin.git"
        self.work = folder / "work"
        shutil.copytree(written, self.work)
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", self.origin], check=True)
        self.git("remote", "add", "origin", str(self.origin))

    @property
    def environment(self):
        names = {
            "GIT_AUTHOR_NAME": "Somebody",
            "GIT_AUTHOR_EMAIL": "somebody@localhost",
            "GIT_COMMITTER_NAME": "Somebody",
            "GIT_COMMITTER_EMAIL": "s@localhost",
        }
        collections = f"{ROOT}/collections:{CACHE}/collections"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_CONFIG", "MOLECULE_"))}
        return {**kept, **names, "ANSIBLE_COLLECTIONS_PATH": collections, "LLMOPS_VENV": str(CACHE / "controller"), "COLUMNS": "200"}

    def git(self, *words, cwd=None):
        done = subprocess.run(["git", *words], cwd=cwd or self.work, env=self.environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message, *, push="main"):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{push}")
        return self.git("rev-parse", "HEAD")

    def branch(self, name, message, **files):
        """Commits changed files on a branch off main and pushes it; main stays checked out nowhere."""
        self.git("fetch", "--quiet", "origin")
        self.git("checkout", "--quiet", "-B", name, "origin/main")
        for path, text in files.items():
            (self.work / path).write_text(text)
        return self.commit(message, push=name)

    def merge(self, name):
        self.git("checkout", "--quiet", "-B", "main", "origin/main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", name)
        self.git("push", "--quiet", "origin", "main")
        return self.git("rev-parse", "HEAD")

    def ci(self, script, *words, ref="main", secrets=False, **environment):
        """Runs a script in a fresh clone, as a forge does; returns (status, output, clone)."""
        clone = self.folder / "ci" / f"{len(list((self.folder / 'ci').glob('*'))) if (self.folder / 'ci').is_dir() else 0}-{script}"
        self.git("clone", "--quiet", str(self.origin), str(clone), cwd=self.folder)
        self.git("checkout", "--quiet", ref, cwd=clone)
        more = {**environment}
        if secrets:
            password = self.folder / "vault-password"
            password.write_text(f"{VAULT}\n")
            more["ANSIBLE_VAULT_PASSWORD_FILE"] = str(password)
        done = subprocess.run(
            [str(clone / "ci" / script), *words],
            cwd=clone,
            env={**self.environment, **more},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        (clone / "ci.log").write_text(done.stdout)
        return done.returncode, done.stdout, clone

    def check(self, branch):
        """What the check of a pull request says: (status, comment, document)."""
        shared = ["-e", f"sglang_check_engines_root={CACHE}/engines", "-e", f"sglang_check_cache_dir={self.folder}/check-cache"]
        status, output, clone = self.ci("check.sh", "origin/main", *shared, ref=branch)
        assert (clone / "check" / "check.md").is_file(), output[-5000:]
        return status, (clone / "check" / "check.md").read_text(), json.loads((clone / "check" / "check.json").read_text())
