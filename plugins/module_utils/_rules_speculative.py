# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Settings of speculative decoding that are ignored, or that end in an exception which names none of them.

Sources are lines of sglang's ``srt`` in the versions 0.5.12 / 0.5.16 / 0.5.23.
"""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

_SIZES = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
_DRAFT = "speculative_draft_model_path"
_EAGLE_FAMILY = ("EAGLE", "NEXTN", "EAGLE3", "STANDALONE")
# Models that take their draft layer out of their own checkpoint and insist on exactly one.
_ONE_DRAFT_LAYER = (
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "GlmMoeDsaForCausalLM",
    "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM",
    "BailingMoeForCausalLM",
    "BailingMoeV2ForCausalLM",
    "BailingMoeV2_5ForCausalLM",
)
_OFF = "sglang server_args.py:3551 (0.5.12), arg_groups/speculative_hook.py:121 (0.5.23): nothing below runs where speculative_algorithm is None"
_SOME = "sglang server_args.py:3809 (0.5.12), arg_groups/speculative_hook.py:1159 and :1272 (0.5.23)"
_OWN_DRAFT = "sglang managers/tp_worker.py:331 / :470, configs/model_config.py from_server_args (model_path or server_args.model_path)"
_EAGLE3 = "sglang speculative/eagle_worker.py:191 (0.5.12), speculative/eagle_worker_v2.py init_lm_head (0.5.23): model.hot_token_id"
_LAYERS = "sglang models/deepseek_common/deepseek_weight_loader.py:392 / :455 / :567, models/glm4_moe.py:1279 / :1262 / :1080"


def without_algorithm(candidate: Candidate) -> list[Finding]:
    """Without speculative_algorithm nothing looks at the other settings."""
    given = tuple(name for name in (*_SIZES, _DRAFT) if candidate.asked.get(name) is not None)
    if not given or _algorithm(candidate):
        return []
    text = f"{', '.join(given)} {'has' if len(given) == 1 else 'have'} no effect without speculative_algorithm"
    hint = "set speculative_algorithm (NEXTN for a model with its own draft layer, EAGLE3 with a draft model), or leave these out"
    return [Finding("speculative_without_algorithm", "ignored", text, hint, _OFF, given)]


def draft_model(candidate: Candidate) -> list[Finding]:
    """Without a draft model's path the model itself is loaded as its draft: EAGLE3 then misses its token map, STANDALONE only gains nothing."""
    algorithm = _algorithm(candidate)
    if not _drafts_by_itself(candidate) or candidate.value("enable_return_aux_hidden_states"):
        return []
    hint = f"set {_DRAFT} to a draft model that was trained for this one"
    if algorithm == "EAGLE3":
        text = f"speculative_algorithm EAGLE3 needs {_DRAFT}: without it the model itself is loaded as its draft and has no token map"
        return [Finding("draft_model_missing", "error", text, hint, _EAGLE3, (_DRAFT,))]
    if algorithm == "STANDALONE":
        text = f"speculative_algorithm STANDALONE without {_DRAFT} drafts with the whole model itself, which saves nothing"
        return [Finding("draft_model_missing", "warning", text, hint, _OWN_DRAFT, (_DRAFT,))]
    return []


def draft_layers(candidate: Candidate) -> list[Finding]:
    """Some models with a draft layer of their own insist on num_nextn_predict_layers 1 while they load."""
    architecture = next(iter(candidate.config.get("architectures") or ()), "")
    layers = candidate.text_config.get("num_nextn_predict_layers")
    own = _algorithm(candidate) in ("EAGLE", "NEXTN") and _drafts_by_itself(candidate)
    if not own or architecture not in _ONE_DRAFT_LAYER or layers is None or whole(layers, -1) == 1:
        return []
    text = f"speculative_algorithm {_algorithm(candidate)} needs the model's own draft layer, and its config has num_nextn_predict_layers {layers}"
    hint = f"leave speculative_algorithm out, or set {_DRAFT} to a draft model"
    return [Finding("draft_layers", "error", text, hint, _LAYERS, ("speculative_algorithm",))]


def some_sizes(candidate: Candidate) -> list[Finding]:
    """The three sizes are given together or not at all; the engine asserts or compares None otherwise, without a text."""
    steps, branches, tokens = (candidate.asked.get(name) for name in _SIZES)
    if _algorithm(candidate) not in _EAGLE_FAMILY or candidate.value("speculative_adaptive"):
        return []
    hint = f"set all of {', '.join(_SIZES)} or none of them"
    if (steps is None) != (branches is None) or (steps is None and tokens is not None):
        given = tuple(name for name in _SIZES if candidate.asked.get(name) is not None)
        text = f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} set without the other sizes of speculative decoding"
        return [Finding("speculative_sizes", "error", text, hint, _SOME, _SIZES)]
    wanted = whole(steps, 0) + 1
    if tokens is not None and whole(branches, 0) == 1 and whole(tokens, 0) != wanted:
        text = f"speculative_num_draft_tokens {tokens} becomes {wanted}: with speculative_eagle_topk 1 it is speculative_num_steps + 1"
        fields = ("speculative_num_draft_tokens",)
        return [Finding("speculative_draft_tokens", "warning", text, f"set speculative_num_draft_tokens to {wanted}", _SOME, fields)]
    return []


def _algorithm(candidate: Candidate) -> str:
    return str(candidate.value("speculative_algorithm", "")).upper()


def _drafts_by_itself(candidate: Candidate) -> bool:
    draft: t.Any = candidate.value(_DRAFT)
    return draft is None or draft == candidate.value("model_path")


RULES = (without_algorithm, draft_model, draft_layers)
FALLBACK_RULES = (some_sizes,)
