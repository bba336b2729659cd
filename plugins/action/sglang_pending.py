# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells which hosts do not have what the inventory asks for, by what was last deployed to them. See M(llmops.inference.sglang_pending)."""

from __future__ import annotations

import os
import tempfile
import typing as t
from pathlib import Path

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils import _deployed, _rendering, _trees, _vaulted
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._deployed import DeployedError
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError
from ansible_collections.llmops.inference.plugins.plugin_utils._rendering import PLAYBOOK, RenderError
from ansible_collections.llmops.inference.plugins.plugin_utils._trees import TreeError

ARGUMENTS: dict[str, t.Any] = {"inventory": {"type": "path", "required": True}, "deployed_dir": {"type": "path", "required": True}}


class ActionModule(ControllerAction):
    """Renders a copy of the work tree without its secrets, and compares; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        inventory, deployed_dir = Path(os.path.abspath(args["inventory"])), Path(os.path.abspath(args["deployed_dir"]))
        try:
            documents = _documents(inventory)
            rows = [
                {
                    "host": host,
                    "reason": _deployed.reason(document, _deployed.read(deployed_dir, host)),
                    "secrets": document.get("secrets"),
                    "boot": document.get("boot"),
                }
                for host, document in documents.items()
            ]
        except (DeployedError, RecordFileError, RenderError, TreeError) as error:
            raise AnsibleActionFail(f"{error}. Nothing was deployed.") from None
        except OSError as error:
            raise AnsibleActionFail(f"the releases cannot be rendered: {error}. Nothing was deployed.") from None
        pending = [row for row in rows if row["reason"]]
        result.update(changed=False, pending=pending, current=len(rows) - len(pending), summary=_summary(pending, len(rows)))
        return result


def _summary(pending: list[dict[str, t.Any]], servers: int) -> list[str]:
    if not servers:
        return ["no host of the inventory is in the group sglang: there is nothing to deploy"]
    return [f"{row['host']}: {row['reason']}" for row in pending] or [f"{servers} of {servers} servers have what the inventory asks for"]


def _documents(inventory: Path) -> dict[str, dict[str, t.Any]]:
    root = _trees.root_of(inventory)
    place = _trees.place_in(root, inventory)
    with tempfile.TemporaryDirectory(prefix="llmops-pending-") as scratch:
        tree = Path(os.path.realpath(scratch)) / "head"
        _trees.copy_work(root, tree)
        _vaulted.hide(tree)
        return _rendering.render(PLAYBOOK, tree, str(place), ":".join(C.config.get_config_value("COLLECTIONS_PATHS")))
