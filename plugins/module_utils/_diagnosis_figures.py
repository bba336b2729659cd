# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Values for the inventory line of a diagnosis, where the journal's own figures justify one. GB are 2**30 bytes.

The engine gives the KV pool ``after - before * (1 - mem_fraction_static)`` (0.5.12 ``model_runner_kv_cache_mixin.py``, 0.5.23 ``pool_configurator.py``):
``before`` is free before the weights are loaded, ``after`` behind them. A fraction is proposed only when it is what the engine would choose by itself for a
GPU of that size, leaves the pool at least one GB, and lies in the direction that the failure asks for.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._memory_reserve import graphs_gb, static_fraction

# The largest decode batch that engines capture by default on GPUs of up to 80 GB.
_LARGEST_BATCH = 256
_SMALLEST_POOL_GB = 1.0
Values = t.Mapping[str, t.Any]


def higher_fraction(values: Values) -> dict[str, t.Any]:
    """Returns ``fraction`` for weights that leave no room for the KV pool, or nothing.

    Args:
        values: after_gb and used_gb (lists, of ``Load weight end`` lines), mem_fraction_static, tp_size, device; any may be missing.
    """
    return {name: value for name, value in _sound(values).items() if value > values.get("mem_fraction_static", math.inf)}


def lower_fraction(values: Values) -> dict[str, t.Any]:
    """Returns ``fraction`` for graphs that find no room behind the KV pool, or nothing; arguments as in :func:`higher_fraction`."""
    return {name: value for name, value in _sound(values).items() if value < values.get("mem_fraction_static", 0)}


def _sound(values: Values) -> dict[str, float]:
    after, used = values.get("after_gb") or [], values.get("used_gb") or []
    if not after or not used or values.get("device") == "cpu":
        return {}
    before = after[0] + used[0]
    graphs = graphs_gb(Candidate(effective={"cuda_graph_max_bs": _LARGEST_BATCH}))
    fraction = static_fraction(Candidate(effective={"tp_size": values.get("tp_size", 1)}), before, graphs)[0]
    fraction = math.floor(fraction * 100) / 100
    pool = min(after) - before * (1 - fraction)
    return {"fraction": fraction} if pool >= _SMALLEST_POOL_GB else {}


def single_flag(values: Values) -> dict[str, t.Any]:
    """Returns ``flag``, the field's name, where the engine refused exactly one flag.

    Args:
        values: arguments: the words that the engine did not know.
    """
    flags = [word for word in str(values.get("arguments", "")).split() if word.startswith("--")]
    return {"flag": flags[0].lstrip("-").partition("=")[0].replace("-", "_")} if len(flags) == 1 else {}


def clean_cuda_home(values: Values) -> dict[str, t.Any]:
    """Returns ``directory``, a ``CUDA_HOME`` without the colons around it, where it is one directory (case L07).

    Args:
        values: cuda_home.
    """
    directory = str(values.get("cuda_home", "")).strip(":")
    return {"directory": directory} if directory and ":" not in directory else {}
