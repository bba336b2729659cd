# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Switches a server to a release: trial by drop-in, watch, then promote or put the good release back. One job under one lock."""

from __future__ import annotations

import re
import shutil
import time
import typing as t
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose
from ansible_collections.llmops.inference.plugins.module_utils._host import Run, run_checked
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact, redact_data
from ansible_collections.llmops.inference.plugins.module_utils._release import PLACEHOLDER, Candidate, Store, write_atomically
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit, render_dropin
from ansible_collections.llmops.inference.plugins.module_utils._watch import Expectation, Host, Outcome, Watch

_COMPLAINT = re.compile(r"Unknown key|Unknown section|Unknown lvalue|Failed to|Invalid|ignoring|Unbalanced|Refusing|is not executable|not absolute")
_HEALTHY_WITHIN = 30.0


@dataclass(frozen=True)
class Places:
    """Where systemd looks. Injected, so that tests run in a scratch directory."""

    etc: Path = Path("/etc/systemd/system")
    run: Path = Path("/run/systemd/system")


@dataclass
class Settings:
    """What the caller decides beside the candidate itself.

    Attributes:
        unit: full name of the unit.
        enabled: whether the unit starts at boot.
        keep: how many releases stay on the host.
        secret_flags: flags that hold secrets.
        secret_environment: environment variables that hold secrets.
    """

    unit: str
    enabled: bool = True
    keep: int = 5
    secret_flags: t.Mapping[str, t.Any] = field(default_factory=dict)
    secret_environment: t.Mapping[str, str] = field(default_factory=dict)

    @property
    def secrets(self) -> list[str]:
        """All secret values, for redaction."""
        return [str(value) for value in (*self.secret_flags.values(), *self.secret_environment.values())]


@dataclass
class Result:
    """What a deployment did.

    Attributes:
        action: ``unchanged``, ``pending``, ``repaired``, ``started``, ``restarted``, ``deployed``, ``rolled_back`` or ``failed``.
        release: id asked for.
        previous: id that was good before.
        reasons: why something had to be done.
        outcome: of the watch, where one ran.
        rollback: outcome of putting the good release back, where that was needed.
    """

    action: str
    release: str
    previous: str
    reasons: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    rollback: Outcome | None = None

    @property
    def failed(self) -> bool:
        """True when the release asked for does not serve."""
        return self.action in ("failed", "rolled_back")


