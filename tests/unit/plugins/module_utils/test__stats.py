# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._stats import BootSpread, NoMeasurement, boot_spread, compare
from ansible_collections.llmops.inference.tests.unit.simulated_starts import (
    GRID,
    OTHER,
    PLANNED,
    Cell,
    false_alarms,
    false_alarms_of_naive,
    found,
    found_as_asked,
)

# A few hundred trials say only so much: three standard deviations of a simulated rate of 5 %.
TRIALS = 250
ERROR = 3 * math.sqrt(0.05 * 0.95 / TRIALS)
START = [100.0, 100.3, 99.8, 100.1, 99.9]
BASELINE = [[level * value / 100 for value in START] for level in (99.0, 100.0, 101.0)]


def scaled(starts, factor):
    return [[factor * value for value in start] for start in starts]


@pytest.mark.parametrize("cell", [*GRID, *OTHER], ids=lambda cell: cell.name)
def test_equal_servers_seldom_alarm(cell):
    assert false_alarms(cell, TRIALS) <= 0.05 + ERROR


def test_repetitions_alone_would_alarm():
    """The simulation has what it takes to fail: taken for the whole truth, five repetitions against five alarm in a third of all cases."""
    assert false_alarms_of_naive(Cell(1, 1), TRIALS) > 0.25


@pytest.mark.parametrize("cell", PLANNED, ids=lambda cell: cell.name)
def test_a_loss_is_found_with_the_starts_that_are_asked_for(cell):
    share, asked = found_as_asked(replace(cell, loss_pct=5.0), TRIALS, 5.0)
    assert share >= 0.95 - ERROR and asked < 10


def test_three_starts_against_three_find_a_loss_of_5_percent():
    assert found(Cell(3, 3, loss_pct=5.0), TRIALS) >= 0.95 - ERROR


@pytest.mark.parametrize("factor, higher_is_better, verdict", [(1.2, True, "faster"), (0.8, True, "slower"), (1.2, False, "slower"), (0.8, False, "faster")])
def test_verdict(factor, higher_is_better, verdict):
    told = compare(BASELINE, scaled(BASELINE, factor), higher_is_better=higher_is_better)
    assert told.verdict == verdict and told.ratio == pytest.approx(factor) and told.low < factor < told.high
    assert told.reason.startswith(f"{verdict}: {100 * (factor - 1):+.1f} % (95 % interval ") and told.reason.endswith("; 3 starts against 3)")


def test_what_the_interval_says_is_what_the_verdict_says():
    """Just within, and just beyond, the smallest difference that these starts can show."""
    limit = compare(BASELINE, BASELINE).smallest_pct / 100
    assert compare(BASELINE, scaled(BASELINE, 1 + limit * 0.99)).verdict == "no measurable difference"
    assert compare(BASELINE, scaled(BASELINE, 1 + limit * 1.01)).verdict == "faster"
    assert compare(BASELINE, scaled(BASELINE, 1 / (1 + limit * 1.01))).verdict == "slower"


def test_both_ways_round_it_is_the_same():
    there, back = compare(BASELINE, scaled(BASELINE, 1.05)), compare(scaled(BASELINE, 1.05), BASELINE)
    assert (there.verdict, back.verdict) == ("faster", "slower")
    assert there.ratio == pytest.approx(1 / back.ratio, rel=1e-4) and there.low == pytest.approx(1 / back.high, rel=1e-4)


@pytest.mark.parametrize("starts, missing", [(1, 2), (2, 1)])
def test_too_few_starts_tell_nothing(starts, missing):
    told = compare(BASELINE[:starts], scaled(BASELINE, 0.5))
    assert (told.verdict, told.low, told.high, told.smallest_pct, told.starts_needed) == ("no measurable difference", None, None, None, 3)
    assert f"the baseline has {starts} start" in told.reason and f"measure {missing} more of the baseline" in told.reason


def test_a_record_of_other_releases_stands_in_for_starts():
    known = BootSpread(1.0, 4)
    told = compare(BASELINE[1:2], scaled(BASELINE[1:2], 0.9), known=known)
    assert told.verdict == "slower" and told.reason.endswith("1 start against 1)")
    assert compare(BASELINE[1:2], scaled(BASELINE[1:2], 0.99), known=known).verdict == "no measurable difference"
    assert compare(BASELINE[1:2], scaled(BASELINE[1:2], 0.5), known=BootSpread(1.0, 0)).smallest_pct is None


