# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.modules import sglang_drift_report


def test_it_is_documentation_only():
    assert not [name for name, value in vars(sglang_drift_report).items() if callable(value)]
