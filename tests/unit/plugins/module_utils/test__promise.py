# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._promise import Difference, differences

HERE = Path(__file__).resolve()
# Preflight and server of one CPU engine each, cut to the fields that are not empty; the three GPU servers were started after their values had been told.
PAIRS = sorted((HERE.parents[2] / "fixtures" / "promise").glob("*.json")) + sorted((HERE.parents[4] / "tests/gpu/records/h200-x1").glob("preflight-*.json"))
SECRET = "not-a-real-key"


def load(name):
    return json.loads(next(path for path in PAIRS if path.stem == name).read_text())


def names(preflight, server_info):
    return [found.name for found in differences(preflight, server_info)]


def promise(effective, flags=(), tokens=None):
    rows = [{"flag": flag, "field": field, "successor": successor} for flag, field, successor in flags]
    return {"effective": effective, "flags": rows, "memory": tokens and {"kv_tokens": tokens}}


def test_none_of_the_pairs_is_missing():
    assert [path.stem for path in PAIRS] == ["0.5.10", "0.5.23", "preflight-fp8-cache", "preflight-overlap", "preflight-small-graphs"]


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: path.stem)
def test_a_real_server_runs_as_promised(path):
    """Their random seeds differ; so does what the scheduler set later: pp_max_micro_batch_size, disable_chunked_prefix_cache."""
    pair = json.loads(path.read_text())
    assert pair["preflight"]["effective"]["random_seed"] != pair["server_info"]["random_seed"]
    assert differences(pair["preflight"], pair["server_info"]) == []


def test_the_schedulers_of_real_servers_hold_other_values_than_their_arguments():
    info = load("0.5.10")["server_info"]
    state = info["internal_states"][0]
    assert (info["prefill_attention_backend"], state["prefill_attention_backend"]) == (None, "torch_native")
    assert (info["pp_max_micro_batch_size"], state["pp_max_micro_batch_size"]) == (None, 2048)


@pytest.mark.parametrize("name", ["0.5.23", "preflight-small-graphs"])
@pytest.mark.parametrize(
    "path, value",
    [
        pytest.param(["attention_backend"], "other", id="backend"),
        pytest.param(["speculative_algorithm"], "EAGLE", id="speculation"),
        pytest.param(["cuda_graph_config", "decode", "backend"], "eager", id="in-a-record"),
        pytest.param(["cuda_graph_config", "decode", "bs"], [1], id="list-in-a-record"),
        pytest.param(["chunked_prefill_size"], -1, id="number"),
    ],
)
def test_a_real_server_that_did_not(name, path, value):
    pair = load(name)
    info = copy.deepcopy(pair["server_info"])
    inner = info
    for key in path[:-1]:
        inner = inner[key]
    promised, inner[path[-1]] = inner[path[-1]], value
    (found,) = differences(pair["preflight"], info)
    assert (found.name, found.promised, found.effective) == (".".join(path), promised, value)
    assert found.text.startswith(".".join(path)) and str(value) in found.text


@pytest.mark.parametrize(
    "effective, server_info, expected",
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="equal"),
        pytest.param({"a": 1}, {"a": 1.0}, [], id="equal-as-number"),
        pytest.param({"a": (1, 2)}, {"a": [1, 2]}, [], id="tuple"),
        pytest.param({"a": None}, {"a": None}, [], id="none"),
        pytest.param({"a": None}, {"a": "auto"}, ["a"], id="promised-nothing"),
        pytest.param({"a": 1}, {}, [], id="not-told"),
        pytest.param({}, {"a": 1}, [], id="not-claimed"),
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"random_seed": 1}, {"random_seed": 2}, [], id="drawn-at-every-start"),
        pytest.param({"a-b": 1}, {"a_b": 2}, ["a_b"], id="dashes"),
        pytest.param({"a": 1}, {"server_args": {"a": 2}}, ["a"], id="below-a-key"),
        pytest.param({"a": 1}, {"a": 1, "server_args": {"a": 2}}, [], id="flat-counts-more"),
        pytest.param({"a": 1}, {"internal_states": [{"a": 2}]}, ["a"], id="only-by-rank"),
        pytest.param({"a": 1}, {"internal_states": {"0": {"a": 2}}}, ["a"], id="ranks-by-name"),
        pytest.param({"a": 1}, {"a": 1, "internal_states": [{"a": 2}]}, [], id="the-arguments-count-more-than-a-rank"),
        pytest.param({"r": {"a": 1, "b": 2}}, {"r": {"a": 1, "b": 3}}, ["r.b"], id="part-of-a-record"),
        pytest.param({"r": {}}, {"r": {}}, [], id="empty-record"),
        pytest.param({"r": {}}, {"r": {"a": 1}}, [], id="a-part-that-is-not-claimed"),
        pytest.param({"r": {"a": 1}}, {"r": None}, [], id="a-record-that-is-not-told"),
        pytest.param({"b": 1, "a": 1}, {"a": 2, "b": 2}, ["a", "b"], id="by-name"),
    ],
)
def test_what_is_compared(effective, server_info, expected):
    assert names(promise(effective), server_info) == expected


