# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_parallel as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

LLAMA = {"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}
QWEN35 = {"text_config": {"num_attention_heads": 24, "num_key_value_heads": 4, "linear_num_value_heads": 48, "linear_num_key_heads": 16}}
MOE = {"num_attention_heads": 64, "num_key_value_heads": 4, "num_experts": 128, "moe_intermediate_size": 1536, "vocab_size": 151936}
FP8 = {**MOE, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def candidate(config, engine="0.5.23", effective=None, **asked):
    return Candidate(engine=engine, asked=asked, effective=effective or {}, config=config)


CASES = (
    # F08: heads
    (rules.heads, {"num_attention_heads": 40}, {"tp_size": 3}, "heads", "error", "40 attention heads are not divisible by tp_size 3"),
    (rules.heads, {"num_attention_heads": 40}, {"tp_size": 3}, "heads", "error", "set tp_size to 1, 2, 4, 5, 8, 10, 20 or 40"),
    (rules.heads, {"num_attention_heads": 32}, {"tp_size": 6}, "heads", "error", "set tp_size to 1, 2, 4, 8, 16 or 32"),
    (rules.heads, {"num_attention_heads": 40}, {"tp_size": 2}, None, None, ""),
    (rules.heads, {"num_attention_heads": 1}, {"tp_size": 2}, "heads", "error", "set tp_size to 1"),
    (rules.heads, {"text_config": {"num_attention_heads": 64}}, {"tp_size": 4}, None, None, ""),
    (rules.heads, {"text_config": {"num_attention_heads": 64}, "num_attention_heads": 9}, {"tp_size": 3}, "heads", "error", "64 attention heads"),
    (rules.heads, {}, {"tp_size": 3}, None, None, ""),
    (rules.heads, {"num_attention_heads": 40}, {"tp_size": 3, "device": "cpu"}, None, None, ""),
    (rules.heads, {"num_attention_heads": 0}, {"tp_size": 3}, None, None, ""),
    (rules.heads, LLAMA, {"tp_size": "5"}, "heads", "error", "set tp_size to 1, 2, 4, 8, 16 or 32"),
    (rules.heads, {**LLAMA, "num_key_value_heads": 3}, {"tp_size": 5}, "heads", "error", "set tp_size to 1"),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "enable_dp_attention": True, "dp_size": 4}, None, None, ""),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "attn_dp_size": 2}, "heads", "error", "share of tensor parallelism, 4 (tp_size 8)"),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "attn_dp_size": 2}, "heads", "error", "set tp_size to 2, 4, 6 or 12"),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "attn_cp_size": 4}, None, None, ""),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "dp_size": 2}, "heads", "error", "tp_size 8"),
    (rules.heads, {"num_attention_heads": 6}, {"tp_size": 8, "attn_dp_size": 3}, None, None, ""),
    # KV heads
    (rules.kv_heads, LLAMA, {"tp_size": 8}, None, None, ""),
    (rules.kv_heads, LLAMA, {"tp_size": 16}, "kv_heads_repeated", "note", "kept 2 times under tp_size 16"),
    (rules.kv_heads, LLAMA, {"tp_size": 16}, "kv_heads_repeated", "note", "beyond tp_size 8"),
    (rules.kv_heads, {"num_attention_heads": 48, "num_key_value_heads": 8}, {"tp_size": 3}, "kv_heads", "error", "8 KV heads can be neither"),
    (rules.kv_heads, {"num_attention_heads": 48, "num_key_value_heads": 8}, {"tp_size": 12}, "kv_heads", "error", "set tp_size to 1, 2, 4, 8, 16, 24 or 48"),
    (rules.kv_heads, {"num_attention_heads": 48, "num_key_value_heads": 8}, {"tp_size": 12, "dcp_size": 2}, None, None, ""),
    (rules.kv_heads, {"num_attention_heads": 48, "num_key_value_heads": 48}, {"tp_size": 5}, None, None, ""),
    (rules.kv_heads, {"num_attention_heads": 128, "num_key_value_heads": 3, "kv_lora_rank": 512}, {"tp_size": 8}, None, None, ""),
    (rules.kv_heads, {"num_attention_heads": 71, "multi_query": True}, {"tp_size": 2}, "kv_heads_repeated", "note", "1 KV heads are kept 2 times"),
    (rules.kv_heads, {"num_attention_heads": 128, "n_head_kv": 8, "multi_query": True, "new_decoder_architecture": True}, {"tp_size": 8}, None, None, ""),
    (rules.kv_heads, {"num_attention_heads": 32}, {"tp_size": 8}, None, None, ""),
    (rules.kv_heads, QWEN35, {"tp_size": 8}, "kv_heads_repeated", "note", "4 KV heads are kept 2 times"),
    (rules.kv_heads, QWEN35, {"tp_size": 8, "attn_dp_size": 2}, None, None, ""),
    (rules.kv_heads, QWEN35, {"tp_size": 16, "attn_dp_size": 2}, "kv_heads_repeated", "note", "beyond tp_size 8"),
    (rules.kv_heads, {"num_key_value_heads": 8}, {"tp_size": 3}, "kv_heads", "error", "set tp_size to 1, 2, 4 or 8"),
    # linear attention
    (rules.linear_heads, QWEN35, {"tp_size": 16}, None, None, ""),
    (rules.linear_heads, QWEN35, {"tp_size": 5}, "linear_heads", "error", "48 linear_num_value_heads are not divisible by tp_size 5"),
    (rules.linear_heads, QWEN35, {"tp_size": 3}, "linear_key_heads", "warning", "16 linear_num_key_heads"),
    (rules.linear_heads, QWEN35, {"tp_size": 6, "attn_dp_size": 6}, None, None, ""),
    (rules.linear_heads, QWEN35, {"tp_size": 5, "device": "cpu"}, None, None, ""),
    (rules.linear_heads, {"mamba_num_heads": 126}, {"tp_size": 4}, "linear_heads", "error", "126 mamba_num_heads"),
    (rules.linear_heads, {"mamba_n_heads": 24}, {"tp_size": 16}, "linear_heads", "error", "24 mamba_n_heads"),
    (rules.linear_heads, LLAMA, {"tp_size": 3}, None, None, ""),
    # experts
    (rules.experts, MOE, {"ep_size": 8, "tp_size": 8}, None, None, ""),
    (rules.experts, MOE, {"ep_size": 3}, "experts", "error", "128 experts are not divisible by ep_size 3"),
    (rules.experts, MOE, {"ep_size": 3}, "experts", "error", "ep_num_redundant_experts to 1"),
    (rules.experts, MOE, {"ep_size": 3, "ep_num_redundant_experts": 1}, None, None, ""),
    (rules.experts, MOE, {"ep_size": 4, "ep_num_redundant_experts": 1}, "experts", "error", "128 experts and 1 redundant ones"),
    (rules.experts, {"n_routed_experts": 256}, {"ep_size": 48}, "experts", "error", "256 experts"),
    (rules.experts, {"num_local_experts": 8}, {"ep_size": 16}, "experts", "error", "8 experts"),
    (rules.experts, MOE, {"tp_size": 6, "moe_a2a_backend": "deepep"}, "experts", "error", "ep_size 6"),
    (rules.experts, MOE, {"tp_size": 6, "moe_a2a_backend": "none"}, None, None, ""),
    (rules.experts, LLAMA, {"ep_size": 3}, None, None, ""),
    (rules.experts, MOE, {"ep_size": 0}, None, None, ""),
    # the experts' width
    (rules.expert_width, MOE, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, MOE, {"tp_size": 5}, "expert_width", "error", "moe_intermediate_size 1536 is not divisible by tp_size 5"),
    (rules.expert_width, MOE, {"tp_size": 10, "ep_size": 2}, "expert_width", "error", "the experts' share of tensor parallelism, 5"),
    (rules.expert_width, MOE, {"tp_size": 10, "ep_size": 10}, None, None, ""),
    (rules.expert_width, MOE, {"tp_size": 10, "ep_size": 1, "moe_dp_size": 5}, None, None, ""),
    (rules.expert_width, {"moe_intermediate_size": 7}, {"tp_size": 2}, None, None, ""),
    (rules.expert_width, FP8, {"tp_size": 4}, None, None, ""),
    (rules.expert_width, FP8, {"tp_size": 8}, "fp8_blocks", "error", "leaves 192, which cuts the model's FP8 blocks of 128"),
    (rules.expert_width, FP8, {"tp_size": 8}, "fp8_blocks", "error", "at most 12 GPUs share an expert"),
    (rules.expert_width, FP8, {"tp_size": 8, "ep_size": 2}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "awq"}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "fp8"}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, MOE, {"tp_size": 2, "ep_size": 4}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "fp8", "weight_block_size": (64, 128)}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "fp8", "weight_block_size": []}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "fp8", "weight_block_size": ["x"]}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, {**FP8, "quantization_config": {"quant_method": "fp8", "weight_block_size": 128}}, {"tp_size": 8}, None, None, ""),
    (rules.expert_width, {"text_config": FP8}, {"tp_size": 8}, "fp8_blocks", "error", "leaves 192"),
    (rules.expert_width, {**FP8, "moe_intermediate_size": 64}, {}, "fp8_blocks", "error", "64 by tp_size 1 leaves 64, which cuts"),
    (rules.expert_width, {**FP8, "moe_intermediate_size": 64}, {}, "fp8_blocks", "error", "at most 1 GPUs"),
    (rules.expert_width, {"num_experts": 8, "moe_intermediate_size": 7}, {}, None, None, ""),
    (rules.expert_width, {"num_experts": 8}, {"tp_size": 2}, None, None, ""),
    (rules.expert_width, {"num_experts": 8, "moe_intermediate_size": 1}, {"tp_size": 2}, "expert_width", "error", "moe_intermediate_size 1"),
    (rules.expert_width, MOE, {"tp_size": 4, "ep_size": 0}, None, None, ""),
    (rules.experts, {"num_experts": 7}, {"moe_a2a_backend": "deepep"}, None, None, ""),
    (rules.experts, {"num_experts": 1}, {"ep_size": 2}, "experts", "error", "1 experts are not divisible by ep_size 2"),
    # a dense model's width
    (rules.dense_width, {"intermediate_size": 7}, {}, None, None, ""),
    (rules.dense_width, {"intermediate_size": 1}, {"tp_size": 2}, "dense_width", "error", "intermediate_size 1"),
    (rules.dense_width, {}, {"tp_size": 2}, None, None, ""),
    (rules.attention_widths, {}, {"attn_dp_size": 2}, "attention_widths", "error", "tp_size 1 is not divisible"),
    (rules.heads, {"num_attention_heads": 7}, {}, None, None, ""),
    (rules.heads, {"num_attention_heads": 7}, {"tp_size": 0}, None, None, ""),
    (rules.heads, {"num_attention_heads": 7}, {"tp_size": 2, "attn_dp_size": 0}, None, None, ""),
    (rules.linear_heads, {"mamba_num_heads": 1}, {"tp_size": 2}, "linear_heads", "error", "set tp_size to 1"),
    (rules.linear_heads, {"mamba_num_heads": 12}, {"tp_size": 5}, "linear_heads", "error", "set tp_size to 1, 2, 3, 4, 6 or 12"),
    (rules.linear_heads, {"linear_num_key_heads": 6}, {"tp_size": 4}, "linear_key_heads", "warning", "set tp_size to 1, 2, 3 or 6"),
    (rules.linear_heads, {"linear_num_key_heads": 1}, {"tp_size": 4}, "linear_key_heads", "warning", "1 linear_num_key_heads"),
    (rules.dense_width, LLAMA, {"tp_size": 14}, None, None, ""),
    (rules.dense_width, LLAMA, {"tp_size": 3}, "dense_width", "error", "intermediate_size 14336 is not divisible by tp_size 3"),
    (rules.dense_width, LLAMA, {"tp_size": 3, "device": "cpu"}, None, None, ""),
    (rules.dense_width, LLAMA, {"tp_size": 6, "attn_dp_size": 2}, None, None, ""),
    (rules.dense_width, {**MOE, "intermediate_size": 100}, {"tp_size": 3}, None, None, ""),
    (rules.dense_width, LLAMA, {"tp_size": 0}, None, None, ""),
    # attention's widths
    (rules.attention_widths, {}, {"tp_size": 8, "attn_dp_size": 4, "attn_cp_size": 2}, None, None, ""),
    (rules.attention_widths, {}, {"tp_size": 8, "attn_dp_size": 4, "attn_cp_size": 4}, "attention_widths", "error", "(16 together)"),
    (rules.attention_widths, {}, {"tp_size": 8, "enable_dp_attention": True, "dp_size": 3}, "attention_widths", "error", "a multiple of 3"),
    (rules.attention_widths, {}, {"tp_size": 8, "dp_size": 3}, None, None, ""),
    (rules.attention_widths, {}, {"tp_size": 8, "dp_size": 2, "attn_dp_size": 2}, "attention_widths", "error", "cannot be combined"),
    (rules.attention_widths, {}, {"tp_size": 8, "dp_size": 1, "attn_dp_size": 2}, None, None, ""),
    (rules.attention_widths, {}, {"tp_size": 8, "attn_dp_size": 0}, None, None, ""),
)


