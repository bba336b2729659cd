# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The memory of the fullest GPU before a server is started, line by line; GB are 2**30 bytes, as in the engine's log.

The engine takes ``rest = free after weights - free before weights * (1 - mem_fraction_static)`` for states and KV pool (0.5.12
``model_executor/model_runner_kv_cache_mixin.py:62``, 0.5.16 ``mem_cache/kv_cache_configurator.py:1527``, 0.5.23 ``:2990``); what it leaves is for graphs,
activations and, up to 0.5.15, the draft. Both are the least over the ranks. States: 0.5.12 mixin ``:78``, 0.5.16 ``:1703``, 0.5.23 ``:3229``; bytes of a
token: ``_model_shape``. It ends at no tokens (``MemoryPoolConfig.__post_init__``, ``model_executor/pool_configurator.py:52``, ``:63``, ``:95``), with
0.5.16 and newer at ``rest <= 0`` (``kv_cache_configurator.py:1553``), and with unequal GPUs (``distributed/bootstrap.py:441``, 0.5.23).
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.llmops.inference.plugins.module_utils import _model_shape as model
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, flatten_config, whole
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._rules_gpus import gpus_needed, visible_gpus
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import attention_data_parallelism, attention_share

GB = float(1 << 30)
Gpu = t.Mapping[str, t.Any]
SOURCE = "SGLang, mem_cache/kv_cache_configurator.py (_profile_available_bytes) and model_executor/pool_configurator.py"
GRAPHS_SOURCE = "SGLang, arg_groups/memory_hook.py (reserve_for_graph_mb)"
# What a rank takes before it measures: CUDA's context and buffers; with more ranks NCCL's too; multimodal: the IPC pool and the tokenizer's context.
# Measured with 0.5.17 on H200 (shared/facts/gpu/logs): 0.67, 1.52 and another 1.52 GB.
_CONTEXT_GB, _CONTEXT_OF_MANY_GB, _MULTIMODAL_GB = 0.67, 1.52, 1.52
_KV_WIDTH = {"fp8_e5m2": 1.0, "fp8_e4m3": 1.0, "mxfp8": 1 + 1 / 32, "fp4_e2m1": 0.5 + 1 / 16, "bf16": 2.0, "bfloat16": 2.0}
_STATE_WIDTH = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
_WITH_DRAFT = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
# With speculation the engine sets it (0.5.12 server_args.py:3743, 0.5.23 speculative_hook.py:1087).
_DEFAULT_REQUESTS = 48
# From which version (seen) a draft is loaded before the pool is sized; 0.5.12 loads it after. Those between were not looked at.
_DRAFT_FIRST = (0, 5, 16)
# What an account can say, from the worst on.
_VERDICTS = ("weights_do_not_fit", "kv_pool_too_small", "unknown", "context_does_not_fit", "graphs_may_not_fit", "fits")


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


@dataclass(frozen=True)
class _States:
    """Of linear attention: slots, GB of them, GB of the copies for drafts, slots of one request."""

    slots: int = 0
    gb: float = 0
    copies_gb: float = 0
    each: int = 1


def budget(candidate: Candidate, visible: t.Sequence[Gpu] | None = None, own_unit: str = "", draft: Draft | None = None) -> Budget | None:
    """Returns the account of the fullest of a server's GPUs, or None where model or memory are not known.

    Args:
        candidate: the server.
        visible: the GPUs that it sees, in its order, as ``gpu_facts`` lists them; by its environment where left out.
        own_unit: the unit that it replaces: what that holds will be free.
        draft: a draft model of its own; the model's own draft layers need none.
    """
    return _fullest(candidate, used_gpus(candidate, visible), own_unit, draft)


def judge_memory(candidate: Candidate, visible: t.Sequence[Gpu] | None = None, own_unit: str = "", draft: Draft | None = None) -> list[Finding]:
    """Returns what memory says about a candidate; nothing where model or memory are not known.

    Args:
        candidate: the server.
        visible: the GPUs that it sees; by its environment where left out.
        own_unit: the unit that it replaces.
        draft: a draft model of its own.
    """
    gpus = used_gpus(candidate, visible)
    account = _fullest(candidate, gpus, own_unit, draft)
    if account is None:
        return []
    unequal = _judge_balance(candidate, [_free_gb(gpu, own_unit) for gpu in gpus])
    empty = _fullest(candidate, [_emptied(gpu) for gpu in gpus], "", draft)
    if empty is None or _VERDICTS.index(empty.verdict) <= _VERDICTS.index(account.verdict):
        return [*_judge(candidate, account), *unequal]
    busy = _busy(account, gpus, own_unit)
    return [busy, *unequal] if busy.severity == "error" else [busy, *_judge(candidate, account), *unequal]


