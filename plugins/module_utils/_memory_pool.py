# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The engine's pool: slots of linear-attention states, tokens of the KV cache, and how many requests they are for; GB are 2**30 bytes.

States: 0.5.12 ``model_executor/model_runner_kv_cache_mixin.py:78``, 0.5.16 ``mem_cache/kv_cache_configurator.py:1703``, 0.5.23 ``:3229``; bytes of a
token: ``_model_shape``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils import _model_shape as model
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import attention_data_parallelism

GB = float(1 << 30)
# From which version (seen) a draft is loaded before the pool is sized; 0.5.12 loads it after. Those between were not looked at.
DRAFT_FIRST = (0, 5, 16)
_KV_WIDTH = {"fp8_e5m2": 1.0, "fp8_e4m3": 1.0, "mxfp8": 1 + 1 / 32, "fp4_e2m1": 0.5 + 1 / 16, "bf16": 2.0, "bfloat16": 2.0}
_STATE_WIDTH = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
# With speculation the engine sets it (0.5.12 server_args.py:3743, 0.5.23 speculative_hook.py:1087).
_DEFAULT_REQUESTS = 48


@dataclass(frozen=True)
class States:
    """States of linear attention.

    Attributes:
        slots: how many there are.
        gb: what they take.
        copies_gb: what the copies for drafts take.
        each: slots of one request.
    """

    slots: int = 0
    gb: float = 0
    copies_gb: float = 0
    each: int = 1


def engine_version(candidate: Candidate) -> tuple[int, ...]:
    """Returns the numbers of the engine's version; one that is not known counts as the newest."""
    return numbers(candidate.engine)[:3] or (99,)


def request_groups(candidate: Candidate) -> int:
    """Returns how many groups of ranks share out the requests of one copy of the model."""
    return max(1, attention_data_parallelism(candidate))


def token_bytes(candidate: Candidate, config: model.Config, split: model.Split, draft_layers: int) -> tuple[float, float]:
    """Returns the bytes of a token in the pool, and of what a draft of so many layers takes for it outside.

    Up to 0.5.15 the draft is never counted; 0.5.16 counts a draft with a path (``spec_aux_hidden_state.py:69``), 0.5.23 also the model's own where
    ``num_nextn_predict_layers`` is set (``:172``): the cell grows by draft layers / layers (``pool_configurator.py:142``, ``:264``).
    """
    name = str(candidate.value("kv_cache_dtype", "auto"))
    quantization = config.get("quantization_config") or {}
    plain = 1.0 if str(quantization.get("kv_cache_quant_algo", "")).upper() == "FP8" else model.plain_width(config, candidate.value("dtype", "auto"))
    cell = model.kv_bytes(config, split, _KV_WIDTH.get(name, plain), float(candidate.value("swa_full_tokens_ratio", 0.8)))
    if not draft_layers:
        return cell, 0.0
    full = max(1, -(-sum(kind in ("full", "sliding") for kind in model.layer_kinds(config)) // split.pipeline))
    version = engine_version(candidate)
    by_path = bool(candidate.value("speculative_draft_model_path")) or (version >= (0, 5, 23) and config.get("num_nextn_predict_layers"))
    counted = version >= DRAFT_FIRST and by_path
    return (cell * (1 + draft_layers / full), 0.0) if counted else (cell, cell * draft_layers / full)


def _state_widths(candidate: Candidate, config: model.Config) -> tuple[float, float]:
    """Bytes of a number of the state and of its convolution (``configs/mamba_utils.py:47``)."""
    asked = candidate.environment.get("SGLANG_MAMBA_SSM_DTYPE") or candidate.value("mamba_ssm_dtype") or config.get("mamba_ssm_dtype")
    return _STATE_WIDTH.get(str(asked), 4.0), _STATE_WIDTH.get(candidate.environment.get("SGLANG_MAMBA_CONV_DTYPE", ""), 2.0)


def state_gb(candidate: Candidate, config: model.Config, split: model.Split) -> float:
    """Returns what one slot of states takes; 0 for a model without linear attention."""
    return model.state_bytes(config, split, *_state_widths(candidate, config)) / GB


def _slots_each(candidate: Candidate) -> int:
    """Slots that one running request takes (``_calculate_mamba_ratio``, 0.5.16 ``kv_cache_configurator.py:1572``)."""
    if candidate.value("disable_radix_cache"):
        return 1
    strategy = str(candidate.value("mamba_radix_cache_strategy") or candidate.value("mamba_scheduler_strategy") or "")
    if not strategy.startswith("extra_buffer"):
        return 3
    return 4 if strategy == "extra_buffer_lazy" or candidate.value("disable_overlap_schedule") else 5


def size_states(candidate: Candidate, config: model.Config, split: model.Split, rest: float) -> States:
    """Returns the states, sized in one of three ways: asked for, one for each request, or a share of the rest; and the copies that drafts need.

    Args:
        candidate: the server.
        config: the model's flat configuration.
        split: over how many ranks it is.
        rest: GB that are left for states and KV pool.
    """
    one = state_gb(candidate, config, split)
    if not one:
        return States()
    each, groups, version = _slots_each(candidate), request_groups(candidate), engine_version(candidate)
    pad = 1 if version >= (0, 5, 23) else 0
    drafts = candidate.whole("speculative_num_draft_tokens", 0) if candidate.value("speculative_algorithm") else 0
    running = max(1, candidate.whole("max_running_requests", _DEFAULT_REQUESTS) // groups)
    old = version < DRAFT_FIRST
    asked, ratio = candidate.value("max_mamba_cache_size"), float(candidate.value("mamba_full_memory_ratio", 0.9))
    share = (rest - (running * drafts * one if old else 0)) * ratio / (1 + ratio)
    if asked is not None:
        slots = int(asked) // groups
    elif candidate.value("disable_radix_cache") and candidate.value("max_running_requests") is not None:
        slots = running
    else:
        slots = int((share / one - pad * (1 + drafts)) // (1 + (0 if old else drafts / each)))
    copied = running if old else max(0, min(running, slots // each))
    return States(slots, max(0, slots + pad) * one, (copied + pad) * drafts * one if drafts else 0.0, each)


def size_tokens(candidate: Candidate, available: float, cell: float) -> int:
    """Returns how many tokens of so many bytes the available bytes are enough for, in whole pages."""
    page = max(1, candidate.whole("page_size", 1))
    tokens = int(available // cell) if cell else 0
    return min(tokens, candidate.whole("max_total_tokens", tokens)) // page * page


def most_requests(candidate: Candidate, states: States, tokens: int, wanted: int) -> int:
    """Returns how many requests can run at once on one group of ranks (``resolve_max_num_reqs``, 0.5.16 ``kv_cache_configurator.py:1622``)."""
    estimated = max(min(int(tokens / max(1, wanted) * 512), 4096), 2048)
    most = min(candidate.whole("max_running_requests", estimated) // request_groups(candidate) or 1, max(0, tokens) // 2)
    return min(most, states.slots // states.each) if states.gb or states.slots else most
