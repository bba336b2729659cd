# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Comparison of two sets of measured starts of a server: faster, slower, or no measurable difference, with how sure that is.

Starts of one and the same release differ more than repetitions within a start do, so one start counts as one value, its median, however many repetitions
it has. How far starts differ comes from the starts at hand, and from what is recorded of the host's earlier releases (``BootSpread``); without at
least three starts of the baseline or such a record nothing can be told.

Method: difference of the means of the logarithms of the starts' medians, with Student's interval. The variance of a start is pooled over both sides and
the record; where the starts at hand spread more than that, theirs counts, alone where the record cannot be theirs. A side whose repetitions are noisier
than those behind that variance gets the excess on top. The degrees of freedom are combined after F. E. Satterthwaite (1946) and B. L. Welch (1947).

How often it errs is simulated by ``tests/bench/error_rates.py``. It takes the levels of starts to be roughly normal: where one start in five is another
kind of start (another NUMA node, say), no method can know that from three. And a record has to be of starts like these: at one start on each side nothing
contradicts one of calmer days.
"""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._stats_repetitions import (
    MOST_REPETITIONS,
    Estimate,
    NoMeasurement,
    estimate,
    fewest,
    logarithms,
    median_variance,
    noise,
    repetitions_for,
    too_noisy,
)
from ansible_collections.llmops.inference.plugins.module_utils._student import incomplete_beta, student_quantile

__all__ = ["BootSpread", "Comparison", "Estimate", "NoMeasurement", "boot_spread", "compare", "estimate", "repetitions_for", "too_noisy"]

FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no measurable difference"
# Makes intervals that hold in at least 95 % of cases: at 0.975 it would be in 95 % on the average of noises, and less for some.
_UPPER = 0.98
# Makes a found change likely enough in 95 % of cases, although how far starts differ is itself only an estimate from few.
_CHANCE = 0.98
_FEWEST_STARTS = 3
_MOST_STARTS = 100
# Degrees of freedom per repetition but the first of a noise that is taken from the middle half (its efficiency against a standard deviation).
_NOISE_FREEDOM = 0.37
# Starts do not agree better than this fraction: clocks, counters and rounding do not.
_FINEST = 0.0005
# The starts at hand are other ones than the record's where the ratio of the variances would be as great by chance in less than 10 % of cases.
_OTHER_STARTS = 0.9


@dataclass(frozen=True)
class BootSpread:
    """How far starts of one release differ on a host, for one metric of one workload.

    Attributes:
        pct: standard deviation between the medians of starts of the same release, in percent.
        starts: the degrees of freedom behind it: starts less releases.
        noise_pct: the part of it that the repetitions' noise is expected to cause, in percent; 0 where that is not known, which errs on the wide side.
    """

    pct: float
    starts: int
    noise_pct: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """What a comparison says.

    Attributes:
        verdict: "faster", "slower" or "no measurable difference".
        ratio: current / baseline.
        low, high: its 95 % interval; None where nothing can be told.
        smallest_pct: a smaller difference than this, in percent, would have been no measurable one; None where nothing can be told.
        starts_needed: starts on each side, with as many repetitions as now, that show a change of interest in 95 % of cases (never more than 100 is said).
        repetitions_needed: repetitions in each of the starts at hand that do; None where no number of them does, or where nothing can be told.
        reason: one sentence for a person.
    """

    verdict: str
    ratio: float
    low: float | None
    high: float | None
    smallest_pct: float | None
    starts_needed: int
    repetitions_needed: int | None
    reason: str


@dataclass(frozen=True)
class _Side:
    """One side: logarithms of the starts' medians; what the noise of the repetitions adds to the variance of one of them, and how well that is known."""

    levels: t.Sequence[float]
    repetitions: int
    noise: float
    noise_freedom: float

    @property
    def squares(self) -> float:
        middle = statistics.fmean(self.levels)
        return math.fsum((level - middle) ** 2 for level in self.levels)

    @property
    def freedom(self) -> int:
        return len(self.levels) - 1


@dataclass(frozen=True)
class _Spread:
    """Variance of one start, the part of it that is the repetitions' noise, and the degrees of freedom; those of the record among them."""

    variance: float
    noise: float
    freedom: float
    recorded: int


