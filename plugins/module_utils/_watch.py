# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Waits until a server can serve, or until it is known that it cannot, and says why. All I/O and the clock are injected."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose, diagnose_stall
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES, StartLog

_KEPT_LINES = 4000
_TAIL_LINES = 40


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


class Host(t.Protocol):
    """The machine as the watch sees it."""

    def unit_state(self) -> UnitState: ...

    def journal(self, invocation: str, cursor: str) -> tuple[list[Line], str]: ...

    def listeners(self) -> list[Listener]: ...

    def unit_pids(self, control_group: str) -> set[int]: ...

    def request(self, path: str, body: t.Any = None, timeout: float = 5.0) -> Reply: ...

    def monotonic(self) -> float: ...

    def wall_clock(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Expectation:
    """What a ready server must be.

    Attributes:
        port: its HTTP port.
        model_name: the name that ``/v1/models`` must list.
        timeout: seconds for the whole start.
        stall_timeout: seconds without a new line in the journal after which the start counts as stuck.
        generation_timeout: seconds for the proving generation.
        interval: seconds between two looks.
    """

    port: int
    model_name: str
    timeout: float = 1800.0
    stall_timeout: float = 600.0
    generation_timeout: float = 120.0
    interval: float = 0.25


@dataclass
class Outcome:
    """How a wait ended."""

    ready: bool
    diagnosis: Diagnosis | None = None
    phases: list[dict[str, t.Any]] = field(default_factory=list)
    vitals: dict[str, t.Any] = field(default_factory=dict)
    elapsed: float = 0.0
    invocation: str = ""
    journal_tail: list[str] = field(default_factory=list)


class Watch:
    """Follows one run of a unit until it is ready or lost.

    Args:
        host: I/O and clock.
        expect: what ready means.
        report: called with the phase and its seconds whenever the watch looked.
        fresh: whether the unit was just started on purpose, so that any restart since then is a death.
    """

    def __init__(self, host: Host, expect: Expectation, report: t.Callable[[str, float], None] = lambda phase, seconds: None, fresh: bool = False) -> None:
        self._host = host
        self._expect = expect
        self._report = report
        self._cursor = ""
        self._lines: list[Line] = []
        self._has_ready_endpoint = True
        self._fresh = fresh

    def run(self) -> Outcome:
        """Waits. Looks at least once, whatever the timeout."""
        host, expect = self._host, self._expect
        begun = last_line = host.monotonic()
        first = host.unit_state()
        if self._fresh:
            first = replace(first, restarts=0)
        log = StartLog(first.started or host.wall_clock())
        while True:
            state = host.unit_state()
            fresh = self._read_journal(first.invocation)
            log.feed(fresh)
            now = host.monotonic()
            if fresh:
                last_line = now
            self._report(log.phase, log.durations(host.wall_clock())[-1]["seconds"])
            lost = self._lost(first, state) or (self._probe(state) if state.alive else None)
            if lost is None and self._ready and self._lives(first, host.unit_state()):
                return self._outcome(True, None, log, begun, first)
            if lost is None and now - begun >= expect.timeout:
                lost = self._timeout(log, f"not ready within {expect.timeout:.0f} s")
            if lost is None and now - last_line >= expect.stall_timeout:
                lost = self._timeout(log, f"no new line in the journal for {expect.stall_timeout:.0f} s")
            if lost is not None:
                return self._outcome(False, lost, log, begun, first)
            host.sleep(expect.interval)

    def _read_journal(self, invocation: str) -> list[Line]:
        lines, self._cursor = self._host.journal(invocation, self._cursor)
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
        return diagnose([line.text for line in self._lines], state.result)

    def _probe(self, state: UnitState) -> Diagnosis | None:
        """Asks the server; sets ``_ready`` when it proved itself, returns a diagnosis when waiting longer is pointless."""
        self._ready = False
        listeners = self._host.listeners()
        if not listeners:
            return None
        own = self._host.unit_pids(state.control_group)
        strangers = [one for one in listeners if one.pid not in own]
        if strangers:
            stranger = strangers[0]
            return Diagnosis(
                "foreign_listener",
                f"port {self._expect.port} is answered by another process ({stranger.named()}), not by this unit",
                hint="stop that process or set another sglang_server_port",
            )
        health = self._health()
        if health.status in (401, 403):
            return self._unauthorized("the health check", health)
        if health.status != 200:
            return None
        return self._prove()

    def _health(self) -> Reply:
        """``/ready`` where the engine has it (0.5.20 on: answers at once), otherwise ``/health``, which generates a token and takes a second."""
        if self._has_ready_endpoint:
            reply = self._host.request("/ready")
            if reply.status != 404:
                return reply
            self._has_ready_endpoint = False
        return self._host.request("/health", timeout=25.0)

    def _prove(self) -> Diagnosis | None:
        models = self._host.request("/v1/models", timeout=10.0)
        if models.status in (401, 403):
            return self._unauthorized("/v1/models", models)
        if models.status != 200:
            return None
        listing = models.json()
        names = [entry["id"] for entry in listing.get("data") or [] if "id" in entry] if isinstance(listing, dict) else []
        if self._expect.model_name not in names:
            return Diagnosis(
                "wrong_model",
                f"the server on port {self._expect.port} serves {', '.join(map(str, names)) or 'no model'}, expected {self._expect.model_name}",
                hint="set served_model_name, or correct the model path",
            )
        body = {"text": "Count: one two three", "sampling_params": {"max_new_tokens": 4, "temperature": 0, "ignore_eos": True}}
        reply = self._host.request("/generate", body, timeout=self._expect.generation_timeout)
        if reply.status in (401, 403):
            return self._unauthorized("/generate", reply)
        answer = reply.json()
        tokens = (answer.get("meta_info") or {}).get("completion_tokens", 0) if reply.status == 200 and isinstance(answer, dict) else 0
        if tokens < 1:
            return Diagnosis(
                "generation_failed",
                f"the server is healthy but a generation returned no token (HTTP {reply.status} {reply.error})",
                [reply.body[:300]] if reply.body else [],
                "read the journal of the unit",
            )
        self._ready = True
        return None

    _ready = False

    def _unauthorized(self, where: str, reply: Reply) -> Diagnosis:
        return Diagnosis(
            "probe_unauthorized",
            f"the server refused the probe of {where} with HTTP {reply.status}: the API key sent is not the server's",
            hint="set sglang_server_api_key to the key the server runs with",
        )

    def _timeout(self, log: StartLog, what: str) -> Diagnosis:
        lines = [line.text for line in self._lines]
        what = f"{what}, while {TITLES[log.phase]}"
        hang = diagnose_stall(lines)
        if hang:
            return replace(hang, cause=f"{what}: {hang.cause}")
        return Diagnosis("start_timeout", what, lines[-3:], "raise sglang_server_start_timeout_seconds if the start is just slow")

    def _outcome(self, ready: bool, diagnosis: Diagnosis | None, log: StartLog, begun: float, first: UnitState) -> Outcome:
        phases = log.durations(self._host.wall_clock())
        tail = [line.text for line in self._lines][-_TAIL_LINES:]
        return Outcome(ready, diagnosis, phases, log.vitals, round(self._host.monotonic() - begun, 1), first.invocation, tail)
