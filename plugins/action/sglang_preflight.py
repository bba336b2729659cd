# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the report of M(llmops.inference.sglang_preflight) as lines of text, whatever the callback makes of lists."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

_DISPLAY = Display()


class ActionModule(ActionBase):
    """Runs the module and shows its report."""

    _requires_connection = True

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        result = dict(self._execute_module("llmops.inference.sglang_preflight", task_vars=task_vars))
        host = task_vars.get("inventory_hostname", "host")
        quiet = boolean(self._task.args.get("quiet", False), strict=False)
        for line in [] if quiet else result.get("report", []):
            _DISPLAY.display(f"    {host} | {line}")
        return result
