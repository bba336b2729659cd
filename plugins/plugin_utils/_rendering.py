# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Renders the releases of one copy of a repository in an Ansible of its own, which gets no password and nothing of the caller's environment."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import yaml
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import WRITTEN
from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import FORMAT, KIND

PLAYBOOK = Path(__file__).resolve().parents[2] / "playbooks" / "render.yml"
_SECONDS = 900.0
# Beside hosts and their variables an inventory's directory holds what machines wrote.
_IGNORED = f"^({'|'.join(WRITTEN)})$"
_PASSED = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
_TAIL = 1500
_LARGEST_OUTPUT = 1_000_000
_ERROR = re.compile(r"\[ERROR\]|ERROR!|fatal:")
# Of an inventory that no plugin can parse Ansible tells the reasons before the error, one for each plugin; the first is that of the file's own kind.
_UNPARSED = "failed to parse inventory source"
_CAUSE = re.compile(r"<<< caused by >>>\s+(.+?)(?:\n\n|\Z)", re.DOTALL)


class RenderError(ValueError):
    """An inventory could not be rendered at all; the message is for the operator."""


def render(playbook: Path, tree: Path, inventory: str, collections: str) -> dict[str, dict[str, t.Any]]:
    """Returns the documents of all hosts of a copy, by name.

    Args:
        playbook: the collection's ``render.yml``.
        tree: copy of the repository.
        inventory: path of the inventory in it.
        collections: where collections are, separated by colons.

    Raises:
        RenderError: the inventory cannot be read, or Ansible fails as a whole.
        OSError: Ansible cannot be started, or a document cannot be read.
    """
    dest, scratch = tree.with_name(f"{tree.name}.rendered"), tree.with_name(f"{tree.name}.home")
    dest.mkdir()
    scratch.mkdir()
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", inventory, str(playbook), "-e", json.dumps({"sglang_render_dest": str(dest)})]
    told = scratch / "output"
    # Into a file: what the inventory leaves running would hold a pipe open.
    with told.open("wb") as stream:
        status = _run(command, tree, environment_of(tree, scratch, collections), stream)
    if status:
        raise RenderError(f"Ansible cannot read it: {_broken(tree) or _told(told, tree)}")
    return {path.stem: _document(path, tree) for path in sorted(dest.glob("*.json"))}


def _run(command: list[str], tree: Path, environment: t.Mapping[str, str], stream: t.IO[bytes]) -> int:
    """Returns Ansible's exit status; whatever it started ends with it."""
    process = subprocess.Popen(command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return process.wait(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RenderError(f"its releases were not rendered within {_SECONDS:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _document(path: Path, tree: Path) -> dict[str, t.Any]:
    """A document that was rendered; an inventory is code, and may have written anything."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RenderError(f"the release of {path.stem} was not written as JSON: {error}") from None
    if not isinstance(found, dict) or (found.get("format"), found.get("kind"), found.get("host")) != (FORMAT, KIND, path.stem):
        raise RenderError(f"what was written of {path.stem} is no rendered release of format {FORMAT}")
    # For whoever reads it the copy is not there.
    return {**found, **{name: [str(one).replace(f"{tree}/", "") for one in found.get(name) or ()] for name in ("problems", "remarks")}}


def environment_of(tree: Path, scratch: Path, collections: str) -> dict[str, str]:
    """Returns the environment of that Ansible.

    Args:
        tree: copy of the repository; its own ``ansible.cfg`` counts.
        scratch: an empty directory.
        collections: where collections are.
    """
    # A password file that the repository's ansible.cfg names is not here; nothing is encrypted with this word.
    password = scratch / "no-password"
    password.write_text("none\n", encoding="utf-8")
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    config = tree / "ansible.cfg"
    if not config.is_file():
        # Without one Ansible would look for that of the machine.
        config = scratch / "ansible.cfg"
        config.write_text("[defaults]\n", encoding="utf-8")
    return {
        **environment,
        "HOME": str(scratch),
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_COLLECTIONS_PATH": collections,
        "ANSIBLE_VAULT_PASSWORD_FILE": str(password),
        "ANSIBLE_VAULT_IDENTITY_LIST": f"none@{password}",
        "ANSIBLE_INVENTORY_IGNORE_REGEX": _IGNORED,
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_INJECT_FACT_VARS": "false",
        # One host's problem is no other's, and facts come from snapshots alone.
        "ANSIBLE_ANY_ERRORS_FATAL": "false",
        "ANSIBLE_CACHE_PLUGIN": "memory",
        # An operator's own may not be installed here.
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        "ANSIBLE_STRATEGY": "ansible.builtin.linear",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _broken(tree: Path) -> str:
    """The first file of a copy that is no YAML, with the line, which Ansible does not say of files of variables; empty where there is none."""
    for path in sorted(path for path in tree.rglob("*") if path.suffix in (".yml", ".yaml") and path.is_file() and ".git" not in path.parts):
        try:
            list(yaml.compose_all(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            return f"{path.relative_to(tree)}{f', line {mark.line + 1}' if mark else ''}: {' '.join(str(error.problem or error.context).split())}"
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            return f"{path.relative_to(tree)}: {' '.join(str(error).split())}"
    return ""


def _told(output: Path, tree: Path) -> str:
    """What Ansible said, from its first error on, without the place of the copy."""
    with output.open("rb") as stream:
        text = stream.read(_LARGEST_OUTPUT).decode(errors="replace").replace(f"{tree}/", "")
    found = _ERROR.search(text)
    error = text[found.start() if found else max(0, len(text) - _TAIL) :]
    cause = _CAUSE.search(text) if _UNPARSED in error else None
    return " ".join(f"{error.strip()}: {cause[1]}".split() if cause else error.split())[:_TAIL]
