# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Tells whoever follows a long module what it is doing: one small file that the action plugin reads while it waits."""

from __future__ import annotations

import typing as t
from pathlib import Path

FOLDER = Path("/run/llmops-inference")


class Progress:
    """Writes the current step of one job; how long it lasts is for the reader to count.

    Args:
        name: name of the job, used as the file's name.
        folder: where the file is written.
        titles: texts for steps known by name.
    """

    def __init__(self, name: str, folder: Path = FOLDER, titles: t.Mapping[str, str] | None = None) -> None:
        self._path = folder / name
        self._titles = titles or {}
        self._last = ""

    def __call__(self, step: str, seconds: float = 0.0) -> None:
        """Notes the step; nothing is written while it stays the same."""
        if step == self._last:
            return
        self._last = step
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._path.write_text(self._titles.get(step, step))

    def end(self) -> None:
        """Removes the file."""
        if self._path.exists():
            self._path.unlink()