@pytest.mark.parametrize("rule, config, asked, code, severity, words", CASES)
def test_rule(rule, config, asked, code, severity, words):
    found = rule(candidate(config, **asked))
    assert [(finding.code, finding.severity) for finding in found] == ([(code, severity)] if code else [])
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source and finding.fields for finding in found)


@pytest.mark.parametrize(
    "engine, vocab_size, tp_size, severity",
    [
        ("0.5.12", 151936, 8, None),
        ("0.5.12", 151936, 3, "error"),
        ("0.5.16", 151936, 3, "error"),
        ("0.5.17", 151936, 3, "warning"),
        ("0.5.22", 151936, 3, "warning"),
        ("0.5.23", 151936, 3, None),
        ("", 151936, 3, None),
        # 32001 becomes 32064, which 3 divides; 129280 is issue 31799.
        ("0.5.12", 32001, 3, None),
        ("0.5.12", 32001, 5, "error"),
        ("0.5.12", 129280, 24, "error"),
        ("0.5.12", 0, 3, None),
        ("0.5.12", 64, 64, None),
        ("0.5.12", 65, 128, None),
        ("0.5.12", 63, 128, "error"),
        ("0.5.12", 1, 128, "error"),
    ],
)
def test_vocabulary(engine, vocab_size, tp_size, severity):
    found = rules.vocabulary(candidate({"vocab_size": vocab_size}, engine, tp_size=tp_size))
    assert [(finding.code, finding.severity) for finding in found] == ([("vocabulary", severity)] if severity else [])


