# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of benchmarks (format 2) for tests: whole, and alike but for what a test says. The numbers are made up."""

from __future__ import annotations

import copy
import math
import statistics

# Five repetitions of one start, in parts of its rate: about 1 % of noise.
NOISE = (1.0, 0.994, 1.006, 0.997, 1.004)
# Starts differ as well: three of them, in parts of the same rate.
BOOTS = (1.0, 0.995, 1.004)
_PERCENTILES = {"mean": 1.01, "p50": 1.0, "p90": 1.05, "p99": 1.08}
_GPU = {"name": "NVIDIA RTX A6000", "memory_mib": 49140, "power_limit_w": 300.0}
_ARGV = ["--model-path", "/srv/models/qwen3-6-27b", "--served-model-name", "qwen3.6-27b", "--tp-size", "2", "--mem-fraction-static", "0.85"]
_RECORD = {
    "format": 2,
    "kind": "benchmark",
    "host": "ct129",
    "instance": "main",
    "measured_at": "2026-11-30T10:15:00Z",
    "client": {"name": "engine", "module": "sglang.benchmark.serving", "version": "0.5.23", "where": "server", "api": "/generate"},
    "collection": "0.1.0",
    "inventory": {"commit": "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "dirty": False},
    "release": {"id": "3494591af2ee", "subject": "subject-a", "argv": _ARGV},
    "engine": {"name": "0.5.23-cuda-a1b2c3d4-py312-x86_64", "version": "0.5.23", "lock": "a1b2c3d4"},
    "model": {"name": "qwen3.6-27b", "revision": "9d2f1e0c", "architecture": "Qwen3_5ForConditionalGeneration", "quantization": None},
    "flags": [
        {"name": "reasoning_parser", "value": "qwen3", "layer": "model"},
        {"name": "speculative_num_steps", "value": 3, "layer": "model"},
        {"name": "tp_size", "value": 2, "layer": "hardware"},
        {"name": "mem_fraction_static", "value": 0.85, "layer": "hardware"},
    ],
    "environment": {"NCCL_P2P_LEVEL": "PHB"},
    "effective": {"attention_backend": "flashinfer", "mem_fraction_static": 0.85, "random_seed": 123456, "tp_size": 2},
    "silent_changes": [{"field": "disable_piecewise_cuda_graph", "asked": False, "runs": True, "why": "the model counts as multimodal"}],
    "vitals": {"kv_cache_tokens": 242880, "weights_seconds": 0.2, "weights_gb": 26.1, "kv_cache_dtype": "bfloat16"},
    "hardware": {
        "gpus": [dict(_GPU), dict(_GPU)],
        "links": "PHB",
        "driver": "580.159.04",
        "cpu": "AMD EPYC 7402P 24-Core Processor",
        "cpus": 48,
        "kernel": "6.1.0-25-amd64",
    },
    "workload": {
        "name": "decode",
        "hash": "0a1b2c3d4e5f",
        "label": "",
        "requests": 4,
        "input_tokens": None,
        "output_tokens": 512,
        "cache": "flushed",
        "seed": 1,
        "slo": {},
    },
    "verdict": {},
}


def _latency(median):
    if not median:
        return {}
    return {name: round(median * factor, 3) for name, factor in _PERCENTILES.items()}


def repetition(rate=100.0, **changes):
    """One repetition of four requests with 128 tokens in and 512 out, at so many output tokens per second."""
    tokens, duration = 2048, 2048 / rate if rate else 0.0
    step = 1000 / rate if rate else 0.0
    return {
        "started_at": "2026-11-30T10:15:00Z",
        "duration_s": round(duration, 3),
        "requests": 4,
        "completed": 4,
        "failed": 0,
        "errors": [],
        "input_tokens": 512,
        "output_tokens": tokens,
        "counted_by": "server usage",
        "output_tok_per_s": rate,
        "total_tok_per_s": round(rate * 1.25, 2),
        "request_per_s": round(rate / 512, 4),
        "ttft_ms": _latency(step * 2),
        "tpot_ms": _latency(step),
        "itl_ms": _latency(step),
        "e2e_ms": _latency(step * 513),
        "goodput_per_s": None,
        "accept_length": 2.5,
        "cache_hit_rate": 0.0,
        "kv_usage": 0.02,
        "queued": 0,
        "server": {"prompt_tokens": 512, "generation_tokens": tokens},
        "gpus": [
            {"index": i, "clock_mhz": 1800, "memory_clock_mhz": 7600, "power_w": 280.0, "temperature_c": 71, "throttle": ["sw_power_cap"]} for i in range(2)
        ],
        **changes,
    }


def _is_number(value):
    return value is not None and math.isfinite(value)


def _summary(values):
    median, low, high = statistics.median(values), min(values), max(values)
    spread = 100 * statistics.pstdev(values) / median if median else 0.0
    shown = {"median": median, "low": low, "high": high, "spread_pct": spread, "drift_pct": 0.0}
    return {**{name: round(value, 3) for name, value in shown.items()}, "drift": "", "repetitions": len(values)}


def point(rates=None, **changes):
    """One point of a sweep; ``rates`` are the output tokens per second of its repetitions, or whole repetitions."""
    found = [rate if isinstance(rate, dict) else repetition(rate) for rate in (rates or [100.0 * part for part in NOISE])]
    latencies = ("ttft_ms", "tpot_ms", "e2e_ms")
    numbers = {name: [one[name] for one in found] for name in ("output_tok_per_s", "request_per_s")}
    numbers.update({name: [one[name]["p50"] for one in found if one[name]] for name in latencies})
    return {
        "concurrency": 1,
        "request_rate": None,
        "status": "ok",
        "remarks": [],
        "warmup": {"repetitions": 2, "stable": True},
        "repetitions": found,
        "itl_histogram_ms": {"edges": [0.0, 10.0, 20.0, 40.0], "counts": [1200, 800, 44]},
        "summary": {name: _summary(values) for name, values in numbers.items() if values and all(map(_is_number, values))},
        **changes,
    }


def start(*points, invocation="5f1c0000000000000000000000000001"):
    """One start of a server and what was measured on it; without points one with the default rates."""
    return {"invocation": invocation, "started_at": "2026-11-30T10:12:00Z", "points": list(points) or [point()]}


def _merged(old, changes):
    if not (isinstance(old, dict) and isinstance(changes, dict) and changes):
        return changes
    return {**old, **{key: _merged(old.get(key), value) for key, value in changes.items()}}


def record(**changes):
    """A whole record of the story's host, changed; mappings are merged, an empty one and everything else replaces: ``record(workload={"cache": "warm"})``."""
    whole = {**_RECORD, "starts": [start()]}
    return copy.deepcopy({**whole, **{key: _merged(whole.get(key), value) for key, value in changes.items()}})


def measured(rate=100.0, boots=BOOTS, concurrency=1, name="", **changes):
    """Records of one release at about so many output tokens per second: one start each; starts of another ``name`` are other starts."""
    return [
        record(**{"starts": [start(point(_rates(rate * boot), concurrency=concurrency), invocation=f"{name}{rate:g}-{i}")], **changes})
        for i, boot in enumerate(boots)
    ]


def _rates(rate):
    return [round(rate * part, 3) for part in NOISE]
