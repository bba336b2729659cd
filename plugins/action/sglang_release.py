# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live progress for M(llmops.inference.sglang_release)."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import asker
from ansible_collections.llmops.inference.plugins.plugin_utils._gate_inputs import GateInputError, gate_inputs
from ansible_collections.llmops.inference.plugins.plugin_utils.follow import FollowedAction

_REPETITIONS = 5


def gate_job(job: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the gate measures of all that the inventory measures: the workload that it judges, and the concurrency where it judges one.

    On an H200 two repetitions of a server without CUDA graphs, 12 % apart, could not exclude that it was as fast as before, though it was four times slower
    (tests/gpu/records/h200-x1/benchmark): fewer than five are no judgement.

    Args:
        job: options of sglang_benchmark.
        settings: of the gate, whole.
    """
    only: dict[str, t.Any] = {"workloads": [settings["workload"]], "dataset": "", "repetitions": max(job.get("repetitions", 0), _REPETITIONS)}
    if settings["concurrency"] is not None:
        only.update(concurrency=[settings["concurrency"]], request_rates=[], sweep=False)
    return {**job, **only}


class ActionModule(FollowedAction):
    """Looks first, which takes a moment and is all there is to do for an unchanged release; runs in the background otherwise.

    While the job of another run holds the instance, it is that job that is followed, and then looked again.
    """

    module_name = "sglang_release"

    def _answer(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        followed: t.Mapping[str, t.Any] | None = None
        answer = self._once(task_vars)
        while answer.get("action") == "busy" and not answer.get("failed"):
            holder = answer.get("holder") or {}
            self._attach(task_vars, holder, again=holder == followed)
            followed = holder
            answer = self._once(task_vars)
        return answer

    def _once(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        options: dict[str, t.Any] = {"by": self._task.args.get("by") or asker()}
        state = self._task.args.get("state", "present")
        if self._task.check_mode or state == "absent":
            return self._call(task_vars, **options)
        if state == "rolled_back":
            return self._run_followed(task_vars, **options)
        looked = self._call(task_vars, quick=True, **options)
        if looked.get("action") != "pending":
            return looked
        return self._run_followed(task_vars, **options, **self._gate(task_vars))

    def _gate(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """What the host needs to judge a release by: the baseline lies beside the inventory."""
        asked = self._task.args.get("gate") or {}
        if not asked:
            return {}
        host = task_vars["inventory_hostname"]
        try:
            inputs = gate_inputs(Path(asked["records_dir"]), host, asked["settings"])
        except (GateInputError, OSError) as error:
            raise AnsibleActionFail(f"{error}; nothing was changed") from None
        return {"gate": {**inputs, "host": host, "flags": asked["flags"], "benchmark": gate_job(asked["benchmark"], inputs["settings"])}}
