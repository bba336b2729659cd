# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import math

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_compare import compare_records
from ansible_collections.llmops.inference.tests.unit.benchmark_records import NOISE, measured, point, record, repetition, start

KEYS = ["verdict", "reason", "metric", "ratio", "low", "high", "differs", "told", "changed", "effective", "points"]


def one_start(rate=100.0, **changes):
    """A record of the change that is judged: one start."""
    return measured(rate, boots=(1.0,), name="now ", **changes)


def with_point(*repetitions, **changes):
    return [record(starts=[start(point(list(repetitions) or None, **changes), invocation="now")])]


@pytest.mark.parametrize(
    "current, verdict, ratio",
    [
        pytest.param(100.0, "no measurable difference", 1.0, id="equal"),
        pytest.param(97.0, "slower", 0.97, id="3-percent-less"),
        pytest.param(90.0, "slower", 0.9, id="10-percent-less"),
        pytest.param(110.0, "faster", 1.1, id="10-percent-more"),
    ],
)
def test_verdict(current, verdict, ratio):
    found = compare_records(measured(), one_start(current))
    (row,) = found["points"]
    assert (found["verdict"], row["verdict"]) == (verdict, verdict)
    assert found["ratio"] == pytest.approx(ratio, abs=0.005) and found["low"] < found["ratio"] < found["high"]
    assert row["loss_pct"] == pytest.approx(100 - 100 * ratio, abs=0.5) and row["loss_low_pct"] < row["loss_pct"] < row["loss_high_pct"]
    assert (row["concurrency"], row["request_rate"], row["boot_spread"], row["remarks"]) == (1, None, None, [])
    assert row["baseline"] == {"median": 100.0, "starts": 3, "repetitions": 15}
    assert row["current"] == {"median": current, "starts": 1, "repetitions": 5}


@pytest.mark.parametrize("metric", ["ttft_ms", "tpot_ms_p99", "e2e_ms_mean"])
def test_more_of_a_latency_is_slower(metric):
    found = compare_records(measured(), one_start(80.0), metric=metric)
    assert found["verdict"] == "slower" and found["ratio"] == pytest.approx(1.25, abs=0.01)
    assert found["points"][0]["loss_pct"] == pytest.approx(25.0, abs=1.0)
    assert found["points"][0]["loss_low_pct"] < found["points"][0]["loss_high_pct"]


@pytest.mark.parametrize(
    "baseline, current, verdict, reason",
    [
        pytest.param([], one_start(), "not comparable", "there is no baseline", id="B05-no-baseline"),
        pytest.param(measured(), [], "not comparable", "there is no current record", id="no-current"),
        pytest.param(
            measured(concurrency=8, model={"name": "m"}, workload={"input_tokens": 512, "output_tokens": 128, "cache": "flushed"}),
            one_start(concurrency=8, model={"name": "m"}, workload={"input_tokens": 512, "output_tokens": 128, "cache": "warm"}),
            "not comparable",
            "measured under other conditions: cache policy: flushed, now warm",
            id="B05-cache-policy",
        ),
        pytest.param(
            measured(concurrency=8),
            one_start(concurrency=16),
            "not comparable",
            "measured under other conditions: concurrency: 8, now 16",
            id="B05-concurrency",
        ),
        pytest.param(
            measured(0.0), one_start(90.0), "invalid baseline", "output_tok_per_s of the baseline is 0: nothing can be compared with it", id="B05-zero"
        ),
        pytest.param(
            with_point(repetition(), repetition(output_tok_per_s=math.nan)),
            one_start(),
            "invalid baseline",
            "output_tok_per_s of the baseline is nan: nothing can be compared with it",
            id="nan",
        ),
        pytest.param(
            with_point(repetition(), repetition(output_tok_per_s=None)),
            one_start(),
            "invalid baseline",
            "output_tok_per_s of the baseline is missing: nothing can be compared with it",
            id="missing",
        ),
        pytest.param(
            with_point(repetitions=[]),
            one_start(),
            "invalid baseline",
            "output_tok_per_s of the baseline is missing: nothing can be compared with it",
            id="no-repetitions",
        ),
        pytest.param(
            measured(), with_point(repetition(), repetition(output_tok_per_s=None)), "not comparable", "the current record has no output_tok_per_s", id="none"
        ),
        pytest.param(
            measured(),
            with_point(repetition(100.0), repetition(0.0)),
            "not comparable",
            "output_tok_per_s of the current record is 0 in some repetitions: no ratio can be told",
            id="sometimes-zero",
        ),
        pytest.param(measured(), with_point(repetition(0.0), repetition(0.0)), "slower", "slower: output_tok_per_s fell to 0", id="fell-to-zero"),
        pytest.param(
            measured(),
            with_point(status="contended", remarks=["2 requests that are not ours were running"]),
            "not comparable",
            "the current record is contended: 2 requests that are not ours were running",
            id="contended",
        ),
        pytest.param(
            [*measured(), *with_point(status="contended")], one_start(), "not comparable", "the baseline is contended", id="one-of-the-baseline-is-contended"
        ),
        pytest.param(
            measured(),
            with_point(repetition(requests=10, completed=3, failed=7), status="failed"),
            "not comparable",
            "the current record is failed: 7 of 10 requests failed",
            id="B04-some-failed",
        ),
        pytest.param(
            measured(),
            with_point(repetition(0, completed=0, failed=4, output_tok_per_s=None), status="failed"),
            "not comparable",
            "the current record is failed: 4 of 4 requests failed",
            id="B04-all-failed",
        ),
        pytest.param(
            [*measured(), *measured(name="b", release={"subject": "b"})], one_start(), "invalid baseline", "the baseline is of several releases", id="mixed"
        ),
        pytest.param(
            measured(),
            [*one_start(), *measured(name="b", release={"subject": "b"})],
            "not comparable",
            "the current records are of several releases",
            id="both",
        ),
    ],
)
def test_what_cannot_be_compared(baseline, current, verdict, reason):
    found = compare_records(baseline, current)
    assert (found["verdict"], found["reason"]) == (verdict, reason)
    assert sorted(found) == sorted(KEYS)
    assert verdict == "slower" or (found["ratio"], found["low"], found["high"]) == (None, None, None)
    json.dumps(found, allow_nan=False)


