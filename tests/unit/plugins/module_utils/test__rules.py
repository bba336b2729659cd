# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules as rules
from ansible_collections.llmops.inference.plugins.module_utils import (
    _rules_attention,
    _rules_flags,
    _rules_gpus,
    _rules_model,
    _rules_parallel,
    _rules_ports,
    _rules_speculative,
)
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole

MODULES = (_rules_attention, _rules_flags, _rules_gpus, _rules_model, _rules_parallel, _rules_ports, _rules_speculative)
GPU = {"name": "NVIDIA H200", "uuid": "GPU-1", "compute_capability": "9.0", "memory_total_mib": 143771}
CONFIG = {"architectures": ["Qwen4ForCausalLM"], "num_attention_heads": 40, "num_key_value_heads": 2}
ASKED = {"tp_size": 3, "speculative_num_steps": 3, "served_model_name": "a:b", "port": 30000}


def test_every_rule_of_every_module_is_asked_once():
    assert sorted(rules.RULES, key=str) == sorted((rule for module in MODULES for rule in getattr(module, "RULES", ())), key=str)
    assert sorted(rules.FALLBACK_RULES, key=str) == sorted((rule for module in MODULES for rule in getattr(module, "FALLBACK_RULES", ())), key=str)
    assert len({*rules.RULES, *rules.FALLBACK_RULES}) == len(rules.RULES) + len(rules.FALLBACK_RULES)


def test_judge_without_the_engine_says_what_the_engine_would():
    found = rules.judge(Candidate(engine="0.5.23", asked=ASKED, config=CONFIG, gpus=[GPU]), frozenset(("Qwen3ForCausalLM",)), fallback=True)
    assert [(finding.code, finding.severity) for finding in found] == [
        ("heads", "error"),
        ("kv_heads", "error"),
        ("too_few_gpus", "error"),
        ("served_model_name", "error"),
        ("architecture_unknown", "warning"),
        ("speculative_without_algorithm", "ignored"),
    ]


def test_judge_leaves_to_the_engine_what_it_said():
    found = rules.judge(Candidate(engine="0.5.23", asked=ASKED, effective={"tp_size": 3}, config=CONFIG, gpus=[GPU]))
    assert [finding.code for finding in found] == ["heads", "kv_heads", "too_few_gpus", "speculative_without_algorithm"]


def test_notes_come_last():
    config = {"architectures": ["Qwen4ForCausalLM"], "num_attention_heads": 32, "num_key_value_heads": 1}
    candidate = Candidate(engine="0.5.23", asked={"tp_size": 2, "hicache_ratio": 2}, config=config, gpus=[GPU])
    found = rules.judge(candidate, frozenset(("Qwen3ForCausalLM",)))
    assert [finding.severity for finding in found] == ["error", "warning", "ignored", "note"]


def test_without_more_words_the_engine_is_taken_to_have_spoken():
    candidate = Candidate(engine="0.5.23", asked=ASKED, config=CONFIG, gpus=[GPU])
    own, fallback = ({finding.code for finding in rules.judge(candidate, fallback=known)} for known in (False, True))
    assert "served_model_name" in fallback - own and own < fallback


def test_nothing_is_said_of_what_is_not_known():
    assert rules.judge(Candidate(), fallback=True) == []
    assert rules.judge(Candidate(asked={"tp_size": 3, "model_path": "org/model"}), fallback=True) == []


def test_a_good_server():
    config = {"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936, "intermediate_size": 12288}
    gpus = [GPU, {**GPU, "uuid": "GPU-2"}]
    for engine in ("0.5.12", "0.5.16", "0.5.23"):
        candidate = Candidate(engine=engine, asked={"tp_size": 2}, config=config, gpus=gpus)
        assert rules.judge(candidate, frozenset(("Qwen3ForCausalLM",)), fallback=True) == []


@pytest.mark.parametrize(
    "value, number",
    [(2, 2), ("2", 2), (" 2 ", 2), ("-1", -1), ("+3", 3), (0, 0), (None, 7), ("", 7), ("32k", 7), ("1.0", 7), (1.5, 7), (True, 7), (False, 7), ([1], 7)],
)
def test_whole(value, number):
    assert whole(value, 7) == number
    assert Candidate(asked={"port": value}).whole("port", 7) == number
    assert Candidate(asked={"port": 1}, effective={"port": value}).whole("port", 7) == number
