# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._repetition import (
    BenchmarkError,
    BenchmarkFailed,
    Request,
    check_failures,
    distribution_ms,
    goodput,
    histogram_ms,
    percentile,
    rates,
    repetition,
    requests_of,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "benchmark"
# One run each of the real engine with a tiny model, with its own figures beside the details.
RECORDED = {"0.5.23-random-ids": 32, "0.5.23-custom": 300}
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}


def recorded(name):
    return json.loads((FIXTURES / f"{name}.jsonl").read_text())


def raw(*requests, duration=2.0):
    """A run as the load generators write it, from (ttft, itls, input, output, error)."""
    columns = [list(column) for column in zip(*requests)]
    return {"duration": duration, **dict(zip(("ttfts", "itls", "input_lens", "output_lens", "errors"), columns))}


def answer(tokens=5, ttft=0.1, gap=0.01, error=""):
    return ttft, [gap] * (max(tokens or 1, 1) - 1), 10, tokens, error


@pytest.mark.parametrize(
    "values, percent, expected",
    [
        pytest.param([7.0], 99, 7.0, id="one"),
        pytest.param([1, 2, 3, 4], 50, 2.5, id="median-of-four"),
        pytest.param([4, 1, 3, 2], 50, 2.5, id="any-order"),
        pytest.param([15, 20, 35, 40, 50], 40, 29.0, id="numpy-40"),
        pytest.param(range(1, 101), 99, 99.01, id="numpy-99"),
        pytest.param(range(1, 11), 90, 9.1, id="numpy-90"),
        pytest.param([1, 2], 0, 1, id="lowest"),
        pytest.param([1, 2], 100, 2, id="highest"),
    ],
)
def test_percentiles(values, percent, expected):
    assert percentile(list(values), percent) == pytest.approx(expected)


def test_a_distribution_is_in_milliseconds():
    assert distribution_ms([0.010, 0.030]) == {"mean": 20.0, "p50": 20.0, "p90": 28.0, "p99": 29.8}
    assert distribution_ms([]) == {}


@pytest.mark.parametrize("name", RECORDED)
def test_our_numbers_are_the_engines_own(name):
    theirs = recorded(name)
    ours = repetition(theirs, RECORDED[name], {})
    assert (ours["requests"], ours["completed"], ours["failed"], ours["errors"]) == (theirs["completed"], theirs["completed"], 0, [])
    assert ours["output_tok_per_s"] == pytest.approx(theirs["output_throughput"], rel=1e-4)
    assert ours["total_tok_per_s"] == pytest.approx(theirs["total_throughput"], rel=1e-4)
    assert ours["request_per_s"] == pytest.approx(theirs["request_throughput"], rel=1e-4)
    assert (ours["output_tokens"], ours["input_tokens"]) == (theirs["total_output_tokens"], theirs["total_input_tokens"])
    for mine, other in LATENCIES.items():
        for statistic, word in (("mean", "mean"), ("p50", "median"), ("p90", "p90"), ("p99", "p99")):
            # The engine ends a request with the last event of its stream, which may come a moment after the last token.
            assert ours[f"{mine}_ms"][statistic] == pytest.approx(theirs[f"{word}_{other}_ms"], rel=0.01, abs=0.01), (mine, statistic)


def test_a_refused_request_is_no_answer_of_all_tokens():
    """B04: on 0.5.23 too the engine's client counts a request that the server refused inside a 200 stream with the tokens that were asked for."""
    theirs = recorded("0.5.23-refused")
    assert (theirs["completed"], theirs["output_lens"], theirs["output_throughput"]) == (2, [32, 32], 679.030690914)
    ours = repetition(theirs, 32, {})
    assert (ours["completed"], ours["failed"], ours["errors"]) == (0, 2, ["no token came"])
    assert ours["output_tok_per_s"] is None
    with pytest.raises(BenchmarkError, match="^2 of 2 requests failed: no token came$"):
        check_failures(ours, 0.0)


def case(name):
    """A list of answers as B04 has them, as a load generator writes it."""
    rows = json.loads((FIXTURES / name).read_text())
    return raw(*((row["e2e_ms"] / 1000, [], 0, row["completion_tokens"], "" if row["http"] == 200 else f"HTTP {row['http']}") for row in rows), duration=1.0)


