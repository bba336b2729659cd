# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._patience import STALL_SECONDS, Activity, Patience
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES

FRAGMENTS = Path(__file__).resolve().parents[4] / "plugins" / "doc_fragments" / "attributes.py"
MIB = 1 << 20
BUSY = Activity(100 * MIB, 1000 * MIB, 5000 * MIB, ("cicc",), 40)


def test_every_phase_has_a_limit():
    assert list(STALL_SECONDS) == list(TITLES)


def test_the_limits_are_documented():
    text = re.sub(r"\s+", " ", FRAGMENTS.read_text())
    listed = text.partition("The phases and their defaults are ")[2].partition(".")[0]
    assert {name: float(seconds) for name, seconds in re.findall(r"(\w+) (\d+)", listed)} == STALL_SECONDS


@pytest.mark.parametrize(
    "after, moved",
    [
        pytest.param(BUSY, False, id="nothing"),
        pytest.param(Activity(101 * MIB, 1000 * MIB, 5000 * MIB, ("cicc",), 40), True, id="a-mebibyte-read"),
        pytest.param(Activity(101 * MIB - 1, 1000 * MIB, 5000 * MIB, ("cicc",), 40), False, id="less-read"),
        pytest.param(Activity(40 * MIB, 1000 * MIB, 5000 * MIB, ("cicc",), 40), True, id="a-process-that-had-read-is-gone"),
        pytest.param(Activity(100 * MIB, 1016 * MIB, 5000 * MIB, ("cicc",), 40), True, id="memory-filled"),
        pytest.param(Activity(100 * MIB, 984 * MIB, 5000 * MIB, ("cicc",), 40), True, id="memory-freed"),
        pytest.param(Activity(100 * MIB, 1016 * MIB - 1, 5000 * MIB, ("cicc",), 40), False, id="less-memory"),
        pytest.param(Activity(100 * MIB, 1000 * MIB, 5016 * MIB, ("cicc",), 40), True, id="gpu-memory-filled"),
        pytest.param(Activity(100 * MIB, 1000 * MIB, 5015 * MIB, ("cicc",), 40), False, id="less-gpu-memory"),
        pytest.param(Activity(100 * MIB, 1000 * MIB, 5000 * MIB, ("cicc",), 41), True, id="a-compiler-works"),
        pytest.param(Activity(100 * MIB, 1000 * MIB, 5000 * MIB), True, id="a-compiler-is-done"),
        pytest.param(Activity(100 * MIB, 1000 * MIB, 5000 * MIB, ("cicc", "nvcc"), 40), False, id="a-compiler-that-only-waits"),
    ],
)
def test_what_is_progress(after, moved):
    assert after.moved(BUSY) is moved


@pytest.mark.parametrize(
    "limits, phase, seconds",
    [
        pytest.param({}, "weights", 300.0, id="default"),
        pytest.param({}, "prefill_graphs", 900.0, id="compiles"),
        pytest.param({"weights": 1200.0}, "weights", 1200.0, id="raised"),
        pytest.param({"weights": 1200.0}, "kv_cache", 300.0, id="another-raised"),
        pytest.param({"weights": 5.0}, "weights", 5.0, id="lowered"),
        pytest.param({"warm_up": 2000.0}, "new", 900.0, id="a-phase-without-a-limit-gets-the-longest"),
    ],
)
def test_limit(limits, phase, seconds):
    patience = Patience(limits, 50.0)
    assert patience.limit(phase) == seconds
    assert not patience.stalled(phase, 50.0 + seconds - 0.1)
    assert patience.stalled(phase, 50.0 + seconds)


def follow(patience, seconds, lines=(), activity=lambda second: Activity(), begun=0):
    """Notes what happens once a second; returns the seconds in which somebody looked."""
    looks = []

    def look(second):
        looks.append(second)
        return activity(second)

    for second in range(begun, seconds):
        patience.note(second in lines, float(second), lambda second=second: look(second))
    return looks


def test_it_looks_only_when_the_journal_is_silent():
    assert follow(Patience({}, 0.0), 30, lines=range(30)) == []
    assert follow(Patience({}, 0.0), 30, lines=(4, 8, 20)) == [13, 18, 25]
    assert follow(Patience({}, 0.0), 22) == [5, 10, 15, 20]


@pytest.mark.parametrize(
    "lines, activity, stalled",
    [
        pytest.param((), lambda second: Activity(), 60, id="nothing-at-all"),
        pytest.param((7, 30), lambda second: Activity(), 90, id="the-last-line"),
        pytest.param((), lambda second: Activity(read_bytes=min(second, 40) * 10 * MIB), 100, id="reads-for-40-s"),
        pytest.param((), lambda second: Activity(gpu_bytes=min(second, 23) * 500 * MIB), 85, id="fills-the-gpu-for-23-s"),
        pytest.param((), lambda second: Activity(compilers=("nvcc",), compiler_ticks=min(second, 71) * 100), 135, id="compiles-for-71-s"),
        pytest.param((), lambda second: Activity(compilers=("nvcc",), compiler_ticks=100), 60, id="compilers-that-wait-for-each-other"),
        pytest.param((12,), lambda second: Activity(read_bytes=int(second > 9) * MIB), 72, id="read-before-the-last-line"),
    ],
)
def test_stalled(lines, activity, stalled):
    patience = Patience({"weights": 60.0}, 0.0)
    seen = []
    for second in range(200):
        follow(patience, second + 1, lines, activity, begun=second)
        seen += [second] if patience.stalled("weights", second) else []
    assert seen[0] == stalled


def test_the_compilers_of_the_last_look():
    patience = Patience({}, 0.0)
    assert patience.compilers == ()
    follow(patience, 6, activity=lambda second: Activity(compilers=("cicc", "nvcc")))
    assert patience.compilers == ("cicc", "nvcc")
    follow(patience, 12, activity=lambda second: Activity(compilers=("ptxas",)), begun=6)
    assert patience.compilers == ("ptxas",)
    follow(patience, 13, lines=(12,), begun=12)
    assert patience.compilers == (), "a line says more than what was seen before it"
