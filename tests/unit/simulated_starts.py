# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that exist only as numbers: starts whose true level is known, so that a comparison of them can be held to the truth."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass, replace

from ansible_collections.llmops.inference.plugins.module_utils._stats import BootSpread, Comparison, boot_spread, compare

REPETITIONS = 5
# Mean and standard deviation of the logarithmic normal distribution that the skewed noise is taken from, so that it has mean 0 and variance 1.
_SKEW = 0.8
_SKEW_MEAN = math.exp(_SKEW**2 / 2)
_SKEW_SD = math.sqrt(math.exp(_SKEW**2) - 1) * _SKEW_MEAN


@dataclass(frozen=True)
class Cell:
    """One situation to simulate.

    Attributes:
        baseline, current: starts on each side.
        boot_pct: standard deviation of the true levels of starts.
        noise_pct: standard deviation of the repetitions within a start; ``current_noise_pct`` where the current side has another.
        known_starts: starts of earlier releases in the host's record, over ``known_releases`` releases; 0 for no record.
        known_boot_pct: what those spread, where it is not what starts do now.
        shape: of the noise: normal, skewed, or wild (one repetition in ten is 30 % off, downwards).
        kinds: whether starts come in two kinds, one in five ``kinds`` percent slower, beside the boot effect.
        loss_pct: what the current side really loses.
        repetitions: in each start.
    """

    baseline: int = 3
    current: int = 3
    boot_pct: float = 1.0
    noise_pct: float = 1.0
    current_noise_pct: float | None = None
    known_starts: int = 0
    known_releases: int = 2
    known_boot_pct: float | None = None
    shape: str = "normal"
    kinds: float = 0.0
    loss_pct: float = 0.0
    repetitions: int = REPETITIONS

    @property
    def name(self) -> str:
        parts = [f"{self.baseline} v {self.current}", f"boot {self.boot_pct:g} %", f"noise {self.noise_pct:g} %"]
        parts[2] += f" v {self.current_noise_pct:g} %" if self.current_noise_pct is not None else ""
        parts += [f"known from {self.known_starts}"] if self.known_starts else []
        parts += [f"when it was {self.known_boot_pct:g} %"] if self.known_boot_pct is not None else []
        parts += [self.shape] if self.shape != "normal" else []
        parts += [f"one in five {self.kinds:g} % slower"] if self.kinds else []
        parts += [f"{self.repetitions} repetitions"] if self.repetitions != REPETITIONS else []
        return ", ".join(parts)


def one_start(source: random.Random, cell: Cell, noise_pct: float, loss_pct: float = 0.0) -> list[float]:
    """Repetitions of one start, around 100."""
    level = 100.0 * (1 - loss_pct / 100) * math.exp(source.gauss(0, cell.boot_pct / 100))
    if cell.kinds and source.random() < 0.2:
        level *= 1 - cell.kinds / 100
    return [level * math.exp(noise_pct / 100 * _noise(source, cell.shape)) for _repetition in range(cell.repetitions)]


def _noise(source: random.Random, shape: str) -> float:
    if shape == "skewed":
        return (_SKEW_MEAN - math.exp(source.gauss(0, _SKEW))) / _SKEW_SD
    wild = shape == "wild" and source.random() < 0.1
    return source.gauss(0, 1) - (30.0 if wild else 0.0)


def starts(source: random.Random, cell: Cell, current: bool = False) -> list[list[float]]:
    noise = cell.noise_pct if not current or cell.current_noise_pct is None else cell.current_noise_pct
    count, loss = (cell.current, cell.loss_pct) if current else (cell.baseline, 0.0)
    return [one_start(source, cell, noise, loss) for _start in range(count)]


def record(source: random.Random, cell: Cell) -> BootSpread | None:
    """What the host's history tells of its starts."""
    if not cell.known_starts:
        return None
    each = cell.known_starts // cell.known_releases
    then = cell if cell.known_boot_pct is None else replace(cell, boot_pct=cell.known_boot_pct)
    return boot_spread([[one_start(source, then, then.noise_pct) for _start in range(each)] for _release in range(cell.known_releases)])


def product(source: random.Random, cell: Cell, known: BootSpread | None, of_interest_pct: float = 3.0) -> Comparison:
    return compare(starts(source, cell), starts(source, cell, current=True), known=known, of_interest_pct=of_interest_pct)


def naive(source: random.Random, cell: Cell) -> str:
    """What is often done instead: the repetitions are taken for the whole truth, and medians are resampled from them."""
    baseline, current = ([value for start in starts(source, cell, side) for value in start] for side in (False, True))
    ratios = sorted(
        statistics.median(source.choices(current, k=len(current))) / statistics.median(source.choices(baseline, k=len(baseline))) for _sample in range(200)
    )
    return "slower" if ratios[194] < 1 else "faster" if ratios[5] > 1 else "no measurable difference"


def false_alarms(cell: Cell, trials: int, seed: int = 1) -> float:
    """Share of comparisons of equal servers that say faster or slower."""
    source = random.Random(seed)
    return sum(product(source, cell, record(source, cell)).verdict in {"faster", "slower"} for _trial in range(trials)) / trials


def false_alarms_of_naive(cell: Cell, trials: int, seed: int = 1) -> float:
    source = random.Random(seed)
    return sum(naive(source, cell) in {"faster", "slower"} for _trial in range(trials)) / trials


def found(cell: Cell, trials: int, seed: int = 1) -> float:
    """Share of comparisons that say slower of a server that is slower."""
    source = random.Random(seed)
    return sum(product(source, cell, record(source, cell)).verdict == "slower" for _trial in range(trials)) / trials


def found_as_asked(cell: Cell, trials: int, of_interest_pct: float, seed: int = 1) -> tuple[float, float]:
    """A first comparison says how many starts are needed; a second one has them. Returns the share that finds the loss, and the mean number asked for."""
    source = random.Random(seed)
    told, asked = 0, 0
    for _trial in range(trials):
        known = record(source, cell)
        needed = product(source, cell, known, of_interest_pct).starts_needed
        asked += needed
        told += product(source, replace(cell, baseline=needed, current=needed), known, of_interest_pct).verdict == "slower"
    return told / trials, asked / trials


# Equal servers: every number of starts, boot effect and noise that a comparison is held to.
COUNTS = ((3, 3, 0), (3, 1, 0), (5, 1, 0), (3, 1, 6), (1, 1, 6))
GRID = tuple(Cell(baseline, current, boot, noise, known_starts=known) for baseline, current, known in COUNTS for boot in (0, 1, 2) for noise in (0.2, 1, 2))
# Noise that differs between the sides, is skewed or has wild values; another number of repetitions; a record of few starts.
OTHER = (
    *(Cell(baseline, current, boot, 0.2, 2, known) for baseline, current, known in COUNTS for boot in (0, 1)),
    *(Cell(baseline, current, boot, 2, 0.2, known) for baseline, current, known in COUNTS for boot in (0, 1)),
    *(Cell(baseline, current, boot, 1, None, known, shape=shape) for baseline, current, known in COUNTS for boot in (0, 1) for shape in ("skewed", "wild")),
    Cell(3, 3, known_starts=6),
    Cell(1, 3, known_starts=6),
    Cell(1, 1, known_starts=3, known_releases=1),
    Cell(3, 1, repetitions=1),
    Cell(3, 1, repetitions=3),
    Cell(3, 1, repetitions=15),
)
# First comparisons that say how many starts a change of interest needs.
PLANNED = (Cell(3, 1), Cell(3, 3), Cell(5, 1), Cell(3, 1, known_starts=6), Cell(1, 1, known_starts=6))
