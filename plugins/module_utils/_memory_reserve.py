# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the engine keeps free for graphs and activations, and what those need; GB are 2**30 bytes."""

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.module_utils import _model_shape as model
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._memory_pool import GB


def static_fraction(candidate: Candidate, total: float, graphs: float) -> tuple[float, str]:
    """Returns ``mem_fraction_static`` and a word where it is estimated.

    It is what the engine resolved; else its rule (0.5.23 ``arg_groups/memory_hook.py:281``), without the factor for pictures.

    Args:
        candidate: the server.
        total: GB of the smallest GPU.
        graphs: GB that graphs take.
    """
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


def graphs_gb(candidate: Candidate) -> float:
    """Returns ``reserve_for_graph_mb``: 2 MB for each request of the largest decode graph, 8 MB for each prefill graph (0.5.23 ``memory_hook.py:357``)."""
    phases = candidate.value("cuda_graph_config", {})
    decode, prefill = dict(phases.get("decode") or {}), dict(phases.get("prefill") or {})
    if not phases:
        off = candidate.value("disable_cuda_graph", False)
        decode = {"backend": "disabled" if off else "full", "max_bs": candidate.value("cuda_graph_max_bs", 0)}
        prefill = {"backend": "disabled" if off or candidate.value("disable_piecewise_cuda_graph", True) else "piecewise"}
        prefill["bs"] = candidate.value("piecewise_cuda_graph_tokens", [])
    mb = 2.0 * (decode.get("max_bs") or 0) if decode.get("backend") != "disabled" else 0.0
    return (mb + (8.0 * len(prefill.get("bs") or ()) if prefill.get("backend") != "disabled" else 0)) / 1024


def activations_gb(candidate: Candidate, config: model.Config, split: model.Split, total: float) -> float:
    """Returns 1 GB (with a draft 1.5) and 2 bytes for each token of a chunk in three feed-forward and six hidden widths: an estimate of ours."""
    inner = float(model.first(config, "intermediate_size", "moe_intermediate_size") or 0)
    each = 3 * inner / split.tensor + 6 * float(config.get("hidden_size") or 0)
    return (1.5 if candidate.value("speculative_algorithm") else 1) + _chunk(candidate, total) * each * 2 / GB
