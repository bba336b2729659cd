# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Text of strangers in Markdown. Whoever proposes a change chooses values, names of hosts and comments, and a forge makes links, pictures, mentions and HTML of
them: everything that is not ours goes through here. A character reference is never structure, neither in Markdown nor in HTML nor in a table.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import shown

LONG = 300
_LINE_LONG = 400
# An underscore inside a word is none of Markdown's.
_STRUCTURE = re.compile(r"[\\`*\[\]{}+|<>&@#!$%~]|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_|:(?=\u200b?//)|(?<=www)\.", re.IGNORECASE)
# Forges look for names, numbers of tickets and addresses in what was rendered as well: a space of no width parts them, "/" of "://" included.
_PARTED = re.compile(r"(?<=[@#!$%~&\[])(?=[\w\"])|(?<=:)(?=//)|(?<=www\.)", re.IGNORECASE)
_NO_WIDTH = "\u200b"
# Reads the same as code, and more easily where the Markdown itself is read.
_BACKTICKS = re.compile(r"(?!.*(://|www\.))[A-Za-z0-9_./=+-](?:[A-Za-z0-9_.,:/=+ -]*[A-Za-z0-9_./=+-])?", re.IGNORECASE)
_LINE_BREAK = re.compile(r"\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def line(value: t.Any, most: int = LONG) -> str:
    """Returns any value as one line of printable text, cut where it is long; nothing is escaped yet."""
    return shown(value, most)


def escape(value: t.Any, most: int = LONG) -> str:
    """Returns a value as text without any structure, on one line."""
    apart = _PARTED.sub(_NO_WIDTH, line(value, most))
    return _STRUCTURE.sub(lambda found: f"&#{ord(found[0])};", apart).replace(_NO_WIDTH, "&#8203;")


def code(value: t.Any, most: int = LONG) -> str:
    """Returns a value as code on one line."""
    text = line(value, most)
    return f"`{text}`" if _BACKTICKS.fullmatch(text) else f"<code>{escape(text, most)}</code>" if text else ""


def fence(lines: t.Iterable[str], language: str = "") -> str:
    """Returns lines as a block of code that none of them can end.

    Args:
        lines: of text; a line that holds several becomes several.
        language: for the colours.
    """
    text = "\n".join(_harmless(part) for one in lines for part in _LINE_BREAK.split(one))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"


def _harmless(text: str) -> str:
    """A line without control characters, without those that change the direction of reading, and without the beginning of a comment."""
    shown = "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in text).replace("<!--", "<! --")
    return shown if len(shown) <= _LINE_LONG else f"{shown[:_LINE_LONG]}..."
