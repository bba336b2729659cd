# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _model_shape as shape
from ansible_collections.llmops.inference.plugins.module_utils._candidate import flatten_config

FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory"
STORY = flatten_config(json.loads((FIXTURES / "qwen3.6-27b.json").read_text()))


def config(layers, hidden, inner, heads, kv, vocabulary, **more):
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
    return {**dict(zip(names, (layers, hidden, inner, heads, kv, vocabulary))), **more}


LLAMA = config(32, 4096, 14336, 32, 8, 128256)
MIXTRAL = config(32, 4096, 14336, 32, 8, 32000, num_local_experts=8)
QWEN_MOE = config(48, 2048, 6144, 32, 4, 151936, head_dim=128, num_experts=128, moe_intermediate_size=768, decoder_sparse_step=1, mlp_only_layers=[])
LINEAR = {"linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32}
QWEN_NEXT = config(
    48,
    2048,
    5120,
    16,
    2,
    151936,
    head_dim=256,
    num_experts=512,
    moe_intermediate_size=512,
    shared_expert_intermediate_size=512,
    full_attention_interval=4,
    **LINEAR,
)
MLA = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
SHARED = {"n_shared_experts": 1, "num_nextn_predict_layers": 1}
DEEPSEEK = config(61, 7168, 18432, 128, 128, 129280, n_routed_experts=256, moe_intermediate_size=2048, first_k_dense_replace=3, **MLA, **SHARED)
GLM_AIR = config(46, 4096, 10944, 96, 8, 151552, head_dim=128, n_routed_experts=128, moe_intermediate_size=1408, first_k_dense_replace=1, **SHARED)
GPT_OSS = config(
    36,
    2880,
    2880,
    64,
    8,
    201088,
    head_dim=64,
    num_local_experts=128,
    architectures=["GptOssForCausalLM"],
    layer_types=["sliding_attention", "full_attention"] * 18,
)
SCOUT = config(
    48,
    5120,
    8192,
    40,
    8,
    202048,
    head_dim=128,
    intermediate_size_mlp=16384,
    num_local_experts=16,
    interleave_moe_layer_step=1,
    architectures=["Llama4ForConditionalGeneration"],
)
ONE, TWO = shape.Split(), shape.Split(2, 2)


@pytest.mark.parametrize(
    "model, billions",
    [
        pytest.param(LLAMA, 8.03, id="llama-3.1-8b"),
        pytest.param(MIXTRAL, 46.70, id="mixtral-8x7b"),
        pytest.param(QWEN_MOE, 30.53, id="qwen3-30b-a3b"),
        pytest.param(QWEN_NEXT, 79.67, id="qwen3-next-80b"),
        pytest.param(DEEPSEEK, 671.03, id="deepseek-v3"),
        pytest.param(GLM_AIR, 106.85, id="glm-4.5-air"),
        pytest.param(GPT_OSS, 116.83, id="gpt-oss-120b"),
        pytest.param(SCOUT, 107.77, id="llama-4-scout-without-vision"),
        pytest.param({**LLAMA, "tie_word_embeddings": True}, 8.03 - 0.525, id="one-table-for-embedding-and-head"),
        pytest.param({**MIXTRAL, "moe_layer_freq": [0] * 31 + [1]}, 46.70 - 31 * 7 * 0.17616, id="one-layer-with-experts"),
        pytest.param({**MIXTRAL, "moe_layer_freq": 2}, 46.70 - 16 * 7 * 0.17616, id="every-second-layer-with-experts"),
    ],
)
def test_parameters_come_within_a_thousandth_of_what_is_published(model, billions):
    assert sum(part.parameters for part in shape.parts(model, ONE)) / 1e9 == pytest.approx(billions, rel=1e-3)


@pytest.mark.parametrize(
    "model, layers, billions",
    [(LLAMA, 0, 1.05), (STORY, 1, 2.97), (DEEPSEEK, 1, 11.61 + 1.85), (GLM_AIR, 1, 2.38 + 1.24)],
)
def test_a_draft_of_the_model_has_its_own_embedding_and_head(model, layers, billions):
    assert shape.draft_layers(model) == layers
    assert sum(part.parameters for part in shape.draft_parts(model, ONE)) / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    "model, full, sliding, linear",
    [
        (LLAMA, 32, 0, 0),
        (STORY, 16, 0, 48),
        (QWEN_NEXT, 12, 0, 36),
        (GPT_OSS, 18, 18, 0),
        (SCOUT, 12, 36, 0),
        ({**LLAMA, "hybrid_layer_pattern": [1, 0] * 16}, 16, 16, 0),
        ({**LLAMA, "layer_types": ["full_attention"] * 40}, 32, 0, 0),
        ({**LLAMA, "layer_types": ["full_attention", "moonshine"] * 16}, 16, 0, 0),
        ({**LLAMA, "full_attention_interval": 4}, 32, 0, 0),
    ],
)
def test_layer_kinds(model, full, sliding, linear):
    kinds = shape.layer_kinds(model)
    assert (kinds.count("full"), kinds.count("sliding"), kinds.count("linear")) == (full, sliding, linear)


