# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_speculative as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

DEEPSEEK = {"architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1}
BARE = {**DEEPSEEK, "num_nextn_predict_layers": 0}
NAMES = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def spec(algorithm, *sizes, **more):
    asked = {"speculative_algorithm": algorithm, "model_path": "/m", **dict(zip(NAMES, sizes))}
    return {**asked, **{f"speculative_{name}" if name != "enable_return_aux_hidden_states" else name: value for name, value in more.items()}}


CASES = (
    (rules.without_algorithm, {}, spec(None, 3), "speculative_without_algorithm", "ignored", "speculative_num_steps has no effect without"),
    (rules.without_algorithm, {}, spec(None, 3, 1), "speculative_without_algorithm", "ignored", "speculative_num_steps, speculative_eagle_topk have"),
    (rules.without_algorithm, {}, spec(None, draft_model_path="/d"), "speculative_without_algorithm", "ignored", "speculative_draft_model_path has"),
    (rules.without_algorithm, {}, spec(None, None, None, 0), "speculative_without_algorithm", "ignored", "speculative_num_draft_tokens"),
    (rules.without_algorithm, {}, spec("NEXTN", 3), None, None, ""),
    (rules.without_algorithm, {}, spec(None), None, None, ""),
    # the draft model
    (rules.draft_model, {}, spec("EAGLE3"), "draft_model_missing", "error", "EAGLE3 needs speculative_draft_model_path"),
    (rules.draft_model, {}, spec("eagle3"), "draft_model_missing", "error", "has no token map"),
    (rules.draft_model, {}, spec("EAGLE3", draft_model_path="/m"), "draft_model_missing", "error", "trained for this one"),
    (rules.draft_model, {}, spec("EAGLE3", draft_model_path="/d"), None, None, ""),
    (rules.draft_model, {}, spec("EAGLE3", enable_return_aux_hidden_states=True), None, None, ""),
    (rules.draft_model, {}, spec("STANDALONE"), "draft_model_missing", "warning", "drafts with the whole model itself"),
    (rules.draft_model, {}, spec("STANDALONE", draft_model_path="/d"), None, None, ""),
    (rules.draft_model, {}, spec("EAGLE"), None, None, ""),
    (rules.draft_model, {}, spec("NEXTN"), None, None, ""),
    (rules.draft_model, {}, spec(None), None, None, ""),
    # the model's own draft layer
    (
        rules.draft_layers,
        BARE,
        spec("NEXTN"),
        "draft_layers",
        "error",
        "own draft layer, and its config has num_nextn_predict_layers 0",
    ),
    (rules.draft_layers, BARE, spec("EAGLE"), "draft_layers", "error", "leave speculative_algorithm out"),
    (rules.draft_layers, {**DEEPSEEK, "num_nextn_predict_layers": 3}, spec("EAGLE"), "draft_layers", "error", "num_nextn_predict_layers 3"),
    (rules.draft_layers, DEEPSEEK, spec("NEXTN"), None, None, ""),
    (rules.draft_layers, {"architectures": ["DeepseekV3ForCausalLM"]}, spec("NEXTN"), None, None, ""),
    (rules.draft_layers, {**BARE, "architectures": ["Qwen3ForCausalLM"]}, spec("NEXTN"), None, None, ""),
    (rules.draft_layers, {"num_nextn_predict_layers": 0}, spec("NEXTN"), None, None, ""),
    (rules.draft_layers, BARE, spec("EAGLE", draft_model_path="/d"), None, None, ""),
    (rules.draft_layers, BARE, spec("EAGLE3"), None, None, ""),
    (rules.draft_layers, BARE, spec(None), None, None, ""),
    # all three sizes or none
    (rules.some_sizes, {}, spec("EAGLE", 3, 1, 4), None, None, ""),
    (rules.some_sizes, {}, spec("EAGLE"), None, None, ""),
    (rules.some_sizes, {}, spec("EAGLE", 3, 1), None, None, ""),
    (rules.some_sizes, {}, spec("EAGLE", 3), "speculative_sizes", "error", "speculative_num_steps is set without the other sizes"),
    (rules.some_sizes, {}, spec("NEXTN", None, 1), "speculative_sizes", "error", "speculative_eagle_topk is set"),
    (rules.some_sizes, {}, spec("EAGLE3", None, None, 4), "speculative_sizes", "error", "speculative_num_draft_tokens is set"),
    (rules.some_sizes, {}, spec("STANDALONE", 3, None, 4), "speculative_sizes", "error", "speculative_num_steps and speculative_num_draft_tokens are set"),
    (rules.some_sizes, {}, spec("EAGLE", None, 1, 4), "speculative_sizes", "error", "speculative_eagle_topk and speculative_num_draft_tokens are"),
    (rules.some_sizes, {}, spec("EAGLE", 3, adaptive=True), None, None, ""),
    (rules.some_sizes, {}, spec("NGRAM", 3), None, None, ""),
    (rules.some_sizes, {}, spec(None, 3), None, None, ""),
    (rules.some_sizes, {}, spec("EAGLE", 3, 1, 8), "speculative_draft_tokens", "warning", "speculative_num_draft_tokens 8 becomes 4"),
    (rules.some_sizes, {}, spec("EAGLE", 3, 2, 8), None, None, ""),
    (rules.some_sizes, {}, spec("EAGLE", 3, 0, 8), None, None, ""),
    (rules.draft_layers, {**DEEPSEEK, "num_nextn_predict_layers": "many"}, spec("EAGLE"), "draft_layers", "error", "layers many"),
)


@pytest.mark.parametrize("rule, config, asked, code, severity, words", CASES)
def test_rule(rule, config, asked, code, severity, words):
    found = rule(Candidate(engine="0.5.23", asked=asked, config=config))
    assert [(finding.code, finding.severity) for finding in found] == ([(code, severity)] if code else [])
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source and finding.fields for finding in found)


def test_the_draft_model_that_the_engine_found():
    asked, effective = spec("EAGLE3"), {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/d"}
    assert not rules.draft_model(Candidate(asked=asked, effective=effective))


def test_all_rules_are_listed():
    assert list(rules.RULES) == [rules.without_algorithm, rules.draft_model, rules.draft_layers]
    assert list(rules.FALLBACK_RULES) == [rules.some_sizes]
