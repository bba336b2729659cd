# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.action.nccl_benchmark import ActionModule
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, RUNNING, Controller


def test_it_follows_its_module(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, "all-reduce over 2 ranks (nccl, eager)"), (ENDED, "")], result={"changed": False, "allreduce": {}})
    assert controller.run(ActionModule, python="/e/bin/python") == {"changed": False, "allreduce": {}}
    assert controller.calls[0] == ("llmops.inference.nccl_benchmark", {"python": "/e/bin/python"}, True)
    assert controller.lines == ["    ct129 | all-reduce over 2 ranks (nccl, eager) (0 s)"]
    assert all("progress=/run/llmops-inference/nccl_benchmark\n" in command for command in controller.commands), "where its module writes its steps"


def test_check_mode_runs_in_the_foreground(monkeypatch):
    controller = Controller(monkeypatch, answers=[{"changed": False, "allreduce": {}}])
    assert controller.run(ActionModule, check_mode=True, python="/e/bin/python") == {"changed": False, "allreduce": {}}
    assert controller.calls == [("llmops.inference.nccl_benchmark", {"python": "/e/bin/python"}, False)]
