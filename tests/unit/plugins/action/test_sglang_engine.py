# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.action.sglang_engine import ActionModule
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, RUNNING, Controller


def test_it_follows_its_module(monkeypatch):
    controller = Controller(monkeypatch, looks=[(RUNNING, "a step"), (ENDED, "")], result={"changed": True})
    assert controller.run(ActionModule, instance="main") == {"changed": True}
    assert controller.calls == [("llmops.inference.sglang_engine", {"instance": "main"}, True)]
    assert controller.lines == ["    ct129 | a step (0 s)"]
