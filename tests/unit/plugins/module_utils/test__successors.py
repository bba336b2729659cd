# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._successors import told_elsewhere

SHIPPED = Path(__file__).parents[4] / "roles" / "sglang_engine" / "files" / "flags"


def table(engine, **more):
    return {"engine": engine, "flags": [{"options": ["--other"]}, {"options": ["--old-name", "--older-name"], **more}]}


@pytest.mark.parametrize(
    "tables, told",
    [
        pytest.param([], "", id="no-engine"),
        pytest.param([{"engine": "1.0", "flags": [{"options": ["--other"], "successor": "--x"}]}], "", id="nobody-has-it"),
        pytest.param([table("1.0")], "SGLang 1.0 has it", id="has-it"),
        pytest.param([table("1.0", deprecated="Use X.")], "SGLang 1.0 says of it: Use X.", id="deprecated"),
        pytest.param([table("1.0", successor="--x=y")], "SGLang 1.0 has it as an old spelling of --x=y", id="successor"),
        pytest.param([table("1.0", successor="--x=y", deprecated="d")], "SGLang 1.0 has it as an old spelling of --x=y", id="both"),
        pytest.param([table("0.5.9"), table("0.5.10"), table("0.5.2")], "SGLang 0.5.10 has it", id="newest-by-number"),
        pytest.param([table("2.0", deprecated="d"), table("1.0", successor="--x")], "SGLang 1.0 has it as an old spelling of --x", id="successor-over-newest"),
        pytest.param([table("2.0"), table("1.0", deprecated="d")], "SGLang 1.0 says of it: d", id="word-over-newest"),
        pytest.param([table("1.0", successor="--x"), table("2.0", successor="--y")], "SGLang 2.0 has it as an old spelling of --y", id="newest-successor"),
    ],
)
def test_told_elsewhere(tables, told):
    """F05"""
    for name in ("old_name", "old-name", "older_name"):
        assert told_elsewhere(name, iter(tables)) == told
    assert told_elsewhere("old", tables) == "", "no abbreviation"


@pytest.mark.parametrize(
    "name, told",
    [
        ("enforce_piecewise_cuda_graph", "SGLang 0.5.16 has it as an old spelling of --cuda-graph-backend-prefill=tc_piecewise"),
        ("zzz", ""),
    ],
)
def test_what_the_shipped_tables_tell_0_5_23(name, told):
    """F05"""
    assert told_elsewhere(name, [json.loads((SHIPPED / f"{version}.json").read_text()) for version in ("0.5.12", "0.5.16")]) == told
