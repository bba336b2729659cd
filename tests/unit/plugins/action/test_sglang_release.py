# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.action.sglang_release import ActionModule
from ansible_collections.llmops.inference.tests.unit.controller import ENDED, RUNNING, Controller

ARGS = {"instance": "main", "unit": "[Service]\n"}
NAME = "llmops.inference.sglang_release"
LOOK = (NAME, {**ARGS, "quick": True}, False)


def test_an_unchanged_release_takes_one_look(monkeypatch):
    looked = {"changed": False, "action": "unchanged", "ready": True}
    controller = Controller(monkeypatch, answers=[looked])
    assert controller.run(ActionModule, **ARGS) == looked
    assert controller.calls == [LOOK]
    assert controller.commands == controller.jobs == controller.lines == []


def test_what_is_to_do_is_done_in_the_background(monkeypatch):
    looks = [(RUNNING, "stopping the running server"), (ENDED, "")]
    controller = Controller(monkeypatch, answers=[{"changed": False, "action": "pending"}], looks=looks, result={"changed": True, "action": "deployed"})
    assert controller.run(ActionModule, **ARGS) == {"changed": True, "action": "deployed"}
    assert controller.calls == [LOOK, (NAME, None, True)]
    assert controller.task.args == ARGS, "the job does not only look"
    assert controller.lines == ["    ct129 | stopping the running server (0 s)"]


def test_a_look_that_fails_is_the_result(monkeypatch):
    looked = {"failed": True, "msg": "another run holds the lock", "action": "failed"}
    controller = Controller(monkeypatch, answers=[looked])
    assert controller.run(ActionModule, **ARGS) == looked
    assert controller.calls == [LOOK]


@pytest.mark.parametrize("args, check_mode", [({**ARGS, "state": "absent"}, False), (ARGS, True)], ids=["absent", "check-mode"])
def test_what_needs_neither_a_look_nor_a_job(monkeypatch, args, check_mode):
    controller = Controller(monkeypatch, answers=[{"changed": True, "action": "x"}])
    assert controller.run(ActionModule, check_mode=check_mode, **args) == {"changed": True, "action": "x"}
    assert controller.calls == [(NAME, args, False)]
