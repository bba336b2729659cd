# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the repetitions within one start of a server tell: the median with its interval, their spread, and whether they drift.

This says how well this one start was measured and nothing about the next one: see ``_stats`` for what a comparison takes.
All values are rates or durations, so more than 0; percentages are of the median, and differences are taken of logarithms.

Sources:
    Interval: percentile bootstrap of the median, B. Efron, R. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. With five values it is
    nearly always their whole range, which holds the true median in 94 % of cases.
    Drift: the slope is the median of the slopes of all pairs (H. Theil 1950, P. K. Sen 1968). It is named when Kendall's test of trend (H. B. Mann 1945,
    M. G. Kendall 1948; exact, from the number of inversions of a random order) gives at most 2 %, and it amounts to at least 1 %. Five repetitions have to
    rise or fall one by one for that, which noise alone does in 1.7 % of cases; fewer than five can name none.
    Noise: the distance between the quartiles' values over what it is expected to be for a normal distribution (G. Blom 1958 for the expected order
    statistics), which one wild repetition among five does not touch.
"""

from __future__ import annotations

import math
import random
import statistics
import typing as t
from dataclasses import dataclass
from functools import lru_cache

from ansible_collections.llmops.inference.plugins.module_utils._student import student_quantile

CONFIDENCE = 0.95
UPPER = (1.0 + CONFIDENCE) / 2.0
_RESAMPLES = 2000
_SEED = 1
# A resampled median of fewer values says next to nothing: their interval is Student's.
_FEWEST_FOR_BOOTSTRAP = 5
_DRIFT_LEVEL = 0.02
_DRIFT_LEAST_PCT = 1.0
# More than anybody would measure; the search for a number of repetitions ends here.
MOST_REPETITIONS = 1000
_FINEST = 1e-9
_NORMAL = statistics.NormalDist()


class NoMeasurement(ValueError):
    """Values that cannot be measured rates or durations: none at all, 0, negative, infinite or not a number."""


@dataclass(frozen=True)
class Estimate:
    """What repetitions say about one quantity; its fields are the entry of the record's summary.

    Attributes:
        median: middle value, in the unit of the values.
        low, high: 95 % interval of the median, in the unit of the values; None for one repetition, which does not tell.
        spread_pct: standard deviation of the repetitions in percent of their mean, wild ones included; None for one repetition.
        drift_pct: from the first to the last repetition, in percent; None for one repetition.
        drift: "falls by 3.1 % over the repetitions", "rises by ..."; empty where noise alone could well do it.
        repetitions: how many.
    """

    median: float
    low: float | None
    high: float | None
    spread_pct: float | None
    drift_pct: float | None
    drift: str
    repetitions: int


def estimate(values: t.Sequence[float]) -> Estimate:
    """Returns the median of repetitions with its interval, their spread and their drift.

    Args:
        values: one per repetition, in the order in which they were measured.

    Raises:
        NoMeasurement: there is none, or one is not a positive number.
    """
    logarithms(values)
    median = statistics.median(values)
    if len(values) == 1:
        return Estimate(_rounded(median), None, None, None, None, "", 1)
    low, high = _interval(values)
    spread = 100.0 * statistics.stdev(values) / statistics.fmean(values)
    change = round(_drift_pct(values), 2)
    named = abs(change) >= _DRIFT_LEAST_PCT and trend_probability(values) <= _DRIFT_LEVEL
    drift = f"{'falls' if change < 0 else 'rises'} by {abs(change):.1f} % over the repetitions" if named else ""
    return Estimate(_rounded(median), _rounded(low), _rounded(high), round(spread, 2), change, drift, len(values))


def too_noisy(values: t.Sequence[float], of_interest_pct: float = 3.0) -> str:
    """Returns one sentence where the repetitions are too noisy to see a change of this size in this one start; empty where they are not.

    Args:
        values: one per repetition.
        of_interest_pct: the change that one would like to see, in percent.

    Raises:
        NoMeasurement: there is no value, or one is not a positive number.
    """
    needed = repetitions_for(values, of_interest_pct)
    if needed is not None and needed <= len(values):
        return ""
    if len(values) == 1:
        return f"cannot tell a change of {of_interest_pct:g} % with one repetition"
    how_many = f"about {needed}" if needed else f"more than {MOST_REPETITIONS}"
    return f"cannot tell a change of {of_interest_pct:g} % with a spread of {100.0 * (noise(values) or 0.0):.1f} %: needs {how_many} repetitions"


def repetitions_for(values: t.Sequence[float], of_interest_pct: float = 3.0) -> int | None:
    """Returns with how many repetitions the median is known to within the change of interest (95 %); None for too many, or where one value tells nothing.

    Raises:
        NoMeasurement: there is no value, or one is not a positive number.
    """
    sd = noise(values)
    if sd is None:
        return None
    wanted = math.log1p(of_interest_pct / 100.0) / max(sd, _FINEST)
    return fewest(lambda number: student_quantile(UPPER, number - 1) * math.sqrt(median_variance(number)) <= wanted, 2, MOST_REPETITIONS)


def fewest(enough: t.Callable[[int], bool], low: int, high: int) -> int | None:
    """Returns the smallest number from ``low`` to ``high`` that is enough, when every greater one is as well; None where none is."""
    if not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def logarithms(values: t.Sequence[float]) -> list[float]:
    """Returns the natural logarithms, in which a change is a difference.

    Raises:
        NoMeasurement: there is no value, or one is not a positive number.
    """
    if not values:
        raise NoMeasurement("there is no repetition")
    for value in values:
        if not (value > 0.0 and math.isfinite(value)):
            raise NoMeasurement(f"a rate or a duration is more than 0 and finite, not {value}")
    return [math.log(value) for value in values]


def noise(values: t.Sequence[float]) -> float | None:
    """Returns the standard deviation between repetitions as a fraction, from the middle of them; None for one repetition.

    Raises:
        NoMeasurement: there is no value, or one is not a positive number.
    """
    ordered = sorted(logarithms(values))
    number = len(ordered)
    if number == 1:
        return None
    place = (number + 3) // 4
    expected = 2.0 * _NORMAL.inv_cdf((number - place + 0.625) / (number + 0.25))
    return (ordered[number - place] - ordered[place - 1]) / expected


def median_variance(number: int) -> float:
    """Returns the variance of a median of this many normal values of variance 1: exact for one and in the limit, within 3 % between (odd numbers)."""
    return math.pi / (2.0 * number + math.pi - 2.0)


def trend_probability(values: t.Sequence[float]) -> float:
    """Returns how often a random order of so many values rises or falls at least as steadily as this one (Kendall, two-sided, exact)."""
    score = abs(sum((later > earlier) - (later < earlier) for place, earlier in enumerate(values) for later in values[place + 1 :]))
    pairs = len(values) * (len(values) - 1) // 2
    inversions = _inversions(len(values))
    return min(1.0, 2.0 * math.fsum(inversions[: (pairs - score) // 2 + 1]))


@lru_cache(maxsize=64)
def _inversions(number: int) -> tuple[float, ...]:
    """Probability of each number of inversions, from 0, in a random order: value number ``size`` stands before 0 to ``size - 1`` of the others."""
    found = [1.0]
    for size in range(2, number + 1):
        sums, window = [], 0.0
        for place in range(len(found) + size - 1):
            window += found[place] if place < len(found) else 0.0
            window -= found[place - size] if place >= size else 0.0
            sums.append(window / size)
        found = sums
    return tuple(found)


def _drift_pct(values: t.Sequence[float]) -> float:
    logs = logarithms(values)
    slopes = [(logs[later] - logs[earlier]) / (later - earlier) for later in range(len(logs)) for earlier in range(later)]
    return 100.0 * math.expm1(statistics.median(slopes) * (len(logs) - 1))


def _interval(values: t.Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median of two or more values."""
    if len(values) < _FEWEST_FOR_BOOTSTRAP:
        logs = logarithms(values)
        mean, half = statistics.fmean(logs), student_quantile(UPPER, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        return min(math.exp(mean - half), *values), max(math.exp(mean + half), *values)
    source = random.Random(_SEED)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _sample in range(_RESAMPLES))
    outside = round((1.0 - UPPER) * _RESAMPLES)
    return medians[outside], medians[-1 - outside]


def _rounded(value: float) -> float:
    """Six digits: more than any measurement has, and a record that reads well."""
    return float(f"{value:.6g}")