class Switch:
    """Brings one instance to a candidate.

    Args:
        store: releases of the instance.
        host: I/O and clock for the watch.
        run: runs a command.
        expect: what ready means.
        settings: see :class:`Settings`.
        report: progress callback (text, seconds).
        revive: returns host and expectation for the probe of an older release, which may answer elsewhere and under another name.
        places: systemd's directories.
    """

    def __init__(
        self,
        store: Store,
        host: Host,
        run: Run,
        expect: Expectation,
        settings: Settings,
        *,
        report: t.Callable[[str, float], None] = lambda phase, seconds: None,
        revive: t.Callable[[t.Mapping[str, t.Any]], tuple[Host, Expectation]] | None = None,
        places: Places = Places(),
    ) -> None:
        self._store = store
        self._host = host
        self._run = run
        self._expect = expect
        self._settings = settings
        self._report = report
        self._revive = revive
        self.unit_path = places.etc / settings.unit
        self._manual_folder = places.etc / f"{settings.unit}.d"
        self._trial_unit = places.run / settings.unit
        self._trial_folder = places.run / f"{settings.unit}.d"
        self._trial_dropin = self._trial_folder / "90-candidate.conf"
        self._aside: list[tuple[Path, Path]] = []

    # -- what there is to do ------------------------------------------------------------------------------------------------

    def reasons(self, candidate: Candidate) -> list[str]:
        """Returns in words why the host differs from the candidate; empty when it does not. Changes nothing."""
        good = self._store.good
        found = []
        if not good:
            found.append("no release of this server is known to be good")
        elif good != candidate.id:
            found.append(f"the release changes from {good} to {candidate.id}")
        elif self._edited():
            found.append("the unit in /etc was edited by hand")
        found += [f"the drop-in {path} was added by hand" for path in self._manual_dropins()]
        if good and self._trial_left():
            found.append("an earlier trial was interrupted")
        if good == candidate.id and not self._secrets_current():
            found.append("a secret changed")
        if good == candidate.id and self._enabled() != self._settings.enabled:
            found.append(f"the unit is {'not ' if self._settings.enabled else ''}started at boot")
        if good == candidate.id and not self._host.unit_state().alive:
            found.append("the server is not running")
        return found

    def _enabled(self) -> bool:
        return self._run(["systemctl", "is-enabled", self._settings.unit])[1].strip() == "enabled"

    def _set_enabled(self) -> None:
        run_checked(self._run, ["systemctl", "enable" if self._settings.enabled else "disable", "--quiet", self._settings.unit])

    def _edited(self) -> bool:
        return not self.unit_path.exists() or self.unit_path.read_text() != self._store.unit_text(self._store.good)

    def _manual_dropins(self) -> list[Path]:
        return sorted(self._manual_folder.glob("*.conf")) if self._manual_folder.is_dir() else []

    def _trial_left(self) -> bool:
        return self._trial_dropin.exists() or self._trial_unit.exists()

    def _secrets_current(self) -> bool:
        if not self._settings.secret_flags and not self._settings.secret_environment and not (self._store.path / "secrets" / "mac").exists():
            return True
        return self._store.secrets_current(self._mac())

    def _mac(self) -> str:
        return self._store.secrets_mac(self._settings.secret_flags, self._settings.secret_environment)

    def current_unit(self) -> str:
        """Text of the unit that /etc holds now; empty when there is none."""
        return self.unit_path.read_text() if self.unit_path.exists() else ""

    def candidate_unit(self, candidate: Candidate) -> str:
        """Text of the unit that /etc will hold."""
        return candidate.unit.replace(PLACEHOLDER, str(self._store.directory(candidate.id)))

    def look(self, candidate: Candidate) -> Result:
        """Proves that the candidate already serves, or returns the action ``pending``. Changes nothing."""
        good = self._store.good
        reasons = self.reasons(candidate)
        if not reasons:
            outcome = Watch(self._host, replace(self._expect, timeout=0.0)).run()
            if outcome.ready:
                return Result("unchanged", candidate.id, good, [], outcome)
        return Result("pending", candidate.id, good, reasons)

    # -- doing it -----------------------------------------------------------------------------------------------------------

    def deploy(self, candidate: Candidate) -> Result:
        """Brings the host to the candidate, and leaves the good release serving when the candidate fails.

        Raises:
            StoreError: another run holds the lock.
            HostError: systemd refused something that is not the candidate's fault.
        """
        with self._store.locked(f"deploying {candidate.id}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"):
            good = self._store.good
            reasons = self.reasons(candidate)
            if good == candidate.id:
                return self._keep(candidate, reasons)
            blocked = self._blocked(candidate)
            if blocked:
                return Result("failed", candidate.id, good, reasons, Outcome(False, blocked))
            return self._switch(candidate, good, reasons)

    def _blocked(self, candidate: Candidate) -> Diagnosis | None:
        """What makes a trial pointless and can be known before the running server is touched."""
        own = self._host.unit_pids(self._host.unit_state().control_group)
        for listener in self._host.listeners():
            if listener.pid not in own:
                return Diagnosis(
                    "port_in_use",
                    f"port {self._expect.port} is held by another process ({listener.named()})",
                    hint="stop that process or set another sglang_server_port; nothing was changed",
                )
        folder = self._store.stage(candidate)
        self._store.write(candidate.id, "state", {"state": "staged"})
        scratch = folder / "verify"
        scratch.mkdir(mode=0o700, exist_ok=True)
        copy = scratch / self._settings.unit
        copy.write_text(self.candidate_unit(candidate))
        status, output, error = self._run(["systemd-analyze", "verify", "--man=no", str(copy)])
        shutil.rmtree(scratch)
        complaints = [line for line in (output + error).splitlines() if self._settings.unit in line and _COMPLAINT.search(line)]
        if complaints:
            return Diagnosis(
                "unit_refused", f"systemd refuses the unit: {complaints[0]}", complaints, "correct sglang_server_unit_options; nothing was changed"
            )
        return None

    def _keep(self, candidate: Candidate, reasons: list[str]) -> Result:
        """The release is already the good one: repair what differs, and restart only when the running process is not it."""
        restart = bool(self._trial_left() or not self._secrets_current())
        edited = [*self._manual_dropins(), *([self.unit_path] if self._edited() else [])]
        if edited:
            started = self._host.unit_state().started
            restart = restart or any(path.stat().st_mtime < started for path in edited if path.exists())
            self._repair(candidate)
        if self._enabled() != self._settings.enabled:
            self._set_enabled()
        if restart or not self._host.unit_state().alive:
            action = "restarted" if restart else "started"
            return self._run_good(candidate, action, reasons)
        outcome = Watch(self._host, self._settled(), self._report).run()
        if outcome.ready:
            return Result("repaired" if reasons else "unchanged", candidate.id, candidate.id, reasons, outcome)
        cause = outcome.diagnosis.cause if outcome.diagnosis else "unknown"
        return self._run_good(candidate, "restarted", [*reasons, f"the server did not answer: {cause}"])

    def _settled(self) -> Expectation:
        """A server that has been up for longer than a start may take gets only seconds to prove itself."""
        up = self._host.wall_clock() - self._host.unit_state().started
        timeout = _HEALTHY_WITHIN if up > self._expect.timeout else self._expect.timeout
        return replace(self._expect, timeout=timeout)

    def _set_aside_manual_dropins(self) -> None:
        aside = self._store.path / "set-aside" / time.strftime("%Y%m%dT%H%M%S")
        self._aside = [(path, aside / path.name) for path in self._manual_dropins()]
        for path, kept in self._aside:
            aside.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(str(path), str(kept))

    def _repair(self, candidate: Candidate) -> None:
        self._set_aside_manual_dropins()
        self._store.stage(candidate)
        write_atomically(self.unit_path, self._store.unit_text(candidate.id), 0o644)
        run_checked(self._run, ["systemctl", "daemon-reload"])

    def _run_good(self, candidate: Candidate, action: str, reasons: list[str]) -> Result:
        """Starts the good release; when that fails, systemd goes on trying, since the cause is more likely the host's."""
        if self._trial_left():
            self._end_trial()
        self._write_secrets()
        outcome = self._restart_and_watch()
        if not outcome.ready:
            return Result("failed", candidate.id, candidate.id, reasons, outcome)
        self._confirm(candidate, outcome)
        return Result(action, candidate.id, candidate.id, reasons, outcome)

    def _switch(self, candidate: Candidate, good: str, reasons: list[str]) -> Result:
        self._write_secrets()
        self._store.write(candidate.id, "state", {"state": "starting"})
        outcome = self._try_out(candidate)
        if outcome.ready:
            self._store.write(candidate.id, "state", {"state": "ready"})
            self._promote(candidate)
            self._confirm(candidate, outcome)
            return Result("deployed", candidate.id, good, reasons, outcome)
        self._store.write(candidate.id, "state", {"state": "failed", "diagnosis": self._stored(outcome)})
        self._stop()
        self._put_back(good)
        self._end_trial()
        if not self.unit_path.exists():
            return Result("failed", candidate.id, good, reasons, outcome)
        rollback = self._restart_and_watch(*self._expected_of(good))
        return Result("rolled_back", candidate.id, good, reasons, outcome, rollback)

    def _try_out(self, candidate: Candidate) -> Outcome:
        """Runs the trial; whatever breaks while it runs counts as its failure, since the good release has to come back in any case."""
        try:
            self._begin_trial(candidate)
            return self._restart_and_watch()
        except Exception as error:
            return Outcome(False, Diagnosis("trial_broke", f"the trial broke off: {type(error).__name__}: {error}"))

    def _begin_trial(self, candidate: Candidate) -> None:
        """The candidate lives under /run until it is good: whatever dies, the next boot starts what /etc holds."""
        self._set_aside_manual_dropins()
        if self.unit_path.exists():
            self._trial_folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            dropin = render_dropin(parse_unit(self.current_unit()), parse_unit(self.candidate_unit(candidate)))
            write_atomically(self._trial_dropin, dropin, 0o644)
        else:
            self._trial_unit.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_atomically(self._trial_unit, self.candidate_unit(candidate), 0o644)
        run_checked(self._run, ["systemctl", "daemon-reload"])

    def _put_back(self, good: str) -> None:
        """Makes /etc hold the good release, whatever was edited there, or else the drop-ins of a unit that somebody else made."""
        text = self._store.unit_text(good)
        if text and text != self.current_unit():
            write_atomically(self.unit_path, text, 0o644)
        for path, kept in self._aside if not good else []:
            shutil.move(str(kept), str(path))

    def _end_trial(self) -> None:
        for path in (self._trial_dropin, self._trial_unit):
            if path.exists():
                path.unlink()
        run_checked(self._run, ["systemctl", "daemon-reload"])

    def _promote(self, candidate: Candidate) -> None:
        write_atomically(self.unit_path, self.candidate_unit(candidate), 0o644)
        self._store.mark_good(candidate.id)
        self._end_trial()
        self._set_enabled()

    def _confirm(self, candidate: Candidate, outcome: Outcome) -> None:
        self._store.write(candidate.id, "state", {"state": "good", "since": self._host.wall_clock()})
        self._store.write(candidate.id, "vitals", {"phases": outcome.phases, "vitals": outcome.vitals, "seconds": outcome.elapsed})
        self._store.prune(self._settings.keep)

    def _expected_of(self, release: str) -> tuple[Host, Expectation]:
        probe = self._store.read(release, "release").get("probe")
        return self._revive(probe) if probe and self._revive else (self._host, self._expect)

    def _restart_and_watch(self, host: Host | None = None, expect: Expectation | None = None) -> Outcome:
        self._report("stopping the running server", 0.0)
        self._run(["systemctl", "reset-failed", self._settings.unit])
        status, output, error = self._run(["systemctl", "restart", self._settings.unit])
        if status != 0:
            state = self._host.unit_state()
            lines = [line.text for line in self._host.journal(state.invocation, "")[0]]
            found = diagnose([*lines, *(error or output).splitlines()], state.result)
            return Outcome(False, found, journal_tail=lines[-60:])
        self._store.confirm_secrets(self._mac())
        return Watch(host or self._host, expect or self._expect, self._report, fresh=True).run()

    def _write_secrets(self) -> None:
        self._store.write_secrets(self._settings.secret_flags, self._settings.secret_environment)

    def _stop(self) -> None:
        """Ends a failed trial; what cannot be stopped must not keep the good release from coming back."""
        self._run(["systemctl", "stop", self._settings.unit])
        self._run(["systemctl", "reset-failed", self._settings.unit])

    def _stored(self, outcome: Outcome) -> dict[str, t.Any]:
        """What of a failure is kept with the release: journals are often volatile."""
        secrets = self._settings.secrets
        diagnosis = redact_data(asdict(outcome.diagnosis), secrets) if outcome.diagnosis else {}
        return {**diagnosis, "journal": [redact(line, secrets) for line in outcome.journal_tail]}

    # -- taking it away -----------------------------------------------------------------------------------------------------

    def remove(self) -> bool:
        """Stops the server and removes its unit and releases; returns whether there was anything."""
        if not (self.unit_path.exists() or self._trial_left() or self._store.path.exists()):
            return False
        with self._store.locked(f"removing, since {time.strftime('%Y-%m-%d %H:%M:%S')}"):
            if self.unit_path.exists() or self._trial_left() or self._host.unit_state().alive:
                self._run(["systemctl", "disable", "--now", "--quiet", self._settings.unit])
                run_checked(self._run, ["systemctl", "stop", self._settings.unit])
            for path in (self.unit_path, self._trial_unit, self._trial_dropin):
                if path.exists():
                    path.unlink()
            for folder in (self._manual_folder, self._trial_folder):
                if folder.is_dir():
                    shutil.rmtree(folder)
            run_checked(self._run, ["systemctl", "daemon-reload"])
            self._run(["systemctl", "reset-failed", self._settings.unit])
            shutil.rmtree(self._store.path)
        return True
