# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_points import (
    METRICS,
    by_load,
    failures,
    higher_is_better,
    refusal,
    refusals,
    remarks,
    start_keys,
    uncounted,
    unsettled,
    value_of,
    values_of,
    words_of,
)
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point, record, repetition, start

# B04: three of ten requests succeeded; and none of four.
SOME_FAILED = point([repetition(requests=10, completed=3, failed=7)], status="failed")
ALL_FAILED = point([repetition(0, requests=4, completed=0, failed=4, output_tok_per_s=None)], status="failed")


@pytest.mark.parametrize(
    "metric, expected",
    [
        ("output_tok_per_s", 100.0),
        ("request_per_s", 0.1953),
        ("goodput_per_s", None),
        ("tpot_ms", 10.0),
        ("tpot_ms_p50", 10.0),
        ("tpot_ms_p90", 10.5),
        ("tpot_ms_p99", 10.8),
        ("tpot_ms_mean", 10.1),
    ],
)
def test_value_of(metric, expected):
    assert metric in METRICS and value_of(repetition(100.0), metric) == expected


def test_B04_no_number_without_a_success():
    assert [value_of(repetition(0), metric) for metric in ("ttft_ms", "e2e_ms_p99")] == [None, None]
    assert values_of([ALL_FAILED], "output_tok_per_s") == [None]


def test_all_metrics_have_a_direction():
    assert [metric for metric in METRICS if higher_is_better(metric)] == ["output_tok_per_s", "total_tok_per_s", "request_per_s", "goodput_per_s"]
    assert len(METRICS) == 4 + 4 * 5


def test_a_start_that_was_measured_twice_is_one_start():
    twice = [record(starts=[start(point(), invocation="a")]), record(starts=[start(point(), invocation="a"), start(point(), invocation="b")])]
    found = by_load(twice)
    assert {key[2]: len(points) for key, points in found[1, None].items()} == {"a": 2, "b": 1}
    assert len(start_keys(twice)) == 2
    assert len(start_keys([*twice, record(host="h2", starts=[start(invocation="a")])])) == 3
    assert len(start_keys([record(starts=[start(invocation=""), start(invocation="")]), record(starts=[start(invocation="")])])) == 3


def test_loads():
    swept = record(starts=[start(point(concurrency=4), point(concurrency=4, request_rate=2.5), point(concurrency=None, request_rate=2.5))])
    assert list(by_load([swept])) == [(4, None), (4, 2.5), (None, 2.5)]
    assert list(by_load([swept], 4)) == [(4, None), (4, 2.5)] and by_load([swept], 1) == {}
    assert [words_of(load) for load in by_load([swept])] == [
        "concurrency 4",
        "concurrency 4 at 2.5 requests per s",
        "concurrency unlimited at 2.5 requests per s",
    ]


@pytest.mark.parametrize(
    "measured, expected",
    [
        pytest.param(SOME_FAILED, "failed: 7 of 10 requests failed", id="B04-some"),
        pytest.param(ALL_FAILED, "failed: 4 of 4 requests failed", id="B04-all"),
        pytest.param(point(status="failed", remarks=["the server went away"]), "failed: the server went away", id="no-count"),
        pytest.param(
            point([repetition(failed=1)], status="failed", remarks=["1 of 4 requests failed", "x"]), "failed: 1 of 4 requests failed; x", id="said-once"
        ),
        pytest.param(
            point(status="contended", remarks=["2 requests that are not ours were running"]),
            "contended: 2 requests that are not ours were running",
            id="contended",
        ),
        pytest.param(point(status="contended"), "contended", id="no-reason"),
    ],
)
def test_refusal(measured, expected):
    assert refusal(measured) == expected
    assert refusals([record(starts=[start(point(), measured)])]) == [(measured["status"], expected)]
    assert refusals([record(starts=[start(point(concurrency=4), measured)])], 4) == []


def test_B04_a_rate_from_successes_only_is_flagged():
    allowed = point([repetition(), repetition(completed=3, failed=1)], remarks=["a remark"])
    assert failures(allowed) == "1 of 8 requests failed" and failures(point()) == ""
    assert remarks([allowed, allowed, point()]) == ["a remark", "1 of 8 requests failed: the rates count the others only"]


@pytest.mark.parametrize(
    ("warmup", "text"),
    [
        ({"repetitions": 2, "stable": True}, ""),
        ({"repetitions": 4, "stable": False}, "the warm-up was not stable after 4 repetitions"),
        ({"repetitions": 1, "stable": False}, "the warm-up was not stable after 1 repetition"),
        ({}, ""),
        (None, ""),
    ],
)
def test_unsettled(warmup, text):
    assert unsettled({"warmup": warmup}) == text


def test_B03_uncounted():
    unknown = repetition(0, output_tok_per_s=None, output_tokens=None, counted_by="unknown")
    assert uncounted([point(), point([repetition(), unknown])]) == "nobody counted the tokens of 1 of 7 repetitions"
    assert uncounted([point()]) == ""
