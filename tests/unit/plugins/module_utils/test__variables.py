# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._variables import unknown_variables

KNOWN = ["sglang_server_port", "sglang_server_host", "sglang_engine_version"]


@pytest.mark.parametrize(
    "names, sentences",
    [
        pytest.param([], [], id="none"),
        pytest.param(KNOWN, [], id="all-known"),
        pytest.param(["sglang_server_prot"], ["sglang_server_prot is no variable of this collection; did you mean sglang_server_port?"], id="misspelt"),
        pytest.param(["sglang_xyzzyqwv"], ["sglang_xyzzyqwv is no variable of this collection."], id="nothing-near"),
        pytest.param(
            ["sglang_b", "sglang_server_host", "sglang_a", "sglang_a"],
            ["sglang_a is no variable of this collection.", "sglang_b is no variable of this collection."],
            id="sorted-and-once",
        ),
    ],
)
def test_unknown_variables(names, sentences):
    assert unknown_variables(iter(names), iter(KNOWN)) == sentences


@pytest.mark.parametrize(
    "names, sentences",
    [
        pytest.param(["sglang_xyzzyqwv", "sglang_server", "sglang_b"], [], id="resemble-none"),
        pytest.param(["sglang_server_prot"], ["sglang_server_prot is no variable of this collection; did you mean sglang_server_port?"], id="misspelt"),
        pytest.param(KNOWN, [], id="all-known"),
        pytest.param(
            ["sglang_b", "sglang_server_hosts"], ["sglang_server_hosts is no variable of this collection; did you mean sglang_server_host?"], id="one-of-two"
        ),
    ],
)
def test_unknown_variables_of_a_namespace_that_others_use(names, sentences):
    assert unknown_variables(iter(names), iter(KNOWN), only_near=True) == sentences