def test_a_latency_of_nothing_is_no_gain():
    nothing = repetition(ttft_ms={"mean": 0.0, "p50": 0.0, "p90": 0.0, "p99": 0.0})
    found = compare_records(measured(), with_point(nothing), metric="ttft_ms")
    assert (found["verdict"], found["reason"]) == ("not comparable", "the current record has no ttft_ms")


def test_numbers_of_unlike_conditions_are_not_even_shown():
    found = compare_records(measured(), one_start(50.0, hardware={"driver": "590.44.01"}))
    assert found["points"] == []
    assert found["differs"] == [{"name": "driver", "baseline": "580.159.04", "current": "590.44.01", "text": "driver: 580.159.04, now 590.44.01"}]
    assert compare_records(measured(), one_start(50.0, hardware={"driver": "590.44.01"}), ignore=["driver"])["verdict"] == "slower"


def test_every_record_of_a_baseline_is_held_to_the_conditions():
    mixed = [*measured(boots=(1.0, 1.0)), *measured(boots=(1.0,), name="c", workload={"cache": "warm"})]
    assert [one["text"] for one in compare_records(mixed, one_start())["differs"]] == ["cache policy: warm, now flushed"]


def test_what_was_changed_is_told_and_not_held_against_it():
    changes = {"flags": [], "environment": {}, "engine": {"version": "0.5.24"}, "client": {"version": "0.5.24"}, "effective": {"attention_backend": "fa3"}}
    found = compare_records(measured(), one_start(110.0, release={"subject": "b"}, **changes))
    assert found["verdict"] == "faster"
    assert found["changed"][0] == "engine 0.5.23 -> 0.5.24" and "mem_fraction_static 0.85 -> not set" in found["changed"]
    assert [one["text"] for one in found["told"]] == ["client version: 0.5.23, now 0.5.24"]
    assert found["effective"] == ["attention_backend flashinfer -> fa3"]


def sweep(rates, **changes):
    """One start with a point for each concurrency."""
    points = [point([rate * part for part in NOISE], concurrency=concurrency) for concurrency, rate in rates.items()]
    return record(starts=[start(*points, invocation=changes.pop("invocation", "now"))], **changes)


def sweeps(rates):
    """The same with three starts."""
    return [sweep({load: rate * boot for load, rate in rates.items()}, invocation=f"boot {boot}") for boot in (1.0, 0.996, 1.003)]


