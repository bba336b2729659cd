# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_unit import unit_difference


def unit(words):
    return f"[Service]\nType=exec\nExecStart=/bin/python -m sglang.launch_server {words}\nRestart=always\n"


def test_one_line_for_each_flag():
    assert unit_difference(unit("--tp-size 2 --trust"), unit("--tp-size 4 --trust"), "ct129").split("\n") == [
        "--- ct129 before",
        "+++ ct129 after",
        "@@ -2,5 +2,5 @@",
        " Type=exec",
        " ExecStart=/bin/python -m sglang.launch_server \\",
        "-    --tp-size 2 \\",
        "+    --tp-size 4 \\",
        "     --trust",
        " Restart=always",
    ]


@pytest.mark.parametrize("before, after, lines", [("a", "a", 0), ("", "", 0), ("", "a\nb", 5), ("a\nb", "", 5)])
def test_one_side(before, after, lines):
    found = unit_difference(before, after, "h")
    assert len(found.split("\n") if found else []) == lines


def test_a_quoted_word_is_one():
    after = unit('--json "{\\"a\\": \\" --b \\"}" --c d')
    assert '+    --json "{\\"a\\": \\" --b \\"}" \\' in unit_difference(unit("--c d"), after, "h").split("\n")


def test_what_looks_like_a_secret_is_masked():
    assert "hunter22" not in unit_difference(unit("--a"), unit("--api-key hunter22"), "h")
