# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._failed_before import OVERRIDE, failed_state, refusal, retried

DEFAULTS = Path(__file__).resolve().parents[4] / "roles" / "sglang_server" / "defaults" / "main.yml"
SINCE = time.mktime((2026, 11, 29, 17, 5, 0, 0, 0, -1))
POOL = Diagnosis(
    "kv_pool_too_small",
    "no room for the KV cache",
    ["Not enough memory"],
    "raise mem_fraction_static",
    "release",
    "suspected",
    ["mem_fraction_static"],
    {"gib": 0.5},
)
DISK = Diagnosis("disk_full", "the disk is full", hint="make room", where="host")
UNKNOWN = Diagnosis("exception", "it stopped with KeyError", certainty="unknown")


def failed(found, **changed):
    """The state as a store returns it."""
    state = failed_state({}, asdict(found), since=SINCE, secrets="mac", suspects="", journal=["last line"])
    return json.loads(json.dumps({**state, **changed}))


def test_what_is_kept():
    assert failed_state({"state": "starting", "since": 1.0}, {"code": "a"}, since=SINCE, secrets="mac", suspects="one", journal=["line"]) == {
        "state": "failed",
        "tries": 1,
        "diagnosis": {"code": "a"},
        "since": SINCE,
        "secrets": "mac",
        "suspects": "one",
        "journal": ["line"],
    }


@pytest.mark.parametrize(
    "before, tries",
    [
        pytest.param({}, 1, id="first"),
        pytest.param({"state": "staged"}, 1, id="staged"),
        pytest.param({"state": "good", "diagnosis": {"code": "exception"}, "tries": 3}, 1, id="was-good-since"),
        pytest.param(failed(UNKNOWN), 2, id="the-same-again"),
        pytest.param(failed(UNKNOWN, tries=4), 5, id="the-same-for-the-fifth-time"),
        pytest.param(failed(DISK, tries=4), 1, id="another"),
        pytest.param({"state": "failed", "diagnosis": {"code": "exception"}}, 2, id="old-format-without-tries"),
        pytest.param({"state": "failed"}, 1, id="old-format-without-diagnosis"),
        pytest.param({"state": "failed", "diagnosis": None}, 1, id="no-diagnosis"),
    ],
)
def test_tries(before, tries):
    assert failed_state(before, asdict(UNKNOWN))["tries"] == tries


@pytest.mark.parametrize(
    "state, refused",
    [
        pytest.param({}, False, id="never-tried"),
        pytest.param({"state": "staged"}, False, id="staged"),
        pytest.param({"state": "good", "diagnosis": asdict(POOL), "secrets": "mac"}, False, id="good"),
        pytest.param(failed(POOL), True, id="a-cause-of-its-own"),
        pytest.param(failed(POOL, secrets="other"), False, id="with-other-secrets"),
        pytest.param(failed(DISK), False, id="a-cause-of-the-host"),
        pytest.param(failed(DISK, tries=9), False, id="a-cause-of-the-host-however-often"),
        pytest.param(failed(UNKNOWN), False, id="an-unknown-cause"),
        pytest.param(failed(UNKNOWN, tries=2), True, id="an-unknown-cause-twice"),
        pytest.param({"state": "failed", "diagnosis": asdict(POOL)}, False, id="old-format-without-secrets"),
        pytest.param({"state": "failed", "secrets": "mac"}, False, id="old-format-without-diagnosis"),
        pytest.param({"state": "failed", "secrets": "mac", "diagnosis": None}, False, id="no-diagnosis"),
    ],
)
def test_refusal(state, refused):
    assert (refusal(state, "mac") is not None) is refused


def test_a_refusal_tells_what_was_found_then():
    assert refusal(failed(POOL), "mac") == Diagnosis(
        "kv_pool_too_small",
        "it failed here on 2026-11-29 17:05: no room for the KV cache",
        ["Not enough memory"],
        f"raise mem_fraction_static; to try it again as it is: {OVERRIDE}",
        "release",
        "suspected",
        ["mem_fraction_static"],
        {"gib": 0.5},
    )


@pytest.mark.parametrize(
    "state, cause, hint",
    [
        pytest.param(failed(UNKNOWN, tries=2), "on 2026-11-29 17:05, and the same way before that: it stopped with KeyError", "", id="twice"),
        pytest.param(failed(POOL, since=None), "before: no room for the KV cache", "raise mem_fraction_static; ", id="no-moment"),
        pytest.param(failed(POOL, diagnosis={"code": "a", "where": "release"}), "on 2026-11-29 17:05: unknown", "", id="no-cause"),
        pytest.param(failed(POOL, diagnosis={"cause": "it died", "where": "release"}), "on 2026-11-29 17:05: it died", "", id="no-code"),
        pytest.param(failed(UNKNOWN, tries=2, diagnosis={}), "on 2026-11-29 17:05, and the same way before that: unknown", "", id="nothing-known"),
        pytest.param(
            failed(POOL, diagnosis={**asdict(DISK), "where": "release", "score": 1}), "on 2026-11-29 17:05: the disk is full", "make room; ", id="newer-format"
        ),
    ],
)
def test_words_of_a_refusal(state, cause, hint):
    found = refusal(state, "mac")
    assert (found.cause, found.hint) == (f"it failed here {cause}", f"{hint}to try it again as it is: {OVERRIDE}")
    assert found.code == state["diagnosis"].get("code", "unknown")


@pytest.mark.parametrize(
    "state, note",
    [
        pytest.param({}, "", id="never-tried"),
        pytest.param({"state": "starting", "since": SINCE}, "", id="interrupted"),
        pytest.param({"state": "good", "since": SINCE}, "", id="good"),
        pytest.param(failed(DISK), "on 2026-11-29 17:05 for a cause of the host (the disk is full)", id="host"),
        pytest.param(failed(UNKNOWN), "on 2026-11-29 17:05 for an unknown cause (it stopped with KeyError)", id="unknown"),
        pytest.param(failed(POOL), "on 2026-11-29 17:05 for a cause of its own (no room for the KV cache)", id="insisted"),
        pytest.param({"state": "failed", "diagnosis": {"cause": "it died"}}, "before for an unknown cause (it died)", id="old-format"),
        pytest.param({"state": "failed"}, "before for an unknown cause (unknown)", id="nothing-known"),
    ],
)
def test_retried(state, note):
    assert retried(state) == (f"it failed here {note} and is tried again" if note else "")


def test_the_override_is_an_input_of_the_role():
    option, assignment = OVERRIDE.split()
    name, value = assignment.split("=")
    assert (option, yaml.safe_load(DEFAULTS.read_text())[name], value) == ("-e", False, "true")
