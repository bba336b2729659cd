# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._failure_report import releases, report

DIAGNOSIS = {
    "code": "kv_pool_too_small",
    "cause": "no room for the KV cache",
    "evidence": ["Not enough memory. Please try to increase --mem-fraction-static.", "Current value: self.server_args.mem_fraction_static=0.6"],
    "hint": "raise mem_fraction_static above 0.6",
    "remedy": "sglang_server_flags: {mem_fraction_static: 0.88}",
    "certainty": "certain",
}
BACK = {"ready": True, "phases": [], "elapsed": 31.4, "diagnosis": {}, "remarks": []}
DOWN = {"ready": False, "phases": [], "elapsed": 2.0, "diagnosis": {"cause": "the disk is full", "hint": "make room", "evidence": ["Errno 28"]}, "remarks": []}
# What sglang_release returns, without what is told elsewhere.
RESULT = {
    "action": "rolled_back",
    "release": "0f3a9c1be27d",
    "previous": "77ab01c4f3e9",
    "reasons": ["the release changes from 77ab01c4f3e9 to 0f3a9c1be27d"],
    "suspects": "the only change since the good release is --mem-fraction-static: 0.88 -> 0.6",
    "rollback": BACK,
    "diagnosis": DIAGNOSIS,
    "phases": [{"phase": "weights", "seconds": 4.1}, {"phase": "kv_cache", "seconds": 0.3}],
    "remarks": ["peer access is not supported"],
}
BARE = {**RESULT, "reasons": [], "suspects": "", "rollback": {}, "diagnosis": {}, "phases": [], "remarks": []}


def told(**changed):
    return report({**RESULT, **changed}, "ct129")


def test_a_failure_that_was_rolled_back():
    assert told() == [
        "ct129: release 0f3a9c1be27d failed, 77ab01c4f3e9 serves again",
        "  cause      no room for the KV cache",
        "  evidence   Not enough memory. Please try to increase --mem-fraction-static.",
        "             Current value: self.server_args.mem_fraction_static=0.6",
        "  do         raise mem_fraction_static above 0.6",
        "  inventory  sglang_server_flags: {mem_fraction_static: 0.88}",
        "  change     the only change since the good release is --mem-fraction-static: 0.88 -> 0.6",
        "  why        the release changes from 77ab01c4f3e9 to 0f3a9c1be27d",
        "  start      weights 4.1 s, kv cache 0.3 s",
        "  back       77ab01c4f3e9 was proven after 31.4 s",
        "  note       peer access is not supported",
    ]


def test_a_rollback_that_failed_too_comes_first():
    assert told(rollback=DOWN)[:5] == [
        "ct129: THE SERVER IS DOWN: release 0f3a9c1be27d failed, and so did putting 77ab01c4f3e9 back",
        "  back       the disk is full",
        "  evidence   Errno 28",
        "  do         make room",
        "  cause      no room for the KV cache",
    ]
    assert not any("was proven" in line for line in told(rollback=DOWN))


@pytest.mark.parametrize(
    "changed, headline",
    [
        pytest.param({}, "release 0f3a9c1be27d failed, 77ab01c4f3e9 serves again", id="rolled-back"),
        pytest.param({"previous": ""}, "release 0f3a9c1be27d failed, the unit that was there before serves again", id="to-what-was-there"),
        pytest.param(
            {"previous": "", "rollback": DOWN},
            "THE SERVER IS DOWN: release 0f3a9c1be27d failed, and so did putting the unit that was there before back",
            id="down",
        ),
        pytest.param({"action": "failed", "rollback": {}}, "release 0f3a9c1be27d failed", id="no-rollback"),
        pytest.param(
            {"action": "refused", "rollback": {}},
            "release 0f3a9c1be27d failed here before and is not tried again; the server was not touched",
            id="refused",
        ),
    ],
)
def test_headline(changed, headline):
    assert told(**changed)[0] == f"ct129: {headline}"


@pytest.mark.parametrize(
    "certainty, line",
    [
        pytest.param("certain", "  cause      no room for the KV cache", id="certain"),
        pytest.param("suspected", "  cause      suspected: no room for the KV cache", id="suspected"),
        pytest.param("unknown", "  cause      unknown: no room for the KV cache", id="unknown"),
        pytest.param("", "  cause      no room for the KV cache", id="not-said"),
    ],
)
def test_how_certain_it_is(certainty, line):
    assert told(diagnosis={**DIAGNOSIS, "certainty": certainty})[1] == line


@pytest.mark.parametrize(
    "changed, lines",
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"diagnosis": {"cause": "it stopped"}}, ["  cause      it stopped"], id="only-a-cause"),
        pytest.param({"diagnosis": {"cause": "it stopped", "evidence": [], "hint": "", "remedy": ""}}, ["  cause      it stopped"], id="empty"),
        pytest.param({"reasons": ["a", "b"]}, ["  why        a; b"], id="reasons"),
        pytest.param({"remarks": ["a", "b"]}, ["  note       a", "             b"], id="remarks"),
        pytest.param(
            {"remarks": ["a"], "rollback": {**BACK, "remarks": ["the state of x could not be written"]}},
            ["  back       77ab01c4f3e9 was proven after 31.4 s", "  note       a", "             the state of x could not be written"],
            id="remarks-of-the-rollback",
        ),
        pytest.param({"rollback": BACK, "previous": ""}, ["  back       the unit that was there before was proven after 31.4 s"], id="without-a-release"),
    ],
)
def test_what_is_not_known_is_left_out(changed, lines):
    assert report({**BARE, **changed}, "ct129")[1:] == lines


@pytest.mark.parametrize(
    "state, good, cause, line",
    [
        pytest.param("good", True, "", "good now", id="good"),
        pytest.param("good", False, "", "was good", id="was-good"),
        pytest.param("failed", False, "no room for the KV cache", "failed: no room for the KV cache", id="failed"),
        pytest.param("starting", False, "", "starting", id="interrupted"),
        pytest.param("ready", True, "", "good now", id="good-but-not-confirmed"),
        pytest.param("unknown", False, "", "unknown", id="unknown"),
    ],
)
def test_a_release(state, good, cause, line):
    one = {"release": "0f3a9c1be27d", "state": state, "good": good, "since": 5.0, "cause": cause}
    assert releases({"action": "rolled_back", "release": "77ab01c4f3e9", "releases": [one]}, "ct129") == [
        "ct129: rolled_back, release 77ab01c4f3e9",
        f"  0f3a9c1be27d  {line}",
    ]


def test_no_releases():
    assert releases({"action": "unchanged", "release": "77ab01c4f3e9", "releases": []}, "ct129") == ["ct129: unchanged, release 77ab01c4f3e9"]