def test_a_record_makes_a_comparison_sharper_and_its_size_counts():
    widths = [compare(BASELINE, BASELINE[1:2], known=known).smallest_pct for known in (None, BootSpread(1.0, 2), BootSpread(1.0, 20))]
    assert widths == sorted(widths, reverse=True)


def test_starts_that_spread_more_than_the_record_count():
    calm = BootSpread(0.1, 20)
    assert compare(BASELINE, BASELINE, known=calm).smallest_pct > 20 * 0.1
    assert compare(BASELINE[1:2], BASELINE[1:2], known=calm).smallest_pct < 20 * 0.1


def test_noisy_repetitions_of_one_start_widen_the_interval():
    noisy = [[90.0, 110.0, 100.0, 95.0, 105.0]]
    assert compare(BASELINE, noisy).smallest_pct > 2 * compare(BASELINE, BASELINE[1:2]).smallest_pct
    once = [[100.0]]
    rough = [[value * level / 100 for value in noisy[0]] for level in (99.0, 100.0, 101.0)]
    assert compare(rough, once).smallest_pct > 2 * compare(BASELINE, once).smallest_pct, "a start of one repetition is not surer than the others'"


def test_a_little_noise_more_never_narrows_the_interval():
    """Many repetitions tell the noise well: its degrees of freedom must not make up for what the starts' own lack."""
    widths = [compare(BASELINE, [[100 + step * place for place in range(-7, 8)]]).smallest_pct for step in (0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2)]
    assert min(widths) == widths[0] < widths[-1]


@pytest.mark.parametrize("wild", [1.0, 60.0, 1000.0])
def test_one_wild_repetition_makes_no_verdict(wild):
    current = [[*START[:4], wild], *BASELINE[1:]]
    assert compare(BASELINE, current).verdict == "no measurable difference"
    assert compare(BASELINE, current[:1]).verdict == "no measurable difference"
    assert compare(BASELINE, scaled(current, 0.8)).verdict == "slower", "nor does it hide one"


def test_starts_that_agree_to_the_digit_are_not_endlessly_sure():
    assert compare([[100.0] * 5] * 3, [[100.05] * 5] * 3).verdict == "no measurable difference"
    assert compare([[100.0] * 5] * 3, [[99.0] * 5]).verdict == "slower"


def test_no_difference_says_what_it_would_take():
    told = compare(BASELINE, BASELINE[1:2])
    assert told.starts_needed > 3 and told.repetitions_needed is None
    assert told.reason.endswith(f"and a change of 3 % needs about {told.starts_needed} starts on each side")
    assert f"the smallest that these starts could show is {told.smallest_pct:.1f} %" in told.reason
    assert compare(BASELINE, BASELINE, of_interest_pct=20).reason.endswith("; it is less than 20 %")
    assert compare(scaled(BASELINE, 1), BASELINE, of_interest_pct=0.01).starts_needed == 100


def test_repetitions_are_asked_for_where_they_help():
    """Starts that differ by nothing but their noise: more repetitions do as well as more starts."""
    noisy = [[97.0, 103.1, 100.0, 96.0, 104.0], [96.0, 99.0, 103.0, 104.0, 101.0], [99.5, 96.5, 103.5, 105.0, 95.0]]
    told = compare(noisy, scaled(noisy, 1.01), of_interest_pct=2.0)
    assert told.repetitions_needed > 5 and f", or about {told.repetitions_needed} repetitions in each" in told.reason


def test_boot_spread_is_pooled_within_releases():
    """Two releases of quite different speed, whose starts are 1 % apart."""
    spread = boot_spread([[[100.0], [101.0]], [[200.0], [202.0]], [[50.0]]])
    assert spread == BootSpread(pytest.approx(100 * math.log(1.01) / math.sqrt(2), abs=1e-4), 2, 0.0)
    assert boot_spread([[[100.0, 101.0, 99.0], [103.0, 102.0, 104.0]]]).noise_pct > 0
    assert boot_spread([]) is None and boot_spread([[[1.0]], [[2.0]]]) is None and boot_spread([[]]) is None


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf])
def test_what_is_no_measurement(value):
    for baseline, current in ([[[value]], BASELINE], [BASELINE, [[1.0, value]]]):
        with pytest.raises(NoMeasurement, match="is more than 0 and finite, not"):
            compare(baseline, current)
    with pytest.raises(NoMeasurement):
        boot_spread([[[1.0], [value]]])


@pytest.mark.parametrize("baseline, current", [([], BASELINE), (BASELINE, []), (BASELINE, [[]])])
def test_sides_without_values(baseline, current):
    with pytest.raises(ValueError, match="there is no (start|repetition)"):
        compare(baseline, current)
