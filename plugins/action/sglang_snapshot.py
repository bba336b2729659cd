# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what a release needs of its host beside the inventory, and gives it back. See M(llmops.inference.sglang_snapshot)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.plugin_utils import _snapshots
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import utc_now
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError
from ansible_collections.llmops.inference.plugins.plugin_utils._snapshots import SnapshotError

ARGUMENTS: dict[str, t.Any] = {
    "snapshots_dir": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["recorded", "read"], "default": "recorded"},
    "gpu_facts": {"type": "dict"},
    "model": {"type": "dict", "default": {}},
}


class ActionModule(ControllerAction):
    """Reads or writes the files of one host; the host itself is not reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        variables = task_vars or {}
        host, folder = str(variables.get("inventory_hostname", "")), Path(os.path.abspath(args["snapshots_dir"]))
        result.update(changed=False, files=[], snapshot={})
        try:
            if args["state"] == "read":
                self._read(folder, host, result)
            else:
                found = _snapshots.documents(variables.get("ansible_facts", {}), args["gpu_facts"], args["model"])
                now = utc_now()
                result["files"] = _snapshots.write(folder, host, found, now, dry=self._task.check_mode)
                result["changed"] = bool(result["files"])
        except (RecordFileError, SnapshotError) as error:
            result.update(failed=True, msg=str(error))
        except OSError as error:
            result.update(failed=True, msg=f"the snapshot of {host} cannot be read or written: {error}")
        return result

    def _read(self, folder: Path, host: str, result: dict[str, t.Any]) -> None:
        found = _snapshots.read(folder, host)
        facts = {**found.facts, "llmops_gpu": dict(found.gpus)} if found.gpus is not None else dict(found.facts)
        result["ansible_facts"] = facts
        result["snapshot"] = {
            "recorded_at": found.recorded_at,
            "model": dict(found.model),
            "model_dir": str(found.model_dir or ""),
            "model_digest": found.model_digest,
        }
