# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the records of benchmarks beside the inventory, on the controller. See M(llmops.inference.sglang_record)."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _baseline
from ansible_collections.llmops.inference.plugins.module_utils._baseline import BaselineError
from ansible_collections.llmops.inference.plugins.module_utils._gate import ACCEPT
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import KEYS
from ansible_collections.llmops.inference.plugins.module_utils._record_points import METRICS
from ansible_collections.llmops.inference.plugins.module_utils._requested import EXTRA, LAYERS
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_markdown import run_report
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_plots import FORMS, NO_PICTURE, run_plot
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import record_name, workload_name
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import utc_now
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import inventory_of
from ansible_collections.llmops.inference.plugins.plugin_utils._links_record import LinksError, last_links
from ansible_collections.llmops.inference.plugins.plugin_utils._record_entry import complete, judged, line
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import (
    RecordFileError,
    Stored,
    as_text,
    free_name,
    host_folder,
    read_host,
    write_beside,
    write_record,
)

_FLAG: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "value": {"type": "raw", "required": True},
    "layer": {"type": "str", "choices": [*LAYERS.values(), EXTRA], "required": True},
}
ARGUMENTS: dict[str, t.Any] = {
    "records": {"type": "list", "elements": "dict", "required": True},
    "records_dir": {"type": "path", "required": True},
    "links_dir": {"type": "path"},
    "flags": {"type": "list", "elements": "dict", "default": [], "options": _FLAG},
    "accept": {"type": "bool", "default": False},
    "plots": {"type": "bool", "default": True},
    "metric": {"type": "str", "choices": list(METRICS), "default": "output_tok_per_s"},
    "ignore_conditions": {"type": "list", "elements": "str", "choices": list(KEYS), "default": []},
}

# By the name of the file.
_Records = t.Dict[str, t.Dict[str, t.Any]]


class ActionModule(ControllerAction):
    """Completes, compares and writes records; no host is reached."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        result.update(changed=False, records=[], baseline="", remarks=[])
        host = str((task_vars or {}).get("inventory_hostname", ""))
        try:
            self._keep(args, host, result)
        except (RecordFileError, BaselineError) as error:
            result.update(failed=True, msg=str(error))
        except OSError as error:
            result.update(failed=True, msg=f"the records of {host} cannot be read or written: {error}")
        return result

    def _keep(self, args: t.Mapping[str, t.Any], host: str, result: dict[str, t.Any]) -> None:
        """Keeps the records and fills the result in, as far as it comes.

        Raises:
            RecordFileError: what is there is damaged, or what is given is no record: nothing was written.
            BaselineError: a record cannot be the baseline: the records were written, the baseline is as it was.
            OSError: a file cannot be read or written.
        """
        records_dir = Path(os.path.abspath(args["records_dir"]))
        stored = read_host(host_folder(records_dir, host))
        inventory = inventory_of(records_dir)
        links, trouble = _links(host_folder(Path(args["links_dir"] or records_dir), host))
        completed = [complete(record, host, inventory.data(), args["flags"], links=links) for record in args["records"]]
        whole = [judged(record, stored, args["metric"], args["ignore_conditions"]) for record in completed]
        if not whole:
            return
        told = [inventory.problem, "the inventory has changes that are not committed" if inventory.dirty else "", trouble]
        result["remarks"] += [text for text in told if text]
        written: _Records = {}
        for record in whole:
            name = self._write(stored.folder, record, args["plots"], result["remarks"])
            written[f"{name}.json"] = record
            path = (stored.folder / f"{name}.json").relative_to(records_dir)
            result["records"].append({"path": str(path), "workload": workload_name(record), "verdict": record["verdict"], "text": line(record)})
            result["changed"] = True
        if args["accept"]:
            result["baseline"] = self._accept(stored, written, result)
        else:
            without = dict.fromkeys(workload_name(record) for record in whole if not record["verdict"])
            result["baseline"] = "; ".join(f"{name} has no baseline: accept one with {ACCEPT}" for name in without)

    def _write(self, folder: Path, record: t.Mapping[str, t.Any], plots: bool, remarks: list[str]) -> str:
        """Writes a record, its report and its pictures; returns their name, in check mode that which they would have.

        Raises:
            OSError: a file cannot be written.
        """
        if self._task.check_mode:
            return free_name(folder, record_name(record))
        name = write_record(folder, record_name(record), record)
        verdict = record["verdict"]
        write_beside(folder / f"{name}.md", run_report(record, [verdict] if verdict else []).encode())
        for form in FORMS if plots else ():
            try:
                picture = run_plot(record, form)
            except NO_PICTURE as error:
                text = f"{workload_name(record)} has no picture: {error}"
                remarks += [text] if text not in remarks else []
            else:
                write_beside(folder / f"{name}.{form}", picture)
        return name

    def _accept(self, stored: Stored, written: _Records, result: dict[str, t.Any]) -> str:
        """Makes the written records the baseline of their workloads, all or none; returns what became of it.

        Raises:
            BaselineError: one cannot be the baseline.
            OSError: the file cannot be written.
        """
        content, texts, records = stored.baseline, [], {**stored.records, **written}
        now = utc_now()
        for name, record in written.items():
            accepted = _baseline.accept(content, name, record, records, accepted_at=now)
            content = accepted.content
            texts.append(accepted.text)
        target, after = stored.folder / _baseline.FILE, as_text(content)
        if self._task.diff:
            result["diff"] = [{"before_header": str(target), "after_header": str(target), "before": stored.baseline_text, "after": after}]
        if not self._task.check_mode:
            write_beside(target, after.encode())
        return "; ".join(texts)


def _links(folder: Path) -> tuple[dict[str, t.Any] | None, str]:
    """What was last measured of the host's links, and why that cannot be told: it is never worth the record."""
    try:
        return last_links(folder), ""
    except (LinksError, OSError) as error:
        return None, f"the record does not say what was measured of the links: {error}"