def _fullest(candidate: Candidate, gpus: t.Sequence[Gpu], own_unit: str, draft: Draft | None) -> Budget | None:
    if not gpus:
        return None
    return _account(candidate, _Memory(min(_free_gb(gpu, own_unit) for gpu in gpus), min(float(gpu["memory_total_mib"]) / 1024 for gpu in gpus)), draft)


def used_gpus(candidate: Candidate, visible: t.Sequence[Gpu] | None = None) -> list[Gpu]:
    """Returns the GPUs that ranks of this host will run on, of those that are visible and tell their memory.

    Args:
        candidate: the server.
        visible: the GPUs that it sees, in its order; by its environment where left out.
    """
    seen = _seen(candidate) if visible is None else visible
    used = [seen[number] for number in gpus_needed(candidate) if 0 <= number < len(seen)]
    return [gpu for gpu in used if gpu.get("memory_total_mib") and gpu.get("memory_free_mib") is not None]


def _seen(candidate: Candidate) -> list[Gpu]:
    """GPUs by ``CUDA_VISIBLE_DEVICES``; a MIG device has the memory of its profile, taken to be free."""
    gpus = candidate.gpus or ()
    return [
        {"index": device.gpu, "memory_total_mib": device.memory_total_mib, "memory_free_mib": device.memory_total_mib} if device.mig else gpus[device.gpu]
        for device in visible_gpus(candidate)
    ]


def _version(candidate: Candidate) -> tuple[int, ...]:
    """Numbers of the engine's version; one that is not known counts as the newest."""
    return numbers(candidate.engine)[:3] or (99,)


def _replicas(candidate: Candidate) -> int:
    """Groups of ranks that share out the requests of one copy of the model."""
    return max(1, attention_data_parallelism(candidate))


def _free_gb(gpu: Gpu, own_unit: str) -> float:
    own = sum(process.get("memory_mib") or 0 for process in gpu.get("processes") or () if own_unit and process.get("unit") == own_unit)
    return min(float(gpu["memory_free_mib"]) + own, float(gpu["memory_total_mib"])) / 1024


def _emptied(gpu: Gpu) -> Gpu:
    """A GPU as it would be without any process: 1 % is for the driver, unless more is free."""
    held = sum(process.get("memory_mib") or 0 for process in gpu.get("processes") or ())
    return {**gpu, "memory_free_mib": min(max(gpu["memory_free_mib"] + held, gpu["memory_total_mib"] * 0.99), gpu["memory_total_mib"]), "processes": []}


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
        reserve = self.kept - self.later - outside
        every = (*self.rows, *rows, *self.work)
        return Budget(every, self.free, self.weights, self.rest, reserve, graphs, tokens, self.wanted, requests, needed, self.fraction)


def _account(candidate: Candidate, memory: _Memory, draft: Draft | None) -> Budget | None:
    config, split = candidate.text_config, _split(candidate)
    unknown = model.unknown_layout(config)
    start = _start(candidate, config, split, memory, draft)
    if start is None:
        return None
    if unknown:
        return start.close([Row("states and KV pool", max(0.0, start.rest), f"not told: no formula for {unknown}")], None, None, 0)
    states = _states(candidate, config, split, start.rest)
    cell, layer = _cell(candidate, config, split, draft)
    tokens = _tokens(candidate, (start.rest - states.gb - states.copies_gb) * GB, cell)
    held = max(0, tokens)
    rows = [*_state_rows(states), Row("KV pool", held * cell / GB, f"{held:,} tokens of {cell / 1024:.5g} KiB")]
    if layer:
        rows.append(Row("draft KV", held * layer / GB, "from what is kept free: this engine does not count it into the pool"))
    one = states.copies_gb + model.state_bytes(config, split, *_state_widths(candidate, config)) * states.each / GB + start.wanted * cell / GB
    return start.close(rows, tokens, _requests(candidate, states, tokens, start.wanted), one, held * layer / GB)


