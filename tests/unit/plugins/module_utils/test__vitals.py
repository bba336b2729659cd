# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expected values were read from the logs by eye."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line, clean, parse_entries
from ansible_collections.llmops.inference.plugins.module_utils._patience import STALL_SECONDS
from ansible_collections.llmops.inference.plugins.module_utils._vitals import PHASES, TITLES, StartLog, graph_kinds

FIXTURES = Path(__file__).parents[2] / "fixtures"
# What the engine captures by default (0.5.17).
DECODE_SIZES = [1, 2, 4, 8, 12, 16, *range(24, 257, 8)]
PREFILL_SIZES = [
    *range(4, 33, 4),
    *(48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256),
    *(288, 320, 352, 384, 416, 448, 480, 512),
    *(576, 640, 704, 768, 832, 896, 960, 1024),
    *range(1280, 4097, 256),
    *range(4608, 8193, 512),
]
DRAFT_SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
NO_PREFILL = "cuda_graph_config resolved prefill.backend='disabled' (e.g. via --cuda-graph-backend-prefill=disabled or auto-disable rules)"


def read_log(name):
    """The lines of a log, timed by the stamp that the engine prints; lines without one belong to the one before."""
    lines, seconds = [], None
    for raw in (FIXTURES / "logs" / f"{name}.log").read_text().split("\n"):
        for text in clean(raw):
            stamp = re.search(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", text)
            seconds = datetime.datetime.fromisoformat(f"{stamp.group(1)}+00:00").timestamp() if stamp else seconds
            lines.append(Line(seconds, text))
    return [line if line.seconds else Line(next(later.seconds for later in lines if later.seconds), line.text) for line in lines]


def follow(name):
    """The log of a start of which the process came up 3 s before its arguments, 5 s after its last line."""
    lines = read_log(name)
    log = StartLog(next(line.seconds for line in lines if "server_args=" in line.text) - 3)
    for line in lines:
        log.feed([line])
    return log, told(log, lines[-1].seconds + 5)


def told(log, now):
    return ", ".join(f"{entry['phase']} {entry['seconds']:g}" for entry in log.durations(now))


def rank(before, weights, pool, graphs=None, **signs):
    left = {"before_weights": before, "after_weights": weights, "after_kv_cache": pool}
    return {"available_gb": left if graphs is None else {**left, "after_graphs": graphs}, **signs}


def timings(weights, pool, scheduler, tokenizer, **graphs):
    kinds = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
    return {
        "load_weight": weights,
        "kv_cache_allocation": pool,
        "scheduler_e2e": scheduler,
        "tokenizer_e2e": tokenizer,
        "cuda_graph": {kind: graphs.get(kind, 0.0) for kind in kinds},
    }


def captured(seconds, gb, sizes, backend):
    return {"seconds": seconds, "gb": gb, "count": len(sizes), "sizes": sizes, "backend": backend}


def capacity(tokens, chunk, requests, context, left):
    return {
        "kv_cache_tokens": tokens,
        "chunked_prefill_size": chunk,
        "max_running_requests": requests,
        "context_length": context,
        "available_memory_gb": left,
    }


def pool(k, v):
    return {"k": k, "v": v, "total": round(k + v, 2)}


NEXTN = {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
PLAIN = {"speculative_algorithm": "none", "quantization": "none", "attention_backend": "fa3", "kv_cache_dtype": "bfloat16"}
ON_CPU = {
    "quantization": "none",
    "attention_backend": "torch_native",
    "speculative_algorithm": "none",
    "kv_cache_dtype": "bfloat16",
    "kv_cache_gb": {"k": 0.0, "v": 0.0, "total": 0.0},
    "graphs_enabled": False,
}

STARTS = {
    "gpu-default": (
        "process 3, arguments 22, distributed 2, weights 0, kv_cache 1, prefill_graphs 82, decode_graphs 6, http 0, warm_up 10, ready 5",
        {
            **PLAIN,
            **capacity(803502, 8192, 4096, 40960, 10.99),
            "weights_seconds": 0.2,
            "weights_gb": 15.28,
            "kv_cache_gb": pool(55.17, 55.17),
            "ranks": {"TP0": rank(139.13, 123.85, 12.81, 10.99, weights_seconds=0.2, weights_gb=15.28)},
            "graphs_enabled": True,
            "graphs": {"prefill": captured(81.37, 1.44, PREFILL_SIZES, "breakable"), "decode": captured(6.07, 0.25, DECODE_SIZES, "full")},
            "graphs_seconds": {"target prefill": 81.37, "target decode": 6.07},
            "startup_timings": timings(0.2, 0.04, 93.17, 113.26, prefill=81.37, decode=6.07),
        },
    ),
    "gpu-no-graphs": (
        "process 3, arguments 18, distributed 2, weights 0, kv_cache 1, http 1, warm_up 2, ready 5",
        {
            **PLAIN,
            **capacity(810597, 8192, 4096, 40960, 11.69),
            "weights_seconds": 0.12,
            "weights_gb": 15.28,
            "kv_cache_gb": pool(55.66, 55.66),
            "ranks": {"TP0": rank(139.13, 123.85, 11.82, weights_seconds=0.12, weights_gb=15.28)},
            "graphs_enabled": False,
            "graphs_disabled_because": {"prefill": NO_PREFILL},
            "startup_timings": timings(0.12, 0.04, 5.11, 22.05),
        },
    ),
    "gpu-piecewise": (
        "process 3, arguments 24, distributed 1, weights 1, kv_cache 3, prefill_graphs 65, decode_graphs 4, http 1, warm_up 1, ready 5",
        {
            **PLAIN,
            **capacity(803502, 8192, 4096, 40960, 10.99),
            "weights_seconds": 0.87,
            "weights_gb": 15.28,
            "kv_cache_gb": pool(55.17, 55.17),
            "ranks": {"TP0": rank(139.13, 123.85, 12.81, 10.99, weights_seconds=0.87, weights_gb=15.28)},
            "graphs_enabled": True,
            "graphs": {"prefill": captured(65.3, 1.43, PREFILL_SIZES, "tc_piecewise"), "decode": captured(4.53, 0.25, DECODE_SIZES, "full")},
            "graphs_seconds": {"target prefill": 65.3, "target decode": 4.53},
            "startup_timings": timings(0.87, 0.04, 77.46, 98.64, prefill=65.3, decode=4.53),
        },
    ),
    "gpu-tp2": (
        "process 3, arguments 19, distributed 5, weights 1, kv_cache 3, prefill_graphs 36, decode_graphs 8, http 1, warm_up 1, ready 5",
        {
            **PLAIN,
            **capacity(771104, 8192, 4096, 40960, 9.8),
            "weights_seconds": 0.66,
            "weights_gb": 30.59,
            "kv_cache_gb": pool(47.06, 47.06),
            "ranks": {
                "TP0": rank(138.28, 107.68, 12.8, 9.8, weights_seconds=0.29, weights_gb=30.59),
                "TP1": rank(138.28, 107.68, 12.8, 9.8, weights_seconds=0.66, weights_gb=30.59),
            },
            "graphs_enabled": True,
            "graphs": {"prefill": captured(35.9, 2.45, PREFILL_SIZES, "breakable"), "decode": captured(8.64, 0.43, DECODE_SIZES, "full")},
            "graphs_seconds": {"target prefill": 35.9, "target decode": 8.64},
            "startup_timings": timings(0.66, 0.07, 54.69, 72.47, prefill=35.9, decode=8.64),
        },
    ),
    "gpu-tp1": (
        "process 3, arguments 25, distributed 2, weights 0, kv_cache 2, prefill_graphs 28, decode_graphs 6, http 0, warm_up 1, ready 5",
        {
            **PLAIN,
            **capacity(264513, 8192, 3306, 40960, 9.54),
            "weights_seconds": 0.22,
            "weights_gb": 61.04,
            "kv_cache_gb": pool(32.29, 32.29),
            "ranks": {"TP0": rank(139.13, 78.08, 12.8, 9.54, weights_seconds=0.22, weights_gb=61.04)},
            "graphs_enabled": True,
            "graphs": {"prefill": captured(28.22, 2.84, PREFILL_SIZES, "breakable"), "decode": captured(5.75, 0.33, DECODE_SIZES, "full")},
            "graphs_seconds": {"target prefill": 28.22, "target decode": 5.75},
            "startup_timings": timings(0.22, 0.03, 40.88, 63.17, prefill=28.22, decode=5.75),
        },
    ),
    "gpu-hybrid": (
        "process 3, arguments 27, distributed 0, weights 0, kv_cache 5, prefill_graphs 16, decode_graphs 8, http 1, warm_up 2, ready 5",
        {
            **PLAIN,
            **capacity(1677531, 8192, 191, 262144, 20.22),
            "weights_seconds": 0.23,
            "weights_gb": 17.62,
            "kv_cache_gb": pool(25.6, 25.6),
            "ranks": {"TP0": rank(137.61, 120.0, 22.48, 20.22, weights_seconds=0.23, weights_gb=17.62)},
            "graphs_enabled": True,
            "graphs": {
                "prefill": captured(15.67, 1.67, PREFILL_SIZES, "breakable"),
                "decode": captured(8.34, 0.42, [*DECODE_SIZES[:27], 191], "full"),
            },
            "graphs_seconds": {"target prefill": 15.67, "target decode": 8.34},
            "startup_timings": timings(0.23, 0.03, 36.5, 56.96, prefill=15.67, decode=8.34),
        },
    ),
    "gpu-nextn": (
        "process 3, arguments 21, distributed 0, weights 4, kv_cache 1, prefill_graphs 9, decode_graphs 3, draft_graphs 1, http 1, warm_up 3, ready 5",
        {
            **PLAIN,
            **NEXTN,
            **capacity(1956076, 8192, 48, 262144, 17.12),
            "weights_seconds": 0.22,
            "weights_gb": 17.62,
            "kv_cache_gb": pool(29.85, 29.85),
            "draft_kv_cache_gb": pool(3.73, 3.73),
            "ranks": {
                "TP0": rank(137.58, 115.68, 14.62, 17.12, weights_seconds=0.22, weights_gb=17.62, draft_weights_seconds=0.01, draft_weights_gb=4.24),
            },
            "graphs_enabled": True,
            "graphs": {
                "prefill": captured(9.33, 0.69, PREFILL_SIZES[:42], "breakable"),
                "decode": captured(3.16, 0.2, DRAFT_SIZES, "full"),
                "draft": captured(1.09, 0.22, DRAFT_SIZES, "full"),
            },
            "graphs_seconds": {"target prefill": 9.33, "target verify": 3.16, "draft decode": 1.09},
            "startup_timings": timings(0.23, 0.71, 24.11, 40.03, prefill=9.33, target_verify=3.16, draft_decode=1.09),
        },
    ),
    "gpu-nextn-simulated": (
        "process 3, arguments 23, distributed 0, weights 4, kv_cache 1, prefill_graphs 9, decode_graphs 3, draft_graphs 1, http 0, warm_up 3, ready 5",
        {
            **PLAIN,
            **NEXTN,
            **capacity(1956076, 8192, 48, 262144, 17.12),
            "weights_seconds": 0.18,
            "weights_gb": 17.62,
            "kv_cache_gb": pool(29.85, 29.85),
            "draft_kv_cache_gb": pool(3.73, 3.73),
            "ranks": {
                "TP0": rank(137.58, 115.68, 14.62, 17.12, weights_seconds=0.18, weights_gb=17.62, draft_weights_seconds=0.0, draft_weights_gb=4.24),
            },
            "graphs_enabled": True,
            "graphs": {
                "prefill": captured(8.77, 0.69, PREFILL_SIZES[:42], "breakable"),
                "decode": captured(2.87, 0.2, DRAFT_SIZES, "full"),
                "draft": captured(1.06, 0.22, DRAFT_SIZES, "full"),
            },
            "graphs_seconds": {"target prefill": 8.77, "target verify": 2.87, "draft decode": 1.06},
            "startup_timings": timings(0.19, 0.4, 23.9, 41.16, prefill=8.77, target_verify=2.87, draft_decode=1.06),
        },
    ),
    "cpu-0.5.10": (
        "process 3, arguments 6, distributed 1, weights 0, kv_cache 0, http 0, warm_up 1, ready 5",
        {
            **ON_CPU,
            **capacity(8192, 2048, 2048, 4096, 21.69),
            "weights_seconds": 0.02,
            "weights_gb": 0.0,
            "ranks": {"TP0": rank(21.72, 21.72, 21.7, weights_seconds=0.02, weights_gb=0.0)},
            "graphs_disabled_because": {"prefill": "--disable-piecewise-cuda-graph is set"},
        },
    ),
    "cpu-0.5.12": (
        "process 3, arguments 7, distributed 0, weights 0, kv_cache 0, http 0, warm_up 2, ready 5",
        {
            **ON_CPU,
            **capacity(8192, 2048, 2048, 4096, 21.62),
            "weights_seconds": 0.02,
            "weights_gb": 0.0,
            "ranks": {"TP0": rank(21.7, 21.7, 21.62, weights_seconds=0.02, weights_gb=0.0)},
            "graphs_disabled_because": {"prefill": "--disable-piecewise-cuda-graph is set"},
        },
    ),
    "cpu-0.5.16": (
        "process 3, arguments 8, distributed 0, weights 0, kv_cache 1, http 0, warm_up 1, ready 5",
        {
            **ON_CPU,
            **capacity(8192, 2048, 2048, 4096, 21.63),
            "weights_seconds": 0.02,
            "weights_gb": 0.0,
            "ranks": {"TP0": rank(21.67, 21.67, 21.63, weights_seconds=0.02, weights_gb=0.0)},
            "graphs_disabled_because": {"prefill": NO_PREFILL},
        },
    ),
    "cpu-0.5.17": (
        "process 3, arguments 7, distributed 1, weights 0, kv_cache 0, http 0, warm_up 2, ready 5",
        {
            **ON_CPU,
            **capacity(8192, 2048, 2048, 4096, 21.56),
            "weights_seconds": 0.03,
            "weights_gb": 0.0,
            "ranks": {"TP0": rank(21.6, 21.6, 21.56, weights_seconds=0.03, weights_gb=0.0)},
            "graphs_disabled_because": {"prefill": NO_PREFILL},
            "startup_timings": timings(0.03, 0.15, 1.23, 7.99),
        },
    ),
    "cpu-0.5.19": (
        "process 3, arguments 6, distributed 0, weights 0, kv_cache 1, http 0, warm_up 1, ready 5",
        {
            **ON_CPU,
            **capacity(8192, 2048, 2048, 4096, 21.38),
            "weights_seconds": 0.02,
            "weights_gb": 0.0,
            "ranks": {"TP0": rank(21.41, 21.41, 21.38, weights_seconds=0.02, weights_gb=0.0)},
            "graphs_disabled_because": {"prefill": NO_PREFILL},
            "startup_timings": timings(0.02, 0.39, 1.08, 7.08),
        },
    ),
    # Its arguments were cut short, and "-0.00 GB" is no size.
    "cpu-0.5.23": (
        "process 3, arguments 20, distributed 3, weights 0, kv_cache 0, http 0, warm_up 2, ready 5",
        {
            **capacity(8192, 4096, 2048, 4096, 21.2),
            "weights_seconds": 0.03,
            "quantization": "none",
            "kv_cache_dtype": "bfloat16",
            "kv_cache_gb": pool(0.0, 0.0),
            "ranks": {"TP0": rank(21.24, 21.24, 21.2, weights_seconds=0.03)},
            "graphs_enabled": False,
            "graphs_disabled_because": {"prefill": NO_PREFILL},
            "startup_timings": timings(0.03, 0.54, 2.89, 23.11),
        },
    ),
    # Written by hand after the story of the design, with the wordings of its engine.
    "old-0.5.12": (
        "process 3, arguments 20, distributed 2, weights 31, kv_cache 2, decode_graphs 13, draft_graphs 4, http 1, warm_up 3, ready 5",
        {
            **capacity(242880, 4096, 48, 262144, 4.09),
            "quantization": "none",
            "weights_seconds": 31.2,
            "weights_gb": 27.5,
            "kv_cache_gb": pool(5.56, 5.56),
            "ranks": {"TP0": rank(46.8, 19.3, 5.1, 4.09, weights_seconds=31.2, weights_gb=27.5)},
            "graphs_enabled": True,
            "graphs": {"decode": {"seconds": 12.04, "gb": 0.61}, "draft": {"seconds": 4.0, "gb": 0.3}},
            "graphs_seconds": {"decode": 12.04, "draft": 2.98, "draft extend": 1.02},
            "graphs_disabled_because": {"prefill": "the model is multimodal"},
        },
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_whole_start(name):
    log, phases = follow(name)
    assert log.phase == "ready" and log.said_ready
    assert phases == STARTS[name][0]
    assert log.vitals == STARTS[name][1]
    assert json.loads(json.dumps(log.vitals)) == log.vitals


FAILED = {
    # Died while it made the draft's graphs: what came before is known.
    "gpu-module-missing": (
        "process 3, arguments 29, distributed 0, weights 4, kv_cache 2, prefill_graphs 64, decode_graphs 17, draft_graphs 8",
        {"prefill": 64.39, "decode": 16.71, "draft": 3.01},
    ),
    "failed/cpu-0.5.19": ("process 3, arguments 9, distributed 1, weights 0, kv_cache 1, prefill_graphs 5", {}),
}


@pytest.mark.parametrize("name", FAILED)
def test_a_start_that_failed(name):
    log, phases = follow(name)
    expected, graphs = FAILED[name]
    assert phases == expected
    assert not log.said_ready
    assert {kind: entry["seconds"] for kind, entry in log.vitals.get("graphs", {}).items()} == graphs
    # The engine has not said what it can hold.
    assert "kv_cache_tokens" not in log.vitals and "available_memory_gb" not in log.vitals


def test_a_start_that_failed_in_the_draft_has_its_vital_signs():
    log, _phases = follow("gpu-module-missing")
    assert log.vitals["ranks"]["TP0"] == rank(
        137.61, 115.72, 15.33, 16.3, weights_seconds=0.15, weights_gb=17.62, draft_weights_seconds=0.01, draft_weights_gb=4.24
    )
    assert (log.vitals["kv_cache_gb"], log.vitals["draft_kv_cache_gb"]) == (pool(29.62, 29.62), pool(3.7, 3.7))


def test_a_start_under_systemd():
    """Wall-clock times of the journal; the entry with the arguments is null in this export, so their phase is not seen."""
    lines, _cursor = parse_entries((FIXTURES / "journal-start.jsonl").read_text())
    log = StartLog(lines[0].seconds - 6.0)
    for line in lines:
        log.feed([line])
    assert log.durations(lines[-1].seconds + 1.5) == [
        {"phase": "process", "seconds": 37.6},
        {"phase": "distributed", "seconds": 2.5},
        {"phase": "weights", "seconds": 0.3},
        {"phase": "kv_cache", "seconds": 1.8},
        {"phase": "prefill_graphs", "seconds": 50.2},
        {"phase": "decode_graphs", "seconds": 6.4},
        {"phase": "http", "seconds": 0.4},
        {"phase": "warm_up", "seconds": 1.5},
        {"phase": "ready", "seconds": 1.5},
    ]
    assert log.vitals["kv_cache_tokens"] == 803274
    assert log.vitals["graphs_seconds"] == {"target prefill": 50.22, "target decode": 6.38}
    assert "speculative_algorithm" not in log.vitals and "attention_backend" not in log.vitals


def test_a_start_under_systemd_without_graphs():
    lines, _cursor = parse_entries((FIXTURES / "logs" / "journal-no-graphs.jsonl").read_text())
    log = StartLog(lines[0].seconds - 1.0)
    log.feed(lines)
    assert told(log, lines[-1].seconds) == "process 32.2, distributed 1.8, weights 0.7, kv_cache 2.1, http 0.4, warm_up 2.2, ready 22.8"
    assert log.vitals["ranks"] == {"TP0": rank(139.09, 123.82, 11.79, weights_seconds=0.74, weights_gb=15.28)}
    assert (log.vitals["kv_cache_tokens"], log.vitals["kv_cache_gb"], log.vitals["graphs_enabled"]) == (810369, pool(55.64, 55.64), False)
    assert log.vitals["startup_timings"] == timings(0.74, 0.04, 7.54, 31.31)


def start(*texts, prefix="[2026-02-03 10:00:00 TP0] "):
    """A log of which each line comes a second after the one before; a text may bring its own stamp."""
    log = StartLog(0.0)
    log.feed([Line(float(i + 1), text if text.startswith("[") else prefix + text) for i, text in enumerate(texts)])
    return log


def at(name):
    return f"[2026-02-03 10:00:00 {name}] "


TARGET_FIRST = (
    "Load weight begin. avail mem=46.80 GB",
    "Load weight end. elapsed=1.00 s, type=A, avail mem=30.00 GB, mem usage=16.80 GB.",
    "KV Cache is allocated. #tokens: 9, K size: 2.00 GB, V size: 2.00 GB",
    "Memory pool end. avail mem=26.00 GB",
    "Capture cuda graph begin. This can take up to several minutes. avail mem=26.00 GB",
    "Capture cuda graph bs [1, 2, 4]",
    "Capture cuda graph end. Time elapsed: 1.00 s. mem usage=0.50 GB. avail mem=25.50 GB.",
    "Init torch distributed begin.",
    "Load weight begin. avail mem=25.50 GB",
    "Load weight end. elapsed=1.00 s, type=B, avail mem=24.50 GB, mem usage=1.00 GB.",
    "KV Cache is allocated. #tokens: 9, K size: 0.25 GB, V size: 0.25 GB",
    "Memory pool end. avail mem=24.00 GB",
    "Capture draft cuda graph begin. This can take up to several minutes. avail mem=24.00 GB",
    "Capture draft cuda graph end. Time elapsed: 1.00 s. mem usage=0.20 GB. avail mem=23.80 GB.",
)


def test_a_draft_that_is_loaded_after_the_graphs_of_the_target_is_weights_again():
    """The order of 0.5.10 to 0.5.12 (eagle_worker.py: the target's worker is ready before the draft's is made)."""
    log = start(*TARGET_FIRST)
    assert told(log, 15.0) == "process 1, weights 1, kv_cache 3, decode_graphs 4, weights 1, kv_cache 3, draft_graphs 2"
    assert log.vitals["ranks"]["TP0"] == rank(46.8, 24.5, 24.0, 23.8, weights_seconds=1.0, weights_gb=16.8, draft_weights_seconds=1.0, draft_weights_gb=1.0)
    assert (log.vitals["kv_cache_gb"], log.vitals["draft_kv_cache_gb"]) == (pool(2.0, 2.0), pool(0.25, 0.25))
    assert log.vitals["graphs"]["decode"] == {"seconds": 1.0, "gb": 0.5, "count": 3, "sizes": [1, 2, 4]}


RANKS = {
    "weights-end-with-the-last-rank": (
        [at("TP0") + "Load weight begin", at("TP1") + "Load weight begin", at("TP0") + "Load weight end. elapsed=1 s", "", at("TP1") + "Load weight end. x"],
        "process 1, weights 4, kv_cache 1",
    ),
    "a-rank-that-is-late-is-waited-for": (
        [at("TP0") + "Init torch distributed begin.", at("TP1") + "Init torch distributed begin.", at("TP0") + "Init torch distributed ends."]
        + [at("TP1") + "Init torch distributed ends.", at("TP1") + "Load weight begin", at("TP1") + "Load weight end. x", at("TP0") + "Load weight begin"]
        + [at("TP0") + "Load weight end. x"],
        "process 1, distributed 4, weights 3, kv_cache 1",
    ),
    "a-rank-that-was-not-seen-before": (
        [at("TP1") + "Load weight begin", at("TP1") + "Load weight end. x", "", at("TP0") + "Load weight begin", at("TP0") + "Load weight end. x"],
        "process 1, weights 4, kv_cache 1",
    ),
    "graphs-end-with-the-last-rank": (
        [at("TP0") + "Capture cuda graph begin", at("TP1") + "Capture cuda graph begin", at("TP0") + "Capture cuda graph end"]
        + [at("TP0") + "Capture piecewise CUDA graph begin", at("TP1") + "Capture cuda graph end", at("TP1") + "Capture piecewise CUDA graph begin"],
        "process 1, decode_graphs 4, prefill_graphs 2",
    ),
    "only-rank-0-logs-the-draft": (
        [at("TP0") + "Capture cuda graph begin", at("TP1") + "Capture cuda graph begin", at("TP1") + "Capture cuda graph end"]
        + [at("TP0") + "Capture cuda graph end", at("TP0") + "Capture draft cuda graph begin", at("TP0") + "Capture draft cuda graph end"]
        + [at("TP0") + "max_total_num_tokens=1"],
        "process 1, decode_graphs 4, draft_graphs 2, http 1",
    ),
    "a-replica-that-is-behind-does-not-take-the-start-back": (
        [at("DP0") + "Load weight begin", at("DP0") + "Load weight end. x", at("DP0") + "KV Cache is allocated.", at("DP0") + "Memory pool end"]
        + [at("DP0") + "Capture cuda graph begin", at("DP1") + "Load weight begin", at("DP1") + "Load weight end. x"],
        "process 1, weights 1, kv_cache 3, decode_graphs 3",
    ),
    "a-rank-that-never-says-so-holds-up-nothing": (
        [at("TP0") + "Capture cuda graph begin", at("TP1") + "Capture cuda graph begin", at("TP0") + "Capture cuda graph end"]
        + ["[2026-02-03 10:00:00] INFO:     Uvicorn running on http://127.0.0.1:1"],
        "process 1, decode_graphs 3, warm_up 1",
    ),
}


@pytest.mark.parametrize("name", RANKS)
def test_several_ranks(name):
    lines, expected = RANKS[name]
    assert told(start(*lines), len(lines) + 1.0) == expected


def test_the_prefix_of_a_rank_may_have_many_parts():
    log = start("[2026-02-03 10:00:00.123 DP0 PP1 TP3 EP3] Load weight end. elapsed=1.50 s, type=A, avail mem=1.00 GB, mem usage=2.00 GB.")
    assert log.vitals["ranks"] == {"DP0 PP1 TP3 EP3": {"available_gb": {"after_weights": 1.0}, "weights_seconds": 1.5, "weights_gb": 2.0}}


ORDERS = {
    "prefill-last": ("Capture cuda graph begin", "Capture piecewise CUDA graph begin"),
    "prefill-first": ("Capture target prefill CUDA graph begin.", "Capture target decode CUDA graph begin."),
    "draft-between": ("Capture target verify CUDA graph begin.", "Capture draft decode CUDA graph begin.", "Capture target prefill CUDA graph begin."),
}
EXPECTED_ORDERS = {
    "prefill-last": ["process", "decode_graphs", "prefill_graphs"],
    "prefill-first": ["process", "prefill_graphs", "decode_graphs"],
    "draft-between": ["process", "decode_graphs", "draft_graphs", "prefill_graphs"],
}


@pytest.mark.parametrize("name", ORDERS)
def test_kinds_of_graphs_come_in_any_order(name):
    assert [entry["phase"] for entry in start(*ORDERS[name]).durations(9.0)] == EXPECTED_ORDERS[name]


def test_weights_that_come_beside_the_graphs():
    """0.5.19 on: the load is said to end behind the graphs, and the pool is sized meanwhile."""
    log = start(
        "Load weight begin. avail mem=46.80 GB",
        "Prepared capture-safe model in 0.50 s",
        "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9, K size: 9.00 GB, V size: 9.00 GB",
        "Memory pool end. avail mem=26.00 GB",
        "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=26.00 GB",
        "Capture target decode CUDA graph end. bs=[1, 2], elapsed=1.00 s, mem usage=0.50 GB, avail mem=25.50 GB.",
        "Load weight end. Committed real weights after CUDA graph capture in 0.10 s (capture overlap window 2.00 s, startup overlap total 3.00 s)",
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 5, KV size: 3.00 GB, avail mem=22.00 GB",
        "Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 5, KV size: 0.50 GB",
        "max_total_num_tokens=5, chunked_prefill_size=-1",
    )
    assert told(log, 11.0) == "process 1, weights 2, kv_cache 2, decode_graphs 5, http 1"
    # An upper bound is no size; what was allocated in the end is.
    assert (log.vitals["kv_cache_gb"], log.vitals["draft_kv_cache_gb"]) == ({"total": 3.0}, {"total": 0.5})
    assert log.vitals["ranks"]["TP0"]["available_gb"]["after_kv_cache"] == 22.0
    assert log.vitals["graphs"] == {"decode": captured(1.0, 0.5, [1, 2], "full")}
    assert log.vitals["kv_cache_tokens"] == 5


KV_END = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9, "


@pytest.mark.parametrize(
    "texts, expected",
    [
        pytest.param([f"{KV_END}KV size: 3.00 GB"], {"total": 3.0}, id="latent-attention"),
        pytest.param(
            [f"Full {KV_END}K size: 1.00 GB, V size: 1.00 GB", f"SWA {KV_END}K size: 0.50 GB, V size: 0.25 GB"],
            {"k": 1.5, "v": 1.25, "total": 2.75},
            id="window",
        ),
        pytest.param([f"{at('TP1')}{KV_END}K size: 1.00 GB, V size: 1.00 GB", f"{KV_END}K size: 1.00 GB, V size: 1.00 GB"], pool(1.0, 1.0), id="two-ranks"),
    ],
)
def test_the_size_of_the_pool(texts, expected):
    assert start(*texts).vitals["kv_cache_gb"] == expected


@pytest.mark.parametrize(
    "text, signs",
    [
        pytest.param(
            "Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=16.10 GB, mem usage=30.80 GB.",
            {"weights_gb": 30.8, "weights_dtype": "bfloat16", "quantization": "none"},
            id="0.5.6",
        ),
        pytest.param(
            "Load weight end. elapsed=0.87 s, type=X, avail mem=1.00 GB, mem usage=-0.00 GB.", {"weights_seconds": 0.87, "quantization": "none"}, id="negative"
        ),
        pytest.param(
            "Load weight end. elapsed=1.00 s, type=X, quant=fp8, fmt=e4m3, avail mem=1.00 GB, mem usage=2.00 GB.",
            {"weights_seconds": 1.0, "weights_gb": 2.0, "quantization": "fp8, fmt=e4m3"},
            id="quantized",
        ),
        pytest.param("Using KV cache dtype: torch.float8_e4m3fn", {"kv_cache_dtype": "float8_e4m3fn"}, id="kv-dtype-0.5.12"),
        pytest.param("max_total_num_tokens=242880, chunked_prefill_size=-1", {"kv_cache_tokens": 242880, "chunked_prefill_size": -1}, id="capacity-only"),
        pytest.param("Post-capture KV sizing: max_total_num_tokens=7, free memory=1.00 GB", {}, id="not-yet-the-capacity-0.5.16"),
        pytest.param("[unified-memory-pool]   total_bytes=1, max_total_num_tokens=7, max_num_reqs=1", {}, id="pool-of-one-memory"),
        pytest.param("Capture cuda graph failed: out of memory", {}, id="graph-failed"),
        pytest.param("Disable DFLASH draft cuda graph because only 1.00 GB GPU memory is available.", {}, id="draft-off"),
        pytest.param("Init torch distributed ends. elapsed=1.00 s, mem usage=9.00 GB", {}, id="memory-of-communication"),
    ],
)
def test_one_line(text, signs):
    vitals = start(text).vitals
    assert {name: value for name, value in vitals.items() if name not in ("ranks", "kv_cache_gb", "graphs_disabled_because")} == signs


@pytest.mark.parametrize(
    "text, graphs, names",
    [
        ("Capture cuda graph end. Time elapsed: 12.04 s. mem usage=0.61 GB.", {"decode": {"seconds": 12.04, "gb": 0.61}}, {"decode": 12.04}),
        ("Capture cpu graph end. Time elapsed: 3.00 s. mem usage=0.00 GB.", {"decode": {"seconds": 3.0, "gb": 0.0}}, {"decode": 3.0}),
        ("Capture piecewise CUDA graph end. Time elapsed: 9.10 s. mem usage=1.00 GB.", {"prefill": {"seconds": 9.1, "gb": 1.0}}, {"piecewise": 9.1}),
        ("Capture single-CG draft extend end. elapsed=2.00 s, mem usage=0.10 GB", {"draft": {"seconds": 2.0, "gb": 0.1}}, {"single-CG draft extend": 2.0}),
        ("Capture UNO tree draft CUDA graph end. elapsed=2.00 s, mem usage=0.10 GB", {"draft": {"seconds": 2.0, "gb": 0.1}}, {"UNO tree draft": 2.0}),
        ("Capture Frozen-KV MTP draft cuda graph end.", {"draft": {}}, None),
        (
            "Capture target decode CUDA graph end. bs=[1, 2], elapsed=6.07 s, mem usage=0.25 GB",
            {"decode": {"seconds": 6.07, "gb": 0.25, "count": 2, "sizes": [1, 2]}},
            {"target decode": 6.07},
        ),
    ],
)
def test_the_wordings_of_captures(text, graphs, names):
    vitals = start(text).vitals
    assert (vitals["graphs"], vitals.get("graphs_seconds"), vitals["graphs_enabled"]) == (graphs, names, True)


def test_a_draft_of_several_layers_has_several_captures():
    log = start(
        *(
            f"Capture draft extend CUDA graph {edge}"
            for step in (0, 1)
            for edge in (f"begin. step={step}", f"end. step={step}, elapsed=1.50 s, mem usage=0.20 GB")
        )
    )
    assert log.vitals["graphs"] == {"draft": {"seconds": 3.0, "gb": 0.4}}
    assert told(log, 5.0) == "process 1, draft_graphs 4"


def test_draft_captures_are_one_kind():
    log = start(
        "Capture draft decode CUDA graph begin. backend=full, bs=[1, 2], avail mem=1.00 GB",
        "Capture draft decode CUDA graph end. elapsed=1.00 s, mem usage=0.10 GB, avail mem=1.00 GB.",
        "Capture draft extend CUDA graph begin. backend=full, bs=[1, 2, 3], avail mem=1.00 GB",
        "Capture draft extend CUDA graph end. elapsed=2.00 s, mem usage=0.20 GB, avail mem=1.00 GB.",
    )
    assert log.vitals["graphs"]["draft"] == {"seconds": 3.0, "gb": 0.3, "count": 5, "sizes": [1, 2], "backend": "full"}
    assert log.vitals["graphs_seconds"] == {"draft decode": 1.0, "draft extend": 2.0}


ARGUMENTS = (
    "model_path='/m', api_key='not-a-real-key', dtype='bfloat16', quantization='fp8', attention_backend='fa3', mm_attention_backend='sdpa', "
    "decode_attention_backend={decode}, prefill_attention_backend={prefill}, max_running_requests=7, context_length=9, max_total_tokens=1, "
    "speculative_algorithm={algorithm}, speculative_num_steps={steps}, speculative_eagle_topk=None"
)


def as_fields(**values):
    return f"server_args=ServerArgs({ARGUMENTS.format(**values)})"


def as_dict(**values):
    return "server_args={" + re.sub(r"(\w+)=", r"'\1': ", ARGUMENTS.format(**values)) + "}"


@pytest.mark.parametrize("line", [as_fields, as_dict], ids=["0.5.17", "0.5.19"])
@pytest.mark.parametrize(
    "values, signs",
    [
        pytest.param(
            {"decode": "None", "prefill": "None", "algorithm": "None", "steps": "None"},
            {"attention_backend": "fa3", "speculative_algorithm": "none"},
            id="plain",
        ),
        pytest.param(
            {"decode": "'flashinfer'", "prefill": "None", "algorithm": "'EAGLE'", "steps": "3"},
            {
                "prefill_attention_backend": "fa3",
                "decode_attention_backend": "flashinfer",
                "speculative_algorithm": "EAGLE",
                "speculative_num_steps": 3,
            },
            id="two-backends",
        ),
        pytest.param(
            {"decode": "'triton'", "prefill": "'triton'", "algorithm": "'NGRAM'", "steps": "None"},
            {"attention_backend": "triton", "speculative_algorithm": "NGRAM"},
            id="one-backend-twice",
        ),
    ],
)
def test_the_resolved_arguments(line, values, signs):
    log = start(line(**values))
    assert log.vitals == {"weights_dtype": "bfloat16", "quantization": "fp8", **signs}
    assert "not-a-real-key" not in json.dumps(log.vitals)


@pytest.mark.parametrize(
    "lines, enabled",
    [
        pytest.param(["Load weight begin", "max_total_num_tokens=1"], False, id="none"),
        pytest.param(["max_total_num_tokens=1"], None, id="the-log-begins-too-late"),
        pytest.param(["Load weight begin"], None, id="not-yet"),
        pytest.param(["Load weight begin", "Capture cuda graph end. Time elapsed: 1 s", "max_total_num_tokens=1"], True, id="some"),
    ],
)
def test_whether_there_are_graphs(lines, enabled):
    assert start(*lines).vitals.get("graphs_enabled") is enabled


@pytest.mark.parametrize(
    "lines, reasons",
    [
        (["Disable DFLASH draft cuda graph because only 1.00 GB GPU memory is available."], {"draft": "only 1.00 GB GPU memory is available"}),
        (["Cuda graph is disabled because of using torch native attention backend"], {"decode": "using torch native attention backend"}),
        (["Disable prefill CUDA graph for EAGLE target on tc_piecewise to avoid x."], {"prefill": "EAGLE target on tc_piecewise to avoid x"}),
        (["Disable piecewise CUDA graph because a", "Disable prefill CUDA graph because b"], {"prefill": "a"}),
        (["Capture target prefill CUDA graph end. elapsed=1.00 s", "Disable prefill CUDA graph because of the draft"], None),
    ],
)
def test_why_there_are_no_graphs(lines, reasons):
    assert start(*lines).vitals.get("graphs_disabled_because") == reasons


@pytest.mark.parametrize(
    "text, phase",
    [
        ("server_args={'model_path': '/m'}", "arguments"),
        ("Init torch distributed begin.", "distributed"),
        ("Init parallel begin.", "distributed"),
        ("Init parallel ends. elapsed=0.04 s", "process"),
        ("Load weight begin. avail mem=139.13 GB", "weights"),
        ("Load weight end. elapsed=0.87 s", "kv_cache"),
        ("Memory pool end. avail mem=1.00 GB", "kv_cache"),
        ("Mamba Cache is allocated. max_mamba_cache_size: 510", "kv_cache"),
        ("Capture cuda graph begin. This can take up to several minutes.", "decode_graphs"),
        ("Capture target decode CPU graph begin. backend=full", "decode_graphs"),
        ("Capture target verify CUDA graph begin. backend=full", "decode_graphs"),
        ("Capture piecewise CUDA graph begin. avail mem=1.00 GB", "prefill_graphs"),
        ("Capture draft prefill CUDA graph begin. backend=full", "draft_graphs"),
        ("Capture draft extend cuda graph begin (step 0). This can take", "draft_graphs"),
        ("Capture single-CG draft extend begin. This can take several minutes.", "draft_graphs"),
        ("Capture cuda graph bs [1, 2]", "process"),
        ("Disable prefill CUDA graph because of reasons", "process"),
        ("max_total_num_tokens=1", "http"),
        ("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)", "warm_up"),
        ("The server is fired up and ready to roll!", "ready"),
        ("Ready to roll", "process"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "[2026-02-03 10:00:00] ", at("TP0")])
def test_the_line_that_begins_a_phase(text, phase, prefix):
    assert start(prefix + text, prefix="").phase == phase


def test_a_phase_that_was_left_is_not_entered_by_a_line_that_comes_late():
    log = start("Load weight end. elapsed=1 s", "KV Cache is allocated.", "Init parallel begin.", "server_args={}")
    assert told(log, 5.0) == "process 1, kv_cache 4"


def test_nothing_is_read_from_a_server_that_is_ready():
    """Requests may be logged with their prompts."""
    log = start(
        "The server is fired up and ready to roll!", "Load weight begin", "max_total_num_tokens=1", "Capturing batches (bs=1): 50%|#####     | 1/2 [00:00<"
    )
    assert (log.phase, log.vitals, log.detail) == ("ready", {}, "")


def test_a_clock_that_was_set_back_gives_no_negative_time():
    log = StartLog(10.0)
    log.feed([Line(7.0, "server_args=x")])
    assert log.durations(5.0) == [{"phase": "process", "seconds": 0.0}, {"phase": "arguments", "seconds": 0.0}]


def test_every_phase_has_a_title_and_a_limit():
    assert list(PHASES) == list(TITLES) == list(STALL_SECONDS)


BEGIN_DECODE = "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4], avail mem=1.00 GB"


@pytest.mark.parametrize(
    "texts, detail",
    [
        pytest.param([], "", id="nothing"),
        pytest.param(["Load weight begin"], "", id="no-bar"),
        pytest.param(
            ["Load weight begin", "Loading safetensors checkpoint shards:  38% Completed | 3/8 [00:02<00:03,  1.47it/s]"], "shard 3 of 8, 38 %", id="shards"
        ),
        pytest.param(["Load weight begin", "Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]"], "shard 0 of 1, 0 %", id="threads"),
        pytest.param(
            ["Load weight begin", "Loading safetensors using Runai Model Streamer:  50% Completed | 1.2k/2.4k [00:02<00:03]"], "1.2k of 2.4k, 50 %", id="units"
        ),
        pytest.param(
            ["Load weight begin", "Loading pt checkpoint shards:  25% Completed | 1/4 [00:01<00:03]Loading pt checkpoint shards:  50% Completed | 2/4 [00:02<"],
            "shard 2 of 4, 50 %",
            id="bars-of-two-ranks",
        ),
        pytest.param(["Load weight begin", "Load weight end. x", "Load weight begin"], "draft model", id="draft"),
        pytest.param(
            ["Load weight begin", "Load weight end. x", "Load weight begin", "Multi-thread loading shards: 100% Completed | 1/1 [00:00<00:00, 770.16it/s]"],
            "draft model: shard 1 of 1, 100 %",
            id="draft-shards",
        ),
        pytest.param(["Load weight begin", f"{at('TP1')}Load weight begin", "Load weight end. x"], "1 of 2 ranks have theirs", id="ranks"),
        pytest.param([BEGIN_DECODE], "3 decode graphs", id="how-many-graphs"),
        pytest.param(["Capture cuda graph begin", "Capture cuda graph bs [1, 2]"], "2 decode graphs", id="how-many-graphs-is-told-later"),
        pytest.param(
            [BEGIN_DECODE, "Capturing batches (bs=248 avail_mem=11.06 GB):  33%|###3      | 12/36 [00:01<00:22,  1.50it/s]"],
            "decode graph 12 of 36, 33 %",
            id="decode-graphs",
        ),
        pytest.param(
            ["Capture piecewise CUDA graph begin", "Capturing num tokens (num_tokens=4 avail_mem=1.00 GB): 100%|##########| 58/58 [01:20<00:00,  9.43it/s]"],
            "prefill graph 58 of 58, 100 %",
            id="prefill-graphs",
        ),
        pytest.param(
            ["Capture piecewise CUDA graph begin", "Compiling num tokens (num_tokens=8192):   2%|#2        | 1/58 [00:18<17:29, 18.41s/it]"],
            "compiling 1 of 58, 2 %",
            id="compiling",
        ),
        pytest.param([BEGIN_DECODE, "DeepGEMM warmup:  12%|#2        | 5/40 [00:18<17:29]"], "DeepGEMM warm-up 5 of 40, 12 %", id="kernels"),
        pytest.param([BEGIN_DECODE, "Capturing batches (avail_mem=2.85 GB):  50%|#####     | 2/4 [00:00<", "max_total_num_tokens=1"], "", id="next-phase"),
        pytest.param(["Fetching 4 files:  25%|##5       | 1/4 [00:01<00:03,  1.00it/s]"], "1 of 4, 25 %", id="download"),
    ],
)
def test_the_detail_of_the_present_phase(texts, detail):
    assert start(*texts).detail == detail


def test_a_bar_that_the_next_line_is_glued_to():
    log = start(
        "Capture piecewise CUDA graph begin",
        "Compiling num tokens (num_tokens=8192):   0%|          | 0/58 [00:00<?, ?it/s][2026-11-29 17:00:47 TP0] Compiling a graph",
    )
    assert log.detail == "compiling 0 of 58, 0 %"
    log.feed([Line(9.0, "Capturing: 100%|##########| 58/58 [00:01<00:00][2026-11-29 17:00:48 TP0] Capture piecewise CUDA graph end. Time elapsed: 1.00 s.")])
    assert log.vitals["graphs_seconds"] == {"piecewise": 1.0}


@pytest.mark.parametrize(
    "vitals, kinds",
    [
        ({}, []),
        ({"graphs": {"decode": {}, "prefill": {}}}, ["decode", "prefill"]),
        ({"graphs_seconds": {"target verify": 1.0, "draft extend": 1.0, "piecewise": 1.0}}, ["decode", "draft", "prefill"]),
    ],
)
def test_the_kinds_of_graphs_in_vital_signs(vitals, kinds):
    assert graph_kinds(vitals) == kinds
