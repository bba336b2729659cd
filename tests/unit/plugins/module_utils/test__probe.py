# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._probe import (
    ARGUMENTS,
    make_client,
    make_expectation,
    make_host,
    present,
    sentence,
    unit_name,
)
from ansible_collections.llmops.inference.plugins.module_utils._watch import Expectation, Outcome

SECRET = "s3cret-of-the-server"
PARAMS = {
    "instance": "main",
    "host": "::",
    "port": 30001,
    "api_key": SECRET,
    "model_name": "qwen",
    "tls": False,
    "ca_path": None,
    "timeout": 60.0,
    "stall_timeout": 20.0,
}
FAILED = Outcome(
    False,
    Diagnosis("exception", f"the engine stopped with {SECRET}", [f"api_key='{SECRET}'"], "read on", captured={"last_error": SECRET}),
    [{"phase": "process", "seconds": 1.0}],
    {"kv_cache_tokens": 1},
    2.5,
    "run-1",
    [f"server_args=ServerArgs(api_key='{SECRET}')"],
)


def test_what_parameters_become(monkeypatch):
    assert unit_name("main") == "sglang-main.service"
    assert make_client(PARAMS).url == "http://[::1]:30001"
    assert make_expectation(PARAMS) == Expectation(30001, "qwen", 60.0, 20.0)


def test_the_probe_sends_the_key():
    """N04"""
    client = make_client(PARAMS)
    assert client._headers["Authorization"] == f"Bearer {SECRET}"
    assert "Authorization" not in make_client({**PARAMS, "api_key": ""})._headers


def test_the_key_is_not_logged():
    """N04"""
    assert ARGUMENTS["api_key"]["no_log"] is True


def test_the_host_looks_at_the_unit_of_the_instance():
    commands = []

    def run(command):
        commands.append(command)
        return 0, "ActiveState=active\n", ""

    assert make_host(run, PARAMS).unit_state().active == "active"
    assert commands[0][:3] == ["systemctl", "show", "sglang-main.service"]


@pytest.mark.parametrize("outcome", [None, Outcome(True), FAILED], ids=["none", "ready", "failed"])
def test_the_same_keys_in_any_case(outcome):
    assert sorted(present(outcome, [])) == ["diagnosis", "elapsed", "journal", "phases", "ready", "vitals"]


def test_a_failure_is_shown_without_secrets():
    """U09"""
    shown = present(FAILED, [SECRET])
    assert SECRET not in repr(shown)
    assert shown == {
        "ready": False,
        "phases": [{"phase": "process", "seconds": 1.0}],
        "vitals": {"kv_cache_tokens": 1},
        "elapsed": 2.5,
        "diagnosis": {
            "code": "exception",
            "cause": "the engine stopped with ********",
            "evidence": ["api_key='********'"],
            "hint": "read on",
            "where": "",
            "certainty": "certain",
            "implicated": [],
            "captured": {"last_error": "********"},
        },
        "journal": ["server_args=ServerArgs(api_key='********')"],
    }
    assert sentence(FAILED, [SECRET]) == "the engine stopped with ******** (read on)"


def test_a_success_needs_no_journal():
    outcome = Outcome(True, journal_tail=["line"])
    assert (present(outcome, [])["journal"], present(outcome, [])["diagnosis"]) == ([], {})
    assert sentence(outcome, []) == sentence(None, []) == "ready"


def test_a_cause_without_a_hint():
    assert sentence(Outcome(False, Diagnosis("unknown", "it stopped")), []) == "it stopped"
