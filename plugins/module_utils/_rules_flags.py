# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Flags that an engine accepts and then dies of or ignores, and what it refuses by itself, for where it cannot be asked.

Sources are lines of sglang's ``srt`` in the versions 0.5.12 / 0.5.16 / 0.5.23.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import attention_data_parallelism, expert_count

# What the pool of KV cache and states is computed with: free - total * (1 - fraction).
_FRACTION = "sglang model_executor/model_runner_kv_cache_mixin.py:70 (0.5.12), mem_cache/kv_cache_configurator.py:1538 (0.5.16) / :3007 (0.5.23)"
_LENGTH_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_LENGTH = "sglang configs/model_config.py:541 / :729 / :1291 _derive_context_length, utils/hf_transformers/common.py:374 / :457 / :677 get_context_length"
_OVERLAP = "sglang layers/moe/utils.py:217 / :305 / :506, read by models/deepseek_v2.py and layers/moe only"
_HICACHE = "sglang server_args.py:3456 (0.5.12), managers/scheduler.py:513, mem_cache/registry.py:193 (0.5.23)"
_LORA = "sglang server_args.py:7428 (0.5.12) / :7779 (0.5.16), arg_groups/lora_hook.py:47 (0.5.23): any provided lora_paths will be ignored"
_PRIORITY = "sglang server_args.py check_server_args (0.5.12), arg_groups/validation_hook.py (0.5.23): has no effect without --enable-priority-scheduling"
_CHECK = "sglang server_args.py:7229 (0.5.12) / :7574 (0.5.16), arg_groups/validation_hook.py:172 (0.5.23) check_server_args"
_TBO = "sglang server_args.py check_server_args (0.5.12), arg_groups/validation_hook.py check_two_batch_overlap (0.5.23)"
_HICACHE_FLAGS = (
    "hicache_ratio",
    "hicache_size",
    "hicache_write_policy",
    "hicache_io_backend",
    "hicache_mem_layout",
    "hicache_storage_backend",
    "hicache_storage_backend_extra_config",
)
_OTHER_CACHES = ("disaggregation_decode_enable_offload_kvcache", "enable_unified_cache_external_linker", "enable_lmcache")


def memory_fraction(candidate: Candidate) -> list[Finding]:
    """mem_fraction_static is a part of the GPU's memory; no version checks its range, and with 1 or more nothing is left for activations."""
    value = candidate.asked.get("mem_fraction_static")
    if value is None:
        return []
    fields = ("mem_fraction_static",)
    hint = "set mem_fraction_static between 0 and 1, 0.85 for example, or leave it out and the engine computes it"
    fraction = _fraction(value)
    if fraction is None:
        return [Finding("mem_fraction_static", "error", f"mem_fraction_static {value!r} is no number between 0 and 1", hint, _FRACTION, fields)]
    if 0 < fraction < 1:
        return []
    text = f"mem_fraction_static {value} is not between 0 and 1: "
    text += "no memory is left for the KV cache" if fraction <= 0 else "the KV cache would take all memory, and activations have none"
    return [Finding("mem_fraction_static", "error", text, hint, _FRACTION, fields)]


