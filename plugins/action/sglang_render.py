# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes down the release that the inventory asks for, without reaching its host. See M(llmops.inference.sglang_render)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._gate import GateError
from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendered
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, as_text, host_folder, write_beside

_POLICY: dict[str, t.Any] = {"type": "str", "choices": ["ignore", "warn", "fail"]}
ARGUMENTS: dict[str, t.Any] = {
    "dest": {"type": "path"},
    "problem": {"type": "str", "default": ""},
    "refused": {"type": "bool", "default": False},
    "instance": {"type": "str", "default": "main"},
    "unit": {"type": "str", "default": ""},
    "argv": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "base_environment": {"type": "dict", "default": {}},
    "secret_flags": {"type": "dict", "default": {}, "no_log": True},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "engine": {"type": "dict", "default": {}},
    "model": {"type": "dict", "default": {}},
    "flags": {"type": "list", "elements": "dict", "default": []},
    "sources": {"type": "dict", "default": {}},
    "not_honoured": {**_POLICY, "default": "fail"},
    "silently_disabled": {**_POLICY, "default": "warn"},
    "gpu_facts": {"type": "dict"},
    "snapshot": {"type": "dict", "default": {}},
    "gate": {"type": "dict", "default": {}},
    "enabled": {"type": "bool", "default": True},
}


class ActionModule(ControllerAction):
    """Computes the release's document and writes it to the controller; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        host = str((task_vars or {}).get("inventory_hostname", ""))
        result.update(changed=False, rendered={})
        try:
            whole = args["unit"] and not args["problem"]
            document = (
                _rendered.rendered(host, args)
                if whole
                else _rendered.unrendered(host, args["problem"] or "for an unknown reason", args["refused"], args["engine"])
            )
            if args["dest"]:
                target = host_folder(Path(os.path.abspath(args["dest"])), host).with_name(f"{host}.json")
                target.parent.mkdir(parents=True, exist_ok=True)
                write_beside(target, as_text(document).encode())
        except (GateError, RecordFileError, SystemdError) as error:
            result.update(failed=True, msg=str(error))
        except OSError as error:
            result.update(failed=True, msg=f"the release of {host} cannot be written down: {error}")
        else:
            result["rendered"] = document
        return result
