# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._student import incomplete_beta, student_quantile

# Any printed table of Student's distribution: degrees of freedom, then 90, 95, 97.5, 99 and 99.5 %.
TABLE = [
    (1, 3.078, 6.314, 12.706, 31.821, 63.657),
    (2, 1.886, 2.920, 4.303, 6.965, 9.925),
    (3, 1.638, 2.353, 3.182, 4.541, 5.841),
    (4, 1.533, 2.132, 2.776, 3.747, 4.604),
    (5, 1.476, 2.015, 2.571, 3.365, 4.032),
    (8, 1.397, 1.860, 2.306, 2.896, 3.355),
    (10, 1.372, 1.812, 2.228, 2.764, 3.169),
    (20, 1.325, 1.725, 2.086, 2.528, 2.845),
    (30, 1.310, 1.697, 2.042, 2.457, 2.750),
    (60, 1.296, 1.671, 2.000, 2.390, 2.660),
    (120, 1.289, 1.658, 1.980, 2.358, 2.617),
    (1e9, 1.282, 1.645, 1.960, 2.326, 2.576),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]:g}")
def test_quantiles_are_those_of_the_table(row):
    freedom, *quantiles = row
    for probability, quantile in zip((0.9, 0.95, 0.975, 0.99, 0.995), quantiles):
        assert student_quantile(probability, freedom) == pytest.approx(quantile, abs=0.001)
        assert student_quantile(1 - probability, freedom) == pytest.approx(-quantile, abs=0.001)


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.975, 0.98, 0.9995])
def test_one_and_two_degrees_have_closed_forms(probability):
    assert student_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-9, abs=1e-9)
    away = 2 * probability - 1
    assert student_quantile(probability, 2) == pytest.approx(away * math.sqrt(2 / (1 - away**2)), rel=1e-9, abs=1e-9)


def test_degrees_between_whole_ones_lie_between():
    values = [student_quantile(0.975, freedom) for freedom in (1, 1.5, 2, 2.3, 3, 10, 10.5, 11, 400, 9999)]
    assert values == sorted(values, reverse=True) and len(set(values)) == len(values)
    assert student_quantile(0.975, 0.2) == student_quantile(0.975, 1)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_what_is_no_probability(probability):
    with pytest.raises(ValueError, match="a probability lies between 0 and 1"):
        student_quantile(probability, 4)


@pytest.mark.parametrize("x", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_incomplete_beta_function(x):
    """Closed forms: a or b of 1, and 2 with 2; the symmetry holds elsewhere."""
    assert incomplete_beta(x, 3, 1) == pytest.approx(x**3)
    assert incomplete_beta(x, 1, 4) == pytest.approx(1 - (1 - x) ** 4)
    assert incomplete_beta(x, 2, 2) == pytest.approx(3 * x**2 - 2 * x**3)
    assert incomplete_beta(x, 0.5, 7.3) == pytest.approx(1 - incomplete_beta(1 - x, 7.3, 0.5))
