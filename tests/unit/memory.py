# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on GPUs with known memory, for the tests of its account."""

from __future__ import annotations

import json
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "memory"
EIGHT = json.loads((FIXTURES / "qwen3-8b.json").read_text())
NINE = json.loads((FIXTURES / "qwen3.5-9b.json").read_text())
NEXTN = {"speculative_algorithm": "EAGLE", "speculative_num_draft_tokens": 4, "max_running_requests": 48, "mamba_radix_cache_strategy": "extra_buffer"}


def gpu(index=0, total=143771, free=None, processes=(), **more):
    return {"index": index, "memory_total_mib": total, "memory_free_mib": total - 615 if free is None else free, "processes": list(processes), **more}


def a6000s(**more):
    return [gpu(index, 49140, 48680, name="NVIDIA RTX A6000", **more) for index in range(2)]


def process(mib, unit="", name="python3", pid=4711):
    return {"pid": pid, "name": name, "memory_mib": mib, "unit": unit}


def candidate(config=EIGHT, engine="0.5.17", gpus=None, weights=None, environment=None, asked=None, **effective):
    effective = {"mem_fraction_static": 0.9, **effective}
    return Candidate(engine, asked or {}, effective, config, weights, [gpu()] if gpus is None else gpus, environment or {})


def rows(account):
    return {row.name: row for row in account.rows}


# Servers of which the model or the memory is not known.
NOT_KNOWN = [
    {"config": {}},
    {"gpus": []},
    {"gpus": [gpu(0, None, 5)]},
    {"gpus": [{"memory_total_mib": 8}]},
    {"base_gpu_id": 4},
    {"environment": {"CUDA_VISIBLE_DEVICES": "-1"}},
]
