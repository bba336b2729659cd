# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Journal entries as data: ``journalctl -o json --all`` in, clean text lines out.

Without ``--all`` entries above 4096 bytes come as null; entries with control characters come as lists of bytes (systemd.journal-fields(7)).
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

_FIRST_LOOK_LINES = 2000
_JOURNALCTL = ("journalctl", "--output=json", "--all", "--no-pager", "--quiet")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Line:
    """One line a service wrote.

    Attributes:
        seconds: wall-clock time of the entry, seconds since the epoch.
        text: the line, without colours; of a progress bar only its last state.
    """

    seconds: float
    text: str


def decode_message(message: t.Any) -> str:
    """Returns the text of a MESSAGE field in any of the forms journalctl gives it."""
    if message is None:
        return ""
    if isinstance(message, list):
        if message and isinstance(message[0], int):
            return bytes(message).decode("utf-8", "replace")
        return "\n".join(decode_message(item) for item in message)
    return str(message)


def without_colours(text: str) -> str:
    """Returns the text without terminal sequences."""
    return _ANSI.sub("", text)


def clean(text: str) -> list[str]:
    """Returns the lines of an entry without colours and without the overwritten states of progress bars."""
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in without_colours(text).split("\n"))
    return [line.rstrip() for line in lines if line.strip()]


def parse_entries(output: str) -> tuple[list[Line], str]:
    """Parses the output of ``journalctl -o json``.

    Returns:
        The lines in order, and the cursor of the last entry (empty when there was none).

    Raises:
        ValueError: a line of the output is no JSON object.
    """
    lines: list[Line] = []
    cursor = ""
    for raw in output.split("\n"):
        if not raw.strip():
            continue
        entry = json.loads(raw)
        cursor = entry.get("__CURSOR", cursor)
        seconds = int(entry.get("__REALTIME_TIMESTAMP", 0)) / 1e6
        lines += [Line(seconds, text) for text in clean(decode_message(entry.get("MESSAGE")))]
    return lines, cursor


def journal_command(unit: str, invocation: str, cursor: str = "", whole: bool = False) -> list[str]:
    """Returns the command that prints the entries of one run of a unit: its own and systemd's about it.

    Args:
        unit: full name of the unit.
        invocation: id of the run.
        cursor: only entries behind it.
        whole: without a cursor all entries; otherwise only the last ones, since a server that has served for weeks has many.
    """
    command = [*_JOURNALCTL]
    if cursor:
        command.append(f"--after-cursor={cursor}")
    elif not whole:
        command.append(f"--lines={_FIRST_LOOK_LINES}")
    return [*command, f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}", f"UNIT={unit}"]


def kernel_command(since: float) -> list[str]:
    """Returns the command that prints what the kernel logged since a moment (wall-clock seconds)."""
    return [*_JOURNALCTL, f"--since=@{int(since)}", f"--lines={_FIRST_LOOK_LINES}", "_TRANSPORT=kernel"]
