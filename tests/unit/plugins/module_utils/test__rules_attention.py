# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_attention as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

MLA = {"kv_lora_rank": 512}
FP8 = {"attention_backend": "triton", "kv_cache_dtype": "fp8_e4m3"}
A, B, C = "0.5.12", "0.5.16", "0.5.23"

CASES = (
    (rules.flash_attention, C, "7.5", {}, {"attention_backend": "fa3"}, "error", "attention_backend fa3 runs on compute capability 8 and 9, GPU has 7.5"),
    (rules.flash_attention, C, "8.0", {}, {"attention_backend": "fa3"}, None, ""),
    (rules.flash_attention, C, "9.0", MLA, {"attention_backend": "fa3"}, None, ""),
    (rules.flash_attention, C, "8.6", MLA, {"attention_backend": "fa3"}, "warning", "MLA on compute capability 9 only, GPU has 8.6"),
    (rules.flash_attention, C, "10.0", {}, {"attention_backend": "fa3"}, "error", "set attention_backend to flashinfer or triton"),
    (rules.flash_attention, C, "12.0", {}, {"prefill_attention_backend": "fa3"}, "error", "prefill_attention_backend fa3"),
    (rules.flash_attention, C, "12.0", {}, {"decode_attention_backend": "fa3"}, "error", "decode_attention_backend fa3"),
    (rules.flash_attention, C, "12.0", {}, {"attention_backend": "triton"}, None, ""),
    (rules.flash_attention, C, "", {}, {"attention_backend": "fa3"}, None, ""),
    (rules.fp8_cache, C, "8.6", {}, FP8, "warning", "kv_cache_dtype fp8_e4m3 with attention_backend triton needs compute capability 8.9, GPU has 8.6"),
    (rules.fp8_cache, C, "8.9", {}, FP8, None, ""),
    (rules.fp8_cache, C, "8.6", {}, {**FP8, "kv_cache_dtype": "fp8_e5m2"}, None, ""),
    (rules.fp8_cache, C, "8.6", {}, {**FP8, "attention_backend": "flashinfer"}, None, ""),
    (rules.trtllm_mha, C, "8.9", {}, {"attention_backend": "trtllm_mha"}, "error", "trtllm_mha runs on compute capability 9, 10 and 12 in sglang 0.5.23"),
    (rules.trtllm_mha, C, "9.0", {}, {"attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, C, "12.0", {}, {"attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, A, "9.0", {}, {"attention_backend": "trtllm_mha"}, "error", "compute capability 10 in sglang 0.5.12, GPU has 9.0"),
    (rules.trtllm_mha, B, "12.0", {}, {"prefill_attention_backend": "trtllm_mha"}, "error", "compute capability 10"),
    (rules.trtllm_mha, "0.5.17", "9.0", {}, {"attention_backend": "trtllm_mha"}, "warning", "compute capability 10"),
    (rules.trtllm_mha, "0.5.17", "8.0", {}, {"attention_backend": "trtllm_mha"}, "error", "GPU has 8.0"),
    (rules.trtllm_mha, A, "10.0", {}, {"attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, A, "9.0", {}, {"decode_attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, A, "9.0", {}, {"attention_backend": "trtllm_mha", "prefill_attention_backend": "fa3"}, None, ""),
    (rules.trtllm_mha, A, "8.0", {}, {"attention_backend": "trtllm_mha", "prefill_attention_backend": "fa3"}, "error", "9, 10 and 12"),
    (rules.trtllm_mha, "", "9.0", {}, {"attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, C, "8.0", {}, {}, None, ""),
    (rules.trtllm_mla, C, "9.0", MLA, {"attention_backend": "trtllm_mla"}, "error", "compute capability 10 to 12, GPU has 9.0"),
    (rules.trtllm_mla, C, "9.0", MLA, {"decode_attention_backend": "trtllm_mla"}, "error", "set decode_attention_backend to flashinfer"),
    (rules.trtllm_mla, C, "9.0", MLA, {"prefill_attention_backend": "trtllm_mla"}, None, ""),
    (rules.trtllm_mla, C, "10.3", MLA, {"attention_backend": "trtllm_mla"}, None, ""),
    (rules.trtllm_mla, C, "11.0", MLA, {"attention_backend": "trtllm_mla"}, None, ""),
    (rules.trtllm_mla, C, "12.0", MLA, {"attention_backend": "trtllm_mla"}, None, ""),
    (rules.trtllm_mla, C, "13.0", MLA, {"attention_backend": "trtllm_mla"}, "error", "GPU has 13.0"),
    (rules.trtllm_mha, C, "10.0", {}, {"attention_backend": "trtllm_mha"}, None, ""),
    (rules.trtllm_mha, C, "11.0", {}, {"attention_backend": "trtllm_mha"}, "error", "GPU has 11.0"),
    (rules.trtllm_mha, "0.5.17", "12.0", {}, {"attention_backend": "trtllm_mha"}, "warning", "GPU has 12.0"),
)


@pytest.mark.parametrize("rule, engine, capability, config, asked, severity, words", CASES)
def test_rule(rule, engine, capability, config, asked, severity, words):
    found = rule(Candidate(engine=engine, asked=asked, config=config, gpus=[{"name": "GPU", "compute_capability": capability}]))
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(finding.code == ("fp8_cache" if rule is rules.fp8_cache else "attention_backend") for finding in found)
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source and set(finding.fields) <= {*asked} for finding in found)


def test_the_weakest_of_the_gpus_that_are_used_decides():
    gpus = [{"name": "strong", "compute_capability": "9.0"}, {"name": "weak", "compute_capability": "7.5"}]
    (found,) = rules.flash_attention(Candidate(asked={"attention_backend": "fa3", "tp_size": 2}, gpus=gpus))
    assert "weak has 7.5" in found.text
    assert not rules.flash_attention(Candidate(asked={"attention_backend": "fa3"}, gpus=gpus))
    assert not rules.flash_attention(Candidate(asked={"attention_backend": "fa3"}))


def test_all_rules_are_listed():
    assert list(rules.RULES) == [rules.flash_attention, rules.fp8_cache]
    assert list(rules.FALLBACK_RULES) == [rules.trtllm_mha, rules.trtllm_mla]
