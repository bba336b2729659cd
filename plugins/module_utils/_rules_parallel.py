# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What tensor, expert and attention parallelism must divide. The engine's own check is an assertion without a text, after minutes of loading.

Sources are lines of sglang's ``srt`` in the versions 0.5.12 / 0.5.16 / 0.5.23 where they differ.
"""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

# Up to which version (seen) a vocabulary is padded to 64 only, and from which version (seen) to what tensor parallelism needs.
_LAST_WITHOUT_PADDING, _FIRST_WITH_PADDING = (0, 5, 16), (0, 5, 23)
_VOCABULARY_PADDING = 64
# MoE communication that sets ep_size to tp_size by itself.
_SETS_EP_SIZE = ("deepep", "mooncake")
_FIELDS = ("tp_size",)
_HEADS = "sglang layers/linear.py:950 / :977 / :1139 QKVParallelLinear, models/qwen3.py:84 / :89 / :166"
_KV_HEADS = "sglang layers/linear.py:953 / :980 / :1142 QKVParallelLinear, models/llama.py:150-156 / :148-154 / :187-193"
_LINEAR = "sglang configs/mamba_utils.py:166 / :198 / :230 Mamba2StateShape.create"
_LINEAR_KEYS = "sglang models/qwen3_next.py:215 / :237 / :271"
_EXPERTS = "sglang layers/moe/fused_moe_triton/layer.py:214 / :249 / :414"
_EXPERT_WIDTH = "sglang layers/moe/fused_moe_triton/layer.py:220 / :256 / :427"
_BLOCKS = "sglang layers/quantization/fp8.py:892 / :1082 / :1588"
_VOCABULARY = "https://github.com/sgl-project/sglang/issues/31799, layers/vocab_parallel_embedding.py:237 / :262 / :273"
_DENSE_WIDTH = "sglang layers/linear.py:351 / :352 / :488 MergedColumnParallelLinear"
_WIDTHS = "sglang server_args.py:3024-3068 (0.5.12), arg_groups/parallel_hook.py handle_context_parallelism, handle_data_parallelism (0.5.23)"


def attention_data_parallelism(candidate: Candidate) -> int:
    """Returns over how many groups attention is split by requests: ``attn_dp_size`` (0.5.22), or ``dp_size`` with ``enable_dp_attention``."""
    width = candidate.whole("attn_dp_size", 1)
    if width == 1 and candidate.value("enable_dp_attention"):
        return candidate.whole("dp_size", 1)
    return width


def replicas(candidate: Candidate) -> int:
    """Returns how many whole copies of the model run: ``dp_size``, where it does not count attention's groups (see there)."""
    by_dp_size = candidate.whole("attn_dp_size", 1) == 1 and candidate.value("enable_dp_attention")
    return 1 if by_dp_size else candidate.whole("dp_size", 1)


def attention_share(candidate: Candidate) -> int:
    """Returns by how much attention's tensor parallelism is smaller than ``tp_size``: the widths of its data and context parallelism."""
    return attention_data_parallelism(candidate) * candidate.whole("attn_cp_size", 1)


def expert_count(candidate: Candidate) -> int:
    """Returns how many experts a layer of the model has; 0 for a dense model."""
    config = candidate.text_config
    return next((count for count in (whole(config.get(name), 0) for name in ("num_experts", "n_routed_experts", "num_local_experts")) if count > 0), 0)


def valid_tp_sizes(count: int, kv_count: int = 0, share: int = 1) -> list[int]:
    """Returns the values of tp_size that divide the heads (and of KV heads, where they are known, divide or repeat them).

    Args:
        count: attention heads.
        kv_count: KV heads; 0 where not known.
        share: how much smaller attention's tensor parallelism is.
    """
    widths = (width for width in range(1, count + 1) if count % width == 0)
    return [width * share for width in widths if not kv_count or _fits(kv_count, width)]


def _fits(kv_count: int, width: int) -> bool:
    return kv_count % width == 0 if kv_count >= width else width % kv_count == 0


def attention_widths(candidate: Candidate) -> list[Finding]:
    """Attention's data and context parallelism must divide tp_size; replicas exclude attention data parallelism. The engine says so itself."""
    tp_size, share = candidate.whole("tp_size", 1), attention_share(candidate)
    if candidate.whole("attn_dp_size", 1) > 1 and candidate.whole("dp_size", 1) > 1 and not candidate.value("enable_dp_attention"):
        text = f"dp_size {candidate.value('dp_size')} and attn_dp_size {candidate.value('attn_dp_size')} cannot be combined"
        return [Finding("attention_widths", "error", text, "set one of dp_size and attn_dp_size to 1", _WIDTHS, ("dp_size", "attn_dp_size"))]
    if share < 1 or tp_size % share == 0:
        return []
    text = f"tp_size {tp_size} is not divisible by attention's data and context parallelism ({share} together)"
    hint = f"set tp_size to a multiple of {share}, or make dp_size, attn_dp_size or attn_cp_size smaller"
    return [Finding("attention_widths", "error", text, hint, _WIDTHS, ("tp_size", "dp_size", "attn_dp_size", "attn_cp_size"))]


