# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._vital_changes import Change, attention, changes, lines, speculation
from ansible_collections.llmops.inference.plugins.module_utils._vitals import StartLog

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
DECODE = {"decode": {"count": 3, "sizes": [1, 2, 4]}}
BOTH = {**DECODE, "prefill": {"count": 2, "sizes": [4, 8]}}


def vitals_of(name):
    """The vital signs of a recorded start, as they come back from the file beside a release."""
    log = StartLog(0.0)
    log.feed(Line(0.0, text) for text in re.split(r"\r?\n", (LOGS / f"{name}.log").read_text()))
    return json.loads(json.dumps(log.vitals))


def told(before, after):
    """The changes between two sets of vital signs: (name, flagged, text)."""
    return [(found.name, found.flagged, found.text) for found in changes({"vitals": before}, {"vitals": after})]


def start(seconds, **phases):
    return {"seconds": seconds, "phases": [{"phase": phase, "seconds": took} for phase, took in phases.items()], "vitals": {}}


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param(242880, 242880, [], id="equal"),
        pytest.param(100000, 98000, [], id="noise-2-percent"),
        pytest.param(100000, 97900, [("kv_cache_tokens", False, "KV cache 100,000 -> 97,900 tokens (-2 %)")], id="a-little-less"),
        pytest.param(100000, 90001, [("kv_cache_tokens", False, "KV cache 100,000 -> 90,001 tokens (-10 %)")], id="just-not-10-percent"),
        pytest.param(100000, 90000, [("kv_cache_tokens", True, "KV cache 100,000 -> 90,000 tokens (-10 %)")], id="10-percent"),
        pytest.param(242880, 201344, [("kv_cache_tokens", True, "KV cache 242,880 -> 201,344 tokens (-17 %)")], id="less"),
        pytest.param(201344, 242880, [("kv_cache_tokens", False, "KV cache 201,344 -> 242,880 tokens (+21 %)")], id="more"),
    ],
)
def test_kv_cache(before, after, expected):
    assert told({"kv_cache_tokens": before}, {"kv_cache_tokens": after}) == expected


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param({"graphs": BOTH}, {"graphs": BOTH}, [], id="equal"),
        pytest.param({"graphs": BOTH}, {"graphs": DECODE}, [("graphs.prefill", True, "prefill graphs are no longer captured")], id="lost"),
        pytest.param(
            {"graphs": BOTH},
            {"graphs": DECODE, "graphs_disabled_because": {"prefill": "the model is not a language model"}},
            [("graphs.prefill", True, "prefill graphs are no longer captured: the model is not a language model")],
            id="lost-and-why",
        ),
        pytest.param({"graphs": DECODE}, {"graphs": BOTH}, [("graphs.prefill", False, "prefill graphs are captured now")], id="new"),
        pytest.param(
            {"graphs": BOTH}, {"graphs_enabled": False}, [("graphs", True, "no graphs are captured any more (before: decode, prefill)")], id="off-now"
        ),
        pytest.param(
            {"graphs_enabled": False}, {"graphs": DECODE, "graphs_enabled": True}, [("graphs.decode", False, "decode graphs are captured now")], id="on-now"
        ),
        pytest.param({"graphs": BOTH}, {}, [], id="not-told-now"),
        pytest.param({}, {"graphs": BOTH}, [], id="not-told-before"),
        pytest.param({"graphs_seconds": {"target verify": 1.0}}, {"graphs": DECODE}, [], id="vital-signs-of-before"),
        pytest.param(
            {"graphs_seconds": {"draft": 1.0, "decode": 1.0}},
            {"graphs": DECODE},
            [("graphs.draft", True, "draft graphs are no longer captured")],
            id="lost-draft",
        ),
        pytest.param(
            {"graphs": DECODE}, {"graphs": {"decode": {"count": 1, "sizes": [1]}}}, [("graphs.decode", False, "decode graphs 3 -> 1")], id="fewer-sizes"
        ),
        pytest.param({"graphs": DECODE}, {"graphs": {"decode": {}}}, [], id="sizes-are-not-told"),
    ],
)
def test_graphs(before, after, expected):
    assert told(before, after) == expected


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param({"weights_dtype": "bfloat16"}, {"weights_dtype": "float16"}, [("weights_dtype", "type of the weights bfloat16 -> float16")], id="weights"),
        pytest.param(
            {"quantization": "fp8, fmt=e4m3"}, {"quantization": "none"}, [("quantization", "quantization of the weights fp8, fmt=e4m3 -> none")], id="fp8"
        ),
        pytest.param(
            {"kv_cache_dtype": "bfloat16"}, {"kv_cache_dtype": "float8_e5m2"}, [("kv_cache_dtype", "type of the KV cache bfloat16 -> float8_e5m2")], id="kv"
        ),
        pytest.param({"attention_backend": "fa3"}, {"attention_backend": "triton"}, [("attention_backend", "attention backend fa3 -> triton")], id="attention"),
        pytest.param(
            {"attention_backend": "fa3"},
            {"prefill_attention_backend": "fa3", "decode_attention_backend": "flashinfer"},
            [("attention_backend", "attention backend fa3 -> prefill fa3, decode flashinfer")],
            id="attention-of-decode",
        ),
        pytest.param(
            {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3},
            {"speculative_algorithm": "none"},
            [("speculative_algorithm", "speculation EAGLE with 3 steps -> none")],
            id="speculation",
        ),
        pytest.param(
            {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3},
            {"speculative_algorithm": "EAGLE", "speculative_num_steps": 2},
            [("speculative_algorithm", "speculation EAGLE with 3 steps -> EAGLE with 2 steps")],
            id="steps",
        ),
        pytest.param({"context_length": 262144}, {"context_length": 40960}, [("context_length", "context 262,144 -> 40,960")], id="context"),
        pytest.param({"speculative_algorithm": "EAGLE"}, {}, [], id="not-told-now"),
        pytest.param({}, {"attention_backend": "fa3", "context_length": 1, "quantization": "none"}, [], id="not-told-before"),
    ],
)
def test_settings_always_matter(before, after, expected):
    assert told(before, after) == [(name, True, text) for name, text in expected]


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param(11.0, 10.8, [], id="noise"),
        pytest.param(4.0, 3.91, [], id="less-than-0.1-gb"),
        pytest.param(11.0, 9.8, [("available_memory_gb", False, "memory left 11.0 -> 9.8 GB (-11 %)")], id="less"),
        pytest.param(4.09, 0.99, [("available_memory_gb", True, "memory left 4.09 -> 0.99 GB (-76 %)")], id="below-1-gb"),
        pytest.param(1.0, 0.99, [("available_memory_gb", True, "memory left 1.0 -> 0.99 GB (-1 %)")], id="just-below-1-gb"),
        pytest.param(0.9, 0.5, [("available_memory_gb", False, "memory left 0.9 -> 0.5 GB (-44 %)")], id="was-below-already"),
        pytest.param(0.0, 3.0, [("available_memory_gb", False, "memory left 0.0 -> 3.0 GB")], id="there-was-none"),
    ],
)
def test_memory_left(before, after, expected):
    assert told({"available_memory_gb": before}, {"available_memory_gb": after}) == expected


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param(start(50.0), start(54.9), [], id="noise"),
        pytest.param(start(3.0), start(5.0), [], id="two-seconds"),
        pytest.param(start(50.0), start(60.0), [(False, 1.2, "start 50.0 -> 60.0 s (+20 %)")], id="slower"),
        pytest.param(start(60.0), start(30.0), [(False, 0.5, "start 60.0 -> 30.0 s (-50 %)")], id="faster"),
        pytest.param(start(8.0), start(16.0), [(False, 2.0, "start 8.0 -> 16.0 s (+100 %)")], id="twice-but-not-10-s"),
        pytest.param(start(10.0), start(20.0), [(True, 2.0, "start 10.0 -> 20.0 s (+100 %)")], id="twice"),
        pytest.param(
            start(66.1, weights=4.0, prefill_graphs=9.0),
            start(149.7, weights=1.0, prefill_graphs=82.0),
            [(True, 2.265, "start 66.1 -> 149.7 s (+126 %), most of it prefill graphs: 9.0 -> 82.0 s")],
            id="and-where",
        ),
        pytest.param(
            start(20.0, arguments=10.0),
            {"seconds": 60.0, "phases": [{"phase": "weights", "seconds": 20.0}, {"phase": "weights", "seconds": 20.5}]},
            [(True, 3.0, "start 20.0 -> 60.0 s (+200 %), most of it weights: 0.0 -> 40.5 s")],
            id="a-phase-that-came-twice",
        ),
        pytest.param({"vitals": {}}, start(60.0), [], id="not-known-before"),
    ],
)
def test_the_time_of_a_start(before, after, expected):
    assert [(found.flagged, found.ratio, found.text) for found in changes(before, after) if found.name == "seconds"] == expected


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param({"weights_gb": 15.28}, {"weights_gb": 15.3}, [], id="weights-noise"),
        pytest.param({"weights_gb": 15.28}, {"weights_gb": 8.2}, [("weights_gb", False, "weights 15.28 -> 8.2 GB (-46 %)")], id="weights"),
        pytest.param({"weights_seconds": 0.2}, {"weights_seconds": 1.9}, [], id="seconds-noise"),
        pytest.param(
            {"weights_seconds": 4.0}, {"weights_seconds": 31.2}, [("weights_seconds", False, "loading weights 4.0 -> 31.2 s (+680 %)")], id="slow-disk"
        ),
        pytest.param({"max_running_requests": 48}, {"max_running_requests": 32}, [("max_running_requests", False, "requests at once 48 -> 32")], id="requests"),
        pytest.param(
            {"chunked_prefill_size": 8192}, {"chunked_prefill_size": -1}, [("chunked_prefill_size", False, "chunk of prefill 8,192 -> -1 tokens")], id="chunk"
        ),
        pytest.param({"ranks": {"TP0": {}}}, {"ranks": {"TP0": {}, "TP1": {}}}, [("ranks", False, "ranks 1 -> 2")], id="ranks"),
        pytest.param({}, {"ranks": {"TP0": {}}}, [], id="ranks-not-told"),
    ],
)
def test_amounts(before, after, expected):
    assert told(before, after) == expected