@pytest.mark.parametrize(
    "model, ranks, heads",
    [
        (LLAMA, 1, 8),
        (LLAMA, 8, 1),
        (LLAMA, 16, 1),
        (STORY, 2, 2),
        ({"num_attention_heads": 12}, 4, 3),
        ({"multi_query": True, "num_attention_heads": 12}, 1, 1),
        ({"multi_query": True, "new_decoder_architecture": True, "n_head_kv": 8, "num_attention_heads": 128}, 2, 4),
        ({"multi_query_group_num": 2, "num_attention_heads": 32}, 1, 2),
    ],
)
def test_kv_heads_of_a_rank(model, ranks, heads):
    assert shape.kv_heads(model, ranks) == heads


@pytest.mark.parametrize(
    "model, split, width, size",
    [
        pytest.param(LLAMA, ONE, 2, 32 * 8 * 256 * 2, id="gqa"),
        pytest.param(LLAMA, TWO, 1, 32 * 4 * 256, id="gqa-two-ranks-fp8"),
        pytest.param(LLAMA, shape.Split(16, 16), 2, 32 * 256 * 2, id="a-head-is-the-least"),
        pytest.param(LLAMA, shape.Split(8, 1), 2, 32 * 8 * 256 * 2, id="attention-is-not-split"),
        pytest.param(LLAMA, shape.Split(1, 1, 3), 2, 11 * 8 * 256 * 2, id="fullest-stage"),
        pytest.param(DEEPSEEK, shape.Split(8, 8), 2, 61 * 576 * 2, id="mla-is-copied"),
        pytest.param({**DEEPSEEK, "index_topk": 2048, "index_head_dim": 128}, ONE, 2, 61 * (576 * 2 + 132), id="mla-with-indexer"),
        pytest.param(STORY, TWO, 2, 32768, id="story-16-of-64-layers"),
        pytest.param(GPT_OSS, ONE, 2, 18 * 8 * 128 * 2 * 1.8, id="sliding-pool"),
        pytest.param({**GPT_OSS, "architectures": ["MistralForCausalLM"]}, ONE, 2, 36 * 8 * 128 * 2, id="sliding-layers-without-a-pool"),
        pytest.param({**GPT_OSS, "layer_types": ["sliding_attention"] * 36}, ONE, 2, 36 * 8 * 128 * 2, id="only-sliding"),
        pytest.param(
            {**GPT_OSS, "swa_num_key_value_heads": 4, "swa_head_dim": 32, "swa_v_head_dim": 16}, ONE, 2, 18 * (8 * 128 + 0.8 * 4 * 48) * 2, id="own-heads"
        ),
    ],
)
def test_kv_bytes_of_a_token(model, split, width, size):
    assert shape.kv_bytes(model, split, width) == pytest.approx(size)


