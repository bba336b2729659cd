# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The files of one unit: ``/etc`` holds the good release, ``/run`` a trial, and what somebody added by hand is set aside."""

from __future__ import annotations

import shutil
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._host import Run, run_checked
from ansible_collections.llmops.inference.plugins.module_utils._release import write_atomically
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit, render_dropin


@dataclass(frozen=True)
class Places:
    """Where systemd looks. Injected, so that tests run in a scratch directory."""

    etc: Path = Path("/etc/systemd/system")
    run: Path = Path("/run/systemd/system")


SYSTEM = Places()


class UnitFiles:
    """The files of one unit.

    Args:
        unit: its full name.
        run: runs a command.
        aside: directory for drop-ins that were added by hand.
        places: systemd's directories.
    """

    def __init__(self, unit: str, run: Run, aside: Path, places: Places) -> None:
        self._run = run
        self._aside = aside
        self._moved: list[tuple[Path, Path]] = []
        self.etc = places.etc / unit
        self._manual_folder = places.etc / f"{unit}.d"
        self._trial_unit = places.run / unit
        self._trial_folder = places.run / f"{unit}.d"
        self._trial_dropin = self._trial_folder / "90-candidate.conf"

    @property
    def text(self) -> str:
        """The unit that /etc holds; empty when there is none."""
        return self.etc.read_text() if self.etc.exists() else ""

    @property
    def manual(self) -> list[Path]:
        """Drop-ins that were added by hand."""
        return sorted(self._manual_folder.glob("*.conf")) if self._manual_folder.is_dir() else []

    @property
    def trial(self) -> bool:
        """Whether a trial lies under /run."""
        return self._trial_dropin.exists() or self._trial_unit.exists()

    @property
    def trial_path(self) -> Path:
        """Where a trial lies beside a unit in /etc."""
        return self._trial_dropin

    @property
    def any(self) -> bool:
        """Whether there is a unit at all."""
        return self.etc.exists() or self.trial

    def reload(self) -> None:
        """Lets systemd read the files."""
        run_checked(self._run, ["systemctl", "daemon-reload"])

    def set_aside(self) -> None:
        """Moves what was added by hand out of systemd's sight."""
        folder = self._aside / time.strftime("%Y%m%dT%H%M%S")
        self._moved = []
        for path in self.manual:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(str(path), str(folder / path.name))
            self._moved.append((path, folder / path.name))

    def hold(self, text: str) -> None:
        """Makes /etc hold this unit; the caller reloads."""
        if text != self.text:
            write_atomically(self.etc, text, 0o644)

    def begin_trial(self, text: str) -> None:
        """The candidate lives under /run until it is good: whatever dies, the next boot starts what /etc holds."""
        self.set_aside()
        path = self._trial_dropin if self.etc.exists() else self._trial_unit
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_atomically(path, render_dropin(parse_unit(self.text), parse_unit(text)) if self.etc.exists() else text, 0o644)
        self.reload()

    def end_trial(self) -> None:
        """Removes what a trial left under /run."""
        for path in (self._trial_dropin, self._trial_unit):
            if path.exists():
                path.unlink()
        self.reload()

    def put_back(self) -> None:
        """Brings the set-aside drop-ins back: they belong to a unit that somebody else made."""
        for path, kept in self._moved:
            shutil.move(str(kept), str(path))

    def remove(self) -> None:
        """Removes all of it."""
        for path in (self.etc, self._trial_unit, self._trial_dropin):
            if path.exists():
                path.unlink()
        for folder in (self._manual_folder, self._trial_folder):
            if folder.is_dir():
                shutil.rmtree(folder)
        self.reload()

    def edited_before(self, moment: float, edited: t.Iterable[Path]) -> bool:
        """Whether one of these files may have been read by a process that started at a moment (wall-clock seconds)."""
        return any(path.stat().st_mtime < moment for path in edited if path.exists())