def test_all_points_of_a_sweep():
    found = compare_records(sweeps({1: 100, 4: 300, 16: 900, 64: 2000}), [sweep({1: 100, 4: 330, 16: 800, 32: 1500})])
    assert [(row["concurrency"], row["verdict"]) for row in found["points"]] == [
        (1, "no measurable difference"),
        (4, "faster"),
        (16, "slower"),
        (32, "not comparable"),
        (64, "not comparable"),
    ]
    assert [row["reason"] for row in found["points"][3:]] == ["the baseline has no such point", "the current record has no such point"]
    assert found["verdict"] == "slower" and found["ratio"] == found["points"][2]["ratio"]
    assert found["reason"].startswith("concurrency 16: slower: -11")
    assert found["reason"].endswith("(of 5 points: 1 slower, 1 faster, 1 no measurable difference, 2 not comparable)")


@pytest.mark.parametrize(
    "concurrency, verdict, differs",
    [
        (4, "faster", []),
        (16, "slower", []),
        (32, "not comparable", ["concurrency: 1, 4, 16 and not 32, now 32"]),
        (1, "not comparable", ["concurrency: 1, now 4, 16, 32 and not 1"]),
        (128, "not comparable", ["concurrency: 1, 4, 16 and not 128, now 4, 16, 32 and not 128"]),
    ],
)
def test_one_point_of_a_sweep(concurrency, verdict, differs):
    found = compare_records(sweeps({1: 100, 4: 300, 16: 900}), [sweep({4: 330, 16: 800, 32: 1500})], concurrency=concurrency)
    assert found["verdict"] == verdict and [one["text"] for one in found["differs"]] == differs
    assert [row["concurrency"] for row in found["points"]] == ([] if differs else [concurrency])


def test_points_with_nothing_in_common():
    def crossed(*loads):
        return record(starts=[start(*(point(concurrency=concurrency, request_rate=rate) for concurrency, rate in loads))])

    found = compare_records([crossed((1, 2.5), (4, None))], [crossed((1, None), (4, 2.5))])
    assert found["verdict"] == "not comparable" and {row["verdict"] for row in found["points"]} == {"not comparable"}


def test_a_start_that_was_measured_three_times_is_one_start():
    again = [record(starts=[start(invocation="same")]) for _time in range(3)]
    found = compare_records(again, one_start(90.0))
    assert found["verdict"] == "no measurable difference" and found["low"] is None
    assert found["points"][0]["baseline"] == {"median": 100.0, "starts": 1, "repetitions": 15}


def spread_of(history, **changes):
    """What is known of the host's starts when one start is compared with one."""
    found = compare_records(measured(boots=(1.0,)), one_start(90.0), history=history, **changes)
    return found["points"][0]["boot_spread"], found["verdict"]


OLD = measured(boots=(1.0, 0.99, 1.01, 1.0), name="old", release={"subject": "old"})


def test_history_tells_how_far_starts_differ():
    known, verdict = spread_of(OLD)
    assert verdict == "slower" and known["starts"] == 3 and known["pct"] == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([], id="none"),
        pytest.param(OLD[:1], id="one-start-of-a-release"),
        pytest.param([*OLD[:1], *measured(boots=(0.9,), name="older", release={"subject": "older"})], id="releases-differ-anyway"),
        pytest.param([{**one, "host": "h2"} for one in OLD], id="another-host"),
        pytest.param([{**one, "workload": {**one["workload"], "cache": "warm"}} for one in OLD], id="another-cache-policy"),
        pytest.param(measured(boots=(1.0, 0.9, 1.1), concurrency=4, name="old"), id="another-load"),
        pytest.param([record(starts=[start(point(status="contended"), invocation=str(i))]) for i in range(3)], id="contended"),
        pytest.param([record(starts=[start(point([0.0]), invocation=str(i))]) for i in range(3)], id="no-numbers"),
        pytest.param([*measured(boots=(1.0,)), *one_start(90.0)], id="the-compared-starts-themselves"),
    ],
)
def test_history_that_tells_nothing(history):
    assert spread_of(history) == (None, "no measurable difference")


def test_history_goes_by_release():
    other = measured(50.0, boots=(1.0, 0.99, 1.01, 1.0), name="other", release={"subject": "other"})
    assert spread_of([*OLD, *other])[0]["starts"] == 6, "releases may differ as they like"


def test_a_rate_of_successes_is_flagged():
    """B04"""
    found = compare_records(measured(), with_point(*(repetition(100.0 * part, completed=3, failed=1) for part in NOISE)))
    assert found["points"][0]["remarks"] == ["5 of 20 requests failed: the rates count the others only"]


def test_an_unknown_metric():
    with pytest.raises(ValueError, match=r"^tok_per_s is no metric of a record: output_tok_per_s, "):
        compare_records(measured(), one_start(), metric="tok_per_s")
