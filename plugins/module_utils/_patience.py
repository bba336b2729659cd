# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""How long each phase of a start may go on without any progress, and what counts as progress when the journal is silent."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

# Seconds without a line, without bytes from disk, without memory that is filled, without a compiler at work. Phases that compile kernels get longest:
# cold, one prefill graph took 71 s on an H200 with one line of log, and compilers that wait for each other's locks show nothing.
STALL_SECONDS: t.Mapping[str, float] = {
    "process": 180.0,
    "arguments": 180.0,
    "distributed": 300.0,
    "weights": 300.0,
    "kv_cache": 300.0,
    "decode_graphs": 900.0,
    "draft_graphs": 900.0,
    "prefill_graphs": 900.0,
    "http": 300.0,
    "warm_up": 900.0,
    "ready": 300.0,
}
_QUIET_SECONDS = 5.0
_MIB = 1 << 20


@dataclass(frozen=True)
class Activity:
    """What the processes of a unit have done and hold.

    Attributes:
        read_bytes: bytes they had the disk read.
        resident_bytes: their memory.
        gpu_bytes: memory in use on the GPUs of the machine; 0 where that is not known.
        compilers: names of the compilers among them.
        compiler_ticks: clock ticks that those have used.
    """

    read_bytes: int = 0
    resident_bytes: int = 0
    gpu_bytes: int = 0
    compilers: tuple[str, ...] = ()
    compiler_ticks: int = 0

    def moved(self, before: Activity) -> bool:
        """Whether this is progress. The time that a server's own processes use is none: ranks that wait for each other use all of it."""
        grown = (
            abs(self.read_bytes - before.read_bytes) >= _MIB,
            abs(self.resident_bytes - before.resident_bytes) >= 16 * _MIB,
            bool(self.gpu_bytes and before.gpu_bytes) and abs(self.gpu_bytes - before.gpu_bytes) >= 16 * _MIB,
            self.compiler_ticks != before.compiler_ticks,
        )
        return any(grown)


class Patience:
    """Notes progress, and says when a phase has gone without it for too long.

    Args:
        limits: seconds by phase, over :data:`STALL_SECONDS`.
        now: the clock's seconds.

    Attributes:
        compilers: those that were at work at the last look.
    """

    def __init__(self, limits: t.Mapping[str, float], now: float) -> None:
        self._limits = {**STALL_SECONDS, **limits}
        self._progress = self._looked = now
        self._before: Activity | None = None
        self.compilers: tuple[str, ...] = ()

    def note(self, line: bool, now: float, look: t.Callable[[], Activity]) -> None:
        """Takes what happened: a new line, or else, when the journal has been silent for a while, what the processes do.

        Args:
            line: whether the journal had a new line.
            now: the clock's seconds.
            look: returns the present activity.
        """
        if line:
            self._progress, self._before, self.compilers = now, None, ()
        elif now - max(self._progress, self._looked) >= _QUIET_SECONDS:
            self._looked, seen = now, look()
            self.compilers = seen.compilers
            if self._before is None:
                self._before = seen
            elif seen.moved(self._before):
                self._progress, self._before = now, seen

    def limit(self, phase: str) -> float:
        """Returns the seconds that a phase may go on without progress."""
        return self._limits.get(phase, max(STALL_SECONDS.values()))

    def stalled(self, phase: str, now: float) -> bool:
        """Returns whether the phase has gone on without progress for too long."""
        return now - self._progress >= self.limit(phase)
