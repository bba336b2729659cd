# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the history of a fleet's performance, on the controller. See M(llmops.inference.sglang_history)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_history import history
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_records import read_records
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_series import commits_wanted
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import read_commits
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._history_markdown import history_report
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import write_changed

ARGUMENTS: dict[str, t.Any] = {
    "records_dir": {"type": "path", "required": True},
    "dest": {"type": "path", "required": True},
    "authors": {"type": "bool", "default": False},
}


class ActionModule(ControllerAction):
    """Reads records, asks git and writes Markdown; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        source, target = (Path(os.path.abspath(args[name])) for name in ("records_dir", "dest"))
        if not source.is_dir():
            raise AnsibleActionFail(f"{source} is no directory: benchmarks have written no record there, or the records are elsewhere")
        found = read_records(source)
        commits = read_commits(source, *commits_wanted(found.records))
        remarks = [*commits.remarks, *(f"left out: {text}" for text in found.skipped)]
        after = history_report(history(found.records, commits), remarks, args["authors"])
        try:
            before = target.read_text(encoding="utf-8", errors="replace") if target.exists() else ""
            changed = write_changed({target: after.encode()}, self._task.check_mode)
        except OSError as error:
            raise AnsibleActionFail(f"the history cannot be written: {error}") from error
        result.update(changed=bool(changed), dest=str(target), records=found.count, hosts=sorted(found.records), remarks=remarks)
        if self._task.diff:
            result["diff"] = [{"before_header": str(target), "after_header": str(target), "before": before, "after": after}] if changed else []
        return result
