# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gate import OUTCOMES, GateError, Settings, judge, read_settings
from ansible_collections.llmops.inference.tests.unit.benchmark_records import NOISE, measured, point, record, repetition, start

GOOD = "subject-a"
GATE = Settings()


def changed(rate=100.0, **changes):
    """The record of a change: one start of another release."""
    (found,) = measured(rate, boots=(1.0,), name="now ", **{"release": {"subject": "subject-b"}, **changes})
    return found


def failing(failed, requests, **changes):
    entry = repetition(requests=requests, completed=requests - failed, failed=failed, **changes)
    return record(starts=[start(point([entry], status="failed"))])


@pytest.mark.parametrize(
    "baseline, current, outcome, words",
    [
        pytest.param(
            measured(concurrency=8, model={"name": "m"}, workload={"input_tokens": 512, "output_tokens": 128, "cache": "flushed"}),
            changed(concurrency=8, model={"name": "m"}, workload={"input_tokens": 512, "output_tokens": 128, "cache": "warm"}),
            "stale",
            "the baseline of decode is stale and judges nothing: cache policy: flushed, now warm; measure a new one",
            id="B05-cache-policy",
        ),
        pytest.param(measured(concurrency=8), changed(concurrency=16), "stale", "concurrency: 8, now 16", id="B05-concurrency"),
        pytest.param(measured(100), changed(97), "passed", "output_tok_per_s of decode at concurrency 1: slower: -3.0 %", id="B05-97"),
        pytest.param(measured(100), changed(90), "regression", "output_tok_per_s of decode at concurrency 1 is worse by 10.0 % (", id="B05-90"),
        pytest.param(measured(0), changed(90), "invalid baseline", "output_tok_per_s of the baseline is 0", id="B05-zero"),
        pytest.param([], changed(90), "no baseline", "there is no baseline of decode for this host: recorded, and nothing judged", id="B05-none"),
        pytest.param(measured(), failing(7, 10), "failed", "benchmark failed: 7 of 10 requests failed: this cannot stay", id="B04-some-failed"),
        pytest.param(measured(), failing(4, 4, output_tok_per_s=None), "failed", "4 of 4 requests failed", id="B04-all-failed"),
        pytest.param([], failing(4, 4, output_tok_per_s=None), "failed", "4 of 4 requests failed", id="B04-failed-without-a-baseline"),
        pytest.param(
            measured(),
            record(starts=[start(point([10.0], status="contended", remarks=["2 requests that are not ours were running"]))]),
            "contended",
            "benchmark contended: 2 requests that are not ours were running: nothing was judged",
            id="contended",
        ),
        pytest.param(measured(), changed(103), "passed", "faster: +3.", id="faster"),
        pytest.param(measured(), changed(100), "passed", "no measurable difference", id="same"),
        pytest.param(measured(100), changed(94), "regression", "tolerated 5 %", id="94"),
        pytest.param(measured(boots=(1.0,)), changed(90), "not enough starts", "the baseline of decode spans 1 start and this host's records", id="one-start"),
        pytest.param(measured(boots=(1.0, 1.0)), changed(90), "not enough starts", "spans 2 starts", id="two-starts"),
        pytest.param(measured(boots=(1.0,)), changed(0.0), "regression", "is worse by 100.0 %", id="nothing-left-needs-no-starts"),
        pytest.param(
            measured(boots=(1.0, 0.95, 1.05)), changed(92), "passed", "a loss of up to 30.4 % cannot be excluded", id="starts-differ-by-more-than-the-loss"
        ),
    ],
)
def test_judge(baseline, current, outcome, words):
    found = judge(GATE, baseline, current, GOOD)
    assert (found.outcome, found.rolls_back) == (outcome, outcome in ("regression", "failed")), found.text
    assert words in found.text and outcome in OUTCOMES
    assert bool(found.comparison) == (outcome not in ("no baseline", "contended", "failed"))


