# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The memory of the fullest GPU before a server is started, line by line; GB are 2**30 bytes, as in the engine's log.

The engine takes ``rest = free after weights - free before weights * (1 - mem_fraction_static)`` for states and KV pool (0.5.12
``model_executor/model_runner_kv_cache_mixin.py:62``, 0.5.16 ``mem_cache/kv_cache_configurator.py:1527``, 0.5.23 ``:2990``); what it leaves is for graphs,
activations and, up to 0.5.15, the draft. Both are the least over the ranks.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.llmops.inference.plugins.module_utils import _memory_pool as pool
from ansible_collections.llmops.inference.plugins.module_utils import _memory_reserve as reserve
from ansible_collections.llmops.inference.plugins.module_utils import _model_shape as model
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, flatten_config
from ansible_collections.llmops.inference.plugins.module_utils._memory_pool import DRAFT_FIRST, GB, engine_version
from ansible_collections.llmops.inference.plugins.module_utils._rules_gpus import used_gpus
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import attention_share

Gpu = t.Mapping[str, t.Any]
# What a rank takes before it measures: CUDA's context and buffers; with more ranks NCCL's too; multimodal: the IPC pool and the tokenizer's context.
# Measured with 0.5.17 on H200 (recorded runs): 0.67, 1.52 and another 1.52 GB.
_CONTEXT_GB, _CONTEXT_OF_MANY_GB, _MULTIMODAL_GB = 0.67, 1.52, 1.52
_WITH_DRAFT = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")


@dataclass(frozen=True)
class Draft:
    """A draft model of its own: its ``config.json`` and the bytes of its weights, where they are known."""

    config: t.Mapping[str, t.Any]
    weights_bytes: int | None = None


@dataclass(frozen=True)
class Row:
    """One line: what, how many GB of one GPU, and how that is known."""

    name: str
    gb: float
    how: str


@dataclass(frozen=True)
class Budget:
    """The account of one GPU.

    Attributes:
        rows: the lines, in the order in which memory is taken.
        free_gb: what the server will find, the least over its GPUs, with what its own unit holds now.
        weights_gb: weights, with the draft's where the engine loads them before it sizes its pool.
        rest_gb: what ``mem_fraction_static`` leaves for states and KV pool.
        reserve_gb: what it keeps for graphs and activations, after what else goes there.
        graphs_gb: the estimate of what those need.
        kv_tokens: size of the pool; None where the model's layout is not known.
        wanted_tokens: context length of one request.
        requests: how many can run at once, by states and tokens; None where not known.
        needed_gb: free memory that one request with its whole context needs.
        fraction: ``mem_fraction_static``.
    """

    rows: t.Tuple[Row, ...]
    free_gb: float
    weights_gb: float
    rest_gb: float
    reserve_gb: float
    graphs_gb: float
    kv_tokens: int | None
    wanted_tokens: int
    requests: int | None
    needed_gb: float
    fraction: float

    @property
    def verdict(self) -> str:
        """``weights_do_not_fit``, ``kv_pool_too_small``, ``context_does_not_fit``, ``graphs_may_not_fit``, ``unknown`` or ``fits``."""
        if self.rest_gb <= 0:
            return "weights_do_not_fit"
        if self.kv_tokens is None:
            return "unknown"
        if self.kv_tokens <= 0 or self.requests == 0:
            return "kv_pool_too_small"
        if self.kv_tokens < self.wanted_tokens:
            return "context_does_not_fit"
        return "graphs_may_not_fit" if self.reserve_gb < self.graphs_gb else "fits"


def budget(candidate: Candidate, own_unit: str = "", draft: Draft | None = None) -> Budget | None:
    """Returns the account of the fullest of a server's GPUs, or None where model or memory are not known.

    Args:
        candidate: the server.
        own_unit: the unit that it replaces: what that holds will be free.
        draft: a draft model of its own; the model's own draft layers need none.
    """
    return fullest(candidate, facts_of_gpus(candidate), own_unit, draft)


