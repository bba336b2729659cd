# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Waits until a server can serve, or until it is known that it cannot, and says why. All I/O and the clock are injected."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose, diagnose_hopeless, diagnose_stall, remarks
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_kernel import Run
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._patience import Activity, Patience
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation, Readiness, Server
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES, StartLog

_KEPT_LINES = 20000
_TAIL_LINES = 40
# What a scheduler logs while it works; silence for so long with an unhealthy server is no load.
_WORK = re.compile(r"(?:Prefill|Decode) batch")
_WORK_SECONDS = 120.0
_COMPILING_PHASES = ("kv_cache", "decode_graphs", "draft_graphs", "prefill_graphs", "warm_up")
_NEW_ENGINE = "first start of this engine here, kernels may be compiled for minutes"

# (phase, its seconds, what is known in detail)
Report = t.Callable[[str, float, str], None]


@dataclass(frozen=True)
class UnitState:
    """What systemd says of a unit (``systemctl show``)."""

    active: str = "inactive"
    sub: str = "dead"
    result: str = ""
    main_pid: int = 0
    invocation: str = ""
    restarts: int = 0
    control_group: str = ""
    started: float = 0.0

    @property
    def alive(self) -> bool:
        """True while the main process of the unit runs."""
        return self.active in ("active", "activating", "reloading") and self.main_pid > 0


