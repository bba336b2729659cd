# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from dataclasses import asdict

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._stats_repetitions import (
    Estimate,
    NoMeasurement,
    estimate,
    median_variance,
    noise,
    repetitions_for,
    too_noisy,
    trend_probability,
)

STEADY = [166.1, 166.9, 165.8, 167.0, 166.5]


def test_five_repetitions():
    assert estimate(STEADY) == Estimate(166.5, 165.8, 167.0, 0.31, 0.18, "", 5)
    assert json.loads(json.dumps(asdict(estimate(STEADY))))["median"] == 166.5


def test_the_same_repetitions_give_the_same_interval():
    values = [random.Random(3).gauss(100, 2) for _repetition in range(20)]
    assert estimate(values) == estimate(values)


def test_one_repetition_tells_no_interval():
    assert estimate([19.1]) == Estimate(19.1, None, None, None, None, "", 1)


@pytest.mark.parametrize("values", [[100.0, 101.0], [100.0, 101.0, 102.0], [100.0, 101.0, 102.0, 99.0]], ids=len)
def test_few_repetitions_get_a_wide_interval(values):
    found = estimate(values)
    assert found.low < min(values) and found.high > max(values)


def simulated(trials, number, seed=1):
    source = random.Random(seed)
    for _trial in range(trials):
        yield [100 * math.exp(source.gauss(0, 0.01)) for _repetition in range(number)]


@pytest.mark.parametrize("number, at_least", [(2, 0.95), (3, 0.95), (4, 0.95), (5, 0.9375), (9, 0.93)])
def test_the_interval_holds_the_true_median(number, at_least):
    """By simulation; five values hold it in 93.75 % of cases at best."""
    held = [estimate(values) for values in simulated(120, number)]
    share = statistics.fmean(found.low <= 100 <= found.high for found in held)
    assert share >= at_least - 3 * math.sqrt(at_least * (1 - at_least) / len(held))


@pytest.mark.parametrize(
    "values, change, text",
    [
        pytest.param([100, 99.2, 98.4, 97.7, 96.9], -3.1, "falls by 3.1 % over the repetitions", id="thermal"),
        pytest.param([100, 101, 102, 103, 104], 4.0, "rises by 4.0 % over the repetitions", id="cache"),
        pytest.param([100, 99.2, 98.4, 97.7, 98.0], -2.91, "", id="not-one-by-one"),
        pytest.param([100, 99.9, 99.8, 99.7, 99.5], -0.46, "", id="less-than-1-percent"),
        pytest.param([100, 99, 98, 97], -3.0, "", id="four-could-be-noise"),
        pytest.param([100, 99, 98, 97, 97.5, 96, 95, 94], -5.81, "falls by 5.8 % over the repetitions", id="eight-need-not-go-one-by-one"),
        pytest.param([100, 100, 100, 100, 100], 0.0, "", id="equal"),
        pytest.param([100, 100, 100, 100, 60], 0.0, "", id="one-wild"),
    ],
)
def test_drift(values, change, text):
    found = estimate(values)
    assert found.drift_pct == pytest.approx(change, abs=0.2) and found.drift == text


@pytest.mark.parametrize("number", [5, 8])
def test_noise_alone_seldom_drifts(number):
    named = statistics.fmean(bool(estimate(values).drift) for values in simulated(200, number))
    assert named <= 0.02 + 3 * math.sqrt(0.02 * 0.98 / 200)


def test_trend_is_the_share_of_all_orders():
    """Counted out for six values: at least as steady as [1, 2, 3, 4, 6, 5], up or down."""
    values = [1.0, 2.0, 3.0, 4.0, 6.0, 5.0]

    def score(order):
        return abs(sum((b > a) - (b < a) for a, b in itertools.combinations(order, 2)))

    share = statistics.fmean(score(order) >= score(values) for order in itertools.permutations(values))
    assert trend_probability(values) == pytest.approx(share)
    assert trend_probability([1.0, 1.0, 1.0]) == 1.0
    assert trend_probability([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 120)
    assert trend_probability(range(1, 60)) < 1e-9


def test_too_noisy_is_a_result():
    values = [100.0, 110.0, 90.0, 95.0, 105.0]
    assert too_noisy(values) == "cannot tell a change of 3 % with a spread of 10.1 %: needs about 72 repetitions"
    assert too_noisy(STEADY) == "" and repetitions_for(STEADY) == 3
    assert too_noisy([100.0]) == "cannot tell a change of 3 % with one repetition"
    assert too_noisy([100.0, 1.0, 200.0, 9.0, 30.0], 0.1).endswith("needs more than 1000 repetitions")


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 12])
def test_the_noise_is_about_the_standard_deviation(number):
    values = statistics.fmean(noise(values) for values in simulated(3000, number))
    assert values == pytest.approx(0.01, rel=0.07)


def test_one_wild_repetition_does_not_make_the_noise():
    assert noise([*STEADY[:4], 100.0]) < 2 * noise(STEADY)


@pytest.mark.parametrize("number, variance", [(1, 1.0), (3, 0.4487), (5, 0.2868), (7, 0.2104), (9, 0.1661), (1001, math.pi / 2002)])
def test_variance_of_a_median(number, variance):
    """Published variances of the median of normal samples."""
    assert median_variance(number) == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("function", [estimate, too_noisy, noise, repetitions_for])
def test_what_is_no_measurement(function, value):
    with pytest.raises(NoMeasurement, match="a rate or a duration is more than 0 and finite, not"):
        function([1.0, value, 2.0])
    with pytest.raises(ValueError, match="there is no repetition"):
        function([])
