# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight says without a GPU against what servers really ran with on H200s (SGLang 0.5.17): launch command and ``/server_info``.

Eight were recorded before there was a preflight. Of three more, tests/gpu/preflight.py told the values on the GPU machine before it started them.
"""

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy

from .conftest import HERE, MODELS, hardware

VERSION = "0.5.17"
RECORDED = sorted((HERE / "truth").glob("*.json"))
FORETOLD = sorted((HERE.parent / "gpu" / "records" / "h200-x1").glob("preflight-*.json"))
# Field of /server_info -> why preflight cannot say the same.
NOT_CLAIMED = {
    "kv_events": "of the running server",
    "max_req_input_len": "computed by the scheduler from its pool",
    "max_total_num_tokens": "measured: see the memory budget below",
    "startup_time": "of the running server",
    "status": "of the running server",
    "version": "not a flag",
}
DIFFERS = {"random_seed": "drawn at every start"}
# What preflight must never stop claiming.
MUST_CLAIM = (
    "attention_backend",
    "prefill_attention_backend",
    "decode_attention_backend",
    "mm_attention_backend",
    "cuda_graph_config",
    "chunked_prefill_size",
    "max_running_requests",
    "max_prefill_tokens",
    "page_size",
    "kv_cache_dtype",
    "mem_fraction_static",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_draft_model_path",
    "speculative_attention_mode",
)
CLAIMED = 458
AGREEING = 457
# Measured on the servers against the budget: 0.4 % at most.
POOL_TOLERANCE = 0.01


def tell(engines, path):
    """The record, preflight's result for it, and the effective values with the paths of the record."""
    truth = {"environment": {"CUDA_VISIBLE_DEVICES": "0"}, **json.loads(path.read_text())}
    argv = [word.replace("/models/", f"{MODELS}/") for word in truth["argv"]]
    result = engines.preflight(VERSION, hardware("h200-x2"), argv, environment=truth["environment"], policy=Policy(not_honoured="warn"))
    effective = json.loads(json.dumps(result["effective"]).replace(f"{MODELS}/", "/models/"))
    return truth, result, effective


@pytest.fixture(scope="module", params=RECORDED + FORETOLD, ids=lambda path: path.stem)
def server(request, engines):
    return tell(engines, request.param)


def test_none_of_the_records_is_missing():
    assert (len(RECORDED), len(FORETOLD)) == (8, 3)


def test_effective_values_are_those_of_the_real_server(server):
    truth, _result, effective = server
    real = truth["server_info"]
    claimed = sorted(effective.keys() & real.keys())
    different = {field: (effective[field], real[field]) for field in claimed if effective[field] != real[field]}
    print(f"{truth['name']}: claimed {len(claimed)} of {len(real)}, agreeing {len(claimed) - len(different)} of {len(claimed)}")
    for field, (said, was) in different.items():
        print(f"  {field}: preflight says {said}, the server ran with {was}: {DIFFERS.get(field, 'no reason known')}")
    assert set(different) <= set(DIFFERS)
    assert set(real) - set(claimed) == set(NOT_CLAIMED)
    assert len(claimed) >= CLAIMED
    assert len(claimed) - len(different) >= AGREEING


def test_what_must_be_claimed_is(server):
    truth, _result, effective = server
    assert [field for field in MUST_CLAIM if field not in effective] == []
    changed = [field for field, value in effective.items() if field not in DIFFERS and value is not None and field in truth["server_info"]]
    assert len(changed) > 200


def test_each_flag_that_was_asked_for_is_told(server):
    truth, result, _effective = server
    told = {flag["flag"]: flag["outcome"] for flag in result["flags"]}
    assert set(told) == {word for word in truth["argv"] if word.startswith("--")}
    assert "unknown" not in told.values()


def test_the_pool_is_the_one_that_the_server_measured(server):
    truth, result, _effective = server
    real = truth["server_info"]["max_total_num_tokens"]
    said = result["memory"]["kv_tokens"]
    print(f"{truth['name']}: KV pool of {said:,} tokens said, {real:,} measured ({said / real - 1:+.2%})")
    assert abs(said / real - 1) <= POOL_TOLERANCE


def test_servers_that_ran_are_not_rejected(server):
    _truth, result, _effective = server
    assert result["explained"]
    assert result["verdict"] in ("passed", "warned")


@pytest.mark.parametrize("path", FORETOLD, ids=lambda path: path.stem)
def test_the_cpu_build_says_what_the_cuda_build_said_on_the_gpu_machine(engines, path):
    truth, _result, effective = tell(engines, path)
    said = truth["preflight"]["effective"]
    assert {field for field in said if effective[field] != said[field]} <= set(DIFFERS)
    assert truth["preflight"]["probe"]["missing"] == []