def _fraction(value: t.Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def overlap_without_experts(candidate: Candidate) -> list[Finding]:
    """Single batch overlap works on experts: a dense model has nothing that reads it."""
    if not candidate.value("enable_single_batch_overlap") or not candidate.config or expert_count(candidate):
        return []
    text = "enable_single_batch_overlap has no effect: the model has no experts"
    return [Finding("overlap_without_experts", "ignored", text, "leave enable_single_batch_overlap out", _OVERLAP, ("enable_single_batch_overlap",))]


def hicache_without_cache(candidate: Candidate) -> list[Finding]:
    """Settings of the hierarchical cache are not looked at without it."""
    given = tuple(name for name in _HICACHE_FLAGS if candidate.asked.get(name) is not None)
    others = candidate.value("disaggregation_mode") == "decode" or any(candidate.value(name) for name in _OTHER_CACHES)
    if not given or others or candidate.value("enable_hierarchical_cache"):
        return []
    text = f"{', '.join(given)} {'has' if len(given) == 1 else 'have'} no effect without enable_hierarchical_cache"
    return [Finding("hicache_ignored", "ignored", text, "set enable_hierarchical_cache to true, or leave these out", _HICACHE, given)]


def lora_switched_off(candidate: Candidate) -> list[Finding]:
    """Adapters are ignored where enable_lora is false; left out, it is switched on by them."""
    if not candidate.asked.get("lora_paths") or candidate.asked.get("enable_lora") is not False:
        return []
    text = "lora_paths is ignored because enable_lora is false"
    return [Finding("lora_ignored", "ignored", text, "leave enable_lora out: lora_paths switches it on", _LORA, ("lora_paths", "enable_lora"))]


def priority_without_scheduling(candidate: Candidate) -> list[Finding]:
    """What belongs to priority scheduling has no effect without it."""
    names = ("disable_priority_preemption", "default_priority_value")
    given = tuple(name for name in names if candidate.asked.get(name) is not None and candidate.asked[name] is not False)
    if not given or candidate.value("enable_priority_scheduling"):
        return []
    text = f"{' and '.join(given)} {'has' if len(given) == 1 else 'have'} no effect without enable_priority_scheduling"
    return [Finding("priority_ignored", "ignored", text, "set enable_priority_scheduling to true, or leave these out", _PRIORITY, given)]


def derived_context_length(config: t.Mapping[str, t.Any]) -> int:
    """Returns the context length that the engine derives of a model's configuration."""
    scaling = config.get("rope_scaling")
    factor: t.Any = 1
    if isinstance(scaling, t.Mapping) and "original_max_position_embeddings" not in scaling and scaling.get("rope_type") != "llama3":
        factor = scaling.get("factor") or 1
    length = next((config[key] for key in _LENGTH_KEYS if config.get(key) is not None), 2048)
    return int(factor * length)


def context_allowed(candidate: Candidate) -> list[Finding]:
    """A context longer than the model's is only warned of where the environment allows it (case F10)."""
    finding = _too_long(candidate)
    return [finding] if finding and finding.severity == "warning" else []


def context_length(candidate: Candidate) -> list[Finding]:
    """The engine refuses a context longer than the model's, and one that is no number (case F10)."""
    asked = candidate.asked.get("context_length")
    if asked is not None and whole(asked, 0) < 1:
        text = f"context_length {asked!r} is not an integer above 0"
        return [Finding("context_length", "error", text, "write context_length out in tokens, 32768 for 32k", _LENGTH, ("context_length",))]
    finding = _too_long(candidate)
    return [finding] if finding and finding.severity == "error" else []


def _too_long(candidate: Candidate) -> Finding | None:
    asked, derived = whole(candidate.asked.get("context_length"), 0), derived_context_length(candidate.text_config)
    if not candidate.config or asked <= derived:
        return None
    text = f"context_length {asked} is longer than the {derived} of the model"
    if candidate.environment.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in ("1", "true", "yes", "y"):
        text += ", which SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN allows: answers beyond it may be wrong"
        return Finding("context_length", "warning", text, f"set context_length to {derived} or less", _LENGTH, ("context_length",))
    hint = f"set context_length to {derived} or less, or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 in the server's environment"
    return Finding("context_length", "error", text, hint, _LENGTH, ("context_length",))


def model_name(candidate: Candidate) -> list[Finding]:
    """A colon divides a model from an adapter (case F07); without a name the model's path is the name."""
    name = str(candidate.value("served_model_name", candidate.value("model_path", "")))
    if ":" not in name or re.match(r"(?:s3|gs|az)://", name):
        return []
    text = f"the served model's name {name!r} contains a colon, which is reserved for 'model:adapter'"
    hint = f"set served_model_name to {name.replace(':', '-')}"
    return [Finding("served_model_name", "error", text, hint, _CHECK, ("served_model_name",))]


def prefill_pages(candidate: Candidate) -> list[Finding]:
    """A chunk of prefill consists of whole pages, unless chunking is off (case F07)."""
    chunk, page = candidate.whole("chunked_prefill_size", 0), candidate.whole("page_size", 1)
    if chunk <= 0 or page < 1 or chunk % page == 0 or candidate.value("disaggregation_mode") == "decode":
        return []
    text = f"chunked_prefill_size {chunk} is not a multiple of page_size {page}"
    hint = f"set chunked_prefill_size to {max(chunk // page, 1) * page}"
    return [Finding("chunked_prefill_size", "error", text, hint, _CHECK, ("chunked_prefill_size", "page_size"))]


def compile_without_padding(candidate: Candidate) -> list[Finding]:
    """Without padding each batch size would be compiled (case F07)."""
    if not (candidate.value("disable_cuda_graph_padding") and candidate.value("enable_torch_compile")):
        return []
    text = "disable_cuda_graph_padding and enable_torch_compile exclude each other: every batch size would be compiled by itself"
    fields = ("disable_cuda_graph_padding", "enable_torch_compile")
    return [Finding("compile_without_padding", "error", text, "leave one of the two out", _CHECK, fields)]


def nodes(candidate: Candidate) -> list[Finding]:
    """Ranks are divided evenly among nodes; replicas stay on one node (case F07)."""
    count, ranks = candidate.whole("nnodes", 1), candidate.whole("tp_size", 1) * candidate.whole("pp_size", 1)
    findings = []
    if count > 0 and ranks % count:
        text = f"tp_size times pp_size, {ranks}, is not divisible by nnodes {count}"
        findings.append(Finding("nodes", "error", text, f"set tp_size to a multiple of {count}", _CHECK, ("tp_size", "pp_size", "nnodes")))
    if count > 1 and candidate.whole("dp_size", 1) > 1 and attention_data_parallelism(candidate) == 1:
        text = f"dp_size {candidate.value('dp_size')} over {count} nodes needs attention data parallelism"
        hint = "set dp_size to 1, or attn_dp_size (before sglang 0.5.22 enable_dp_attention with dp_size)"
        findings.append(Finding("replicas_over_nodes", "error", text, hint, _CHECK, ("dp_size", "nnodes")))
    return findings


def two_batch_overlap(candidate: Candidate) -> list[Finding]:
    """Two batch overlap needs experts' communication (or, in newer versions, attention data parallelism)."""
    alone = candidate.value("moe_a2a_backend", "none") == "none" and attention_data_parallelism(candidate) == 1
    if not candidate.value("enable_two_batch_overlap") or not alone:
        return []
    text = "enable_two_batch_overlap needs moe_a2a_backend, which is none"
    fields = ("enable_two_batch_overlap", "moe_a2a_backend")
    return [Finding("two_batch_overlap", "error", text, "set moe_a2a_backend, or leave enable_two_batch_overlap out", _TBO, fields)]


RULES = (memory_fraction, overlap_without_experts, hicache_without_cache, lora_switched_off, priority_without_scheduling, context_allowed)
FALLBACK_RULES = (context_length, model_name, prefill_pages, compile_without_padding, nodes, two_batch_overlap)
