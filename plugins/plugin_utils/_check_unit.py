# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The difference of two units that a person can read: the one long line of the server's arguments becomes one line for each."""

from __future__ import annotations

import difflib
import re

from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.plugin_utils._check_escape import line

_EXEC = re.compile(r"Exec\w+=")
# A word that begins with two dashes, outside of quotes: systemd's own quoting puts a backslash before a quote inside of them.
_WORD = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^\s"])+')


def unit_difference(before: str, after: str, host: str) -> str:
    """Returns a unified difference; empty where nothing differs.

    Args:
        before: text of the unit; empty where there was none.
        after: likewise.
        host: for the head of it.
    """
    old, new = (_lines(redact(text)) for text in (before, after))
    name = line(host)
    return "\n".join(difflib.unified_diff(old, new, f"{name} before", f"{name} after", lineterm="", n=2))


def _lines(text: str) -> list[str]:
    # Not splitlines: an inventory may hold other characters that break a line for Python and not for systemd.
    return [part for one in text.rstrip("\n").split("\n") for part in _wrapped(one)] if text else []


def _wrapped(text: str) -> list[str]:
    """A line of a unit; a command as one line for its words up to the first flag, and one for each flag with what follows it."""
    if not _EXEC.match(text):
        return [text]
    lines: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(word)
    return [f"{'    ' if place else ''}{' '.join(words)}{'' if place == len(lines) - 1 else f' {chr(92)}'}" for place, words in enumerate(lines)]