@pytest.mark.parametrize(
    "name, failed, asked, speed, message",
    [
        pytest.param("b04_results_7_of_10_failed.json", 7, 10, 192.0, "7 of 10 requests failed: HTTP 500", id="seven-of-ten"),
        pytest.param("b04b_results_all_failed.json", 4, 4, None, "4 of 4 requests failed: HTTP 503", id="all"),
    ],
)
def test_failed_requests_are_not_hidden(name, failed, asked, speed, message):
    """B04"""
    entry = repetition(case(name), None, {})
    assert (entry["failed"], entry["completed"], entry["requests"], entry["output_tok_per_s"]) == (failed, asked - failed, asked, speed)
    with pytest.raises(BenchmarkError, match=f"^{message}$"):
        check_failures(entry, 0.0)


@pytest.mark.parametrize(
    "failed, requests, allowed, passes",
    [
        pytest.param(0, 10, 0.0, True, id="none"),
        pytest.param(1, 10, 0.0, False, id="none-allowed"),
        pytest.param(1, 10, 10.0, True, id="just-allowed"),
        pytest.param(2, 10, 10.0, False, id="too-many"),
        pytest.param(10, 10, 100.0, False, id="all-is-never-allowed"),
        pytest.param(7, 10, 70.0, True, id="B04-allowed"),
    ],
)
def test_how_many_may_fail(failed, requests, allowed, passes):
    entry = {"failed": failed, "requests": requests, "errors": []}
    if passes:
        check_failures(entry, allowed)
        return
    with pytest.raises(BenchmarkError, match=f"^{failed} of {requests} requests failed$"):
        check_failures(entry, allowed)


@pytest.mark.parametrize(
    "tokens, ttft, error, expected, found",
    [
        pytest.param(5, 0.1, "", 5, "", id="whole"),
        pytest.param(5, 0.1, "", None, "", id="ends-by-itself"),
        pytest.param(3, 0.1, "", 5, "the answer has 3 of 5 tokens", id="broken-off"),
        pytest.param(6, 0.1, "", 5, "the answer has 6 of 5 tokens", id="too-many"),
        pytest.param(0, 0.1, "", 5, "no token came", id="nothing"),
        pytest.param(0, 0.0, "", None, "no token came", id="nothing-of-an-open-end"),
        pytest.param(5, 0.0, "", 5, "no token came", id="error-event-counted-as-asked"),
        pytest.param(None, 0.1, "", 5, "", id="no-usage"),
        pytest.param(0, 0.0, "Not Found: x", 5, "Not Found: x", id="told"),
    ],
)
def test_what_counts_as_failed(tokens, ttft, error, expected, found):
    (request,) = requests_of(raw(answer(tokens, ttft, error=error)), expected)
    assert request.error == found


def test_without_usage_there_is_no_number():
    """B03: an answer without usage is no answer of as many tokens as it had chunks."""
    entry = repetition(raw(answer(), answer(None)), 5, {})
    assert (entry["output_tok_per_s"], entry["total_tok_per_s"], entry["output_tokens"]) == (None, None, None)
    assert (entry["request_per_s"], entry["completed"], entry["ttft_ms"]["p50"]) == (1.0, 2, 100.0)


def test_rates_are_of_those_that_succeeded():
    entry = repetition(raw(answer(), answer(3), answer(0, error="HTTP 500")), 5, {})
    assert (entry["output_tok_per_s"], entry["total_tok_per_s"], entry["request_per_s"]) == (2.5, 7.5, 0.5)
    assert (entry["input_tokens"], entry["output_tokens"], entry["e2e_ms"]["p50"]) == (10, 5, 140.0)
    assert entry["errors"] == ["HTTP 500", "the answer has 3 of 5 tokens"]


def test_latencies_of_one_request():
    request = Request(0.1, [0.02, 0.02, 0.02], 10, 4, "")
    assert (request.e2e, request.tpot) == (pytest.approx(0.16), pytest.approx(0.02))
    assert Request(0.1, [], 10, 1, "").tpot is None and Request(0.1, [0.1], 10, None, "").tpot is None


