# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line, parse_entries
from ansible_collections.llmops.inference.plugins.module_utils._vitals import PHASES, TITLES, StartLog

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read_log(name):
    """The lines of a log, timed by the stamp that the engine prints."""
    lines = []
    for text in (FIXTURES / "logs" / f"{name}.log").read_text().splitlines():
        stamp = re.match(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", text).group(1)
        lines.append(Line(datetime.datetime.fromisoformat(f"{stamp}+00:00").timestamp(), text))
    return lines


@pytest.mark.parametrize(
    "name, phases, vitals",
    [
        pytest.param(
            "cpu-0.5.23",
            "process 3.0, arguments 20.0, distributed 3.0, weights 0.0, kv_cache 0.0, http 0.0, warm_up 2.0, ready 5.0",
            {
                "weights_seconds": 0.03,
                "kv_cache_dtype": "bfloat16",
                "kv_cache_tokens": 8192,
                "max_running_requests": 2048,
                "context_length": 4096,
                "available_memory_gb": 21.2,
            },
            id="cpu",
        ),
        pytest.param(
            "gpu-no-graphs",
            "process 3.0, arguments 18.0, distributed 2.0, weights 0.0, kv_cache 1.0, http 1.0, warm_up 2.0, ready 5.0",
            {
                "weights_seconds": 0.12,
                "weights_gb": 15.28,
                "kv_cache_dtype": "bfloat16",
                "kv_cache_tokens": 810597,
                "max_running_requests": 4096,
                "context_length": 40960,
                "available_memory_gb": 11.69,
            },
            id="gpu-without-graphs",
        ),
        pytest.param(
            "gpu-tp2",
            "process 3.0, arguments 19.0, distributed 5.0, weights 0.0, kv_cache 4.0, graphs 44.0, http 1.0, warm_up 1.0, ready 5.0",
            {
                "weights_seconds": 0.66,
                "weights_gb": 30.59,
                "kv_cache_dtype": "bfloat16",
                "kv_cache_tokens": 771104,
                "max_running_requests": 4096,
                "context_length": 40960,
                "available_memory_gb": 9.8,
                "graphs_seconds": {"target prefill": 35.9, "target decode": 8.64},
            },
            id="gpu-two-ranks",
        ),
        pytest.param(
            "gpu-nextn",
            "process 3.0, arguments 21.0, distributed 0.0, weights 0.0, kv_cache 5.0, graphs 13.0, http 1.0, warm_up 3.0, ready 5.0",
            {
                "weights_seconds": 0.22,
                "weights_gb": 17.62,
                "kv_cache_dtype": "bfloat16",
                "kv_cache_tokens": 1956076,
                "max_running_requests": 48,
                "context_length": 262144,
                "available_memory_gb": 17.12,
                "graphs_seconds": {"target prefill": 9.33, "target verify": 3.16, "draft decode": 1.09},
            },
            id="gpu-with-a-draft-model",
        ),
        pytest.param(
            "old-0.5.12",
            "process 3.0, arguments 20.0, distributed 2.0, weights 31.0, kv_cache 2.0, graphs 17.0, http 1.0, warm_up 3.0, ready 5.0",
            {
                "weights_seconds": 31.2,
                "weights_gb": 27.5,
                "kv_cache_tokens": 242880,
                "max_running_requests": 48,
                "context_length": 262144,
                "available_memory_gb": 4.09,
                "graphs_seconds": {"decode": 12.04, "draft": 2.98, "draft extend": 1.02},
            },
            id="old-wording",
        ),
    ],
)
def test_a_whole_start(name, phases, vitals):
    lines = read_log(name)
    log = StartLog(next(line.seconds for line in lines if "server_args=" in line.text) - 3)
    log.feed(lines)
    assert log.phase == "ready"
    assert ", ".join(f"{entry['phase']} {entry['seconds']}" for entry in log.durations(lines[-1].seconds + 5)) == phases
    assert log.vitals == vitals


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
        {"phase": "graphs", "seconds": 56.6},
        {"phase": "http", "seconds": 0.4},
        {"phase": "warm_up", "seconds": 1.5},
        {"phase": "ready", "seconds": 1.5},
    ]
    assert log.vitals["kv_cache_tokens"] == 803274
    assert log.vitals["graphs_seconds"] == {"target prefill": 50.22, "target decode": 6.38}


