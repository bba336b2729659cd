# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction

ACTIONS = (
    "sglang_changes",
    "sglang_check_report",
    "sglang_deployed",
    "sglang_drift_report",
    "sglang_history",
    "sglang_pending",
    "sglang_record",
    "sglang_render",
    "sglang_report",
    "sglang_snapshot",
)


@pytest.mark.parametrize("name", ACTIONS)
def test_it_reaches_no_host(name):
    action = importlib.import_module(f"ansible_collections.llmops.inference.plugins.action.{name}").ActionModule
    assert issubclass(action, ControllerAction)
    assert (action.TRANSFERS_FILES, action._requires_connection, action._supports_check_mode, action._supports_async) == (False, False, True, False)