@pytest.mark.parametrize(
    "tolerance, rate, outcome",
    [(5.0, 95.0, "passed"), (0.0, 99.9, "passed"), (0.0, 96.0, "regression"), (12.0, 90.0, "passed"), (3.0, 96.0, "regression")],
)
def test_a_loss_must_be_real_and_beyond_the_tolerance(tolerance, rate, outcome):
    assert judge(Settings(tolerance_pct=tolerance), measured(boots=(1.0, 0.999, 1.001)), changed(rate), GOOD).outcome == outcome


def test_a_server_that_was_still_warming_up_is_told():
    def unsettled(records):
        for one in records:
            one["starts"][0]["points"][0]["warmup"] = {"repetitions": 4, "stable": False}
        return records

    remark = "; the warm-up was not stable after 4 repetitions"
    for settings in (GATE, Settings(stale="gate")):
        assert remark not in judge(settings, measured(), changed(), GOOD).text
    (now,) = unsettled([changed(90)])
    told = judge(GATE, measured(), now, GOOD)
    assert told.outcome == "regression" and told.text.endswith(f"tolerated 5 %{remark} (of this change)")
    told = judge(GATE, unsettled(measured()), now, GOOD)
    assert told.text.endswith(f"{remark} (of the baseline){remark} (of this change)")
    assert told.comparison["points"][0]["remarks"] == ["the warm-up was not stable after 4 repetitions"]


def test_latencies():
    found = judge(Settings(metric="ttft_ms_p99"), measured(), changed(80.0), GOOD)
    assert found.outcome == "regression" and "ttft_ms_p99 of decode at concurrency 1 is worse by 25." in found.text


def test_a_thin_baseline_with_what_the_host_is_known_for():
    history = measured(boots=(1.0, 0.996, 1.004, 1.0), name="old", release={"subject": "old"})
    assert judge(GATE, measured(boots=(1.0,)), changed(90.0), GOOD, history=iter(history)).outcome == "regression"
    assert judge(GATE, measured(boots=(1.0,)), changed(98.0), GOOD, history=iter(history)).outcome == "passed"


@pytest.mark.parametrize(
    "good, current, expected",
    [
        pytest.param("subject-a", changed(90), "", id="of-what-the-change-replaces"),
        pytest.param("other", changed(90, release={"subject": "subject-a"}), "", id="of-the-change-itself"),
        pytest.param(
            "other",
            changed(90, environment={"NCCL_P2P_LEVEL": "SYS"}),
            "the baseline is of an earlier release (from it to this one: NCCL_P2P_LEVEL PHB -> SYS)",
            id="of-an-earlier-release",
        ),
        pytest.param("", changed(90), "the baseline is of an earlier release", id="first-release"),
    ],
)
def test_of_which_release_a_baseline_is(good, current, expected):
    """It judges in any case: releases that pass one after another must not each lose a little."""
    found = judge(GATE, measured(), current, good)
    assert found.outcome == "regression" and expected in found.text
    assert ("earlier release" in found.text) == bool(expected)


@pytest.mark.parametrize(
    "settings, outcome, words",
    [
        (Settings(), "stale", "driver: 580.159.04, now 590; kernel: 6.1.0-25-amd64, now 6.12"),
        (Settings(ignore_conditions=("driver",)), "stale", "judges nothing: kernel: 6.1.0-25-amd64, now 6.12;"),
        (Settings(ignore_conditions=("driver", "kernel")), "regression", "is worse by 10.0 %"),
        (Settings(stale="gate"), "regression", "judged by a stale baseline: driver: 580.159.04, now 590; kernel: 6.1.0-25-amd64, now 6.12"),
        (Settings(stale="gate", concurrency=4), "stale", "judges nothing: driver: 580.159.04, now 590; kernel: 6.1.0-25-amd64, now 6.12;"),
    ],
)
def test_stale_baselines_that_judge_all_the_same(settings, outcome, words):
    found = judge(settings, measured(), changed(90.0, hardware={"driver": "590", "kernel": "6.12"}), GOOD)
    assert found.outcome == outcome and words in found.text


def test_without_a_number_nothing_is_judged():
    assert judge(Settings(stale="gate"), measured(concurrency=8), changed(90.0), GOOD).outcome == "stale", "there is no number to judge by"