def test_a_start_like_the_last_one_has_no_changes():
    """Two real starts of one release: other seconds, the same server."""
    first, second = (vitals_of(name) for name in ("gpu-nextn", "gpu-nextn-simulated"))
    assert first["startup_timings"] != second["startup_timings"]
    assert changes({"vitals": first, "seconds": 66.1}, {"vitals": second, "seconds": 66.1}) == []


def test_graphs_that_were_switched_off():
    assert changes({"vitals": vitals_of("gpu-default"), "seconds": 60.0}, {"vitals": vitals_of("gpu-no-graphs"), "seconds": 43.6}) == [
        Change("graphs", ["decode", "prefill"], [], None, True, "no graphs are captured any more (before: decode, prefill)"),
        Change("available_memory_gb", 10.99, 11.69, 1.064, False, "memory left 10.99 -> 11.69 GB (+6 %)"),
        Change("seconds", 60.0, 43.6, 0.727, False, "start 60.0 -> 43.6 s (-27 %)"),
    ]


def test_speculation_that_was_taken_away():
    found = changes({"vitals": vitals_of("gpu-nextn")}, {"vitals": vitals_of("gpu-hybrid")})
    assert [change.text for change in found if change.flagged] == [
        "KV cache 1,956,076 -> 1,677,531 tokens (-14 %)",
        "draft graphs are no longer captured",
        "speculation EAGLE with 3 steps, top 1, 4 draft tokens -> none",
    ]


