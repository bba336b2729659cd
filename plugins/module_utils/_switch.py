# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Switches a server to a release: trial by drop-in, watch, then promote or put the good release back. One job under one lock.

Whatever dies in between, ``/etc`` holds a release that was proven, the store says how far the candidate came, and the next job goes on from there.
"""

from __future__ import annotations

import os
import re
import shutil
import typing as t
from dataclasses import asdict, dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE
from ansible_collections.llmops.inference.plugins.module_utils._failed_before import failed_state, refusal, retried
from ansible_collections.llmops.inference.plugins.module_utils._gating import Gated
from ansible_collections.llmops.inference.plugins.module_utils._held_memory import blame_holder
from ansible_collections.llmops.inference.plugins.module_utils._host import Run, run_checked
from ansible_collections.llmops.inference.plugins.module_utils._promise import ask_server_info, differences
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._record_points import FAILED
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact, redact_data
from ansible_collections.llmops.inference.plugins.module_utils._release import PLACEHOLDER, Candidate, Store, StoreError
from ansible_collections.llmops.inference.plugins.module_utils._standing import Settings, Standing
from ansible_collections.llmops.inference.plugins.module_utils._suspects import changes_between, suspects
from ansible_collections.llmops.inference.plugins.module_utils._unit_files import SYSTEM, Places, UnitFiles
from ansible_collections.llmops.inference.plugins.module_utils._vital_changes import changes, lines
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES
from ansible_collections.llmops.inference.plugins.module_utils._watch import Host, Outcome, Report, UnitState, Watch

_COMPLAINT = re.compile(r"Unknown key|Unknown section|Unknown lvalue|Failed to|Invalid|ignoring|Unbalanced|Refusing|is not executable|not absolute")


@dataclass
class Result:
    """What a deployment did.

    Attributes:
        action: ``unchanged``, ``pending``, ``repaired``, ``started``, ``restarted``, ``deployed``, ``refused``, ``rolled_back`` or ``failed``.
        release: id asked for.
        previous: id that was good before.
        reasons: why something had to be done.
        outcome: of the watch, where one ran.
        rollback: outcome of putting the good release back, where that was needed.
        suspects: of a failure, which changes since the good release the evidence points to.
        changes: vital signs that differ from those of the last good start, in words.
        differences: what the server runs otherwise than the preflight said, in words.
        gate: what the gate said of it (outcome, text, comparison); empty where none was asked for.
    """

    action: str
    release: str
    previous: str
    reasons: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    rollback: Outcome | None = None
    suspects: str = ""
    changes: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    gate: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True when the release asked for does not serve."""
        return self.action in ("failed", "refused", "rolled_back")


def _interpreter(candidate: Candidate) -> str:
    """The engine's interpreter, by the unit."""
    found = re.search(r"^ExecStart=(\S+)", candidate.unit, re.MULTILINE)
    return found[1] if found else ""


