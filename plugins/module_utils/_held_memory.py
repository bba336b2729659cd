# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Memory that ran out because something else held it: the engine blames its flags, the last good start knows better.

Seen on an H200 with SGLang 0.5.17: with another process on the GPU the engine says that the weights leave no memory for the KV cache, and to raise
``mem_fraction_static``.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Diagnosis

_CODES = ("kv_pool_too_small", "cuda_graph_oom", "gpu_memory")
# Contexts and communicators differ by less between two starts of one server.
_TOLERANCE = 0.1


def _free(vitals: t.Mapping[str, t.Any]) -> dict[str, float]:
    """GB that each rank found free before it loaded the weights."""
    found = {rank: signs.get("available_gb", {}).get("before_weights") for rank, signs in vitals.get("ranks", {}).items()}
    return {rank: gb for rank, gb in found.items() if gb is not None}


def blame_holder(diagnosis: Diagnosis, vitals: t.Mapping[str, t.Any], good: t.Mapping[str, t.Any]) -> Diagnosis:
    """Returns the diagnosis, or that the GPU was busy where a rank found a tenth less memory free than at the last good start.

    Args:
        diagnosis: of a failed start.
        vitals: vital signs of that start.
        good: those of the last good one.
    """
    now, then = _free(vitals), _free(good)
    short = {rank: (gb, then[rank]) for rank, gb in now.items() if rank in then and gb < then[rank] * (1 - _TOLERANCE)}
    if diagnosis.code not in _CODES or diagnosis.where != RELEASE or not short:
        return diagnosis
    rank, (free, before) = min(short.items(), key=lambda one: one[1][0] / one[1][1])
    return replace(
        diagnosis,
        code="gpu_busy",
        cause=f"something else held {before - free:.1f} GB of the GPU of rank {rank}: {free:g} GB were free before the weights were loaded, "
        f"{before:g} GB at the last good start; so {diagnosis.cause}",
        hint="free the GPU (`nvidia-smi` names its processes), then deploy again",
        where=HOST,
        certainty="suspected",
        implicated=["CUDA_VISIBLE_DEVICES", "base_gpu_id"],
        captured={**diagnosis.captured, "free_gb": free, "free_at_last_good_start_gb": before},
        remedy="",
    )