def fullest(candidate: Candidate, gpus: t.Sequence[Gpu], own_unit: str, draft: Draft | None) -> Budget | None:
    """Returns the account of the fullest of the GPUs that are used."""
    if not gpus:
        return None
    return _account(candidate, _Memory(min(free_gb(gpu, own_unit) for gpu in gpus), min(float(gpu["memory_total_mib"]) / 1024 for gpu in gpus)), draft)


def facts_of_gpus(candidate: Candidate) -> list[Gpu]:
    """Returns the facts of the GPUs that ranks of this host will run on and that tell their memory; a MIG device has its profile's, taken to be free."""
    gpus = candidate.gpus or ()
    used = [
        {"index": device.gpu, "memory_total_mib": device.memory_total_mib, "memory_free_mib": device.memory_total_mib} if device.mig else gpus[device.gpu]
        for device in used_gpus(candidate)
    ]
    return [gpu for gpu in used if gpu.get("memory_total_mib") and gpu.get("memory_free_mib") is not None]


def free_gb(gpu: Gpu, own_unit: str) -> float:
    """Returns what is free on a GPU, with what the server's own unit holds now."""
    own = sum(process.get("memory_mib") or 0 for process in gpu.get("processes") or () if own_unit and process.get("unit") == own_unit)
    return min(float(gpu["memory_free_mib"]) + own, float(gpu["memory_total_mib"])) / 1024


