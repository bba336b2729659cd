# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the page of all benchmark records and what lies beside it, on the controller. See M(llmops.inference.sglang_report)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page import page, summary
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_records import Found, read_records
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_series import commits_wanted
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import read_commits
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._record_choice import ChoiceError, choose_two
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import write_changed
from ansible_collections.llmops.inference.plugins.plugin_utils._report_files import Files, add_comparison, add_histories

ARGUMENTS: dict[str, t.Any] = {
    "records_dir": {"type": "path", "required": True},
    "dest": {"type": "path", "required": True},
    "compare": {"type": "list", "elements": "str", "default": []},
    "compare_dest": {"type": "path"},
    "plots": {"type": "bool", "default": True},
}
# Pictures have no lines to compare.
_PICTURES = (".svg", ".png")


class ActionModule(ControllerAction):
    """Reads records and writes reports; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        source, target = (Path(os.path.abspath(args[name])) for name in ("records_dir", "dest"))
        if not source.is_dir():
            raise AnsibleActionFail(f"{source} is no directory: benchmarks have written no record there, or the records are elsewhere")
        found = read_records(source)
        commits = read_commits(source, *commits_wanted(found.records))
        files = Files({target: page(found.records, found.baselines, found.skipped, commits).encode()})
        result["remarks"] = list(commits.remarks)
        result["comparison"] = _compare(args, found, target, files, result["remarks"]) if args["compare"] else {}
        if args["plots"]:
            add_histories(files, target.parent, found.records)
        result["remarks"] += files.remarks
        self._write(files, target, result)
        result.update(dest=str(target), records=found.count, hosts=sorted(found.records), skipped_files=found.skipped)
        result["warnings"] = [f"left out of the report: {text}" for text in found.skipped]
        return result

    def _write(self, files: Files, target: Path, result: dict[str, t.Any]) -> None:
        try:
            before = {
                path: path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in files.contents if path.suffix not in _PICTURES
            }
            changed = write_changed(files.contents, self._task.check_mode)
        except OSError as error:
            raise AnsibleActionFail(f"the report cannot be written: {error}") from error
        result.update(changed=bool(changed), files=[str(path) for path in files.contents])
        if self._task.diff:
            result["diff"] = [_difference(path, before[path], files.contents[path].decode(), path == target) for path in before if path in changed]


def _compare(args: t.Mapping[str, t.Any], found: Found, target: Path, files: Files, remarks: list[str]) -> dict[str, t.Any]:
    """Adds the comparison that is asked for; returns it."""
    dest = Path(os.path.abspath(args["compare_dest"])) if args["compare_dest"] else target.with_name("comparison.md")
    if dest == target:
        raise AnsibleActionFail(
            f"sglang_report_compare_path and sglang_report_path are both {dest}: the comparison needs a file of its own, such as comparison.md"
        )
    try:
        pair = choose_two(args["compare"], found.records, Path(args["records_dir"]))
    except ChoiceError as error:
        raise AnsibleActionFail(str(error)) from error
    if str(pair[0]["measured_at"]) > str(pair[1]["measured_at"]):
        remarks.append("the record that counts as before is the newer one")
    comparison = add_comparison(files, dest, pair, found.records.get(pair[1]["host"], {}).values(), args["plots"])
    told = {name: comparison[name] for name in ("verdict", "reason", "ratio", "low", "high")}
    return {"dest": str(dest), "text": told["reason"] if told["reason"].startswith(told["verdict"]) else f"{told['verdict']}: {told['reason']}", **told}


def _difference(path: Path, before: str, after: str, is_page: bool) -> dict[str, str]:
    """Of the page, which has no lines to compare, one line for each record."""
    texts = ["".join(f"{line}\n" for line in summary(text)) if is_page else text for text in (before, after)]
    return {"before_header": str(path), "after_header": str(path), "before": texts[0], "after": texts[1]}