def boot_spread(groups: t.Sequence[t.Sequence[t.Sequence[float]]]) -> BootSpread | None:
    """Returns how far starts of one release differ, pooled over releases; None where no release has two starts.

    Args:
        groups: releases x starts x repetitions.

    Raises:
        NoMeasurement: a start without repetitions, or a value that is not a positive number.
    """
    sides = [_side(starts, ()) for starts in groups if len(starts) > 1]
    freedom = sum(side.freedom for side in sides)
    if not freedom:
        return None
    spread = _pooled(sides, None)
    return BootSpread(round(100.0 * math.sqrt(spread.variance), 4), freedom, round(100.0 * math.sqrt(spread.noise), 4))


def compare(
    baseline: t.Sequence[t.Sequence[float]],
    current: t.Sequence[t.Sequence[float]],
    *,
    known: BootSpread | None = None,
    higher_is_better: bool = True,
    of_interest_pct: float = 3.0,
) -> Comparison:
    """Returns whether the current starts are faster or slower than those of the baseline.

    Args:
        baseline, current: starts x repetitions.
        known: the host's recorded spread between starts; without it the baseline needs three of them.
        higher_is_better: true for rates, false for durations (faster is lower).
        of_interest_pct: the change that one would like to see, in percent; decides only how many starts and repetitions are said to be needed.

    Raises:
        NoMeasurement: a side without starts, a start without repetitions, or a value that is not a positive number.
    """
    sides = (_side(baseline, current), _side(current, baseline))
    difference = statistics.fmean(sides[1].levels) - statistics.fmean(sides[0].levels)
    ratio = round(math.exp(difference), 5)
    recorded = known if known is not None and known.starts > 0 else None
    if recorded is None and len(baseline) < _FEWEST_STARTS:
        return Comparison(NO_DIFFERENCE, ratio, None, None, None, _FEWEST_STARTS, None, _too_few(len(baseline)))
    spread = _pooled(sides, recorded)
    half = _half_width(spread, sides)
    verdict = NO_DIFFERENCE if abs(difference) <= half else FASTER if (difference > 0) == higher_is_better else SLOWER
    low, high, smallest = math.exp(difference - half), math.exp(difference + half), 100.0 * math.expm1(half)
    starts, repetitions = _starts_needed(spread, sides, of_interest_pct), _repetitions_needed(spread, sides, of_interest_pct)
    reason = _reason(verdict, (ratio, low, high), sides)
    if verdict == NO_DIFFERENCE:
        reason += _limits((low, high, smallest), (starts, repetitions), sides, of_interest_pct)
    return Comparison(verdict, ratio, round(low, 5), round(high, 5), round(smallest, 3), starts, repetitions, reason)


def _side(starts: t.Sequence[t.Sequence[float]], others: t.Sequence[t.Sequence[float]]) -> _Side:
    """One side; starts of one repetition do not tell their noise, so that of the other side's is taken."""
    if not starts:
        raise NoMeasurement("there is no start")
    levels = [statistics.median(logarithms(start)) for start in starts]
    telling = [start for start in starts if len(start) > 1] or [start for start in others if len(start) > 1]
    noises = [value for value in map(noise, telling) if value is not None]
    if not noises:
        return _Side(levels, 1, 0.0, 1.0)
    variance = statistics.fmean(noises) ** 2 * statistics.fmean(median_variance(len(start)) for start in starts)
    return _Side(levels, min(map(len, starts)), variance, math.fsum(_NOISE_FREEDOM * (len(start) - 1) for start in telling))


def _pooled(sides: t.Sequence[_Side], known: BootSpread | None) -> _Spread:
    """The variance of a start by all that is known of it: sums of squares over degrees of freedom."""
    own = sum(side.freedom for side in sides)
    squares = math.fsum(side.squares for side in sides)
    noises = math.fsum(side.freedom * side.noise for side in sides)
    if known is None or _are_others(squares, own, known):
        return _Spread(max(squares / own, _FINEST**2), noises / own, own, 0)
    freedom = own + known.starts
    variance = (squares + known.starts * (known.pct / 100.0) ** 2) / freedom
    middle = (noises + known.starts * (known.noise_pct / 100.0) ** 2) / freedom
    return _Spread(max(variance, squares / max(own, 2), _FINEST**2), middle, freedom, known.starts)