class Switch:
    """Brings one instance to a candidate.

    Args:
        store: releases of the instance.
        host: I/O and clock for the watch.
        run: runs a command.
        expect: what ready means.
        settings: see :class:`Settings`.
        report: progress callback (step or phase, seconds, detail).
        revive: returns host and expectation for the probe of an older release, which may answer elsewhere and under another name.
        gate: measures and judges a release that was proven to serve, before it may stay.
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
        report: Report = lambda phase, seconds, detail: None,
        revive: t.Callable[[t.Mapping[str, t.Any]], tuple[Host, Expectation]] | None = None,
        gate: t.Callable[[str, str], Gated] | None = None,
        places: Places = SYSTEM,
    ) -> None:
        self._store = store
        self._host = host
        self._run = run
        self._expect = expect
        self._settings = settings
        self._report = report
        self._revive = revive
        self._gate = gate
        self.files = UnitFiles(settings.unit, run, store.path / "set-aside", places)
        self._standing = Standing(store, host, run, self.files, settings)

    # -- what there is to do ------------------------------------------------------------------------------------------------

    def _set_enabled(self) -> None:
        run_checked(self._run, ["systemctl", "enable" if self._settings.enabled else "disable", "--quiet", self._settings.unit])

    def candidate_unit(self, candidate: Candidate) -> str:
        """Text of the unit that /etc will hold."""
        return candidate.unit.replace(PLACEHOLDER, str(self._store.directory(candidate.id)))

    def look(self, candidate: Candidate) -> Result:
        """Proves that the candidate already serves, says that it will be refused, or returns the action ``pending``. Changes nothing.

        Raises:
            StoreBusy: another job is at it.
        """
        self._store.free()
        good = self._store.good
        reasons = self._standing.reasons(candidate)
        if not reasons:
            outcome = Watch(self._host, replace(self._standing.settled(candidate, self._expect), timeout=0.0)).run()
            if outcome.ready:
                return Result("unchanged", candidate.id, good, [], outcome)
        refused = self._refused(candidate)
        if refused and not self._standing.down:
            return self._refusal(candidate, reasons, refused)
        return Result("pending", candidate.id, good, reasons if refused else self._with_note(candidate, reasons))

    def _refused(self, candidate: Candidate) -> Diagnosis | None:
        """Why a release is not tried again; nothing where it is the good one, or where the caller insists."""
        state = self._store.read(candidate.id, "state")
        if not state or self._settings.retry_failed or candidate.id == self._store.good:
            return None
        return refusal(state, self._standing.secrets_mac)

    def _with_note(self, candidate: Candidate, reasons: list[str]) -> list[str]:
        """The reasons, and for a release that failed here before that it is tried again."""
        note = retried(self._store.read(candidate.id, "state")) if candidate.id != self._store.good else ""
        return [*reasons, note] if note else reasons

    def _refusal(self, candidate: Candidate, reasons: list[str], refused: Diagnosis) -> Result:
        known = self._store.read(candidate.id, "state").get("suspects", "")
        return Result("refused", candidate.id, self._store.good, reasons, Outcome(False, refused), suspects=known)

    # -- doing it -----------------------------------------------------------------------------------------------------------

    def deploy(self, candidate: Candidate) -> Result:
        """Brings the host to the candidate, and leaves the good release serving when the candidate fails.

        Raises:
            StoreBusy: another job holds the lock.
            StoreError: the store cannot be used.
            HostError: systemd refused something that is not the candidate's fault.
        """
        with self._store.locked(f"deploying {candidate.id}", candidate.id, self._settings.by):
            return self._deploy(candidate)

    def roll_back(self, target: str, look: bool = False) -> Result:
        """Brings the host back to a release that it has.

        Args:
            target: ``good``, ``previous`` (the one that was good before), or the beginning of an id.
            look: only say what there is to do (``would_change`` or ``unchanged``).

        Raises:
            StoreBusy: another job holds the lock.
            StoreError: there is no such release, it is not whole, or what it needs is no longer there.
        """
        if look:
            candidate = self._stored(target)
            reasons = self._standing.reasons(candidate)
            return Result("would_change" if reasons else "unchanged", candidate.id, self._store.good, reasons)
        with self._store.locked(f"rolling back to {target}", "", self._settings.by):
            candidate = self._stored(target)
            self._host, self._expect = self._expected_of(candidate.id)
            # A person asks for it by name: what it died of once is no reason to refuse.
            self._settings = replace(self._settings, retry_failed=True)
            return self._deploy(candidate)

    def _stored(self, target: str) -> Candidate:
        candidate = self._store.candidate(self._store.find(target))
        lost = sorted(set(candidate.secret_names) - set(self._settings.secret_names))
        if lost:
            raise StoreError(f"release {candidate.id} was given secrets that the inventory no longer has: {', '.join(lost)}")
        gone = [path for path in (_interpreter(candidate), candidate.model.get("path", "")) if path and not os.path.exists(path)]
        if gone:
            raise StoreError(f"release {candidate.id} needs what is no longer on this host: {', '.join(gone)}")
        return candidate

    def _deploy(self, candidate: Candidate) -> Result:
        good = self._store.good
        reasons = self._standing.reasons(candidate)
        if good == candidate.id:
            return self._keep(candidate, reasons)
        refused = self._refused(candidate)
        if refused:
            result = self._refusal(candidate, reasons, refused)
            return self._back_to(good, result) if self._standing.down and self._settings.rollback else result
        reasons = self._with_note(candidate, reasons)
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
                    where=HOST,
                    implicated=["port"],
                )
        state = self._store.read(candidate.id, "state")
        folder = self._store.stage(candidate)
        if state.get("state") in (None, "staged"):
            self._store.write(candidate.id, "state", {"state": "staged", "since": self._host.wall_clock()})
        scratch = folder / "verify"
        scratch.mkdir(mode=0o700, exist_ok=True)
        copy = scratch / self._settings.unit
        copy.write_text(self.candidate_unit(candidate))
        status, output, error = self._run(["systemd-analyze", "verify", "--man=no", str(copy)])
        shutil.rmtree(scratch)
        complaints = [line for line in (output + error).splitlines() if self._settings.unit in line and _COMPLAINT.search(line)]
        if complaints:
            hint = "correct sglang_server_unit_options; nothing was changed"
            return Diagnosis("unit_refused", f"systemd refuses the unit: {complaints[0]}", complaints, hint, RELEASE, implicated=["unit"])
        return None

    def _keep(self, candidate: Candidate, reasons: list[str]) -> Result:
        """The release is already the good one: repair what differs, and restart only when the running process is not it."""
        restart = bool((self.files.trial and not self._standing.proven(candidate, "good", "ready")) or not self._standing.secrets_current)
        edited = [*self.files.manual, *([self.files.etc] if self._standing.edited else [])]
        edited += [self._store.directory(candidate.id) / "environment"] if self._standing.environment_edited(candidate) else []
        if edited:
            restart = restart or self.files.edited_before(self._host.unit_state().started, edited)
            self._repair(candidate)
        if self._standing.enabled != self._settings.enabled:
            self._set_enabled()
        if restart or not self._host.unit_state().alive:
            return self._run_good(candidate, "restarted" if restart else "started", reasons)
        if self.files.trial:
            self.files.end_trial()
        outcome = Watch(self._host, self._standing.settled(candidate, self._expect), self._report).run()
        if outcome.ready:
            return Result("repaired" if reasons else "unchanged", candidate.id, candidate.id, reasons, outcome)
        cause = outcome.diagnosis.cause if outcome.diagnosis else "unknown"
        return self._run_good(candidate, "restarted", [*reasons, f"the server did not answer: {cause}"])

    def _repair(self, candidate: Candidate) -> None:
        self.files.set_aside()
        self._store.stage(candidate)
        self.files.hold(self._store.unit_text(candidate.id))
        self.files.reload()

    def _run_good(self, candidate: Candidate, action: str, reasons: list[str]) -> Result:
        """Starts the good release; when that fails, systemd goes on trying, since the cause is more likely the host's."""
        if self.files.trial:
            self.files.end_trial()
        self._write_secrets()
        outcome = self._restart_and_watch()
        result = Result(action, candidate.id, candidate.id, reasons, outcome)
        if not outcome.ready:
            return replace(result, action="failed")
        self._confirm(candidate, result)
        return result

    def _switch(self, candidate: Candidate, good: str, reasons: list[str]) -> Result:
        before = self._store.read(candidate.id, "state")
        result = Result("deployed", candidate.id, good, reasons)
        new_engine = candidate.engine != self._store.read(good, "release").get("engine")
        if not self._standing.proven(candidate, "ready"):
            self._write_secrets()
            self._store.write(candidate.id, "state", {"state": "starting", "since": self._host.wall_clock()})
        result.outcome = self._try_out(candidate, result, replace(self._expect, new_engine=new_engine))
        if result.outcome.ready:
            return result
        self._explain(candidate, good, result)
        self._remember(candidate, before, result)
        if not self._settings.rollback and self.files.etc.exists():
            self._stop()
            result.outcome.remarks.append(f"sglang_server_rollback_enabled is off: the server is down, its trial lies in {self.files.trial_path}")
            return replace(result, action="failed")
        return self._back_to(good, replace(result, action="failed"))

    def _back_to(self, good: str, result: Result) -> Result:
        """Ends a failed trial and starts the good release; a disk without room does not keep it from that."""
        self._report("stopping the failed release", 0.0, "")
        self._stop()
        text = self._store.unit_text(good)
        unwritten: list[str] = []
        if text:
            self._anyway(unwritten, f"{self.files.etc} could not be put back", lambda: self.files.hold(text))
        elif not good:
            self.files.put_back()
        self.files.end_trial()
        if not self.files.etc.exists():
            return result
        host, expect = self._expected_of(good)
        rollback = self._restart_and_watch(host, expect, f"back to {good or 'the unit that was there before'}: ")
        if rollback.ready and good:
            state = {"state": "good", "since": self._host.wall_clock(), "invocation": rollback.invocation}
            self._anyway(unwritten, f"the state of {good} could not be written", lambda: self._store.write(good, "state", state))
            self._anyway(unwritten, "the digest of the secrets could not be written", lambda: self._store.confirm_secrets(self._standing.secrets_mac))
        rollback.remarks.extend(unwritten)
        return replace(result, action="rolled_back", rollback=rollback)

    def _try_out(self, candidate: Candidate, result: Result, expect: Expectation) -> Outcome:
        """Runs the trial and promotes it; whatever breaks meanwhile counts as its failure, since the good release has to come back in any case."""
        try:
            if self._standing.proven(candidate, "ready"):
                outcome = Watch(self._host, self._standing.settled(candidate, self._expect), self._report).run()
            else:
                self.files.begin_trial(self.candidate_unit(candidate))
                outcome = self._restart_and_watch(expect=expect)
            if outcome.ready:
                result.outcome = outcome
                self._store.write(candidate.id, "state", {"state": "ready", "since": self._host.wall_clock(), "invocation": outcome.invocation})
                refused = self._judged(candidate, outcome, result)
                if refused:
                    return replace(outcome, ready=False, diagnosis=refused)
                self._promote(candidate, result)
            return outcome
        except Exception as error:
            what = f"the trial broke off: {type(error).__name__}: {error}"
            return Outcome(False, Diagnosis("trial_broke", what, where=HOST, hint="see what the host is short of; the release itself may be right"))

    def _judged(self, candidate: Candidate, outcome: Outcome, result: Result) -> Diagnosis | None:
        """Lets the gate measure the trial; returns why it must not stay. A server that died meanwhile says itself what it died of."""
        if self._gate is None:
            return None
        gated = self._gate(candidate.id, self._store.good)
        result.gate = gated.told
        state = self._host.unit_state()
        died = not state.alive or (state.invocation != outcome.invocation and gated.told["outcome"] == FAILED)
        if gated.refused and died:
            return self._died_of(outcome, state)
        # The gate may have started it anew to see whether the next start is as fast.
        outcome.invocation = state.invocation
        return gated.refused

    def _died_of(self, outcome: Outcome, state: UnitState) -> Diagnosis:
        """Why a server that was proven died under load; the journal of the run after it where its own does not say."""
        found = None
        for invocation in dict.fromkeys((outcome.invocation, state.invocation)):
            told = [line.text for line in self._host.journal(invocation, "")[0]]
            outcome.journal_tail = told[-60:]
            found = diagnose(told, state.result)
            if found.certainty != "unknown":
                break
        return t.cast("Diagnosis", found)

    def _promote(self, candidate: Candidate, result: Result) -> None:
        self.files.hold(self.candidate_unit(candidate))
        before = self._store.good
        self._store.mark_good(candidate.id)
        self.files.end_trial()
        self._set_enabled()
        self._confirm(candidate, result, before)

    def _confirm(self, candidate: Candidate, result: Result, before: str = "") -> None:
        """Notes a proven start, and what is other than at the last one."""
        outcome = t.cast("Outcome", result.outcome)
        start = {"phases": outcome.phases, "vitals": outcome.vitals, "seconds": outcome.elapsed}
        last = self._store.read(before or candidate.id, "vitals")
        self._store.write(candidate.id, "state", {"state": "good", "since": self._host.wall_clock(), "invocation": outcome.invocation})
        self._store.write(candidate.id, "vitals", start)
        self._store.confirm_secrets(self._standing.secrets_mac)
        self._store.prune(self._settings.keep)
        self._compare(candidate, result, last, start)

    def _compare(self, candidate: Candidate, result: Result, last: t.Mapping[str, t.Any], start: t.Mapping[str, t.Any]) -> None:
        """Tells what changed. A document of another version that cannot be compared is told as well: it does not make a proven server a failure."""
        try:
            result.changes = lines(changes(last, start)) if last else []
            result.differences = [found.text for found in differences(candidate.preflight, ask_server_info(self._host.request))] if candidate.preflight else []
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            t.cast("Outcome", result.outcome).remarks.append(f"the start could not be compared with the last one: {type(error).__name__}: {error}")

    def _expected_of(self, release: str) -> tuple[Host, Expectation]:
        """How a release is proven; one whose document is damaged is asked where the candidate was to answer."""
        try:
            probe = self._store.read(release, "release").get("probe")
        except StoreError:
            probe = None
        return self._revive(probe) if probe and self._revive else (self._host, self._expect)

    def _restart_and_watch(self, host: Host | None = None, expect: Expectation | None = None, what: str = "") -> Outcome:
        def report(phase: str, seconds: float, detail: str) -> None:
            self._report(f"{what}{TITLES.get(phase, phase)}", seconds, detail)

        self._report(f"{what}stopping the running server", 0.0, "")
        self._run(["systemctl", "reset-failed", self._settings.unit])
        status, output, error = self._run(["systemctl", "restart", self._settings.unit])
        if status != 0:
            state = self._host.unit_state()
            told = [line.text for line in self._host.journal(state.invocation, "")[0]]
            found = diagnose([*told, *(error or output).splitlines()], state.result)
            return Outcome(False, found, journal_tail=told[-60:])
        return Watch(host or self._host, expect or self._expect, report, fresh=True).run()

    def _write_secrets(self) -> None:
        self._store.write_secrets(self._settings.secret_flags, self._settings.secret_environment)

    def _stop(self) -> None:
        """Ends a failed trial; what cannot be stopped must not keep the good release from coming back."""
        self._run(["systemctl", "stop", self._settings.unit])
        self._run(["systemctl", "reset-failed", self._settings.unit])

    # -- what is kept of a failure ------------------------------------------------------------------------------------------

    def _explain(self, candidate: Candidate, good: str, result: Result) -> None:
        """Holds the failure against the last good release. What cannot be compared is told: the good release has to come back in any case."""
        outcome = t.cast("Outcome", result.outcome)
        if outcome.diagnosis is None or not good:
            return
        try:
            outcome.diagnosis = blame_holder(outcome.diagnosis, outcome.vitals, self._store.read(good, "vitals").get("vitals", {}))
            units = (self._store.unit_text(good), self.candidate_unit(candidate))
            result.suspects = suspects(outcome.diagnosis, changes_between(self._store.read(good, "release"), candidate.document(), units))
        except (AttributeError, KeyError, TypeError, ValueError, StoreError) as error:
            outcome.remarks.append(f"it could not be held against the last good release: {error}")

    def _remember(self, candidate: Candidate, before: t.Mapping[str, t.Any], result: Result) -> None:
        """Keeps the diagnosis with the release, with the last lines: journals are often volatile."""
        outcome, secrets = t.cast("Outcome", result.outcome), self._settings.secrets
        diagnosis = redact_data(asdict(outcome.diagnosis), secrets) if outcome.diagnosis else {}
        journal = [redact(line, secrets) for line in outcome.journal_tail]
        now = self._host.wall_clock()
        state = failed_state(before, diagnosis, since=now, secrets=self._standing.secrets_mac, suspects=result.suspects, journal=journal)
        self._anyway(outcome.remarks, f"the state of {candidate.id} could not be written", lambda: self._store.write(candidate.id, "state", state))
        self._anyway(outcome.remarks, "old releases could not be removed", lambda: self._store.prune(self._settings.keep, candidate.id))

    @staticmethod
    def _anyway(remarks: list[str], trouble: str, write: t.Callable[[], t.Any]) -> None:
        """Writes while the good release has to come back: what the disk or the store refuses is told and stops nothing."""
        try:
            write()
        except (OSError, StoreError) as error:
            remarks.append(f"{trouble}: {error}")

    # -- taking it away -----------------------------------------------------------------------------------------------------

    def remove(self) -> bool:
        """Stops the server and removes its unit and releases; returns whether there was anything."""
        if not (self.files.any or self._store.path.exists()):
            return False
        with self._store.locked("removing the server", "", self._settings.by):
            if self.files.any or self._host.unit_state().alive:
                self._run(["systemctl", "disable", "--now", "--quiet", self._settings.unit])
                run_checked(self._run, ["systemctl", "stop", self._settings.unit])
            self.files.remove()
            self._run(["systemctl", "reset-failed", self._settings.unit])
            shutil.rmtree(self._store.path)
        return True