def test_two_gpus_instead_of_one():
    found = changes({"vitals": vitals_of("gpu-tp1")}, {"vitals": vitals_of("gpu-tp2")})
    assert [change.name for change in found] == ["kv_cache_tokens", "available_memory_gb", "weights_gb", "max_running_requests", "ranks"]


@pytest.mark.parametrize("before, after", [({}, {}), ({}, {"vitals": {"kv_cache_tokens": 1}, "seconds": 1.0}), ({"vitals": {}}, {})])
def test_what_is_not_known_is_no_change(before, after):
    assert changes(before, after) == []


def test_lines_say_first_what_matters():
    found = changes({"vitals": {"max_running_requests": 4, "context_length": 9}}, {"vitals": {"max_running_requests": 5, "context_length": 8}})
    assert lines(reversed(found)) == ["! context 9 -> 8", "requests at once 4 -> 5"]
    assert lines([]) == []


@pytest.mark.parametrize(
    "vitals, text",
    [
        ({}, ""),
        ({"speculative_algorithm": "none"}, "none"),
        ({"speculative_algorithm": "NGRAM"}, "NGRAM"),
        (
            {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4},
            "EAGLE with 3 steps, top 1, 4 draft tokens",
        ),
    ],
)
def test_speculation_in_words(vitals, text):
    assert speculation(vitals) == text


@pytest.mark.parametrize(
    "vitals, text",
    [
        ({}, ""),
        ({"attention_backend": "fa3"}, "fa3"),
        ({"prefill_attention_backend": "fa3", "decode_attention_backend": "triton"}, "prefill fa3, decode triton"),
    ],
)
def test_attention_in_words(vitals, text):
    assert attention(vitals) == text
