# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._http import Client
from ansible_collections.llmops.inference.plugins.module_utils._probe import (
    ARGUMENTS,
    PROBE,
    ProbeError,
    make_client,
    make_expectation,
    make_host,
    present,
    sentence,
    unit_name,
)
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._watch import Outcome

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
    "stall_timeouts": {"weights": 20.0},
    "leader": "",
}
FAILED = Outcome(
    False,
    Diagnosis("exception", f"the engine stopped with {SECRET}", [f"api_key='{SECRET}'"], "read on", captured={"last_error": SECRET}),
    [{"phase": "process", "seconds": 1.0}],
    {"kv_cache_tokens": 1},
    2.5,
    "run-1",
    [f"server_args=ServerArgs(api_key='{SECRET}')"],
    [f"it is busy with {SECRET}"],
)


def test_what_parameters_become(monkeypatch):
    assert unit_name("main") == "sglang-main.service"
    assert make_client(PARAMS).url == "http://[::1]:30001"
    assert make_expectation(PARAMS) == Expectation(30001, "qwen", 60.0, {"weights": 20.0})
    assert make_expectation({**PARAMS, "leader": "http://10.0.0.1:30001"}).leader is True


@pytest.mark.parametrize(
    "given, limits",
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"weights": 600, "prefill_graphs": 1800.5}, {"weights": 600.0, "prefill_graphs": 1800.5}, id="numbers"),
        pytest.param({"weights": "600"}, {"weights": 600.0}, id="text-of-a-template"),
        pytest.param({"weights": "1e3"}, {"weights": 1000.0}, id="exponent"),
    ],
)
def test_stall_timeouts(given, limits):
    assert make_expectation({**PARAMS, "stall_timeouts": given}).stalls == limits


@pytest.mark.parametrize(
    "given, message",
    [
        pytest.param({"weight": 600}, "stall_timeouts.weight: a start has no such phase; did you mean weights?", id="nearly"),
        pytest.param({"kv-cache": 600}, "stall_timeouts.kv-cache: a start has no such phase; did you mean kv_cache?", id="dash"),
        pytest.param(
            {"nonsense": 600},
            "stall_timeouts.nonsense: a start has no such phase; there are process, arguments, distributed, weights, kv_cache, decode_graphs, draft_graphs, "
            "prefill_graphs, http, warm_up, ready",
            id="unknown",
        ),
        pytest.param({7: 600}, "stall_timeouts.7: a start has no such phase; there are process, .*", id="a-number-as-phase"),
        pytest.param({"weights": "10 min"}, "stall_timeouts.weights: '10 min' is no number of seconds", id="unit"),
        pytest.param({"weights": ""}, "stall_timeouts.weights: '' is no number of seconds", id="empty"),
        pytest.param({"weights": None}, "stall_timeouts.weights: None is no number of seconds", id="null"),
        pytest.param({"weights": [600]}, r"stall_timeouts.weights: \[600\] is no number of seconds", id="list"),
        pytest.param({"weights": 0}, "stall_timeouts.weights: 0 must be more than 0 seconds", id="zero"),
        pytest.param({"weights": -1.5}, "stall_timeouts.weights: -1.5 must be more than 0 seconds", id="negative"),
        pytest.param({"kv_cache": 600, "weights": "x"}, "stall_timeouts.weights: 'x' is no number of seconds", id="the-second"),
    ],
)
def test_stall_timeouts_that_are_refused(given, message):
    with pytest.raises(ProbeError, match=f"^{message.replace('?', '[?]')}$"):
        make_expectation({**PARAMS, "stall_timeouts": given})


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


@pytest.mark.parametrize(
    "leader, asked",
    [
        pytest.param("", None, id="rank-0"),
        pytest.param("http://127.0.0.1:9", "http://127.0.0.1:9/health", id="another-rank"),
        pytest.param("http://127.0.0.1:9/", "http://127.0.0.1:9/health", id="slash-at-the-end"),
        pytest.param("http://[::1]:9", "http://[::1]:9/health", id="ipv6"),
    ],
)
def test_rank_0_is_asked_without_the_key(monkeypatch, leader, asked):
    """Its /health needs none, and it may have another."""
    requests = []
    monkeypatch.setattr(Client, "request", lambda self, path: requests.append((self.url + path, "Authorization" in self._headers)))
    make_host(lambda command: (0, "", ""), {**PARAMS, "leader": leader}).leader("/health")
    assert requests == ([(asked, False)] if asked else [])


@pytest.mark.parametrize("leader", ["10.0.0.1:30000", "node-a", "ftp://node-a"])
def test_a_leader_that_is_no_url(leader):
    with pytest.raises(ProbeError, match=f"^leader: '{leader}' is no URL, write http://HOST:PORT$"):
        make_host(lambda command: (0, "", ""), {**PARAMS, "leader": leader})


def test_what_is_kept_of_the_probe_holds_no_secret():
    """U09; what is not kept is the caller's to say at the next time as well."""
    assert set(ARGUMENTS) - set(PROBE) == {"api_key", "timeout", "stall_timeouts"}
    kept = json.loads(json.dumps({name: PARAMS[name] for name in PROBE}))
    assert SECRET not in repr(kept)
    assert make_expectation({**PARAMS, "port": 1, "model_name": "other", "leader": "http://x", **kept}) == make_expectation(PARAMS)


@pytest.mark.parametrize("outcome", [None, Outcome(True), FAILED], ids=["none", "ready", "failed"])
def test_the_same_keys_in_any_case(outcome):
    assert sorted(present(outcome, [])) == ["diagnosis", "elapsed", "journal", "phases", "ready", "remarks", "vitals"]


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
            "remedy": "",
        },
        "remarks": ["it is busy with ********"],
        "journal": ["server_args=ServerArgs(api_key='********')"],
    }
    assert sentence(FAILED, [SECRET]) == "the engine stopped with ******** (read on)"


def test_a_success_needs_no_journal():
    outcome = Outcome(True, journal_tail=["line"], remarks=["it is busy"])
    assert present(outcome, [])["remarks"] == ["it is busy"]
    assert (present(outcome, [])["journal"], present(outcome, [])["diagnosis"]) == ([], {})
    assert sentence(outcome, []) == sentence(None, []) == "ready"


def test_a_cause_without_a_hint():
    assert sentence(Outcome(False, Diagnosis("unknown", "it stopped")), []) == "it stopped"
