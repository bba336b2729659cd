# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a model's ``config.json`` says about memory: parameters and how they are split, KV bytes of a token, state bytes of a request.

All functions take the flat configuration of ``_candidate.flatten_config``. Sources (SGLang, ``srt/``): layers by kind, ``configs/model_config.py:2700``
and ``configs/qwen3_next.py`` (``layers_block_type``); heads, ``configs/model_config.py:1626`` and ``:1700``; bytes of a token,
``model_executor/pool_configurator.py:340`` and (sliding windows) ``:736``; state of a request, ``configs/mamba_utils.py:116`` and
``configs/qwen3_next.py:288``. Lines of 0.5.23; 0.5.12 and 0.5.16 have the same formulas. Parameters are counted from the models' published layouts.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

Config = t.Mapping[str, t.Any]

# Architectures whose sliding layers get a pool of their own in 0.5.12, 0.5.16 and 0.5.23 (model_config.py:1660, :2651); elsewhere they cost like full ones.
SLIDING_POOL = frozenset(
    {
        "Llama4ForConditionalGeneration",
        "GptOssForCausalLM",
        "MiMoV2ForCausalLM",
        "MiMoV2FlashForCausalLM",
        "Step3p5ForCausalLM",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "LagunaForCausalLM",
    }
)
# A key of the configuration -> why the memory per token or request is not told.
_UNKNOWN = {
    "compress_ratios": "compressed attention",
    "sparse_attention_config": "sparse attention",
    "linear_attn_config": "Kimi's linear attention",
    "hybrid_override_pattern": "Mamba-2 layers",
    "mamba_d_state": "Mamba-2 layers",
    "conv_L_cache": "short convolutions",
    "layer_group_size": "lightning attention",
    "block_configs": "heads that differ by layer",
}
NO_LAYERS = "a config.json without layers, hidden size or heads"
_WIDTH = {"float32": 4.0, "float16": 2.0, "half": 2.0, "bfloat16": 2.0, "float": 4.0}
_QUANTIZED = {"fp8": 1.0, "mxfp8": 1.03, "w8a8_fp8": 1.0, "w8a8_int8": 1.0, "mxfp4": 0.53, "modelopt_fp4": 0.56, "nvfp4": 0.56, "modelopt_fp8": 1.0}
_KINDS = {"full_attention": "full", "attention": "full", "sliding_attention": "sliding", "chunked_attention": "sliding", "linear_attention": "linear"}


@dataclass(frozen=True)
class Split:
    """Over how many GPUs a model is spread.

    Attributes:
        tensor: tensor parallel size.
        attention: ranks that share the attention heads: ``tensor``, or less with data parallel attention.
        pipeline: stages of layers.
    """

    tensor: int = 1
    attention: int = 1
    pipeline: int = 1


@dataclass(frozen=True)
class Part:
    """Parameters of one sort.

    Attributes:
        parameters: how many in the whole model.
        shares: over how many ranks of a stage they are spread; 1 where each has its own copy.
        stage: which stages of a pipeline hold them: ``layers`` (spread over all), ``first`` or ``last``.
        kind: ``linear`` (quantised), ``expert`` (quantised, also where only experts are), ``plain`` (kept in the model's type).
    """

    parameters: float
    shares: int
    stage: str = "layers"
    kind: str = "linear"


@dataclass(frozen=True)
class Types:
    """Bytes of a parameter: of one that is not quantised, of one that is (None for none), and whether only experts are."""

    plain: float
    quantized: float | None = None
    experts_only: bool = False

    def width(self, part: Part) -> float:
        """Returns the bytes of one parameter of a part."""
        if self.quantized is None or part.kind == "plain" or (self.experts_only and part.kind != "expert"):
            return self.plain
        return self.quantized


def first(config: Config, *names: str) -> t.Any:
    """Returns the first value that is there and not None, False or 0."""
    return next((config[name] for name in names if config.get(name)), None)


def unknown_layout(config: Config) -> str:
    """Returns what about a model this collection has no formula for; empty where it has."""
    if not (config.get("num_hidden_layers") and config.get("hidden_size") and config.get("num_attention_heads")):
        return NO_LAYERS
    return next((why for key, why in _UNKNOWN.items() if config.get(key)), "")


