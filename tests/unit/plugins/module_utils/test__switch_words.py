# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.module_utils._switch import Result
from ansible_collections.llmops.inference.plugins.module_utils._switch_words import describe_release, failure
from ansible_collections.llmops.inference.plugins.module_utils._watch import Outcome

SECRET = "s3cret-of-the-server"
LOST = Outcome(False, Diagnosis("kv_pool_too_small", "no room for the KV cache", hint="raise mem_fraction_static"))
OFF = Outcome(False, LOST.diagnosis, remarks=["sglang_server_rollback_enabled is off: the server is down, its trial lies in /run/x"])
UP = Outcome(True)
GONE = Outcome(False, Diagnosis("gpu_memory", "GPU memory ran out"))

FAILURES = [
    pytest.param(Result("failed", "0f3a", "", outcome=LOST), "u: release 0f3a failed: no room for the KV cache (raise mem_fraction_static)", id="first"),
    pytest.param(
        Result("rolled_back", "0f3a", "77ab", outcome=LOST, rollback=UP, suspects="the only change is --x"),
        "u: release 0f3a failed: no room for the KV cache (raise mem_fraction_static). The only change is --x. The last good release 77ab is serving again",
        id="rolled-back",
    ),
    pytest.param(
        Result("rolled_back", "0f3a", "", outcome=LOST, rollback=UP),
        "u: release 0f3a failed: no room for the KV cache (raise mem_fraction_static). The unit that was there before is serving again",
        id="rolled-back-to-a-unit-made-by-hand",
    ),
    pytest.param(
        Result("rolled_back", "0f3a", "77ab", outcome=LOST, rollback=GONE),
        "u: THE SERVER IS DOWN: putting the last good release 77ab back failed as well: GPU memory ran out. "
        "Before that, release 0f3a failed: no room for the KV cache (raise mem_fraction_static)",
        id="both-failed",
    ),
    pytest.param(
        Result("refused", "0f3a", "77ab", outcome=LOST),
        "u: release 0f3a is not tried again: no room for the KV cache (raise mem_fraction_static). The server was not touched",
        id="refused",
    ),
    pytest.param(
        Result("failed", "0f3a", "77ab", outcome=OFF),
        "u: release 0f3a failed: no room for the KV cache (raise mem_fraction_static). "
        "sglang_server_rollback_enabled is off: the server is down, its trial lies in /run/x",
        id="without-rollback",
    ),
    pytest.param(
        Result("failed", "0f3a", "", outcome=Outcome(False, Diagnosis("x", f"key {SECRET}"))), "u: release 0f3a failed: key ********", id="U09-secret"
    ),
]


@pytest.mark.parametrize("result, text", FAILURES)
def test_failure(result, text):
    assert failure(result, "u", [SECRET]) == text


def test_the_same_keys_with_and_without_a_store(tmp_path):
    store = Store(tmp_path / "main")
    store.prepare()
    (store.releases / "0f3a").mkdir()
    store.write("0f3a", "vitals", {"vitals": {"kv_cache_tokens": 5}})
    store.write("0f3a", "state", {"state": "good", "since": 5.0})
    told = describe_release(Result("deployed", "0f3a", "77ab", [f"because of {SECRET}"], UP, differences=[f"x: {SECRET}"]), store, [SECRET])
    nothing = describe_release(Result("busy", "", ""), None, [], {"purpose": "deploying x", "pid": 1})
    assert told.keys() == nothing.keys()
    assert SECRET not in json.dumps(told)
    assert told["start"] == {"vitals": {"kv_cache_tokens": 5}} and [one["release"] for one in told["releases"]] == ["0f3a"]
    assert (nothing["holder"], nothing["releases"], nothing["ready"], nothing["rollback"]) == ({"purpose": "deploying x", "pid": 1}, [], False, {})


@pytest.mark.parametrize("rollback", [UP, GONE])
def test_how_the_rollback_went_is_data(rollback):
    told = describe_release(Result("rolled_back", "0f3a", "77ab", outcome=LOST, rollback=rollback), None, [])["rollback"]
    assert sorted(told) == ["diagnosis", "elapsed", "phases", "ready", "remarks"]
    assert told["ready"] is rollback.ready and bool(told["diagnosis"]) is not rollback.ready
