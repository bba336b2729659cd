# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes down, beside the inventory, what was deployed to a host. See M(llmops.inference.sglang_deployed)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils import _deployed
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import asker, utc_now
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._deployed import DeployedError
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import inventory_of
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, as_text, write_beside

ARGUMENTS: dict[str, t.Any] = {
    "deployed_dir": {"type": "path", "required": True},
    "release": {"type": "str", "required": True},
    "action": {"type": "str", "required": True},
    "pending": {"type": "list", "elements": "dict", "default": []},
}
# The rest says when and by whom, and is written only with these.
_TOLD = ("release", "secrets", "boot", "commit", "dirty")


class ActionModule(ControllerAction):
    """Writes one file; the host is not reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        host, folder = str((task_vars or {}).get("inventory_hostname", "")), Path(os.path.abspath(args["deployed_dir"]))
        result.update(changed=False, deployed={})
        if not args["release"]:
            raise AnsibleActionFail(f"nothing serves on {host}, so that nothing is written down of a deployment: release is empty")
        row: dict[str, t.Any] = next((row for row in args["pending"] if row.get("host") == host), {})
        asked = {name: row.get(name) for name in ("secrets", "boot")}
        inventory = inventory_of(folder)
        now = utc_now()
        found = _deployed.document(host, args["release"], args["action"], **asked, **inventory.data(), at=now, by=asker())
        try:
            target, last = _deployed.path_of(folder, host), self._last(folder, host)
            result["changed"] = any(last.get(name) != found[name] for name in _TOLD)
            if result["changed"] and not self._task.check_mode:
                folder.mkdir(parents=True, exist_ok=True)
                write_beside(target, as_text(found).encode())
        except RecordFileError as error:
            result.update(failed=True, msg=str(error))
        except OSError as error:
            result.update(failed=True, msg=f"what was deployed to {host} cannot be written down: {error}")
        else:
            result["deployed"] = found if result["changed"] else last
        return result

    @staticmethod
    def _last(folder: Path, host: str) -> dict[str, t.Any]:
        """What the file says; nothing where it is damaged, since it is about to be written anew."""
        try:
            return _deployed.read(folder, host)
        except DeployedError:
            return {}
