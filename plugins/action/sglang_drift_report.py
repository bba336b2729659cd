# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the report of drift, on the controller. See M(llmops.inference.sglang_drift_report)."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact_data
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import utc_now
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._drift import Places, describe
from ansible_collections.llmops.inference.plugins.plugin_utils._drift_report import document, markdown, sentences, verdict
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import inventory_of
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import as_text, write_beside

ARGUMENTS: dict[str, t.Any] = {
    "hosts": {"type": "dict", "required": True},
    "before": {"type": "dict", "default": {}},
    "repairs": {"type": "dict", "default": {}},
    "records_dir": {"type": "path", "required": True},
    "snapshots_dir": {"type": "path", "required": True},
    "deployed_dir": {"type": "path", "required": True},
    "dest": {"type": "path", "required": True},
}


class ActionModule(ControllerAction):
    """Holds what was seen of hosts against the inventory and writes the report; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        target = Path(os.path.abspath(args["dest"]))
        places = Places(Path(args["snapshots_dir"]), Path(args["deployed_dir"]))
        beside = target.with_suffix(".json")
        if beside == target:
            raise AnsibleActionFail(f"sglang_drift_path {args['dest']}: this is where the report as JSON goes, name another one, for example drift.md")
        try:
            entries = [_entry(host, look, places, args) for host, look in args["hosts"].items()]
            inventory = inventory_of(Path(os.path.abspath(args["records_dir"])))
            report = document(entries, inventory.data(), utc_now())
            if not self._task.check_mode:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_beside(beside, as_text(report).encode())
                write_beside(target, markdown(report).encode())
        except OSError as error:
            raise AnsibleActionFail(f"the report of drift cannot be made: {error}") from error
        result.update(changed=True, dest=str(target), verdict=verdict(report["counts"]), counts=report["counts"])
        result["hosts"] = {entry["host"]: {**entry, "sentences": sentences(entry)} for entry in entries}
        return result


def _entry(host: str, look: t.Any, places: Places, args: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The entry of a host as plain data, for values of a task carry marks of Ansible."""
    plain, before, repair = (json.loads(json.dumps(part or {})) for part in (look, args["before"].get(host), args["repairs"].get(host)))
    entry: dict[str, t.Any] = redact_data(describe(host, plain, places, before, repair))
    return entry