def layer_kinds(config: Config) -> list[str]:
    """Returns ``full``, ``sliding``, ``linear`` or ``other`` of each layer."""
    count = int(config["num_hidden_layers"])
    interval = config.get("full_attention_interval")
    pattern = config.get("hybrid_layer_pattern")
    if config.get("layer_types"):
        return [_KINDS.get(kind, "other") for kind in config["layer_types"][:count]]
    if pattern:
        return ["sliding" if kind == 1 else "full" for kind in pattern[:count]]
    if interval and config.get("linear_num_value_heads"):
        return ["full" if (layer + 1) % interval == 0 else "linear" for layer in range(count)]
    if "Llama4ForConditionalGeneration" in (config.get("architectures") or ()):
        return ["full" if (layer + 1) % 4 == 0 else "sliding" for layer in range(count)]
    return ["full"] * count


def has_sliding_pool(config: Config) -> bool:
    """Whether the engine gives sliding layers a smaller pool."""
    known = SLIDING_POOL.intersection(config.get("architectures") or ())
    return bool(known or config.get("is_hybrid_swa")) and "sliding" in layer_kinds(config)


def kv_heads(config: Config, ranks: int, prefix: str = "") -> int:
    """Returns the KV heads of one rank: never less than one, so they are copied where there are more ranks than heads."""
    if not config.get("new_decoder_architecture") and config.get("multi_query"):
        return 1
    names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups", "num_attention_heads")
    total = first(config, f"{prefix}num_key_value_heads", *names)
    return max(1, int(total) // ranks)


def head_widths(config: Config, prefix: str = "") -> tuple[int, int]:
    """Returns the width of a head's key and of its value."""
    key = int(first(config, f"{prefix}head_dim", "head_dim") or config["hidden_size"] // config["num_attention_heads"])
    return key, int(first(config, f"{prefix}v_head_dim", "v_head_dim") or key)


def is_mla(config: Config) -> bool:
    """Whether keys and values are stored as one compressed vector."""
    return bool(config.get("kv_lora_rank")) and config.get("use_mla", True) is not False


def kv_bytes(config: Config, split: Split, width: float, sliding_ratio: float = 0.8) -> float:
    """Returns the bytes that one token of the pool takes on one GPU, in all layers of a stage; 0 for a model without attention.

    Args:
        config: flat configuration.
        split: ranks.
        width: bytes of one number of the cache.
        sliding_ratio: ``swa_full_tokens_ratio``: tokens of the sliding pool for each of the full one.
    """
    kinds = layer_kinds(config)
    full, sliding = kinds.count("full"), kinds.count("sliding")
    if is_mla(config):
        indexer = float(config["index_head_dim"]) * (1 + 4 / 128) if config.get("index_topk") and config.get("index_head_dim") else 0
        vector = int(config["kv_lora_rank"]) + int(config.get("qk_rope_head_dim") or 0)
        return math.ceil((full + sliding) / split.pipeline) * (vector * width + indexer)
    ordinary = kv_heads(config, split.attention) * sum(head_widths(config)) * width
    if not has_sliding_pool(config):
        return math.ceil((full + sliding) / split.pipeline) * ordinary
    windowed = kv_heads(config, split.attention, "swa_") * sum(head_widths(config, "swa_")) * width
    return (full * ordinary + (sliding_ratio if full else 1) * sliding * windowed) / split.pipeline


def state_bytes(config: Config, split: Split, state_width: float = 4, convolution_width: float = 2) -> float:
    """Returns the bytes of one request's state in the linear attention layers, on one GPU; 0 for a model without them."""
    layers = layer_kinds(config).count("linear")
    if not layers or not config.get("linear_num_value_heads"):
        return 0
    heads, groups = config["linear_num_value_heads"], config["linear_num_key_heads"]
    groups += (split.attention - groups) if groups % split.attention else 0
    channels = config["linear_value_head_dim"] * heads + 2 * groups * config["linear_key_head_dim"]
    convolution = channels // split.attention * (config["linear_conv_kernel_dim"] - 1) * convolution_width
    state = heads // split.attention * config["linear_value_head_dim"] * config["linear_key_head_dim"] * state_width
    return float(math.ceil(layers / split.pipeline) * (convolution + state))


def parts(config: Config, split: Split) -> list[Part]:
    """Returns the parameters of a model, without a draft: what is the same over all ranks, split by heads or split by columns."""
    kinds = layer_kinds(config)
    hidden, count = int(config["hidden_size"]), len(kinds)
    vocabulary = float(config.get("vocab_size", 0)) * hidden
    linear = kinds.count("linear")
    return [
        *_attention(config, split, count - linear),
        *_linear_attention(config, split, linear),
        *(part for layer in range(count) for part in _feed_forward(config, split, layer)),
        Part(2.0 * hidden * count, 1, kind="plain"),
        Part(vocabulary, split.attention, "first", "plain"),
        *([] if config.get("tie_word_embeddings") else [Part(vocabulary, split.tensor, "last", "plain")]),
        *_vision(config, split),
    ]


def draft_layers(config: Config) -> int:
    """Returns how many layers for drafts (MTP, NEXTN) come with a model."""
    return int(first(config, "mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_layers") or 0)


def draft_parts(config: Config, split: Split) -> list[Part]:
    """Returns the parameters of a model's own draft: its layers, the projection into them, and copies of embedding and head, as the engine loads them."""
    layers, hidden = draft_layers(config), int(config["hidden_size"])
    vocabulary = float(config.get("vocab_size", 0)) * hidden
    last = int(config["num_hidden_layers"]) - 1
    return [
        *_attention(config, split, layers),
        *(part for _layer in range(layers) for part in _feed_forward(config, split, last)),
        Part(2.0 * hidden * hidden * layers, 1, "last"),
        Part(vocabulary, split.attention, "last", "plain"),
        Part(vocabulary, split.tensor, "last", "plain"),
    ]


def _attention(config: Config, split: Split, layers: int) -> list[Part]:
    hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    key, value = head_widths(config)
    if is_mla(config):
        rank, rope = int(config["kv_lora_rank"]), int(config.get("qk_rope_head_dim") or 0)
        nope, queries = int(config.get("qk_nope_head_dim") or key), int(config.get("q_lora_rank") or 0)
        value = int(config.get("v_head_dim") or value)
        shared = hidden * (queries + rank + rope)
        own = heads * ((queries or hidden) * (nope + rope) + rank * (nope + value) + value * hidden)
        return [Part(float(layers * shared), 1), Part(float(layers * own), split.attention)]
    gate = 2 if config.get("attn_output_gate", bool(config.get("linear_num_value_heads"))) else 1
    total = kv_heads(config, 1)
    own = hidden * heads * (key * gate + value)
    pair = hidden * total * (key + value)
    return [Part(float(layers * own), split.attention), Part(float(layers * pair), min(split.attention, total))]


def _linear_attention(config: Config, split: Split, layers: int) -> list[Part]:
    if not layers or not config.get("linear_num_value_heads"):
        return []
    heads, hidden = config["linear_num_value_heads"], int(config["hidden_size"])
    keys, values = config["linear_num_key_heads"] * config["linear_key_head_dim"], heads * config["linear_value_head_dim"]
    own = hidden * (2 * keys + 3 * values + 2 * heads) + (2 * keys + values) * config["linear_conv_kernel_dim"]
    return [Part(float(layers * own), split.attention)]


def _is_sparse(config: Config, layer: int) -> bool:
    """Whether a layer has experts."""
    frequency = config.get("moe_layer_freq", 1)
    if isinstance(frequency, (list, tuple)):
        return bool(frequency[layer]) if layer < len(frequency) else True
    if layer in (config.get("mlp_only_layers") or ()) or layer < int(config.get("first_k_dense_replace") or 0):
        return False
    step = int(first(config, "decoder_sparse_step", "interleave_moe_layer_step") or 1)
    return layer % int(frequency or 1) == 0 and (layer + 1) % step == 0


def experts(config: Config) -> int:
    """Returns the number of experts of a layer, 0 for a dense model."""
    return int(first(config, "num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts") or 0)


def _feed_forward(config: Config, split: Split, layer: int) -> list[Part]:
    hidden, count = int(config["hidden_size"]), experts(config)
    inner = int(first(config, "intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner") or 4 * hidden)
    if not count or not _is_sparse(config, layer):
        return [Part(3.0 * hidden * inner, split.tensor)]
    each = int(first(config, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size") or inner)
    shared = int(first(config, "shared_expert_intermediate_size") or each * int(first(config, "n_shared_experts", "num_shared_experts") or 0))
    shared = shared or (each if "interleave_moe_layer_step" in config else 0)
    return [
        Part(3.0 * hidden * each * count, split.tensor, kind="expert"),
        Part(3.0 * hidden * shared, split.tensor),
        Part(float(hidden * count), 1, kind="plain"),
    ]


def _vision(config: Config, split: Split) -> list[Part]:
    """The encoder of pictures: blocks, patches and the merger, by the field names of Qwen's and of CLIP-like ones; nothing where neither is there."""
    vision = config.get("vision_config")
    if not isinstance(vision, t.Mapping):
        return []
    depth, hidden, inner = first(vision, "depth", "num_hidden_layers"), vision.get("hidden_size"), vision.get("intermediate_size")
    if not (depth and hidden and inner):
        return []
    merged = hidden * int(vision.get("spatial_merge_size", 1)) ** 2
    out = int(vision.get("out_hidden_size") or config["hidden_size"])
    patches = 3 * int(vision.get("temporal_patch_size", 1)) * int(vision.get("patch_size", 14)) ** 2 * hidden
    patches += int(vision.get("num_position_embeddings", 0)) * hidden
    return [
        Part(float(depth * (4 * hidden * hidden + 2 * hidden * inner) + merged * merged + merged * out), split.tensor, "first", "plain"),
        Part(float(patches), 1, "first", "plain"),
    ]


def plain_width(config: Config, dtype: str = "auto") -> float:
    """Returns the bytes of a number that is not quantised; ``auto`` runs float32 checkpoints as float16."""
    own = str(first(config, "dtype", "torch_dtype") or "bfloat16")
    name = ("float16" if own == "float32" else own) if dtype == "auto" else dtype
    return _WIDTH.get(name.replace("torch.", ""), 2.0)


def quantized_width(config: Config, flag: str | None = None) -> float | None:
    """Returns the bytes of a quantised number with its scales, by the checkpoint or by ``--quantization``; None for a model that is not quantised."""
    found = first(config, "quantization_config", "compression_config")
    if not isinstance(found, t.Mapping):
        return _QUANTIZED.get(flag) if flag else None
    method = str(found.get("quant_algo") or found.get("quant_method") or "").lower()
    groups = [group.get("weights") for group in (found.get("config_groups") or {}).values() if isinstance(group, t.Mapping)]
    described = next((weights for weights in groups if isinstance(weights, t.Mapping)), {})
    bits = first(found, "bits", "w_bit", "num_bits") or described.get("num_bits")
    if bits:
        group = first(found, "group_size", "q_group_size") or described.get("group_size") or 0
        return float(bits) / 8 + (2.5 / group if group > 0 else 0)
    if found.get("load_in_4bit"):
        return 0.56
    return _QUANTIZED.get(method, 1.0 if "8" in method or found.get("load_in_8bit") else 0.56 if "4" in method else None)


def stored_width(config: Config) -> float:
    """Returns the bytes of a number of the checkpoint that is not quantised."""
    return plain_width({}, str(first(config, "dtype", "torch_dtype") or "bfloat16"))


def weight(pieces: t.Sequence[Part], types: Types, pipeline: int = 0) -> float:
    """Returns the bytes of parameters.

    Args:
        pieces: the parameters.
        types: bytes of each sort.
        pipeline: stages, for the bytes on the fullest GPU; 0 for those of the whole model.
    """
    if not pipeline:
        return sum(part.parameters * types.width(part) for part in pieces)
    held = {stage: sum(part.parameters * types.width(part) / part.shares for part in pieces if part.stage == stage) for stage in ("layers", "first", "last")}
    return held["layers"] / pipeline + (held["first"] + held["last"] if pipeline == 1 else max(held["first"], held["last"]))
