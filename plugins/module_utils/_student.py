# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Quantiles of Student's distribution without a statistics library.

Source: NIST Digital Library of Mathematical Functions, 8.17 (incomplete beta functions: the continued fraction 8.17.22, the symmetry 8.17.4);
with f degrees of freedom, ``P(|T| <= t)`` is the regularised incomplete beta function ``I_y(1/2, f/2)`` at ``y = t^2 / (f + t^2)``.
"""

from __future__ import annotations

import math
from functools import lru_cache

# Beyond it is the normal distribution to 4 digits; below one degree it is too wide to tell anything.
_MOST = 10_000.0
_LEAST = 1.0
# An interval is halved until it is as small as a number can tell.
_HALVES = 60


@lru_cache(maxsize=4096)
def student_quantile(probability: float, freedom: float) -> float:
    """Returns the value that a Student variable stays below with this probability.

    Args:
        probability: between 0 and 1, both excluded; 0.975 for a two-sided 95 % interval.
        freedom: degrees of freedom, need not be whole; less than 1 counts as 1, more than 10,000 as 10,000.

    Raises:
        ValueError: the probability is not between 0 and 1.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability lies between 0 and 1, not at {probability}")
    if probability < 0.5:
        return -student_quantile(1.0 - probability, freedom)
    freedom = min(max(freedom, _LEAST), _MOST)
    inside = 2.0 * probability - 1.0
    low, high = 0.0, 1.0
    for _half in range(_HALVES):
        middle = (low + high) / 2.0
        low, high = (middle, high) if incomplete_beta(middle, 0.5, freedom / 2.0) < inside else (low, middle)
    return math.sqrt(freedom * low / (1.0 - low))


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Returns the regularised incomplete beta function ``I_x(a, b)``.

    Args:
        x: from 0 to 1.
        a, b: more than 0, up to some 10,000.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(1.0 - x, b, a)
    fraction = 1.0
    # The fraction needs some multiple of the root of its parameters (DLMF 8.17(v)): these are enough for 10 digits.
    for number in range(20 + int(2.0 * math.sqrt(a + b)), 0, -1):
        fraction = 1.0 + _coefficient(number, x, a, b) / fraction
    scale = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale) / (a * fraction)


def _coefficient(number: int, x: float, a: float, b: float) -> float:
    """Partial numerator of the continued fraction, from 1."""
    m = number // 2
    if number % 2:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
