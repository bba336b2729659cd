# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Where a host stands: how it differs from a release that is asked for, and what is known of the run that is there. Changes nothing."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._host import Run
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.module_utils._systemd import environment_file
from ansible_collections.llmops.inference.plugins.module_utils._unit_files import UnitFiles
from ansible_collections.llmops.inference.plugins.module_utils._watch import Host

_HEALTHY_WITHIN = 30.0


@dataclass
class Settings:
    """What the caller decides beside the candidate itself.

    Attributes:
        unit: full name of the unit.
        enabled: whether the unit starts at boot.
        keep: how many releases stay on the host.
        secret_flags: flags that hold secrets.
        secret_environment: environment variables that hold secrets.
        rollback: whether a failed trial ends with the good release serving again.
        retry_failed: whether a release is tried again that failed here for a cause of its own.
        by: who asked for it (user and controller), told to others who find the lock taken.
    """

    unit: str
    enabled: bool = True
    keep: int = 5
    secret_flags: t.Mapping[str, t.Any] = field(default_factory=dict)
    secret_environment: t.Mapping[str, str] = field(default_factory=dict)
    rollback: bool = True
    retry_failed: bool = False
    by: str = ""

    @property
    def secrets(self) -> list[str]:
        """All secret values, for redaction."""
        return [str(value) for value in (*self.secret_flags.values(), *self.secret_environment.values())]

    @property
    def secret_names(self) -> list[str]:
        """Names of all secrets."""
        return [*self.secret_flags, *self.secret_environment]


class Standing:
    """Compares one instance with what is asked for.

    Args:
        store: releases of the instance.
        host: I/O and clock.
        run: runs a command.
        files: of the unit.
        settings: see :class:`Settings`.
    """

    def __init__(self, store: Store, host: Host, run: Run, files: UnitFiles, settings: Settings) -> None:
        self._store = store
        self._host = host
        self._run = run
        self._files = files
        self._settings = settings

    def reasons(self, candidate: Candidate) -> list[str]:
        """Returns in words why the host differs from the candidate; empty when it does not."""
        good = self._store.good
        found = []
        if not good:
            found.append("no release of this server is known to be good")
        elif good != candidate.id:
            found.append(f"the release changes from {good} to {candidate.id}")
        elif self.edited:
            found.append("the unit in /etc was edited by hand")
        if good == candidate.id and self.environment_edited(candidate):
            found.append("the environment of the release was edited by hand")
        found += [f"the drop-in {path} was added by hand" for path in self._files.manual]
        if good and self._files.trial:
            found.append("an earlier trial was interrupted")
        if good != candidate.id:
            return found
        if not self.secrets_current:
            found.append("a secret changed")
        if self.enabled != self._settings.enabled:
            found.append(f"the unit is {'not ' if self._settings.enabled else ''}started at boot")
        if not self._host.unit_state().alive:
            found.append("the server is not running")
        return found

    @property
    def enabled(self) -> bool:
        """Whether the unit starts at boot."""
        return self._run(["systemctl", "is-enabled", self._settings.unit])[1].strip() == "enabled"

    @property
    def edited(self) -> bool:
        """Whether /etc holds something else than the good release."""
        return self._files.text != self._store.unit_text(self._store.good) or not self._files.etc.exists()

    def environment_edited(self, candidate: Candidate) -> bool:
        """Whether what the unit of this very release reads as its environment is another than the release's."""
        return self._store.environment_text(candidate.id) != environment_file(candidate.environment)

    @property
    def secrets_current(self) -> bool:
        """Whether the server was started with the present secrets."""
        if not self._settings.secret_names and not (self._store.path / "secrets" / "mac").exists():
            return True
        return self._store.secrets_current(self.secrets_mac)

    @property
    def secrets_mac(self) -> str:
        """Digest of the present secrets."""
        return self._store.secrets_mac(self._settings.secret_flags, self._settings.secret_environment)

    @property
    def down(self) -> bool:
        """Whether the good release does not serve since a job was interrupted."""
        return bool(self._store.good and (self._files.trial or not self._host.unit_state().alive))

    def proven(self, candidate: Candidate, *states: str) -> bool:
        """Whether the very run that is there now was proven to be this release."""
        state, unit = self._store.read(candidate.id, "state"), self._host.unit_state()
        return bool(unit.alive and state.get("state") in states and state.get("invocation") == unit.invocation)

    def settled(self, candidate: Candidate, expect: Expectation) -> Expectation:
        """A server that has served, or has been up for longer than a start may take, gets only seconds to prove itself, and may be busy."""
        if self.proven(candidate, "ready", "good") or self._host.wall_clock() - self._host.unit_state().started > expect.timeout:
            return replace(expect, timeout=_HEALTHY_WITHIN, settled=True)
        return expect