def _are_others(squares: float, own: int, known: BootSpread) -> bool:
    """Whether the starts at hand spread so much that the record cannot be theirs (R. A. Fisher's ratio of variances); one degree of freedom cannot say so."""
    recorded = known.starts * (known.pct / 100.0) ** 2
    return own > 1 and squares > 0.0 and incomplete_beta(squares / (squares + recorded), own / 2.0, known.starts / 2.0) > _OTHER_STARTS


def _half_width(spread: _Spread, sides: t.Sequence[_Side]) -> float:
    """Half of the interval of the difference of logarithms."""
    starts = spread.variance * math.fsum(1.0 / len(side.levels) for side in sides)
    parts = [(starts, spread.freedom)]
    parts += [(max(0.0, side.noise - spread.noise) / len(side.levels), side.noise_freedom) for side in sides]
    whole = math.fsum(variance for variance, _freedom in parts)
    below = math.fsum((variance / whole) ** 2 / freedom for variance, freedom in parts)
    combined = student_quantile(_UPPER, math.floor(10.0 / below) / 10.0) * math.sqrt(whole)
    # A little excess that is well known would raise the degrees of freedom by more than the variance: the interval would shrink.
    return max(combined, student_quantile(_UPPER, spread.freedom) * math.sqrt(starts))


def _starts_needed(spread: _Spread, sides: t.Sequence[_Side], of_interest_pct: float) -> int:
    """Starts on each side for which a change of interest is told in 95 % of cases."""
    variance = spread.variance + max(0.0, *(side.noise - spread.noise for side in sides))
    wanted = math.log1p(of_interest_pct / 100.0)
    chance = student_quantile(_CHANCE, spread.freedom)

    def enough(number: int) -> bool:
        return (student_quantile(_UPPER, 2 * (number - 1) + spread.recorded) + chance) * math.sqrt(2.0 * variance / number) <= wanted

    return fewest(enough, 1 if spread.recorded else _FEWEST_STARTS, _MOST_STARTS) or _MOST_STARTS


def _repetitions_needed(spread: _Spread, sides: t.Sequence[_Side], of_interest_pct: float) -> int | None:
    """Repetitions in each of the starts at hand for which a change of interest is told in 95 % of cases."""
    between = max(0.0, spread.variance - spread.noise)
    wanted = math.log1p(of_interest_pct / 100.0) / (student_quantile(_UPPER, spread.freedom) + student_quantile(_CHANCE, spread.freedom))

    def enough(number: int) -> bool:
        smaller = [side.noise * median_variance(number) / median_variance(side.repetitions) for side in sides]
        return math.fsum((between + left) / len(side.levels) for side, left in zip(sides, smaller)) <= wanted**2

    return fewest(enough, min(side.repetitions for side in sides), MOST_REPETITIONS)


def _too_few(starts: int) -> str:
    missing = _FEWEST_STARTS - starts
    return (
        f"nothing can be told: the baseline has {_counted(starts, 'start')}, and how far starts of this host differ is not recorded; "
        f"measure {missing} more of the baseline"
    )


def _reason(verdict: str, measured: tuple[float, float, float], sides: t.Sequence[_Side]) -> str:
    ratio, low, high = (100.0 * (value - 1.0) for value in measured)
    starts = f"{_counted(len(sides[1].levels), 'start')} against {len(sides[0].levels)}"
    return f"{verdict}: {ratio:+.1f} % (95 % interval {low:+.1f} to {high:+.1f} %; {starts})"


def _limits(found: tuple[float, float, float], needed: tuple[int, int | None], sides: t.Sequence[_Side], of_interest_pct: float) -> str:
    """What no measurable difference means: surely less than the change of interest, or that it cannot be told and what it would take."""
    low, high, smallest = found
    starts, repetitions = needed
    if max(high - 1.0, 1.0 - low) < of_interest_pct / 100.0:
        return f"; it is less than {of_interest_pct:g} %"
    text = f"; the smallest that these starts could show is {smallest:.1f} %, and a change of {of_interest_pct:g} % needs"
    enough = max(side.repetitions for side in sides)
    text += f" about {starts} starts on each side" if starts < _MOST_STARTS else f" {_MOST_STARTS} starts or more on each side"
    return text + (f", or about {repetitions} repetitions in each" if repetitions is not None and repetitions > enough else "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
