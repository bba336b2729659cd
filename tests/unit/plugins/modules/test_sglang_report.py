# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.action import sglang_report as action
from ansible_collections.llmops.inference.plugins.modules import sglang_report


def test_the_module_itself_only_documents(monkeypatch):
    class Module:
        def __init__(self, spec, supports_check_mode):
            assert spec == action.ARGUMENTS and supports_check_mode

        def fail_json(self, msg):
            raise SystemExit(msg)

    monkeypatch.setattr(sglang_report, "AnsibleModule", Module)
    with pytest.raises(SystemExit, match="runs on the controller"):
        sglang_report.main()