def test_several_tokens_of_one_chunk_are_several():
    """B01: the speed is of tokens, not of chunks; four tokens came with the first chunk."""
    entry = repetition(raw((0.25, [0.0125] * 20, 3, 24, ""), duration=0.5), 24, {})
    assert (entry["output_tok_per_s"], entry["tpot_ms"]["p50"], entry["itl_ms"]["p50"]) == (48.0, 10.87, 12.5)


@pytest.mark.parametrize("duration", [0.0, -1.0])
def test_no_time_no_rate(duration):
    assert set(rates([Request(0.1, [], 1, 1, "")], duration).values()) == {None}
    assert goodput([Request(0.1, [], 1, 1, "")], duration, {"ttft_ms": 500}) is None


@pytest.mark.parametrize(
    "slo, expected",
    [
        pytest.param({}, None, id="no-objective"),
        pytest.param({"ttft_ms": 100}, 1.5, id="ttft-at-the-limit"),
        pytest.param({"ttft_ms": 99}, 0.5, id="ttft"),
        pytest.param({"tpot_ms": 5}, 0.5, id="tpot"),
        pytest.param({"e2e_ms": 145}, 1.5, id="e2e"),
        pytest.param({"ttft_ms": 100, "tpot_ms": 5, "e2e_ms": 200}, 0.5, id="all-of-them"),
        pytest.param({"ttft_ms": 10000}, 1.5, id="failed-ones-never-count"),
    ],
)
def test_goodput(slo, expected):
    requests = requests_of(raw(answer(), answer(), answer(ttft=0.05, gap=0.005), answer(3)), 5)
    assert goodput(requests, 2.0, slo) == expected


def test_errors_are_short_and_few():
    trace = "Traceback (most recent call last):\n  File x\nConnectionError: refused\n"
    entry = repetition(raw(*(answer(0, error=f"{trace}{i} {'y' * 400}") for i in range(7)), answer(0, error=trace), answer()), 5, {})
    assert len(entry["errors"]) == 5 and all(len(error) <= 300 for error in entry["errors"])
    assert entry["errors"][0].startswith("0 yy")


def test_details_that_are_missing():
    with pytest.raises(BenchmarkError, match="^the load generator's result has no itls, errors$"):
        requests_of({"ttfts": [], "input_lens": [], "output_lens": []}, None)


@pytest.mark.parametrize(
    "gaps, counts",
    [
        pytest.param([], [], id="none"),
        pytest.param([0.0], [], id="tokens-of-one-chunk"),
        pytest.param([0.01] * 5, [5, 0, 0, 0], id="all-alike"),
        pytest.param([0.001, 0.0099, 0.01, 0.011, 10.0], [2, 2, 0, 1], id="bins-of-equal-ratio"),
    ],
)
def test_the_histogram(gaps, counts):
    found = histogram_ms(gaps, 4)
    assert found["counts"] == counts
    assert len(found["edges"]) == (len(counts) + 1 if counts else 0)
    if counts:
        assert found["edges"][0] == pytest.approx(min(gaps) * 1000) and found["edges"] == sorted(found["edges"])
        assert sum(found["counts"]) == len(gaps) and math.isclose(found["edges"][-1], max(max(gaps) * 1000, 10.1), rel_tol=1e-4)


def test_a_repetition_is_json():
    assert json.loads(json.dumps(repetition(recorded("0.5.23-custom"), 300, {"ttft_ms": 1}), allow_nan=False))


@pytest.mark.parametrize(
    ("requests", "counted_by", "tokens"),
    [
        pytest.param([answer(), answer()], "server usage", 10, id="all-told"),
        pytest.param([answer(), answer(None)], "unknown", None, id="B03-one-not-told"),
        pytest.param([answer(), answer(0, error="HTTP 500")], "server usage", 5, id="failed-ones-do-not-matter"),
    ],
)
def test_who_counted(requests, counted_by, tokens):
    """B03: without usage nothing is an exact count, chunks least of all."""
    entry = repetition(raw(*requests), None, {})
    assert (entry["counted_by"], entry["output_tokens"], entry["output_tok_per_s"] is None) == (counted_by, tokens, tokens is None)


def test_a_failed_benchmark_has_its_records():
    error = BenchmarkFailed("decode, concurrency 4: no", ({"kind": "benchmark"},))
    assert (str(error), error.records) == ("decode, concurrency 4: no", [{"kind": "benchmark"}]) and isinstance(error, BenchmarkError)