class Host(Server, t.Protocol):
    """The machine as the watch sees it."""

    def unit_state(self) -> UnitState: ...

    def journal(self, invocation: str, cursor: str, whole: bool = False) -> tuple[list[Line], str]: ...

    def kernel_log(self, since: float) -> list[str]: ...

    def unit_pids(self, control_group: str) -> set[int]: ...

    def activity(self, pids: t.Collection[int]) -> Activity: ...

    def monotonic(self) -> float: ...

    def wall_clock(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


@dataclass
class Outcome:
    """How a wait ended.

    Attributes:
        ready: whether the server can serve.
        diagnosis: why not.
        phases: of the start, in order, with their seconds.
        vitals: signs read from the journal.
        elapsed: seconds of the wait.
        invocation: the run that was watched.
        journal_tail: its last lines.
        remarks: what is worth knowing and is no failure.
    """

    ready: bool
    diagnosis: Diagnosis | None = None
    phases: list[dict[str, t.Any]] = field(default_factory=list)
    vitals: dict[str, t.Any] = field(default_factory=dict)
    elapsed: float = 0.0
    invocation: str = ""
    journal_tail: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class Watch:
    """Follows one run of a unit until it is ready or lost.

    Args:
        host: I/O and clock.
        expect: what ready means.
        report: called with the phase, its seconds and what is known in detail whenever the watch looked.
        fresh: whether the unit was just started on purpose, so that any restart since then is a death, and its whole journal is read.
    """

    def __init__(self, host: Host, expect: Expectation, report: Report = lambda phase, seconds, detail: None, fresh: bool = False) -> None:
        self._host = host
        self._expect = expect
        self._report = report
        self._fresh = fresh
        self._cursor = ""
        self._lines: list[Line] = []
        self._pids: set[int] = set()
        self._readiness = Readiness(host, expect)

    def run(self) -> Outcome:
        """Waits. Looks at least once, whatever the timeout."""
        host, expect = self._host, self._expect
        begun = host.monotonic()
        first = host.unit_state()
        if self._fresh:
            first = replace(first, restarts=0)
        log = StartLog(first.started or host.wall_clock())
        patience = Patience(expect.stalls, begun)
        while True:
            state = host.unit_state()
            own = host.unit_pids(state.control_group)
            self._pids |= own
            new = self._read_journal(first.invocation)
            log.feed(new)
            patience.note(bool(new), host.monotonic(), lambda pids=own: host.activity(pids))  # type: ignore[misc]
            self._tell(log, patience)
            lost = self._lost(first, state) or self._hopeless(new) or (self._readiness.look(own) if state.alive else None)
            if lost is None and self._readiness.ready and self._lives(first, host.unit_state()):
                return self._outcome(True, None, log, begun, first)
            if lost is None and self._busy():
                return self._outcome(True, None, log, begun, first)
            lost = lost or self._overdue(log, patience, begun)
            if lost is not None:
                return self._outcome(False, lost, log, begun, first)
            host.sleep(expect.interval if self._readiness.listening else expect.early_interval)

    def _tell(self, log: StartLog, patience: Patience) -> None:
        details = [log.detail]
        if patience.compilers:
            details.append(f"compiling kernels ({', '.join(patience.compilers)})")
        elif self._expect.new_engine and log.phase in _COMPILING_PHASES:
            details.append(_NEW_ENGINE)
        self._report(log.phase, log.durations(self._host.wall_clock())[-1]["seconds"], ", ".join(filter(None, details)))

    def _read_journal(self, invocation: str) -> list[Line]:
        lines, self._cursor = self._host.journal(invocation, self._cursor, self._fresh)
        self._lines = (self._lines + lines)[-_KEPT_LINES:]
        return lines

    @staticmethod
    def _lives(first: UnitState, state: UnitState) -> bool:
        """A crash shows as another invocation, a restart or a missing main process; with Restart= hardly ever as ``failed``."""
        return bool(first.invocation) and state.invocation == first.invocation and state.restarts == first.restarts and state.alive

    def _lost(self, first: UnitState, state: UnitState) -> Diagnosis | None:
        if self._lives(first, state):
            return None
        self._host.sleep(0.5)
        self._read_journal(first.invocation)
        kernel = self._host.kernel_log(first.started or self._lines[0].seconds) if first.started or self._lines else []
        return diagnose([line.text for line in self._lines], state.result, kernel, Run(self._pids, first.control_group))

    def _hopeless(self, new: t.Sequence[Line]) -> Diagnosis | None:
        """A fresh start whose process lives and can never serve: an engine that could not bind its port goes on for two minutes before it gives up."""
        if not self._fresh or not diagnose_hopeless([line.text for line in new]):
            return None
        return diagnose_hopeless([line.text for line in self._lines])

    def _busy(self) -> bool:
        """A server that has served and works off a queue is unhealthy for its load; one that does nothing is not."""
        if not self._expect.settled or not self._readiness.unhealthy:
            return False
        now = self._host.wall_clock()
        return any(_WORK.search(line.text) and now - line.seconds <= _WORK_SECONDS for line in reversed(self._lines))

    def _overdue(self, log: StartLog, patience: Patience, begun: float) -> Diagnosis | None:
        now = self._host.monotonic()
        if now - begun >= self._expect.timeout:
            return self._late(log, f"not ready within {self._expect.timeout:.0f} s", "raise sglang_server_start_timeout_seconds if the start is just slow")
        if patience.stalled(log.phase, now):
            hint = f"raise sglang_server_stall_timeouts.{log.phase} if it is just slow"
            return self._late(log, f"no progress in journal, disk or GPU for {patience.limit(log.phase):.0f} s", hint)
        return None

    def _late(self, log: StartLog, what: str, hint: str) -> Diagnosis:
        lines = [line.text for line in self._lines]
        what = f"{what}, while {TITLES[log.phase]}"
        hang = diagnose_stall(lines)
        if hang:
            return replace(hang, cause=f"{what}: {hang.cause}")
        unhealthy = f" (health: {self._readiness.unhealthy})" if self._readiness.unhealthy else ""
        return Diagnosis("start_timeout", what + unhealthy, lines[-3:], hint, certainty="unknown")

    def _outcome(self, ready: bool, diagnosis: Diagnosis | None, log: StartLog, begun: float, first: UnitState) -> Outcome:
        phases = log.durations(self._host.wall_clock())
        texts = [line.text for line in self._lines]
        notes = [found.sentence for found in remarks(texts)]
        if ready and self._readiness.unhealthy:
            notes.append(f"it is busy ({self._readiness.unhealthy}) and works off requests: left alone")
        elapsed = round(self._host.monotonic() - begun, 1)
        return Outcome(ready, diagnosis, phases, log.vitals, elapsed, first.invocation, texts[-_TAIL_LINES:], notes)
