# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/gpu/rollback.sh saw on an H200 (SGLang 0.5.17, systemd 252): journals of starts that served and that failed, and what was made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose
from ansible_collections.llmops.inference.plugins.module_utils._held_memory import blame_holder
from ansible_collections.llmops.inference.plugins.module_utils._journal import parse_entries
from ansible_collections.llmops.inference.plugins.module_utils._vital_changes import changes
from ansible_collections.llmops.inference.plugins.module_utils._vitals import StartLog

RECORDS = Path(__file__).resolve().parents[1] / "gpu" / "records" / "h200-x1" / "rollback"
TABLE = {row["step"]: row for row in json.loads((RECORDS / "table.json").read_text())}
GOOD = {"2-graphs": "1-first", "5-busy": "1-first", "7-pool": "6-retried", "8-busy-pool": "6-retried"}
# The engine blamed the flags of the last one; the memory that was free before its weights tells that another process held the GPU.
CODES = {"2-graphs": ("cuda_graph_oom", "release"), "5-busy": ("gpu_busy", "host"), "7-pool": ("gpu_memory", "release"), "8-busy-pool": ("gpu_busy", "host")}


def start(step):
    """The journal's texts and the start as the watch follows it."""
    lines, _cursor = parse_entries((RECORDS / f"{step}.jsonl").read_text())
    log = StartLog(0.0)
    log.feed(lines)
    return [line.text for line in lines], log


@pytest.mark.parametrize("step", CODES)
def test_why_it_failed(step):
    texts, log = start(step)
    last = json.loads((RECORDS / f"{GOOD[step]}.vitals.json").read_text())
    found = blame_holder(diagnose(texts), log.vitals, last["vitals"])
    assert (found.code, found.where) == CODES[step]


def test_what_was_told_on_the_machine():
    assert {step: row["action"] for step, row in TABLE.items()} == {
        "1-first": "deployed",
        "2-graphs": "rolled_back",
        "3-refused": "refused",
        "4-unchanged": "unchanged",
        "5-busy": "rolled_back",
        "6-retried": "deployed",
        "7-pool": "rolled_back",
        "8-busy-pool": "rolled_back",
    }
    assert all(TABLE[step]["without_service_s"] == 0 for step in ("3-refused", "4-unchanged"))


@pytest.mark.parametrize("step", ["1-first", "6-retried"])
def test_phases_and_vital_signs_of_a_start_that_served(step):
    _texts, log = start(step)
    told = json.loads((RECORDS / f"{step}.vitals.json").read_text())
    assert log.said_ready
    # The proof can be over before the engine says that it is ready.
    phases = [[entry["phase"] for entry in found if entry["phase"] != "ready"] for found in (log.durations(300.0), told["phases"])]
    assert phases[0] == phases[1]
    for sign in ("kv_cache_tokens", "weights_gb", "context_length", "attention_backend", "graphs", "ranks"):
        assert log.vitals[sign] == told["vitals"][sign], sign


def test_what_the_change_changed():
    first, second = (json.loads((RECORDS / f"{step}.vitals.json").read_text()) for step in ("1-first", "6-retried"))
    names = {change.name: change for change in changes(first, second)}
    assert any("36 -> 12" in change.text for change in names.values())
    assert not any(change.flagged for change in names.values()), "fewer graphs were asked for, and a warm start is quicker"
