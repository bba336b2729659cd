# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells which hosts a branch changes, by the releases that both sides render. See M(llmops.inference.sglang_changes)."""

from __future__ import annotations

import os
import shutil
import tempfile
import typing as t
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION
from ansible_collections.llmops.inference.plugins.plugin_utils import _changes, _rendered, _rendering, _trees, _vaulted
from ansible_collections.llmops.inference.plugins.plugin_utils._check_verdict import INVENTORY
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._rendering import PLAYBOOK, RenderError
from ansible_collections.llmops.inference.plugins.plugin_utils._trees import Repository, TreeError

_REQUIREMENTS = ("requirements.yml", "collections/requirements.yml")
ARGUMENTS: dict[str, t.Any] = {
    "inventory": {"type": "path", "required": True},
    "base": {"type": "str", "required": True},
    "work_dir": {"type": "path", "required": True},
}


class ActionModule(ControllerAction):
    """Renders two copies of the repository and compares them; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        # Ansible tells paths of the copies as the system resolves them.
        inventory, work_dir = Path(os.path.abspath(args["inventory"])), Path(os.path.realpath(args["work_dir"]))
        if not inventory.exists():
            raise AnsibleActionFail(f"there is no inventory {inventory}: name it with sglang_check_inventory")
        try:
            work_dir.mkdir(parents=True, exist_ok=True)
            repository = _trees.open_repository(inventory, args["base"])
            with tempfile.TemporaryDirectory(dir=work_dir, prefix="trees-") as scratch:
                changes = _changes_of(repository, _trees.place_in(repository.root, inventory), Path(scratch))
                questions = [_with_kept_model(asked, work_dir / "models") for asked in _changes.questions(changes["hosts"]).values()]
        except TreeError as error:
            raise AnsibleActionFail(str(error)) from None
        except OSError as error:
            raise AnsibleActionFail(f"the releases cannot be rendered: {error}") from None
        changes["base"]["ref"] = args["base"]
        result.update(changed=False, changes=changes, questions=questions)
        return result


def _changes_of(repository: Repository, inventory: Path, scratch: Path) -> dict[str, t.Any]:
    """Returns what the report is made of, see _changes.compared."""
    trees = {name: scratch / name for name in ("base", "head")}
    _trees.copy_commit(repository.root, repository.base, trees["base"])
    left_out = _trees.copy_work(repository.root, trees["head"])
    _base_encrypted, encrypted = (_vaulted.hide(tree) for tree in trees.values())
    with ThreadPoolExecutor(max_workers=2) as pool:
        sides = dict(zip(trees, pool.map(lambda tree: _documents(tree, inventory), trees.values())))
    (before, wrong_before), (after, wrong_after) = sides["base"], sides["head"]
    remarks = [f"the inventory of the base could not be rendered, so that every host counts as new: {wrong_before}"] if wrong_before else []
    remarks += _changes.quiet(before, after)
    remarks += _changes.remarks(after, left_out, [str(path) for path in encrypted]) + _about_requirements(trees)
    if not before and not after and not wrong_after:
        remarks.append(f"no host of {inventory} is in the group sglang: there is nothing to judge")
    hosts = _changes.compared(before, after)
    if wrong_after:
        document = _rendered.unrendered(INVENTORY, wrong_after, refused=True)
        hosts = [{"host": INVENTORY, "before": None, "after": document, "requests": {"before": None, "after": None, "upgrade": None}}]
    for row in hosts:
        _place_records(row["after"], trees["head"], repository.root)
    return {
        "base": {"commit": repository.base},
        "head": {"commit": repository.head, "dirty": repository.dirty},
        "inventory": str(inventory),
        "remarks": remarks,
        "hosts": hosts,
        "unchanged": 0 if wrong_after else len({*before, *after}) - len(hosts),
    }


def _about_requirements(trees: t.Mapping[str, Path]) -> list[str]:
    """What is said when the two sides ask for other collections: only one is installed."""
    texts = {side: {name: (tree / name).read_bytes() for name in _REQUIREMENTS if (tree / name).is_file()} for side, tree in trees.items()}
    changed = [name for name in _REQUIREMENTS if texts["base"].get(name) != texts["head"].get(name)]
    return [f"{name} changes: both sides were rendered with the collection that is installed, {VERSION}" for name in changed]


def _documents(tree: Path, inventory: Path) -> tuple[dict[str, dict[str, t.Any]], str]:
    """The documents of a copy, and why there are none."""
    if not (tree / inventory).exists():
        return {}, f"git knows no {inventory} there"
    try:
        return _rendering.render(PLAYBOOK, tree, str(inventory), ":".join(C.config.get_config_value("COLLECTIONS_PATHS"))), ""
    except RenderError as error:
        return {}, str(error)


def _place_records(document: dict[str, t.Any] | None, tree: Path, root: Path) -> None:
    """Names the records in the work tree instead of the copy, which goes."""
    gate = (document or {}).get("gate") or {}
    if gate.get("records_dir"):
        gate["records_dir"] = gate["records_dir"].replace(f"{tree}/", f"{root}/", 1)


def _with_kept_model(asked: dict[str, t.Any], folder: Path) -> dict[str, t.Any]:
    """Keeps the model's configuration files under a name that is the same for the same content, by which the engine's answer is kept."""
    if not asked["model_dir"]:
        return asked
    kept = folder / asked["model_digest"]
    if not kept.is_dir():
        scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix="model-"))
        shutil.copytree(asked["model_dir"], scratch, dirs_exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            scratch.rename(kept)
        except OSError:
            # Another check was first.
            shutil.rmtree(scratch)
            if not kept.is_dir():
                raise
    return {**asked, "model_dir": str(kept)}
