# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.action import sglang_preflight as action
from ansible_collections.llmops.inference.tests.unit.controller import Controller

RESULT = {"changed": False, "preflight": {"verdict": "passed"}, "report": ["preflight passed", "  MEMORY"]}
SHOWN = ["    ct129 | preflight passed", "    ct129 |   MEMORY"]


@pytest.mark.parametrize(
    "args, answer, lines",
    [
        pytest.param({}, RESULT, SHOWN, id="shown"),
        pytest.param({"quiet": False}, RESULT, SHOWN, id="not-quiet"),
        pytest.param({"quiet": "no"}, RESULT, SHOWN, id="not-quiet-in-words"),
        pytest.param({"quiet": True}, RESULT, [], id="quiet"),
        pytest.param({"quiet": "yes"}, RESULT, [], id="quiet-in-words"),
        pytest.param({}, {**RESULT, "failed": True, "msg": "m"}, SHOWN, id="a-rejection-is-shown-as-well"),
        pytest.param({}, {"failed": True, "msg": "m"}, [], id="nothing-to-show"),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_the_report_is_shown(monkeypatch, args, answer, lines, check_mode):
    shown = []
    monkeypatch.setattr(action, "_DISPLAY", SimpleNamespace(display=shown.append))
    controller = Controller(monkeypatch, answers=[answer])
    assert controller.run(action.ActionModule, check_mode=check_mode, python="/e/bin/python", **args) == answer
    assert controller.calls == [("llmops.inference.sglang_preflight", None, False)]
    assert (shown, controller.jobs, controller.commands) == (lines, [], []), "it runs in the foreground, with one call"
