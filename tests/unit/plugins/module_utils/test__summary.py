# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shlex
from copy import deepcopy

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._summary import curl_line, status, summarise

SPEED = "decode: 55.2 tok/s (54.9 to 55.6) at concurrency 1, no baseline"
FACTS = {
    "host": "ct129",
    "check_mode": False,
    "release": {
        "action": "deployed",
        "release": "0f3a9c1be27d",
        "benchmark": {},
        "gate": {},
        "reasons": ["no release of this server is known to be good"],
        "start": {
            "seconds": 51.3,
            "phases": [{"phase": "process", "seconds": 0.0}, {"phase": "weights", "seconds": 12.4}, {"phase": "kv_cache", "seconds": 0.1}],
            "vitals": {
                "kv_cache_tokens": 242880,
                "kv_cache_dtype": "bfloat16",
                "weights_gb": 15.28,
                "weights_seconds": 0.2,
                "context_length": 40960,
                "max_running_requests": 48,
                "graphs_seconds": {"decode": 2.98},
            },
        },
    },
    "bind": "0.0.0.0",
    "port": "30000",
    "tls": False,
    "key": True,
    "engine": {"version": "0.5.23", "flavour": "cuda"},
    "model": "qwen",
    "argv": ["--model-path", "/m", "--chat-template", "two words"],
    "speed": [SPEED],
    "records": ["/inv/benchmarks/ct129/20261130T101500Z-decode-0f3a9c1be27d.json"],
    "baseline": "",
    "notes": [],
    "kept": [{"path": "ct129/20261130T101500Z-decode-0f3a9c1be27d.json", "text": SPEED}],
    "records_dir": "/inv/benchmarks",
}


def facts(**changes):
    """FACTS with some values replaced; a double underscore goes one level down."""
    changed = deepcopy(FACTS)
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = changed
        for name in parents:
            target = target[name]
        target[last] = value
    return changed


def rows(lines):
    return {line[2:9].strip(): line[10:] for line in lines[1:]}


def test_a_deployment():
    lines = summarise(FACTS)
    assert lines[0] == "ct129: qwen on SGLang 0.5.23 (cuda) at http://127.0.0.1:30000 [deployed, release 0f3a9c1be27d]"
    assert rows(lines) == {
        "why": "no release of this server is known to be good",
        "start": "51.3 s: weights 12.4 s, kv cache 0.1 s",
        "vitals": "KV cache of 242,880 tokens bfloat16, weights 15.28 GB in 0.2 s, context 40,960, at most 48 requests, graphs decode 2.98 s",
        "flags": "--model-path /m --chat-template 'two words'",
        "speed": SPEED,
        "record": "/inv/benchmarks/ct129/20261130T101500Z-decode-0f3a9c1be27d.json",
        "try": curl_line("http://127.0.0.1:30000", "qwen", True),
    }


def test_what_changed_and_what_is_not_as_promised():
    changes = ["! KV cache 242,880 -> 201,344 tokens (-17 %)", "requests at once 48 -> 32"]
    differences = ["attention_backend: preflight said fa3, the server runs with triton"]
    told = rows(summarise(facts(release__changes=changes, release__differences=differences)))
    assert told["changed"] == "! KV cache 242,880 -> 201,344 tokens (-17 %); requests at once 48 -> 32"
    assert told["promise"] == differences[0]
    assert list(told)[:5] == ["why", "start", "vitals", "changed", "promise"]


def test_a_server_that_is_all_other_is_told_in_one_line():
    told = rows(summarise(facts(release__differences=[f"f{i}: other" for i in range(10)])))
    assert told["promise"].endswith("f7: other; and 2 more")
    assert "changed" not in told


@pytest.mark.parametrize(
    "vitals, text",
    [
        pytest.param({"graphs_enabled": False, "attention_backend": "fa3"}, "attention fa3, no graphs", id="no-graphs"),
        pytest.param(
            {
                "ranks": {"TP0": {}, "TP1": {}},
                "weights_seconds": 0.66,
                "weights_gb": 30.59,
                "speculative_algorithm": "EAGLE",
                "speculative_num_steps": 3,
                "graphs_enabled": True,
                "graphs": {"prefill": {"count": 58, "seconds": 35.9}, "decode": {"seconds": 8.64}, "draft": {}},
                "graphs_seconds": {"target prefill": 35.9, "target decode": 8.64},
                "available_memory_gb": 9.8,
            },
            "weights 30.59 GB in 0.66 s on each of 2 ranks, speculation EAGLE with 3 steps, prefill graphs 58 in 35.9 s, decode graphs in 8.64 s, "
            "draft graphs, 9.8 GB left",
            id="ranks-speculation-graphs",
        ),
        pytest.param({"speculative_algorithm": "none", "ranks": {"TP0": {}}, "weights_seconds": 1.0}, "weights in 1.0 s", id="no-speculation"),
        pytest.param({"prefill_attention_backend": "fa3", "decode_attention_backend": "triton"}, "attention prefill fa3, decode triton", id="two-backends"),
    ],
)
def test_vitals_in_words(vitals, text):
    assert rows(summarise(facts(release__start__vitals=vitals)))["vitals"] == text