@pytest.mark.parametrize(
    "text, vitals",
    [
        pytest.param("Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=16.10 GB, mem usage=30.80 GB.", {"weights_gb": 30.8}, id="0.5.6"),
        pytest.param("Load weight end. elapsed=0.87 s, type=X, avail mem=1.00 GB, mem usage=-0.00 GB.", {"weights_seconds": 0.87}, id="negative"),
        pytest.param("KV Cache is allocated. #tokens: 242880, K size: 5.56 GB, V size: 5.56 GB", {}, id="kv-0.5.12"),
        pytest.param("KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 1, KV size: 1.00 GB", {"kv_cache_dtype": "float8_e4m3fn"}, id="kv-mla"),
        pytest.param("KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 999999", {}, id="upper-bound-is-no-size"),
        pytest.param(
            "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 5, KV size: 1.00 GB, avail mem=1.00 GB",
            {"kv_cache_dtype": "bfloat16"},
            id="post-capture",
        ),
        pytest.param("Capture cuda graph end. Time elapsed: 12.04 s. mem usage=0.61 GB.", {"graphs_seconds": {"decode": 12.04}}, id="graph-0.5.6"),
        pytest.param("Capture piecewise CUDA graph end. Time elapsed: 9.10 s. mem usage=1 GB.", {"graphs_seconds": {"piecewise": 9.1}}, id="piecewise-0.5.10"),
        pytest.param("Capture cpu graph end. Time elapsed: 3.00 s.", {"graphs_seconds": {"decode": 3.0}}, id="cpu-graph"),
        pytest.param(
            "Capture target decode CUDA graph end. bs=[1, 2], elapsed=6.07 s, mem usage=0.25 GB", {"graphs_seconds": {"target decode": 6.07}}, id="graph-0.5.23"
        ),
        pytest.param("Capture cuda graph failed: out of memory", {}, id="graph-failed"),
        pytest.param("max_total_num_tokens=242880, chunked_prefill_size=-1", {"kv_cache_tokens": 242880}, id="capacity-only"),
        pytest.param("server_args=ServerArgs(max_total_tokens=1, max_running_requests=7, context_length=9)", {}, id="arguments-are-no-vitals"),
    ],
)
def test_one_line(text, vitals):
    log = StartLog(0.0)
    log.feed([Line(1.0, f"[2026-02-03 10:00:00 TP0] {text}")])
    assert log.vitals == vitals


@pytest.mark.parametrize(
    "text, phase",
    [
        ("server_args={'model_path': '/m'}", "arguments"),
        ("Init torch distributed begin.", "distributed"),
        ("Init parallel begin.", "distributed"),
        ("Init parallel ends. elapsed=0.04 s", "process"),
        ("Load weight begin. avail mem=139.13 GB", "weights"),
        ("Load weight end. elapsed=0.87 s", "kv_cache"),
        ("Capture cuda graph begin. This can take up to several minutes.", "graphs"),
        ("Capture target decode CPU graph begin. backend=full", "graphs"),
        ("Disable prefill CUDA graph because of reasons", "process"),
        ("max_total_num_tokens=1", "http"),
        ("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)", "warm_up"),
        ("The server is fired up and ready to roll!", "ready"),
        ("Ready to roll", "process"),
    ],
)
def test_the_line_that_begins_a_phase(text, phase):
    log = StartLog(0.0)
    log.feed([Line(1.0, text)])
    assert log.phase == phase


def test_a_phase_never_goes_back():
    log = StartLog(10.0)
    log.feed([Line(12.0, "Load weight end. elapsed=1 s"), Line(13.0, "Init parallel begin."), Line(14.0, "Load weight begin.")])
    assert log.durations(20.0) == [{"phase": "process", "seconds": 2.0}, {"phase": "kv_cache", "seconds": 8.0}]


def test_a_clock_that_was_set_back_gives_no_negative_time():
    log = StartLog(10.0)
    log.feed([Line(7.0, "server_args=x")])
    assert log.durations(5.0) == [{"phase": "process", "seconds": 0.0}, {"phase": "arguments", "seconds": 0.0}]


def test_every_phase_has_a_title():
    assert [name for name, begin in PHASES] == list(TITLES)