def test_one_regression_in_a_sweep_is_one():
    def swept(rates, invocation):
        points = [point([rate * part for part in NOISE], concurrency=concurrency) for concurrency, rate in rates.items()]
        return record(starts=[start(*points, invocation=invocation)])

    baseline = [swept({1: 100 * boot, 16: 900 * boot}, f"b{boot}") for boot in (1.0, 0.996, 1.003)]
    current = swept({1: 120, 16: 800}, "now")
    found = judge(GATE, baseline, current, GOOD)
    assert found.outcome == "regression" and "at concurrency 16 is worse by 11." in found.text
    assert judge(Settings(concurrency=1), baseline, current, GOOD).outcome == "passed"


def test_baselines_that_are_none():
    mixed = [*measured(), *measured(name="b", release={"subject": "subject-b"})]
    assert judge(GATE, mixed, changed(), GOOD).outcome == "invalid baseline"
    assert judge(Settings(metric="goodput_per_s"), measured(), changed(), GOOD).outcome == "invalid baseline"
    told = [record(starts=[start(point([repetition(goodput_per_s=0.5)]), invocation=str(i))]) for i in range(3)]
    assert judge(Settings(metric="goodput_per_s"), told, changed(), GOOD).outcome == "not comparable"


@pytest.mark.parametrize(
    "value, expected",
    [
        ({}, Settings()),
        ({"tolerance_pct": 3, "metric": "ttft_ms_p99", "workload": "chat"}, Settings("ttft_ms_p99", 3.0, "chat")),
        ({"concurrency": 16, "ignore_conditions": ["driver", "gpu_power_limit"], "stale": "gate"},
         Settings(concurrency=16, ignore_conditions=("driver", "gpu_power_limit"), stale="gate")),
        ({"metric": None, "concurrency": None, "tolerance_pct": 0}, Settings(tolerance_pct=0.0)),
    ],
)  # fmt: skip
def test_settings(value, expected):
    assert read_settings(value, workloads=("decode", "chat")) == expected


@pytest.mark.parametrize(
    "value, expected",
    [
        (True, "g must be a mapping of settings, not a boolean: True"),
        (None, "g must be a mapping of settings, not nothing: None"),
        ({"tolerance": 5}, "g.tolerance is no setting of the gate; did you mean tolerance_pct?"),
        ({"zzz": 5}, "g.zzz is no setting of the gate."),
        ({"tolerance_pct": "5 %"}, "g.tolerance_pct must be a number of percent from 0 to less than 100, not '5 %'."),
        ({"tolerance_pct": -1}, "g.tolerance_pct must be a number of percent from 0 to less than 100, not -1."),
        ({"tolerance_pct": True}, "g.tolerance_pct must be a number of percent from 0 to less than 100, not True."),
        ({"tolerance_pct": float("nan")}, "g.tolerance_pct must be a number of percent from 0 to less than 100, not nan."),
        ({"workload": "decod"}, "g.workload must be one of decode, chat, not 'decod'; did you mean decode?"),
        ({"workload": 3}, "g.workload must be a word, not a number: 3."),
        ({"stale": "fail"}, "g.stale must be one of pass, gate, not 'fail'."),
        ({"concurrency": 0}, "g.concurrency must be a whole number from 1, not 0."),
        ({"concurrency": True}, "g.concurrency must be a whole number from 1, not True."),
        ({"ignore_conditions": "driver"}, "g.ignore_conditions must be a list of conditions, not text: 'driver'."),
    ],
)
def test_wrong_settings(value, expected):
    with pytest.raises(GateError) as caught:
        read_settings(value, "g", ("decode", "chat"))
    assert str(caught.value) == expected


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(GateError) as caught:
        read_settings({"metric": "output_tok_s", "tolerance_pct": "x", "ignore_conditions": ["drivers", 7, "concurrency"]})
    text = str(caught.value)
    assert "sglang_server_gate.metric must be one of output_tok_per_s, " in text and "not 'output_tok_s'; did you mean output_tok_per_s?" in text
    assert "not 'drivers'; did you mean driver?" in text and "must be a word, not a number: 7." in text and "not 'concurrency'" in text


def test_any_workload_where_none_is_known():
    assert read_settings({"workload": "my own"}).workload == "my own"