@pytest.mark.parametrize(
    "model, split, widths, size",
    [
        (LLAMA, ONE, (4, 2), 0),
        pytest.param(STORY, TWO, (4, 2), 48 * (24 * 128 * 128 * 4 + 5120 * 3 * 2), id="story"),
        pytest.param(STORY, TWO, (2, 2), 48 * (24 * 128 * 128 * 2 + 5120 * 3 * 2), id="bfloat16-state"),
        pytest.param(STORY, shape.Split(2, 2, 2), (4, 2), 24 * (24 * 128 * 128 * 4 + 5120 * 3 * 2), id="half-the-layers"),
        pytest.param({**STORY, "linear_num_key_heads": 1}, TWO, (4, 2), 48 * (24 * 128 * 128 * 4 + (6144 + 512) // 2 * 3 * 2), id="copied-key-heads"),
    ],
)
def test_state_bytes_of_a_request(model, split, widths, size):
    assert shape.state_bytes(model, split, *widths) == size


@pytest.mark.parametrize(
    "model, why",
    [
        (LLAMA, ""),
        (DEEPSEEK, ""),
        (STORY, ""),
        ({}, shape.NO_LAYERS),
        ({"num_hidden_layers": 32}, shape.NO_LAYERS),
        ({**LLAMA, "hybrid_override_pattern": "M-M*"}, "Mamba-2 layers"),
        ({**LLAMA, "compress_ratios": [4, 128]}, "compressed attention"),
    ],
)
def test_what_has_no_formula_is_said(model, why):
    assert shape.unknown_layout(model) == why


@pytest.mark.parametrize(
    "quantization, flag, width",
    [
        (None, None, None),
        (None, "fp8", 1.0),
        (None, "unheard-of", None),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, None, 1.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, None, 0.5195),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, None, 1.0),
        ({"quant_method": "mxfp4"}, None, 0.53),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, None, 0.56),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None, 0.56),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, None, 1.0),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}}}, None, 0.578),
        ({"quant_method": "unheard-of"}, None, None),
    ],
)
def test_quantized_width(quantization, flag, width):
    found = shape.quantized_width({"quantization_config": quantization}, flag)
    assert found == (width if width is None else pytest.approx(width, rel=1e-3))


@pytest.mark.parametrize(
    "own, dtype, width, stored",
    [({}, "auto", 2, 2), ({"torch_dtype": "float32"}, "auto", 2, 4), ({"dtype": "bfloat16"}, "float32", 4, 2), ({"dtype": "torch.float16"}, "half", 2, 2)],
)
def test_plain_width(own, dtype, width, stored):
    assert (shape.plain_width(own, dtype), shape.stored_width(own)) == (width, stored)


def test_weights_of_the_fullest_gpu():
    model, plain = {**GPT_OSS, "vocab_size": 200000}, shape.Types(2)
    whole = shape.weight(shape.parts(model, ONE), plain)
    assert shape.weight(shape.parts(model, ONE), plain, 1) == pytest.approx(whole)
    assert whole / 2 < shape.weight(shape.parts(model, TWO), plain, 1) < whole / 2 * 1.01
    table = 200000 * 2880 * 2
    assert shape.weight(shape.parts(model, ONE), plain, 2) == pytest.approx((whole - 2 * table) / 2 + table, rel=1e-6)
    experts_only = shape.weight(shape.parts(GPT_OSS, ONE), shape.Types(2, 0.53, experts_only=True))
    assert experts_only / 1e9 == pytest.approx(65, rel=0.03)
    assert shape.weight(shape.parts(GPT_OSS, ONE), shape.Types(2, 0.53)) < experts_only


def test_more_ranks_than_kv_heads_copy_them():
    many = shape.Split(16, 16)
    extra = shape.weight(shape.parts(LLAMA, many), shape.Types(2), 1) - shape.weight(shape.parts(LLAMA, ONE), shape.Types(2)) / 16
    pairs = 32 * 2 * 4096 * 1024 * 2
    norms = 32 * 2 * 4096 * 2
    assert extra == pytest.approx(pairs / 8 - pairs / 16 + norms * 15 / 16)
