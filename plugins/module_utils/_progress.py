# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Tells whoever follows a long module what it is doing: one small file that the action plugin reads while it waits."""

from __future__ import annotations

import os
import shutil
import typing as t
from pathlib import Path

FOLDER = Path("/run/llmops-inference")


class Progress:
    """Writes the current step of one job, and on a second line its detail; the file's time is when the step began.

    Args:
        name: name of the job, used as the file's name.
        folder: where the file is written.
        titles: texts for steps known by name.
    """

    def __init__(self, name: str, folder: Path = FOLDER, titles: t.Mapping[str, str] | None = None) -> None:
        self._path = folder / name
        self._titles = titles or {}
        self._last = ("", "")

    def __call__(self, step: str, seconds: float = 0.0, detail: str = "") -> None:
        """Notes the step; nothing is written while it and its detail stay the same."""
        if (step, detail) == self._last:
            return
        same, self._last = step == self._last[0], (step, detail)
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        scratch = self._path.with_name(f".{self._path.name}")
        scratch.write_text("\n".join(filter(None, (self._titles.get(step, step), detail))))
        if same and self._path.exists():
            shutil.copystat(self._path, scratch)
        os.replace(scratch, self._path)

    def end(self) -> None:
        """Removes the file, when it is this job's: a look must not take away what another run's job tells."""
        if self._last[0] and self._path.exists():
            self._path.unlink()
