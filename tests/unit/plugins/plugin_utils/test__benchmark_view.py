# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point, record, repetition, start
from ansible_collections.llmops.inference.tests.unit.report_records import SWEEP, hostile, weeks
from ansible_collections.llmops.inference.tests.unit.report_records import record as realistic

THROTTLED = [{"index": 1, "throttle": ["sw_thermal_slowdown"]}]


@pytest.mark.parametrize(
    "value, text",
    [(0, "0.00"), (0.1234, "0.123"), (1.234, "1.23"), (55.23, "55.2"), (999.96, "1,000.0"), (4773.2, "4,773"), (-12.34, "-12.3"), (1234567, "1,234,567")],
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert view.number(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        ("a\n\tb", "a b"),
        ("a\u202eb\x1b[31m", "a b [31m"),
        (None, "null"),
        (True, "true"),
        ({"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_any_value_is_one_line(value, text):
    assert view.shown(value) == text


@pytest.mark.parametrize(
    "value, expected",
    [(1, True), (1.5, True), (0, True), (True, False), (None, False), ("1", False), (float("nan"), False), (float("inf"), False), ([], False)],
)
def test_what_is_a_number(value, expected):
    assert view.is_number(value) is expected


@pytest.mark.parametrize(
    "concurrency, rate, name",
    [(1, None, "1 stream"), (16, None, "16 streams"), (None, 2.5, "2.5 requests/s"), (8, 2.0, "2 requests/s, at most 8 streams"), (None, None, "no limit")],
)
def test_names_of_points(concurrency, rate, name):
    assert view.point_name(concurrency, rate) == name


def test_a_record_has_a_name_that_any_file_system_takes():
    assert view.record_name(record()) == "20261130T101500Z-decode-3494591af2ee"
    assert view.record_name(record(workload={"name": "../x y"}, release={"id": ""})) == "20261130T101500Z-.._x_y-unknown"


@pytest.mark.parametrize(
    "changes, reason",
    [
        pytest.param({}, "", id="a-record"),
        pytest.param({"kind": "links"}, "it is no record of a benchmark", id="another-kind"),
        pytest.param({"format": 3}, "its format is 3, and 2 is the one that is known here", id="a-newer-format"),
        pytest.param({"host": None}, "host is not text", id="no-host"),
        pytest.param({"model": "m"}, "model is not a mapping", id="no-model"),
        pytest.param({"starts": 1}, "starts is not a list", id="no-starts"),
        pytest.param({"flags": ["x"]}, "flags has an entry without name and value", id="bad-flags"),
        pytest.param({"release": {"subject": None}}, "release has no subject", id="no-subject"),
        pytest.param({"starts": [{}]}, "starts has a point without status and repetitions", id="no-points"),
        pytest.param({"starts": [1]}, "starts has a point without status and repetitions", id="bad-start"),
        pytest.param(
            {"starts": [{"points": [{"status": "ok", "repetitions": [1]}]}]}, "starts has a point without status and repetitions", id="bad-repetition"
        ),
    ],
)
def test_what_is_no_record(changes, reason):
    made = record(**changes)
    assert view.problem({**made, **changes} if changes.get("starts") or changes.get("model") == "m" else made) == reason


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"format": 1, "benchmark": {}}])
def test_what_is_no_document_of_ours(document):
    assert view.problem(document) == "it is no record of a benchmark"


def test_points_come_in_order_and_starts_are_taken_together():
    first = start(point([100.0, 102.0], concurrency=16), point([10.0, 12.0], concurrency=1))
    second = start(point([90.0, 92.0], concurrency=16), point([11.0], concurrency=None, request_rate=2.0), point([11.0], concurrency=1, status="contended"))
    rows = view.rows(record(starts=[first, second]))
    assert [(row.name, row.starts, row.repetitions, row.status) for row in rows] == [
        ("1 stream", 2, 3, "contended"),
        ("16 streams", 2, 4, "ok"),
        ("2 requests/s", 1, 1, "ok"),
    ]
    assert rows[1].rate == view.Range(96.0, 90.0, 102.0), "the interval spans both starts"


def test_numbers_that_are_missing_are_left_out():
    empty = repetition(100.0, ttft_ms=None, accept_length=None, goodput_per_s=None, cache_hit_rate=None, output_tok_per_s=None)
    (row,) = view.rows(record(starts=[start(point([empty], summary={}))]))
    assert (row.rate, row.ranges, row.accept_length, row.goodput_per_s, row.cache_hit_rate, row.spread_pct) == (None, {}, None, None, None, None)
    assert "ttft_ms" not in row.percentiles and view.main_row(record(starts=[start(point([empty], summary={}))])) is None


def test_the_first_point_with_a_number_stands_for_the_record():
    made = realistic(rates=SWEEP)
    assert view.main_row(made).name == "1 stream"
    assert len(view.repetition_rates(made)) == 15
    assert view.main_row(record(starts=[])) is None and view.repetition_rates(record(starts=[])) == []


@pytest.mark.parametrize(
    "told, expected",
    [
        ({"edges": [0.0, 1.0, 2.0], "counts": [3, 4]}, ([0.0, 1.0, 2.0], [3, 4])),
        ({"edges": [0.0, 1.0], "counts": [3, 4]}, None),
        ({"edges": [0.0, 1.0], "counts": [0]}, None),
        ({"edges": [0.0, "x"], "counts": [1]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_histogram(told, expected):
    assert view.histogram(record(starts=[start(point(itl_histogram_ms=told))])) == expected


@pytest.mark.parametrize(
    "changes, remark",
    [
        pytest.param({"workload": {"label": "flattering: short prompts"}}, "The workload is flattering: short prompts.", id="flattering"),
        pytest.param(
            {"starts": [start(point(status="contended", remarks=["2 requests that are not ours were running"]))]},
            "1 stream: contended, so it counts for nothing: 2 requests that are not ours were running",
            id="contended",
        ),
        pytest.param({"starts": [start(point(status="failed"))]}, "1 stream: failed, so it counts for nothing", id="failed"),
        pytest.param({"starts": [start(point(remarks=["odd"]))]}, "1 stream: odd", id="a-remark"),
        pytest.param(
            {"starts": [start(point([repetition(100.0, completed=3, failed=1, errors=["HTTP 500"]), repetition(100.0)]))]},
            "1 stream: 1 of 8 requests failed: HTTP 500",
            id="failed-requests",
        ),
        pytest.param(
            {"starts": [start(point(summary={"output_tok_per_s": {"drift": "falls by 3.1 % over the repetitions"}}))]},
            "1 stream: throughput falls by 3.1 % over the repetitions",
            id="drift",
        ),
        pytest.param(
            {"starts": [start(point([repetition(100.0, gpus=THROTTLED), repetition(100.0)]))]},
            "1 stream: GPU 1 was throttled by heat (sw_thermal_slowdown) in 1 of 2 repetitions",
            id="heat",
        ),
        pytest.param({}, "1 stream: GPU 0 was held back (sw_power_cap) in 5 of 5 repetitions", id="power"),
        pytest.param(
            {"starts": [start(point(warmup={"repetitions": 6, "stable": False}))]}, "1 stream: the warm-up was not stable after 6 repetitions", id="warm-up"
        ),
        pytest.param(
            {"starts": [start(point([repetition(100.0, accept_length_of="server mean")]))]},
            "1 stream: the acceptance length is the server's running mean, not that of the repetitions",
            id="a-mean",
        ),
        pytest.param(
            {"starts": [start(point([repetition(100.0, counted_by="its tokenizer")]))]},
            "1 stream: tokens were counted by its tokenizer, not by the server's usage",
            id="counted-otherwise",
        ),
        pytest.param(
            {"starts": [start(point([repetition(100.0, server={"generation_tokens": 2100})]))]},
            "1 stream: the client counted 2,048 output tokens, the server's own counters 2,100",
            id="tokens-differ",
        ),
        pytest.param(
            {"starts": [start(point([90.0, 100.0, 110.0]))]},
            "1 stream: cannot tell a change of 3 % with a spread of 11.5 %: needs about 94 repetitions",
            id="too-noisy",
        ),
        pytest.param({"client": {"where": "controller"}}, "Measured from controller: the network is part of the numbers.", id="from-elsewhere"),
        pytest.param({"inventory": {"dirty": True}}, "The inventory had changes that were not committed.", id="dirty"),
        pytest.param(
            {},
            "The engine changed 1 of the settings that were asked for: disable_piecewise_cuda_graph false -> true (the model counts as multimodal).",
            id="silent-change",
        ),
    ],
)
def test_remarks(changes, remark):
    assert remark in view.remarks(record(**changes))


def test_a_quiet_record_has_no_remark():
    assert view.remarks(record(silent_changes=[], starts=[start(point([repetition(rate, gpus=[]) for rate in (100.0, 100.4, 100.8)]))])) == []


def test_conditions():
    told = dict(view.conditions(record()))
    assert ("gpus", "2x NVIDIA RTX A6000, 49140 MiB, 300 W") in told["Hardware"]
    assert ("tp_size (hardware)", "2") in told["Requested flags"]
    assert ("architecture", "Qwen3_5ForConditionalGeneration") in told["Model"] and "quantization" not in dict(told["Model"])
    assert "argv" not in dict(told["Release"])
    assert dict(view.conditions(record(effective={f"f{i}": i for i in range(9)}), 3))["Effective flags"][3:] == [("and 10 more", "in the record")]


@pytest.mark.parametrize(
    "change, text",
    [
        ("speculative_algorithm not set -> NEXTN", "+ speculative_algorithm NEXTN"),
        ("enforce_piecewise_cuda_graph not set -> true", "+ enforce_piecewise_cuda_graph"),
        ("tp_size 2 -> not set", "- tp_size"),
        ("engine 0.5.19 -> 0.5.23", "engine 0.5.19 -> 0.5.23"),
        ("odd", "odd"),
    ],
)
def test_changes_in_short(change, text):
    assert view.brief(change) == text


def test_gpus_in_words():
    assert view.gpu_words(None) == view.gpu_words([]) == view.gpu_words(["x"]) == ""
    assert view.gpu_words([{"name": "A"}, {"name": "B", "power_limit_w": 300.0}, {"name": "A"}]) == "2x A; 1x B, 300 W"


@pytest.mark.parametrize("made", [*weeks(), hostile()], ids=view.record_name)
def test_the_records_of_the_tests_are_records(made):
    assert view.problem(json.loads(json.dumps(made))) == ""


def test_each_remark_comes_once():
    """A record of today has them among its points' remarks."""
    told = ["the warm-up was not stable after 6 repetitions", "answers did not tell their number of tokens in 1 of 1 repetitions, which have no tok/s"]
    uncounted = repetition(0, counted_by="unknown", output_tokens=None, output_tok_per_s=None, gpus=None, accept_length_of="repetition")
    found = view.remarks(record(silent_changes=[], starts=[start(point([uncounted], remarks=told, warmup={"repetitions": 6, "stable": False}))]))
    assert found == [f"1 stream: {text}" for text in told]
    failed = point(status="failed", remarks=["HTTP 500 (warming up)"], repetitions=[], summary={}, warmup={"repetitions": 1, "stable": False})
    assert view.remarks(record(silent_changes=[], starts=[start(failed)])) == ["1 stream: failed, so it counts for nothing: HTTP 500 (warming up)"]


def test_measured_links_are_shown_in_words():
    links = {"text": "2 ranks (nccl), 80 MiB at 276.2 GB/s", "digest": "0123456789ab"}
    shown = dict(dict(view.conditions(record(hardware={"links_measured": links})))["Hardware"])
    assert shown["links_measured"] == links["text"] and "links_measured" not in dict(dict(view.conditions(record()))["Hardware"])
