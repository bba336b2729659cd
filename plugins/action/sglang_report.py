# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the page of all benchmark records, on the controller. See M(llmops.inference.sglang_report)."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page import page, summary
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_records import read_records
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import write_beside


class ActionModule(ActionBase):
    """Reads records and writes the page; no host is reached."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(
            argument_spec={"records_dir": {"type": "path", "required": True}, "dest": {"type": "path", "required": True}},
        )
        source, target = Path(args["records_dir"]), Path(args["dest"])
        if not source.is_dir():
            raise AnsibleActionFail(f"{source} is no directory: benchmarks have written no record there, or the records are elsewhere")
        found = read_records(source)
        after = page(found.records, found.baselines, found.skipped)
        try:
            before = target.read_text(encoding="utf-8", errors="replace") if target.exists() else ""
            if before != after and not self._task.check_mode:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_beside(target, after.encode())
        except OSError as error:
            raise AnsibleActionFail(f"{target} cannot be written: {error}") from error
        result.update(changed=before != after, dest=str(target), records=found.count, hosts=sorted(found.records), skipped_files=found.skipped)
        result["warnings"] = [f"left out of the report: {text}" for text in found.skipped]
        if self._task.diff:
            result["diff"] = [_difference(target, before, after)] if before != after else []
        return result


def _difference(target: Path, before: str, after: str) -> dict[str, str]:
    lines = ["".join(f"{line}\n" for line in summary(text)) for text in (before, after)]
    return {"before_header": str(target), "after_header": str(target), "before": lines[0], "after": lines[1]}
