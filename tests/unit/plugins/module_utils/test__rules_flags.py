# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_flags as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

DENSE, SPARSE = {"max_position_embeddings": 32768}, {"max_position_embeddings": 32768, "num_experts": 8}
ALLOWED = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}

CASES = (
    (rules.memory_fraction, {"mem_fraction_static": 0.9}, None, ""),
    (rules.memory_fraction, {"mem_fraction_static": "0.001"}, None, ""),
    (rules.memory_fraction, {"mem_fraction_static": "9e-1"}, None, ""),
    (rules.memory_fraction, {"mem_fraction_static": 0.999}, None, ""),
    (rules.memory_fraction, {}, None, ""),
    (rules.memory_fraction, {"mem_fraction_static": 1}, "mem_fraction_static", "mem_fraction_static 1 is not between 0 and 1: the KV cache would take all"),
    (rules.memory_fraction, {"mem_fraction_static": 1.5}, "mem_fraction_static", "0.85 for example"),
    (rules.memory_fraction, {"mem_fraction_static": 0}, "mem_fraction_static", "no memory is left"),
    (rules.memory_fraction, {"mem_fraction_static": -0.5}, "mem_fraction_static", "no memory is left"),
    (rules.memory_fraction, {"mem_fraction_static": "90%"}, "mem_fraction_static", "'90%' is no number"),
    (rules.memory_fraction, {"mem_fraction_static": True}, "mem_fraction_static", "True is no number"),
    (rules.memory_fraction, {"mem_fraction_static": [1]}, "mem_fraction_static", "is no number"),
    (rules.hicache_without_cache, {"hicache_ratio": 2}, "hicache_ignored", "hicache_ratio has no effect without enable_hierarchical_cache"),
    (rules.hicache_without_cache, {"hicache_ratio": 2, "hicache_size": 4}, "hicache_ignored", "hicache_ratio, hicache_size have no effect"),
    (rules.hicache_without_cache, {"hicache_ratio": 2, "enable_hierarchical_cache": True}, None, ""),
    (rules.hicache_without_cache, {"hicache_ratio": 2, "disaggregation_mode": "decode"}, None, ""),
    (rules.hicache_without_cache, {"hicache_ratio": 2, "enable_lmcache": True}, None, ""),
    (rules.hicache_without_cache, {"hicache_ratio": None}, None, ""),
    (rules.lora_switched_off, {"lora_paths": ["a=/a"], "enable_lora": False}, "lora_ignored", "lora_paths is ignored"),
    (rules.lora_switched_off, {"lora_paths": ["a=/a"], "enable_lora": True}, None, ""),
    (rules.lora_switched_off, {"lora_paths": ["a=/a"]}, None, ""),
    (rules.lora_switched_off, {"enable_lora": False}, None, ""),
    (rules.priority_without_scheduling, {"default_priority_value": 0}, "priority_ignored", "default_priority_value has no effect"),
    (
        rules.priority_without_scheduling,
        {"default_priority_value": 1, "disable_priority_preemption": True},
        "priority_ignored",
        "disable_priority_preemption and default_priority_value have no effect",
    ),
    (rules.priority_without_scheduling, {"default_priority_value": 1, "enable_priority_scheduling": True}, None, ""),
    (rules.priority_without_scheduling, {"disable_priority_preemption": False}, None, ""),
    # F07
    (rules.model_name, {"served_model_name": "qwen3:8b"}, "served_model_name", "set served_model_name to qwen3-8b"),
    (rules.model_name, {"served_model_name": "qwen3"}, None, ""),
    (rules.model_name, {"served_model_name": "qwen3", "model_path": "/m:1"}, None, ""),
    (rules.model_name, {"model_path": "/m:1"}, "served_model_name", "'/m:1' contains a colon"),
    (rules.model_name, {"model_path": "s3://bucket/m"}, None, ""),
    (rules.model_name, {"model_path": "hf://bucket/m"}, "served_model_name", "colon"),
    (rules.model_name, {}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 1000, "page_size": 64}, "chunked_prefill_size", "set chunked_prefill_size to 960"),
    (rules.prefill_pages, {"chunked_prefill_size": 32, "page_size": 64}, "chunked_prefill_size", "set chunked_prefill_size to 64"),
    (rules.prefill_pages, {"chunked_prefill_size": 1024, "page_size": 64}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": -1, "page_size": 64}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 0, "page_size": 64}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 1000, "page_size": 64, "disaggregation_mode": "decode"}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 1001}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 1, "page_size": 2}, "chunked_prefill_size", "set chunked_prefill_size to 2"),
    (rules.prefill_pages, {"page_size": 64}, None, ""),
    (rules.prefill_pages, {"chunked_prefill_size": 1000, "page_size": 0}, None, ""),
    (rules.compile_without_padding, {"disable_cuda_graph_padding": True, "enable_torch_compile": True}, "compile_without_padding", "exclude each other"),
    (rules.compile_without_padding, {"disable_cuda_graph_padding": True}, None, ""),
    (rules.compile_without_padding, {"enable_torch_compile": True}, None, ""),
    (rules.nodes, {"dp_size": 2, "nnodes": 2, "tp_size": 2}, "replicas_over_nodes", "dp_size 2 over 2 nodes needs attention data parallelism"),
    (rules.nodes, {"dp_size": 2, "nnodes": 2, "tp_size": 2, "enable_dp_attention": True}, None, ""),
    (rules.nodes, {"attn_dp_size": 2, "nnodes": 2, "tp_size": 2}, None, ""),
    (rules.nodes, {"dp_size": 2, "nnodes": 1}, None, ""),
    (rules.nodes, {"tp_size": 3, "nnodes": 2}, "nodes", "tp_size times pp_size, 3, is not divisible by nnodes 2"),
    (rules.nodes, {"tp_size": 3, "pp_size": 2, "nnodes": 2}, None, ""),
    (rules.nodes, {"tp_size": 4, "nnodes": 2}, None, ""),
    (rules.nodes, {"tp_size": 4, "nnodes": 0}, None, ""),
    (rules.nodes, {"tp_size": 3}, None, ""),
    (rules.nodes, {"nnodes": 2}, "nodes", "tp_size times pp_size, 1, is not divisible"),
    (rules.two_batch_overlap, {"enable_two_batch_overlap": True}, "two_batch_overlap", "needs moe_a2a_backend"),
    (rules.two_batch_overlap, {"enable_two_batch_overlap": True, "moe_a2a_backend": "deepep"}, None, ""),
    (rules.two_batch_overlap, {"enable_two_batch_overlap": True, "attn_dp_size": 2}, None, ""),
    (rules.two_batch_overlap, {}, None, ""),
)


