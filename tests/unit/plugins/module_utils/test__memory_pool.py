# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._memory_pool import (
    States,
    engine_version,
    most_requests,
    request_groups,
    size_states,
    size_tokens,
    state_gb,
    token_bytes,
)
from ansible_collections.llmops.inference.plugins.module_utils._model_shape import Split
from ansible_collections.llmops.inference.tests.unit.memory import EIGHT, NEXTN, NINE, candidate

ONE = Split(1, 1, 1)
CELL = 36 * 8 * 256 * 2
# GB that a server of NINE on an H200 has for states and KV pool.
REST = 107.6913


@pytest.mark.parametrize("engine, numbers", [("0.5.12", (0, 5, 12)), ("0.5.23.post1", (0, 5, 23)), ("", (99,))])
def test_an_unknown_version_is_the_newest(engine, numbers):
    assert engine_version(Candidate(engine)) == numbers


@pytest.mark.parametrize("more, groups", [({}, 1), ({"dp_size": 2, "tp_size": 2}, 1), ({"dp_size": 2, "tp_size": 2, "enable_dp_attention": True}, 2)])
def test_request_groups(more, groups):
    assert request_groups(candidate(**more)) == groups


@pytest.mark.parametrize(
    "more, inside, outside",
    [
        pytest.param({}, CELL, 0, id="as-the-model"),
        pytest.param({"kv_cache_dtype": "fp8_e4m3"}, CELL / 2, 0, id="fp8"),
        pytest.param({"config": {**EIGHT, "quantization_config": {"kv_cache_quant_algo": "FP8"}}}, CELL / 2, 0, id="fp8-by-the-checkpoint"),
        pytest.param({"kv_cache_dtype": "mxfp8"}, CELL * 33 / 64, 0, id="mxfp8-with-its-scales"),
        pytest.param({"dtype": "float32"}, CELL * 2, 0, id="float32"),
    ],
)
def test_bytes_of_a_token(more, inside, outside):
    server = candidate(**more)
    assert token_bytes(server, server.text_config, ONE, 0) == (inside, outside)


@pytest.mark.parametrize(
    "engine, more, in_pool",
    [
        pytest.param("0.5.12", {"speculative_draft_model_path": "/srv/models/draft"}, False, id="never"),
        pytest.param("0.5.17", {"speculative_draft_model_path": "/srv/models/draft"}, True, id="by-its-path"),
        pytest.param("0.5.17", {}, False, id="the-models-own"),
        pytest.param("0.5.23", {}, True, id="the-models-own-and-newer"),
    ],
)
def test_a_draft_that_the_engine_counts_makes_a_token_larger(engine, more, in_pool):
    server = candidate({**EIGHT, "num_nextn_predict_layers": 1}, engine, **NEXTN, **more)
    found = token_bytes(server, server.text_config, ONE, 1)
    assert found == pytest.approx((CELL * 37 / 36, 0) if in_pool else (CELL, CELL / 36))


@pytest.mark.parametrize(
    "more, slots, each",
    [
        ({}, 1063, 3),
        ({"mamba_radix_cache_strategy": "no_buffer"}, 1063, 3),
        ({"mamba_radix_cache_strategy": "extra_buffer"}, 1063, 5),
        ({"mamba_radix_cache_strategy": "extra_buffer_lazy"}, 1063, 4),
        ({"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": True}, 1063, 4),
        ({"disable_radix_cache": True}, 1063, 1),
        ({"disable_radix_cache": True, "max_running_requests": 64}, 64, 1),
        ({"max_mamba_cache_size": 100}, 100, 3),
        ({"max_mamba_cache_size": 100, "dp_size": 2, "tp_size": 2, "enable_dp_attention": True}, 50, 3),
        ({"mamba_ssm_dtype": "bfloat16"}, 2079, 3),
        ({"mamba_full_memory_ratio": 0.45}, 696, 3),
    ],
)
def test_states(more, slots, each):
    server = candidate(NINE, **more)
    one = state_gb(server, server.text_config, ONE)
    assert size_states(server, server.text_config, ONE, REST) == States(slots, pytest.approx(slots * one), 0.0, each)


def test_a_model_without_linear_attention_has_no_states():
    server = candidate()
    assert state_gb(server, server.text_config, ONE) == 0
    assert size_states(server, server.text_config, ONE, REST) == States()


@pytest.mark.parametrize(
    "more, tokens", [({}, 1000), ({"page_size": 64}, 960), ({"max_total_tokens": 500}, 500), ({"max_total_tokens": 500, "page_size": 64}, 448)]
)
def test_tokens_come_in_whole_pages(more, tokens):
    assert size_tokens(candidate(**more), 1000.5 * CELL, CELL) == tokens


def test_bytes_that_are_missing_are_no_tokens():
    assert size_tokens(candidate(), -1.0, CELL) < 0
    assert size_tokens(candidate(), 1.0, 0) == 0


@pytest.mark.parametrize(
    "more, states, tokens, requests",
    [
        pytest.param({}, States(), 40960, 2048, id="the-engines-least"),
        pytest.param({}, States(), 40960 * 20, 4096, id="the-engines-most"),
        pytest.param({}, States(), 1000, 500, id="two-tokens-for-each"),
        pytest.param({}, States(), -5, 0, id="no-tokens"),
        pytest.param({"max_running_requests": 48}, States(), 40960, 48, id="asked-for"),
        pytest.param({"max_running_requests": 48, "dp_size": 2, "tp_size": 2, "enable_dp_attention": True}, States(), 40960, 24, id="of-one-group"),
        pytest.param({"max_running_requests": 48}, States(100, 1.0, 0.0, 3), 40960, 33, id="by-slots"),
    ],
)
def test_requests(more, states, tokens, requests):
    assert most_requests(candidate(**more), states, tokens, 40960) == requests