def heads(candidate: Candidate) -> list[Finding]:
    """Attention heads must be divisible by attention's tensor parallelism (case F08). Not on CPUs, where the engine pads heads."""
    count, width = whole(candidate.text_config.get("num_attention_heads"), 0), _attention_width(candidate)
    if count < 1 or not width or count % width == 0:
        return []
    text = f"the model's {count} attention heads are not divisible by {_what(candidate, width)}"
    return [Finding("heads", "error", text, _choices(count, _kv_heads(candidate), candidate), _HEADS, _FIELDS)]


def kv_heads(candidate: Candidate) -> list[Finding]:
    """KV heads are divided among GPUs, or repeated a whole number of times. Not for MLA, which has one latent head."""
    count, kv_count = whole(candidate.text_config.get("num_attention_heads"), 0), _kv_heads(candidate)
    width = _attention_width(candidate)
    if kv_count < 1 or not width or kv_count == count or candidate.whole("dcp_size", 1) > 1:
        return []
    if not _fits(kv_count, width):
        text = f"the model's {kv_count} KV heads can be neither divided nor repeated evenly by {_what(candidate, width)}"
        return [Finding("kv_heads", "error", text, _choices(count or kv_count, kv_count, candidate), _KV_HEADS, _FIELDS)]
    if kv_count >= width:
        return []
    text = f"the model's {kv_count} KV heads are kept {width // kv_count} times under {_what(candidate, width)}: the KV cache does not shrink any further"
    hint = f"beyond tp_size {kv_count * attention_share(candidate)} more tensor parallelism saves no KV cache"
    return [Finding("kv_heads_repeated", "note", text, hint, _KV_HEADS, _FIELDS)]


def linear_heads(candidate: Candidate) -> list[Finding]:
    """State heads of linear attention (Qwen3-Next, Qwen3.5) and Mamba layers must be divisible; key heads are cut off without a word."""
    width, config = _attention_width(candidate), candidate.text_config
    if not width:
        return []
    findings = []
    for name in ("linear_num_value_heads", "mamba_num_heads", "mamba_n_heads"):
        count = whole(config.get(name), 0)
        if count > 0 and count % width:
            text = f"the model's {count} {name} are not divisible by {_what(candidate, width)}"
            findings.append(Finding("linear_heads", "error", text, _choices(count, 0, candidate), _LINEAR, _FIELDS))
    keys = whole(config.get("linear_num_key_heads"), 0)
    if keys > 0 and keys % width and not findings:
        text = f"the model's {keys} linear_num_key_heads are not divisible by {_what(candidate, width)}: the engine rounds down"
        findings.append(Finding("linear_key_heads", "warning", text, _choices(keys, 0, candidate), _LINEAR_KEYS, _FIELDS))
    return findings


def experts(candidate: Candidate) -> list[Finding]:
    """Experts (with redundant ones) must be divisible by ep_size."""
    count, ep_size = expert_count(candidate), _ep_size(candidate)
    redundant = candidate.whole("ep_num_redundant_experts", 0)
    if not count or ep_size < 1 or (count + redundant) % ep_size == 0:
        return []
    total = f"{count} experts and {redundant} redundant ones" if redundant else f"{count} experts"
    text = f"the model's {total} are not divisible by ep_size {ep_size}"
    hint = f"set ep_size to a divisor of {count + redundant}, or ep_num_redundant_experts to {-count % ep_size}"
    return [Finding("experts", "error", text, hint, _EXPERTS, ("ep_size", "ep_num_redundant_experts"))]