def test_a_phase_that_came_twice_is_one_entry():
    phases = [{"phase": phase, "seconds": seconds} for phase, seconds in (("weights", 31.0), ("decode_graphs", 12.0), ("weights", 1.2), ("http", 0.0))]
    assert rows(summarise(facts(release__start__phases=phases)))["start"] == "51.3 s: weights 32.2 s, decode graphs 12.0 s"


def test_what_is_not_known_has_no_line():
    lines = summarise(facts(release__start={}, release__reasons=[], speed=[], records=[], argv=[]))
    assert list(rows(lines)) == ["try"]


def test_vitals_of_an_engine_that_says_little():
    assert rows(summarise(facts(release__start__vitals={"kv_cache_tokens": 8192})))["vitals"] == "KV cache of 8,192 tokens"
    assert rows(summarise(facts(release__start__vitals={"weights_seconds": 0.2})))["vitals"] == "weights in 0.2 s"


@pytest.mark.parametrize(
    "reasons, text", [(["a secret changed", "the server is not running"], "a secret changed; the server is not running"), ([], "nothing to do")]
)
def test_check_mode_says_why(reasons, text):
    assert summarise(facts(check_mode=True, release__reasons=reasons)) == [f"ct129: check mode: {text}"]


@pytest.mark.parametrize("changes, url", [({"bind": "::1"}, "http://[::1]:30000"), ({"tls": True, "port": 443}, "https://127.0.0.1:443")])
def test_the_address(changes, url):
    lines = summarise(facts(**changes))
    assert f" at {url} [" in lines[0] and f"curl -s {url}/v1/completions" in rows(lines)["try"]


@pytest.mark.parametrize("key", [True, False])
def test_the_command_is_one_that_a_shell_runs(key):
    """U09: the key comes from the reader's environment."""
    words = shlex.split(curl_line("http://127.0.0.1:30000", "it's qwen", key))
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:30000/v1/completions"]
    assert ("Authorization: Bearer $SGLANG_API_KEY" in words) is key
    assert json.loads(words[words.index("-d") + 1]) == {"model": "it's qwen", "prompt": "Hello", "max_tokens": 16}


SERVER = {
    "unit": "sglang-main.service",
    "state": "active",
    "since": "2026-11-29T19:26:10Z",
    "restarts": 2,
    "healthy": True,
    "health": "HTTP 200",
    "ports": [30000, 40000],
    "release": {
        "id": "0f3a9c1be27d",
        "engine": {"name": "0.5.23-cuda"},
        "model": {"path": "/m", "revision": ""},
        "argv": ["--port", "30000"],
    },
    "start": {},
    "benchmark": {},
    "speed": [SPEED],
}
NONE = {"state": "not-found", "since": "", "restarts": 0, "healthy": False, "health": "not running", "ports": [], "release": {}, "benchmark": {}, "speed": []}


def test_the_status_of_a_server():
    lines = status(SERVER, "ct129")
    assert lines[0] == "ct129: sglang-main.service active since 2026-11-29T19:26:10Z, healthy"
    assert rows(lines) == {
        "engine": "0.5.23-cuda",
        "model": "/m",
        "flags": "--port 30000",
        "ports": "30000, 40000",
        "crashes": "2",
        "release": "0f3a9c1be27d",
        "speed": SPEED,
    }


def test_the_status_of_no_server():
    assert status({**SERVER, **NONE}, "ct129") == ["ct129: sglang-main.service not-found, not running"]


def test_what_the_gate_said_and_several_records():
    lines = summarise(
        facts(speed=["decode: 55 tok/s", "chat: 900 tok/s"], release__gate={"outcome": "passed", "text": "no loss", "comparison": {}}, records=[])
    )
    assert lines[lines.index("  speed   decode: 55 tok/s") :][:3] == ["  speed   decode: 55 tok/s", "          chat: 900 tok/s", "  gate    passed: no loss"]


def test_what_became_of_the_baseline():
    told = rows(summarise(facts(baseline="baseline of decode: 1 record, 3 starts", notes=["the inventory has changes that are not committed"])))
    assert (told["base"], told["note"]) == ("baseline of decode: 1 record, 3 starts", "the inventory has changes that are not committed")