def test_vocabulary_elsewhere():
    assert not rules.vocabulary(candidate({"vocab_size": 151936}, "0.5.12", tp_size=3, device="cpu"))
    assert not rules.vocabulary(candidate({"vocab_size": 151936}, "0.5.12", tp_size=3, attn_dp_size=3))
    assert not rules.vocabulary(candidate({"vocab_size": 151936}, "0.5.12", tp_size=0))
    assert not rules.vocabulary(candidate({"vocab_size": 129}, "0.5.12"))
    assert not rules.vocabulary(candidate({}, "0.5.12", tp_size=3))
    (found,) = rules.vocabulary(candidate({"vocab_size": 129279}, "0.5.12", tp_size=24))
    assert "129279 padded to 129280, is not divisible by tp_size 24 in sglang 0.5.12" in found.text


def test_the_engine_has_the_last_word_about_expert_parallelism():
    effective = {"ep_size": 2, "tp_size": 6, "moe_a2a_backend": "deepep"}
    assert not rules.experts(candidate(MOE, effective=effective, ep_size=3))


@pytest.mark.parametrize(
    "asked, width, copies, share",
    [
        ({}, 1, 1, 1),
        ({"dp_size": 2}, 1, 2, 1),
        ({"dp_size": 2, "enable_dp_attention": True}, 2, 1, 2),
        ({"dp_size": 1, "enable_dp_attention": True, "attn_dp_size": 4}, 4, 1, 4),
        ({"attn_dp_size": 4, "attn_cp_size": 2}, 4, 1, 8),
        ({"attn_dp_size": 4, "dp_size": 2}, 4, 2, 4),
        ({"attn_cp_size": 2}, 1, 1, 2),
        ({"enable_dp_attention": True}, 1, 1, 1),
    ],
)
def test_widths(asked, width, copies, share):
    found = candidate({}, **asked)
    assert (rules.attention_data_parallelism(found), rules.replicas(found), rules.attention_share(found)) == (width, copies, share)


def test_valid_tp_sizes():
    assert rules.valid_tp_sizes(32) == [1, 2, 4, 8, 16, 32]
    assert rules.valid_tp_sizes(48, 8) == [1, 2, 4, 8, 16, 24, 48]
    assert rules.valid_tp_sizes(6, 0, 2) == [2, 4, 6, 12]


def test_all_rules_are_listed():
    named = {rule.__name__ for rule in (*rules.RULES, *rules.FALLBACK_RULES)}
    assert named == {"heads", "kv_heads", "linear_heads", "experts", "expert_width", "dense_width", "vocabulary", "attention_widths"}