@pytest.mark.parametrize("rule, asked, code, words", CASES)
def test_rule(rule, asked, code, words):
    found = rule(Candidate(engine="0.5.23", asked=asked))
    assert [finding.code for finding in found] == ([code] if code else [])
    ignored = (rules.hicache_without_cache, rules.lora_switched_off, rules.priority_without_scheduling)
    assert all(finding.severity == ("ignored" if rule in ignored else "error") for finding in found)
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source and finding.fields for finding in found)


@pytest.mark.parametrize(
    "config, asked, found",
    [
        (DENSE, {"enable_single_batch_overlap": True}, True),
        (SPARSE, {"enable_single_batch_overlap": True}, False),
        ({}, {"enable_single_batch_overlap": True}, False),
        (DENSE, {}, False),
    ],
)
def test_overlap(config, asked, found):
    findings = rules.overlap_without_experts(Candidate(config=config, asked=asked))
    assert [(finding.code, finding.severity) for finding in findings] == ([("overlap_without_experts", "ignored")] if found else [])


# F10, and what get_context_length of all three versions makes of a configuration.
@pytest.mark.parametrize(
    "config, derived",
    [
        (DENSE, 32768),
        ({}, 2048),
        ({"model_max_length": 8192, "max_position_embeddings": 32768}, 8192),
        ({"max_sequence_length": 1, "seq_length": 2, "max_seq_len": 3}, 1),
        ({"seq_length": 2, "max_seq_len": 3}, 2),
        ({"max_seq_len": 3, "model_max_length": 4}, 3),
        ({**DENSE, "rope_scaling": {"factor": 4.0}}, 131072),
        ({**DENSE, "rope_scaling": {"rope_type": "yarn", "factor": 1.5}}, 49152),
        ({**DENSE, "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32768}}, 32768),
        ({**DENSE, "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}}, 32768),
        ({**DENSE, "rope_scaling": {"rope_type": "default"}}, 32768),
        ({**DENSE, "rope_scaling": None}, 32768),
    ],
)
def test_derived_context_length(config, derived):
    assert rules.derived_context_length(config) == derived


@pytest.mark.parametrize(
    "asked, config, environment, severity, words",
    [
        (131072, DENSE, {}, "error", "context_length 131072 is longer than the 32768 of the model"),
        (131072, DENSE, {}, "error", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"),
        (131072, DENSE, ALLOWED, "warning", "set context_length to 32768 or less"),
        (131072, DENSE, {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "false"}, "error", ""),
        (32769, {"text_config": DENSE}, {}, "error", "32769"),
        (32768, DENSE, {}, None, ""),
        ("32768", DENSE, {}, None, ""),
        ("32k", DENSE, {}, "error", "'32k' is not an integer"),
        ("32k", DENSE, ALLOWED, "error", "32768 for 32k"),
        (0, DENSE, {}, "error", "is not an integer above 0"),
        (1, DENSE, {}, None, ""),
        (None, {"max_position_embeddings": 0}, {}, None, ""),
        (131072, {}, {}, None, ""),
        (None, DENSE, {}, None, ""),
    ],
)
def test_context_length(asked, config, environment, severity, words):
    candidate = Candidate(asked={"context_length": asked}, config=config, environment=environment)
    refused, allowed = rules.context_length(candidate), rules.context_allowed(candidate)
    assert [finding.severity for finding in refused] == ["error"] * (severity == "error")
    assert [finding.severity for finding in allowed] == ["warning"] * (severity == "warning")
    assert all(finding.code == "context_length" and words in f"{finding.text}; {finding.hint}" for finding in (*refused, *allowed))


def test_both_complaints_about_nodes():
    found = rules.nodes(Candidate(asked={"tp_size": 3, "dp_size": 2, "nnodes": 2}))
    assert [finding.code for finding in found] == ["nodes", "replicas_over_nodes"]


def test_all_rules_are_listed():
    named = [rule.__name__ for rule in rules.RULES]
    assert named == [
        "memory_fraction",
        "overlap_without_experts",
        "hicache_without_cache",
        "lora_switched_off",
        "priority_without_scheduling",
        "context_allowed",
    ]
    named = [rule.__name__ for rule in rules.FALLBACK_RULES]
    assert named == ["context_length", "model_name", "prefill_pages", "compile_without_padding", "nodes", "two_batch_overlap"]
