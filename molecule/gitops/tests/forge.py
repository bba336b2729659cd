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
# What a run must not show, planted where people put secrets; with characters that are quoted one way or another.
SECRETS = {
    "api_key": "sk-Quartz4f1cZ:%s$HOME'\"Basalt77abY",
    "admin_api_key": "ak-Garnet3d8eX:%s$USER'\"Gabbro60c2W",
    "hub_token": "hf_Obsid51d0Trav9e4bTuff2a6c",
    "proxy": "Jasper9e02:@%s$'\"Feldsp5c",
}
VAULT = "Marble83f6'\"$% Gneiss2b0a"


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
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(text)
        return self.commit(message, push=name)

    def merge(self, name):
        self.git("checkout", "--quiet", "-B", "main", "origin/main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", name)
        self.git("push", "--quiet", "origin", "main")
        return self.git("rev-parse", "HEAD")

    @property
    def password(self):
        """The file with the password of the vault."""
        path = self.folder / "vault-password"
        path.write_text(f"{VAULT}\n")
        return path

    def vaulted(self, **secrets):
        """A file of variables that begin with ``vault_``, encrypted."""
        text = json.dumps({f"vault_{name}": secret for name, secret in secrets.items()})
        return subprocess.run(
            ["ansible-vault", "encrypt", "--vault-password-file", self.password, "--output", "-"], check=True, capture_output=True, text=True, input=text
        ).stdout

    def begin(self):
        """Commits the key and the snapshots of both servers to main; returns the commit."""
        (self.work / "inventory" / "group_vars" / "all" / "vault.yml").write_text(self.vaulted(sglang_server_api_key=SECRETS["api_key"]))
        status, output = self.play("llmops.inference.snapshot", "-l", "alpha,beta")
        assert status == 0, output[-5000:]
        return self.commit("Two servers on the CPU engine")

    def play(self, playbook, *words, folder=None, **environment):
        """Runs a playbook with the vault's password, in the clone that somebody works in or another; returns (status, output)."""
        return self._run(["ansible-playbook", playbook, *words], folder or self.work, {"ANSIBLE_VAULT_PASSWORD_FILE": str(self.password), **environment})

    def _run(self, command, folder, environment):
        done = subprocess.run(
            command, cwd=folder, env={**self.environment, **environment}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.returncode, done.stdout

    def ci(self, script, *words, ref="main", secrets=False, **environment):
        """Runs a script in a fresh clone, as a forge does; returns (status, output, clone)."""
        clone = self.folder / "ci" / f"{len(list((self.folder / 'ci').glob('*'))) if (self.folder / 'ci').is_dir() else 0}-{script}"
        self.git("clone", "--quiet", str(self.origin), str(clone), cwd=self.folder)
        self.git("checkout", "--quiet", ref, cwd=clone)
        more = {"ANSIBLE_VAULT_PASSWORD_FILE": str(self.password)} if secrets else {}
        status, output = self._run([str(clone / "ci" / script), *words], clone, {**more, **environment})
        (clone / "ci.log").write_text(output)
        return status, output, clone

    def judge(self, branch, **environment):
        """Runs the check of a pull request; returns (status, output, clone)."""
        shared = ["-e", f"sglang_check_engines_root={CACHE}/engines", "-e", f"sglang_check_cache_dir={self.folder}/check-cache"]
        status, output, clone = self.ci("check.sh", "origin/main", *shared, ref=branch, **environment)
        assert (clone / "check" / "check.md").is_file(), output[-5000:]
        return status, output, clone

    def check(self, branch):
        """What the check of a pull request says: (status, comment, document)."""
        status, _output, clone = self.judge(branch)
        return status, (clone / "check" / "check.md").read_text(), json.loads((clone / "check" / "check.json").read_text())