def test_a_difference_in_words():
    preflight = promise({"attention_backend": "fa3", "other": 1}, [("--attention-backend", "attention_backend", None)])
    assert differences(preflight, {"attention_backend": "triton", "other": 2}) == [
        Difference("attention_backend", "fa3", "triton", "attention_backend (--attention-backend): preflight said fa3, the server runs with triton"),
        Difference("other", 1, 2, "other: preflight said 1, the server runs with 2"),
    ]


def test_flags_that_were_asked_for_come_first():
    preflight = promise({"a": 1, "z": 1}, [("--z", "z", None)])
    assert names(preflight, {"a": 2, "z": 2}) == ["z", "a"]


@pytest.mark.parametrize(
    "flag, server_info, expected",
    [
        pytest.param(("--nsa-backend", "dsa_backend", None), {"nsa_backend": "b"}, ["dsa_backend"], id="old-name"),
        pytest.param(("--nsa-backend", "dsa_backend", None), {"nsa_backend": "a"}, [], id="old-name-as-promised"),
        pytest.param(("--old", "dsa_backend", "--new-backend=full"), {"new_backend": "b"}, ["dsa_backend"], id="new-name"),
        pytest.param(("--nsa-backend", "dsa_backend", None), {"dsa_backend": "a", "nsa_backend": "b"}, [], id="the-engines-name-counts-more"),
        pytest.param(("--nsa-backend", "dsa_backend", None), {"nsa_backend": None}, [], id="an-old-name-that-is-not-set"),
    ],
)
def test_a_field_under_another_name(flag, server_info, expected):
    assert names(promise({"dsa_backend": "a"}, [flag]), server_info) == expected


def test_data_parallel_ranks():
    states = [{"a": 1}, {"a": 2}]
    (found,) = differences(promise({"a": 1}), {"internal_states": states})
    assert (found.effective, found.text) == (2, "a: preflight said 1, the server runs with 2 on data-parallel rank 1")


@pytest.mark.parametrize(
    "effective, server_info",
    [
        pytest.param({"api_key": None}, {"api_key": SECRET}, id="key"),
        pytest.param({"admin_api_key": "********"}, {"admin_api_key": SECRET}, id="masked-by-preflight"),
        pytest.param({"ssl_keyfile_password": SECRET}, {"ssl_keyfile_password": "another"}, id="password"),
        pytest.param({"config": {"api_key": SECRET}}, {"config": {"api_key": "another"}}, id="in-a-record"),
        pytest.param({"header": ""}, {"header": f"Bearer {SECRET}"}, id="by-its-look"),
    ],
)
def test_secrets_are_not_in_the_output(effective, server_info):
    assert differences(promise(effective), server_info) == []


def test_long_values_are_cut_in_the_text_only():
    (found,) = differences(promise({"a": list(range(99))}), {"a": [0]})
    assert len(found.promised) == 99 and len(found.text) < 140 and "..." in found.text


@pytest.mark.parametrize(
    "tokens, server_info, text",
    [
        pytest.param(100000, {"max_total_num_tokens": 95000}, "", id="5-percent-less"),
        pytest.param(100000, {"max_total_num_tokens": 105000}, "", id="5-percent-more"),
        pytest.param(
            100000, {"max_total_num_tokens": 90000}, "KV pool: the memory budget expected 100,000 tokens, the server has 90,000 (-10 %)", id="smaller"
        ),
        pytest.param(
            100000, {"max_total_num_tokens": 120000}, "KV pool: the memory budget expected 100,000 tokens, the server has 120,000 (+20 %)", id="larger"
        ),
        pytest.param(None, {"max_total_num_tokens": 120000}, "", id="no-budget"),
        pytest.param(100000, {}, "", id="not-told"),
        pytest.param(
            100000,
            {"internal_states": [{"memory_usage": {"token_capacity": 100000}}, {"memory_usage": {"token_capacity": 50000}}]},
            "KV pool: the memory budget expected 100,000 tokens, the server has 50,000 (-50 %)",
            id="the-rank-that-has-least",
        ),
    ],
)
def test_the_kv_pool(tokens, server_info, text):
    assert [found.text for found in differences(promise({}, tokens=tokens), server_info)] == ([text] if text else [])


@pytest.mark.parametrize("preflight", [{}, {"verdict": "warned", "explained": False, "effective": {}, "flags": [], "memory": None}])
def test_a_preflight_that_says_nothing_promises_nothing(preflight):
    assert differences(preflight, load("0.5.23")["server_info"]) == []