def expert_width(candidate: Candidate) -> list[Finding]:
    """An expert's intermediate size is divided by what ep_size and moe_dp_size leave of tp_size; FP8 blocks must not be cut."""
    size, width = whole(candidate.text_config.get("moe_intermediate_size"), 0), _expert_tensor_parallelism(candidate)
    if size < 1 or not expert_count(candidate) or width < 1:
        return []
    what = f"the experts' share of tensor parallelism, {width}" if width != candidate.whole("tp_size", 1) else f"tp_size {width}"
    if size % width:
        text = f"the model's moe_intermediate_size {size} is not divisible by {what}"
        return [Finding("expert_width", "error", text, "set ep_size to tp_size, or a tp_size that divides it", _EXPERT_WIDTH, ("tp_size", "ep_size"))]
    block = _fp8_block(candidate)
    if not block or (size // width) % block == 0:
        return []
    text = f"moe_intermediate_size {size} by {what} leaves {size // width}, which cuts the model's FP8 blocks of {block}"
    hint = f"set ep_size so that at most {max(size // block, 1)} GPUs share an expert (ep_size equal to tp_size shares none), or lower tp_size"
    return [Finding("fp8_blocks", "error", text, hint, _BLOCKS, ("tp_size", "ep_size"))]


def dense_width(candidate: Candidate) -> list[Finding]:
    """A dense model's intermediate size must be divisible by tp_size; with attention data parallelism other widths hold."""
    size, tp_size = whole(candidate.text_config.get("intermediate_size"), 0), candidate.whole("tp_size", 1)
    if size < 1 or tp_size < 1 or expert_count(candidate) or _pads(candidate) or attention_share(candidate) != 1 or size % tp_size == 0:
        return []
    text = f"the model's intermediate_size {size} is not divisible by tp_size {tp_size}"
    return [Finding("dense_width", "error", text, f"set tp_size to a divisor of {size}", _DENSE_WIDTH, _FIELDS)]


def vocabulary(candidate: Candidate) -> list[Finding]:
    """A vocabulary is padded to 64 and then divided; 0.5.23 pads it to what fits. Where the change came between 0.5.17 and 0.5.22 is not known."""
    size, tp_size, engine = whole(candidate.text_config.get("vocab_size"), 0), candidate.whole("tp_size", 1), numbers(candidate.engine)
    padded = -(-size // _VOCABULARY_PADDING) * _VOCABULARY_PADDING
    if size < 1 or tp_size < 1 or _pads(candidate) or attention_share(candidate) != 1 or not engine or padded % tp_size == 0:
        return []
    if engine >= _FIRST_WITH_PADDING:
        return []
    severity = "error" if engine <= _LAST_WITHOUT_PADDING else "warning"
    text = f"the model's vocabulary, {size} padded to {padded}, is not divisible by tp_size {tp_size} in sglang {candidate.engine}"
    return [Finding("vocabulary", severity, text, "set tp_size to a power of two, or use sglang 0.5.23 or newer", _VOCABULARY, _FIELDS)]


def _pads(candidate: Candidate) -> bool:
    return str(candidate.value("device", "cuda")) == "cpu"


def _attention_width(candidate: Candidate) -> int:
    """Attention's tensor parallelism; 0 where it cannot be told."""
    tp_size, share = candidate.whole("tp_size", 1), attention_share(candidate)
    return tp_size // share if share > 0 and tp_size > 0 and tp_size % share == 0 and not _pads(candidate) else 0


def _what(candidate: Candidate, width: int) -> str:
    tp_size = candidate.whole("tp_size", 1)
    return f"tp_size {tp_size}" if width == tp_size else f"attention's share of tensor parallelism, {width} (tp_size {tp_size})"


def _choices(count: int, kv_count: int, candidate: Candidate) -> str:
    sizes = [str(size) for size in valid_tp_sizes(count, kv_count, attention_share(candidate))]
    return "set tp_size to " + (" or ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1]))))


def _kv_heads(candidate: Candidate) -> int:
    """KV heads as configs/model_config.py get_total_num_kv_heads reads them; 0 where not known."""
    config = candidate.text_config
    if "kv_lora_rank" in config:
        return 0
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num")
    return next((count for count in (whole(config.get(name), 0) for name in names) if count > 0), 0)


def _ep_size(candidate: Candidate) -> int:
    if not candidate.effective and candidate.value("moe_a2a_backend") in _SETS_EP_SIZE:
        return candidate.whole("tp_size", 1)
    return candidate.whole("ep_size", 1)


def _expert_tensor_parallelism(candidate: Candidate) -> int:
    parts = _ep_size(candidate) * candidate.whole("moe_dp_size", 1)
    return candidate.whole("tp_size", 1) // parts if parts > 0 else 0


def _fp8_block(candidate: Candidate) -> int:
    quantization = candidate.config.get("quantization_config") or candidate.text_config.get("quantization_config")
    if not isinstance(quantization, t.Mapping) or quantization.get("quant_method") != "fp8":
        return 0
    block = quantization.get("weight_block_size")
    return whole(block[0], 0) if isinstance(block, (list, tuple)) and block else 0


RULES = (heads, kv_heads, linear_heads, experts, expert_width, dense_width, vocabulary)
FALLBACK_RULES = (attention_widths,)