def _split(candidate: Candidate) -> model.Split:
    tensor = max(1, candidate.whole("tp_size", 1))
    return model.Split(tensor, max(1, tensor // max(1, attention_share(candidate))), max(1, candidate.whole("pp_size", 1)))


@dataclass(frozen=True)
class _Memory:
    """GB: free on the fullest GPU, in all on the smallest."""

    free: float
    total: float


@dataclass(frozen=True)
class _Start:
    """What is taken before states and KV pool are sized: rows, and of them weights (what the engine counts), what is kept, graphs with activations."""

    rows: t.Tuple[Row, ...]
    free: float
    context: float
    weights: float
    pictures: float
    rest: float
    kept: float
    later: float
    work: t.Tuple[Row, ...]
    wanted: int
    fraction: float

    def close(self, rows: t.Iterable[Row], tokens: int | None, requests: int | None, one: float, outside: float = 0) -> Budget:
        """Returns the account with the rows of the pool, GB that one request with its whole context needs, and GB of the draft outside the pool."""
        graphs = sum(row.gb for row in self.work)
        needed = self.context + (self.weights + self.pictures + one) / self.fraction
        left = self.kept - self.later - outside
        every = (*self.rows, *rows, *self.work)
        return Budget(every, self.free, self.weights, self.rest, left, graphs, tokens, self.wanted, requests, needed, self.fraction)


def _account(candidate: Candidate, memory: _Memory, draft: Draft | None) -> Budget | None:
    config, split = candidate.text_config, _split(candidate)
    unknown = model.unknown_layout(config)
    start = _start(candidate, config, split, memory, draft)
    if start is None:
        return None
    if unknown:
        return start.close([Row("states and KV pool", max(0.0, start.rest), f"not told: no formula for {unknown}")], None, None, 0)
    states = pool.size_states(candidate, config, split, start.rest)
    cell, layer = pool.token_bytes(candidate, config, split, _draft_layers(candidate, config, draft))
    tokens = pool.size_tokens(candidate, (start.rest - states.gb - states.copies_gb) * GB, cell)
    held = max(0, tokens)
    rows = [*_state_rows(states), Row("KV pool", held * cell / GB, f"{held:,} tokens of {cell / 1024:.5g} KiB")]
    if layer:
        rows.append(Row("draft KV", held * layer / GB, "from what is kept free: this engine does not count it into the pool"))
    one = states.copies_gb + pool.state_gb(candidate, config, split) * states.each + start.wanted * cell / GB
    return start.close(rows, tokens, pool.most_requests(candidate, states, tokens, start.wanted), one, held * layer / GB)


def _start(candidate: Candidate, config: model.Config, split: model.Split, memory: _Memory, draft: Draft | None) -> _Start | None:
    weights = _weights(candidate, config, split)
    if weights is None:
        return None
    context, drafted = _context(candidate, config), _draft_weights(candidate, config, split, draft)
    before = max(0.0, memory.free - context.gb)
    graphs = reserve.graphs_gb(candidate)
    fraction, told = reserve.static_fraction(candidate, memory.total, graphs)
    kept = before * (1 - fraction)
    counted = drafted.gb if engine_version(candidate) >= DRAFT_FIRST else 0
    pictures = _multimodal_gb(candidate, config)
    rows = [context, weights, *([drafted] if drafted.how else [])]
    rows.append(Row("kept free", kept, f"{before:.2f} GB x (1 - mem_fraction_static {fraction:.3g}{told}), for graphs, activations and what comes from it"))
    if pictures:
        rows.append(Row("multimodal buffers", pictures, "embedding cache and feature transport, by their variables or the engine's defaults"))
    work = (
        Row("graphs", graphs, "from what is kept free: the engine's own reserve by number and size of graphs"),
        Row(
            "activations",
            reserve.activations_gb(candidate, config, split, memory.total),
            "from what is kept free: estimate by chunk and widths, more than 9 recorded starts took",
        ),
    )
    rest = before - weights.gb - counted - kept - pictures
    wanted = _context_length(candidate, config)
    return _Start(tuple(rows), memory.free, context.gb, weights.gb + counted, pictures, rest, kept, drafted.gb - counted, work, wanted, fraction)


def _context(candidate: Candidate, config: model.Config) -> Row:
    many = candidate.whole("tp_size", 1) * candidate.whole("pp_size", 1) > 1
    pictures = _is_multimodal(config) and candidate.value("mm_feature_transport") == "cuda_ipc"
    gb = (_CONTEXT_OF_MANY_GB if many else _CONTEXT_GB) + (_MULTIMODAL_GB if pictures else 0)
    how = "as measured on H200 with 0.5.17" + (", with NCCL" if many else "") + (", with the IPC pool for pictures" if pictures else "")
    return Row("CUDA context", gb, how)


def _is_multimodal(config: model.Config) -> bool:
    return any(isinstance(config.get(name), t.Mapping) for name in ("vision_config", "audio_config"))


def _multimodal_gb(candidate: Candidate, config: model.Config) -> float:
    """0.5.23 ``mem_cache/kv_cache_configurator.py:202``; 0.5.12 and 0.5.16 have no such reserve (those between were not looked at)."""
    if engine_version(candidate) < (0, 5, 23) or not _is_multimodal(config):
        return 0
    moved = float(candidate.environment.get("SGLANG_MM_FEATURE_CACHE_MB", 1024)) if candidate.value("mm_feature_transport") in ("cuda_ipc", "cuda_vmm") else 0
    return (float(candidate.environment.get("SGLANG_VLM_CACHE_SIZE_MB", 100)) + moved) / 1024


def _weights(candidate: Candidate, config: model.Config, split: model.Split) -> Row | None:
    """Bytes on disk by the share that the layout puts on the fullest GPU; without bytes parameters x type, without a layout bytes / ranks."""
    ranks, on_disk = split.tensor * split.pipeline, candidate.weights_bytes
    unknown = model.unknown_layout(config)
    if unknown == model.NO_LAYERS:
        return Row("weights", on_disk / ranks / GB, f"{on_disk / GB:.2f} GB of files / {ranks}: the layout is not known") if on_disk else None
    pieces, runs = model.parts(config, split), _types(candidate, config)
    mine = model.weight(pieces, runs, split.pipeline)
    if not on_disk:
        doubt = f"; {unknown} not counted apart" if unknown else ""
        return Row("weights", mine / GB, f"estimate: {sum(part.parameters for part in pieces) / 1e9:.2f} billion parameters x type, over {ranks} GPU(s){doubt}")
    extra = model.draft_parts(config, split)[:-2] if model.draft_layers(config) else []
    share = mine / model.weight([*pieces, *extra], replace(runs, plain=model.stored_width(config), quantized=model.quantized_width(config)))
    return Row("weights", on_disk * share / GB, f"{on_disk / GB:.2f} GB of files x {share:.4f}, the share of the fullest of {ranks} GPU(s)")


def _types(candidate: Candidate, config: model.Config) -> model.Types:
    """What the weights will be in memory."""
    plain, quantized = model.plain_width(config, candidate.value("dtype", "auto")), model.quantized_width(config, candidate.value("quantization"))
    return model.Types(plain, quantized, (config.get("quantization_config") or {}).get("quant_method") == "mxfp4")


def _drafts(candidate: Candidate) -> bool:
    return str(candidate.value("speculative_algorithm", "")).upper() in _WITH_DRAFT


def _draft_weights(candidate: Candidate, config: model.Config, split: model.Split, draft: Draft | None) -> Row:
    """The draft has no tensor of the target: it loads embedding and head of its own (0.5.17, a recorded run)."""
    if not candidate.value("speculative_algorithm"):
        return Row("draft weights", 0, "")
    when = "" if engine_version(candidate) >= DRAFT_FIRST else ", from what is kept free: this engine loads it after its pool"
    if draft:
        own = replace(candidate, asked={}, effective=_shared(candidate), config=draft.config, weights_bytes=draft.weights_bytes)
        found = _weights(own, own.text_config, split)
        return Row("draft weights", found.gb if found else 0, (found.how if found else "not told: the draft's config.json is not known") + when)
    if not _has_own_draft(candidate, config):
        return Row("draft weights", 0, f"not told: the draft of {candidate.value('speculative_algorithm')} is not known")
    gb = model.weight(model.draft_parts(config, split), _types(candidate, config), 1) / GB
    return Row("draft weights", gb, f"{model.draft_layers(config)} layer(s) of the model, with embedding and head of its own{when}")


def _has_own_draft(candidate: Candidate, config: model.Config) -> bool:
    return _drafts(candidate) and not _has_draft_path(candidate) and not model.unknown_layout(config) and model.draft_layers(config) > 0


def _draft_layers(candidate: Candidate, config: model.Config, draft: Draft | None) -> int:
    """Layers of the draft that have a KV cache."""
    if not _drafts(candidate):
        return 0
    own = flatten_config(draft.config) if draft else {}
    return int(own.get("num_hidden_layers") or 0) if own else model.draft_layers(config) * _has_own_draft(candidate, config)


def _shared(candidate: Candidate) -> dict[str, t.Any]:
    names = ("tp_size", "pp_size", "dtype", "enable_dp_attention", "dp_size", "attn_dp_size", "attn_cp_size")
    return {name: candidate.value(name) for name in names if candidate.value(name) is not None}


def _has_draft_path(candidate: Candidate) -> bool:
    path = candidate.value("speculative_draft_model_path")
    return bool(path) and path != candidate.value("model_path")


def _context_length(candidate: Candidate, config: model.Config) -> int:
    return int(candidate.whole("context_length", 0) or model.first(config, "max_position_embeddings", "seq_length", "max_sequence_length") or 2048)


def _state_rows(states: pool.States) -> list[Row]:
    rows = [Row("states", states.gb, f"{states.slots} slots of linear attention, {states.each} for a request")] if states.gb or states.slots else []
    return rows + ([Row("states of drafts", states.copies_gb, "a state for every draft token of every running request")] if states.copies_gb else [])
