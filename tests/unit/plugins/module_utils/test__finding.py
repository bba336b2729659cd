# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding, errors

FINDINGS = [Finding(f"code{number}", severity, "x") for number, severity in enumerate(("error", "warning", "ignored", "note", "error"))]


def test_errors_are_what_keeps_a_server_from_running():
    assert [finding.code for finding in errors(iter(FINDINGS))] == ["code0", "code4"]
    assert errors(FINDINGS[1:4]) == []


def test_only_what_is_said_must_be_given():
    finding = Finding("code", "note", "text")
    assert (finding.hint, finding.source, finding.fields) == ("", "", ())


def test_equal_findings_are_one():
    assert len({Finding("a", "note", "x", fields=("f",)), Finding("a", "note", "x", fields=("f",)), Finding("a", "note", "x", fields=("g",))}) == 2
    with pytest.raises(AttributeError):
        FINDINGS[0].code = "other"