def _start(candidate: Candidate, config: model.Config, split: model.Split, memory: _Memory, draft: Draft | None) -> _Start | None:
    weights = _weights(candidate, config, split)
    if weights is None:
        return None
    context, drafted = _context(candidate, config), _draft_weights(candidate, config, split, draft)
    before = max(0.0, memory.free - context.gb)
    graphs = _graphs_gb(candidate)
    fraction, told = _fraction(candidate, memory.total, graphs)
    kept = before * (1 - fraction)
    counted = drafted.gb if _version(candidate) >= _DRAFT_FIRST else 0
    pictures = _multimodal_gb(candidate, config)
    rows = [context, weights, *([drafted] if drafted.how else [])]
    rows.append(Row("kept free", kept, f"{before:.2f} GB x (1 - mem_fraction_static {fraction:.3g}{told}), for graphs, activations and what comes from it"))
    if pictures:
        rows.append(Row("multimodal buffers", pictures, "embedding cache and feature transport, by their variables or the engine's defaults"))
    work = (
        Row("graphs", graphs, "from what is kept free: the engine's own reserve by number and size of graphs"),
        Row(
            "activations",
            _work_gb(candidate, config, split, memory.total),
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
    if _version(candidate) < (0, 5, 23) or not _is_multimodal(config):
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
    """The draft has no tensor of the target: it loads embedding and head of its own (0.5.17, ``logs/c1-q35-nextn.log``)."""
    if not candidate.value("speculative_algorithm"):
        return Row("draft weights", 0, "")
    when = "" if _version(candidate) >= _DRAFT_FIRST else ", from what is kept free: this engine loads it after its pool"
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


def _shared(candidate: Candidate) -> dict[str, t.Any]:
    names = ("tp_size", "pp_size", "dtype", "enable_dp_attention", "dp_size", "attn_dp_size", "attn_cp_size")
    return {name: candidate.value(name) for name in names if candidate.value(name) is not None}


def _has_draft_path(candidate: Candidate) -> bool:
    path = candidate.value("speculative_draft_model_path")
    return bool(path) and path != candidate.value("model_path")


def _fraction(candidate: Candidate, total: float, graphs: float) -> tuple[float, str]:
    """What the engine resolved; else its rule (0.5.23 ``arg_groups/memory_hook.py:281``), without the factor for pictures."""
    told = candidate.value("mem_fraction_static")
    if told is not None:
        return min(max(float(told), 0.01), 0.999), ""
    ranks = candidate.whole("tp_size", 1) * candidate.whole("pp_size", 1)
    reserve = 0.5 + max(_chunk(candidate, total), 2048) * 1.5 / 1024 + ranks / 8 + graphs
    return round(1 - max(reserve, 10.0 if total > 60 else 0) / total, 3), ", estimated"


def _chunk(candidate: Candidate, total: float) -> int:
    """Tokens of a prefill step: as resolved, else the engine's table by memory (0.5.23 ``memory_hook.py:90``)."""
    told = candidate.whole("chunked_prefill_size", 0)
    if candidate.value("chunked_prefill_size") is None:
        return 2048 if total < 35 else 4096 if total < 60 else 8192 if total < 160 else 16384
    return told if told > 0 else candidate.whole("max_prefill_tokens", 16384)


def _graphs_gb(candidate: Candidate) -> float:
    """``reserve_for_graph_mb``: 2 MB for each request of the largest decode graph, 8 MB for each prefill graph (0.5.23 ``memory_hook.py:357``)."""
    phases = candidate.value("cuda_graph_config", {})
    decode, prefill = dict(phases.get("decode") or {}), dict(phases.get("prefill") or {})
    if not phases:
        off = candidate.value("disable_cuda_graph", False)
        decode = {"backend": "disabled" if off else "full", "max_bs": candidate.value("cuda_graph_max_bs", 0)}
        prefill = {"backend": "disabled" if off or candidate.value("disable_piecewise_cuda_graph", True) else "piecewise"}
        prefill["bs"] = candidate.value("piecewise_cuda_graph_tokens", [])
    mb = 2.0 * (decode.get("max_bs") or 0) if decode.get("backend") != "disabled" else 0.0
    return (mb + (8.0 * len(prefill.get("bs") or ()) if prefill.get("backend") != "disabled" else 0)) / 1024


def _work_gb(candidate: Candidate, config: model.Config, split: model.Split, total: float) -> float:
    """1 GB (with a draft 1.5) and 2 bytes for each token of a chunk in three feed-forward and six hidden widths: an estimate of ours."""
    inner = float(model.first(config, "intermediate_size", "moe_intermediate_size") or 0)
    each = 3 * inner / split.tensor + 6 * float(config.get("hidden_size") or 0)
    return (1.5 if candidate.value("speculative_algorithm") else 1) + _chunk(candidate, total) * each * 2 / GB


def _context_length(candidate: Candidate, config: model.Config) -> int:
    return int(candidate.whole("context_length", 0) or model.first(config, "max_position_embeddings", "seq_length", "max_sequence_length") or 2048)


def _cell(candidate: Candidate, config: model.Config, split: model.Split, draft: Draft | None) -> tuple[float, float]:
    """Bytes of a token in the pool, and of what the draft takes for it outside.

    Up to 0.5.15 the draft is never counted; 0.5.16 counts a draft with a path (``spec_aux_hidden_state.py:69``), 0.5.23 also the model's own where
    ``num_nextn_predict_layers`` is set (``:172``): the cell grows by draft layers / layers (``pool_configurator.py:142``, ``:264``).
    """
    name = str(candidate.value("kv_cache_dtype", "auto"))
    quantization = config.get("quantization_config") or {}
    plain = 1.0 if str(quantization.get("kv_cache_quant_algo", "")).upper() == "FP8" else model.plain_width(config, candidate.value("dtype", "auto"))
    cell = model.kv_bytes(config, split, _KV_WIDTH.get(name, plain), float(candidate.value("swa_full_tokens_ratio", 0.8)))
    if not _drafts(candidate):
        return cell, 0.0
    own = flatten_config(draft.config) if draft else {}
    layers = int(own.get("num_hidden_layers") or 0) if own else model.draft_layers(config) * _has_own_draft(candidate, config)
    full = max(1, -(-sum(kind in ("full", "sliding") for kind in model.layer_kinds(config)) // split.pipeline))
    version = _version(candidate)
    by_path = bool(candidate.value("speculative_draft_model_path")) or (version >= (0, 5, 23) and config.get("num_nextn_predict_layers"))
    counted = version >= _DRAFT_FIRST and by_path
    return (cell * (1 + layers / full), 0.0) if counted else (cell, cell * layers / full)


def _state_widths(candidate: Candidate, config: model.Config) -> tuple[float, float]:
    """Bytes of a number of the state and of its convolution (``configs/mamba_utils.py:47``)."""
    asked = candidate.environment.get("SGLANG_MAMBA_SSM_DTYPE") or candidate.value("mamba_ssm_dtype") or config.get("mamba_ssm_dtype")
    return _STATE_WIDTH.get(str(asked), 4.0), _STATE_WIDTH.get(candidate.environment.get("SGLANG_MAMBA_CONV_DTYPE", ""), 2.0)


def _slots_each(candidate: Candidate) -> int:
    """Slots that one running request takes (``_calculate_mamba_ratio``, 0.5.16 ``kv_cache_configurator.py:1572``)."""
    if candidate.value("disable_radix_cache"):
        return 1
    strategy = str(candidate.value("mamba_radix_cache_strategy") or candidate.value("mamba_scheduler_strategy") or "")
    if not strategy.startswith("extra_buffer"):
        return 3
    return 4 if strategy == "extra_buffer_lazy" or candidate.value("disable_overlap_schedule") else 5


def _states(candidate: Candidate, config: model.Config, split: model.Split, rest: float) -> _States:
    """The three ways to size the states: asked for, one for each request, or a share of the rest; and the copies that drafts need."""
    one = model.state_bytes(config, split, *_state_widths(candidate, config)) / GB
    if not one:
        return _States()
    each, groups, version = _slots_each(candidate), _replicas(candidate), _version(candidate)
    pad = 1 if version >= (0, 5, 23) else 0
    drafts = candidate.whole("speculative_num_draft_tokens", 0) if candidate.value("speculative_algorithm") else 0
    running = max(1, candidate.whole("max_running_requests", _DEFAULT_REQUESTS) // groups)
    old = version < _DRAFT_FIRST
    asked, ratio = candidate.value("max_mamba_cache_size"), float(candidate.value("mamba_full_memory_ratio", 0.9))
    share = (rest - (running * drafts * one if old else 0)) * ratio / (1 + ratio)
    if asked is not None:
        slots = int(asked) // groups
    elif candidate.value("disable_radix_cache") and candidate.value("max_running_requests") is not None:
        slots = running
    else:
        slots = int((share / one - pad * (1 + drafts)) // (1 + (0 if old else drafts / each)))
    copied = running if old else max(0, min(running, slots // each))
    return _States(slots, max(0, slots + pad) * one, (copied + pad) * drafts * one if drafts else 0.0, each)


def _state_rows(states: _States) -> list[Row]:
    rows = [Row("states", states.gb, f"{states.slots} slots of linear attention, {states.each} for a request")] if states.gb or states.slots else []
    return rows + ([Row("states of drafts", states.copies_gb, "a state for every draft token of every running request")] if states.copies_gb else [])


def _tokens(candidate: Candidate, available: float, cell: float) -> int:
    page = max(1, candidate.whole("page_size", 1))
    tokens = int(available // cell) if cell else 0
    return min(tokens, candidate.whole("max_total_tokens", tokens)) // page * page


def _requests(candidate: Candidate, states: _States, tokens: int, wanted: int) -> int:
    """Requests that can run at once on one group of ranks (``resolve_max_num_reqs``, 0.5.16 ``kv_cache_configurator.py:1622``)."""
    estimated = max(min(int(tokens / max(1, wanted) * 512), 4096), 2048)
    most = min(candidate.whole("max_running_requests", estimated) // _replicas(candidate) or 1, max(0, tokens) // 2)
    return min(most, states.slots // states.each) if states.gb or states.slots else most


def _judge(candidate: Candidate, account: Budget) -> list[Finding]:
    verdict, fields = account.verdict, ("mem_fraction_static",)
    if verdict == "weights_do_not_fit":
        return [_no_room(candidate, account)]
    if verdict == "kv_pool_too_small":
        text = f"weights and states leave no room for a KV pool ({account.rest_gb:.1f} GB for both of {account.free_gb:.1f} GB free): {_last_words(candidate)}"
        hint = "raise mem_fraction_static, lower max_running_requests or the draft tokens, use more tp or quantised weights"
        return [Finding("kv_pool_too_small", "error", text, hint, SOURCE, (*fields, "max_running_requests", "tp_size"))]
    return [_judge_context(account), *_judge_graphs(account), *_judge_requests(candidate, account)]


def _judge_context(account: Budget) -> Finding:
    if account.verdict != "context_does_not_fit":
        return Finding("memory_budget", "note", _summary(account), "", SOURCE, ("mem_fraction_static",))
    text = f"the KV pool will hold about {account.kv_tokens:,} tokens, less than one context of {account.wanted_tokens:,}: longer requests will be refused"
    hint = f"set context_length to what is needed, raise mem_fraction_static (now {account.fraction:.3g}), use more tp, or an fp8 KV cache"
    return Finding("kv_pool_too_small", "warning", text, hint, SOURCE, ("context_length", "mem_fraction_static", "kv_cache_dtype"))


def _judge_graphs(account: Budget) -> list[Finding]:
    """Case L02: the remedy is the opposite of L01's."""
    if account.reserve_gb >= account.graphs_gb:
        return []
    text = f"mem_fraction_static {account.fraction:.3g} leaves {max(0.0, account.reserve_gb):.1f} GB for graphs and activations, "
    text += f"which may need {account.graphs_gb:.1f} GB: CUDA can run out of memory while graphs are captured"
    hint = "lower mem_fraction_static, cuda_graph_max_bs or chunked_prefill_size"
    return [Finding("graphs_may_not_fit", "warning", text, hint, GRAPHS_SOURCE, ("mem_fraction_static", "cuda_graph_max_bs", "chunked_prefill_size"))]


def _judge_requests(candidate: Candidate, account: Budget) -> list[Finding]:
    asked = whole(candidate.asked.get("max_running_requests"), 0)
    if account.requests is None or account.requests >= asked // _replicas(candidate):
        return []
    text = f"max_running_requests {asked} will be lowered to about {account.requests}: there is no memory for more"
    hint = "raise mamba_full_memory_ratio or max_mamba_cache_size" if any(row.name == "states" for row in account.rows) else ""
    return [Finding("fewer_requests", "warning", text, hint, SOURCE, ("max_running_requests", "mem_fraction_static"))]


def _summary(account: Budget) -> str:
    if account.kv_tokens is None:
        return f"of {account.free_gb:.1f} GB free per GPU weights take {account.weights_gb:.1f}, states and KV pool {account.rest_gb:.1f}: tokens are not told"
    times = account.kv_tokens / account.wanted_tokens
    text = f"of {account.free_gb:.1f} GB free per GPU weights take {account.weights_gb:.1f}; the KV pool will hold about {account.kv_tokens:,} tokens"
    return f"{text}: {times:.1f} times the context of {account.wanted_tokens:,}, at most {account.requests} requests at once"


def _last_words(candidate: Candidate) -> str:
    fraction = candidate.value("mem_fraction_static")
    return f"the engine will stop with 'Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static={fraction}'"


def _no_room(candidate: Candidate, account: Budget) -> Finding:
    """Case L01: the remedy is to raise the fraction, unless the weights are larger than the GPU."""
    context = next(row.gb for row in account.rows if row.name == "CUDA context")
    before = account.free_gb - context
    least = account.weights_gb / before if before > 0 else 2.0
    fields = ("mem_fraction_static", "tp_size", "quantization")
    text = f"weights take {account.weights_gb:.1f} GB of {before:.1f} GB free per GPU"
    if least >= 1:
        return Finding("weights_do_not_fit", "error", f"{text}: they do not fit", "use more tp, quantised weights or larger GPUs", SOURCE, fields)
    new = _version(candidate) >= _DRAFT_FIRST
    words = "the engine will stop with 'Loaded weights leave no GPU memory for the KV cache'" if new else _last_words(candidate)
    text += f"; mem_fraction_static {account.fraction:.3g} leaves {account.fraction * before:.1f} GB: {words}"
    hint = f"raise mem_fraction_static well above {least:.3f}, or use more tp or quantised weights"
    return Finding("weights_do_not_fit", "error", text, hint, SOURCE, fields)


def _busy(account: Budget, gpus: t.Sequence[Gpu], own_unit: str) -> Finding:
    """Memory that others hold is what makes the difference."""
    severity = "error" if account.verdict in ("weights_do_not_fit", "kv_pool_too_small") else "warning"
    names = [
        f"{process.get('unit') or process.get('name') or 'a process'} (pid {process.get('pid')}, {(process.get('memory_mib') or 0) / 1024:.1f} GB"
        f" on GPU {gpu.get('index', number)})"
        for number, gpu in enumerate(gpus)
        for process in gpu.get("processes") or ()
        if not (own_unit and process.get("unit") == own_unit)
    ]
    text = f"{account.free_gb:.1f} GB are free on the fullest GPU and about {account.needed_gb:.1f} GB are needed for one whole context: the rest is held by "
    text += ", ".join(names) or "something that nvidia-smi does not list"
    return Finding("gpu_busy", severity, text, "stop what holds it, or choose other GPUs", SOURCE, ("base_gpu_id",))


def _judge_balance(candidate: Candidate, frees: t.Sequence[float]) -> list[Finding]:
    """The engine refuses ranks of which one has less than 90 % of another's free memory (0.5.12 ``model_runner.py:1312``, 0.5.23 ``bootstrap.py:444``)."""
    if candidate.whole("tp_size", 1) < 2 or not frees or min(frees) >= max(frees) * 0.9:
        return []
    text = f"free memory differs between the GPUs ({min(frees):.1f} and {max(frees):.1f} GB): the engine stops with 'The memory capacity is unbalanced'"
    hint = "free the fullest GPU, or set SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0 to run with the least"
    return [Finding("gpus_unbalanced", "error", text, hint, "SGLang, distributed/bootstrap.py (_check_tp_memory_balance)", ("tp_size",))]
