# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Why a line of the engine ran, read from its source: the tests around it, and what is written beside them.

One function is parsed at a time: parsing a file of 8,000 lines costs 3 seconds, its functions 0.1 (0.5.12, two cores).
"""

from __future__ import annotations

import ast
import linecache
import re
import typing as t

_DEF = re.compile(r"\s*(async )?def ")
# A "#" inside a string is none.
_BESIDE = re.compile(r"""(?:[^"'#]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*(?<=\s)#\s*(.+)$""")
_TEXT = 400


class Guard(t.NamedTuple):
    """One test on the way to a line.

    Attributes:
        test: its source.
        was: whether it was true.
        line: its line number.
        comment: what is written above, beside or below it.
        first, last: lines that it governs.
    """

    test: str
    was: bool
    line: int
    comment: str | None
    first: int
    last: int

    def to_json(self) -> dict[str, t.Any]:
        return {"test": self.test, "was": self.was, "line": self.line, "comment": self.comment}


class Function:
    """The function around a line of a file. Use :func:`function_at`, which keeps them."""

    def __init__(self, rows: t.Sequence[str], first: int) -> None:
        self._rows = rows
        indent = _indent(rows[first])
        last = first + 1
        while last < len(rows) and not _ends(rows[last], indent):
            last += 1
        # Blank lines in front keep the file's line numbers.
        self._text = "\n" * first + "".join(row[indent:] if row.strip() else "\n" for row in rows[first:last])
        self.tree = ast.parse(self._text)
        self._parent = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def code(self, node: ast.AST | None) -> str:
        """Returns the source of a node on one line, cut."""
        if node is None:
            return ""
        return re.sub(r"\s+", " ", ast.get_source_segment(self._text, node) or "")[:_TEXT]

    def statement(self, line: int) -> ast.stmt | None:
        """Returns the innermost statement that holds a line."""
        best: ast.stmt | None = None
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            if best is None or (node.lineno, -(node.end_lineno or 0)) >= (best.lineno, -(best.end_lineno or 0)):
                best = node
        return best

    def guards(self, line: int) -> list[Guard]:
        """Returns the tests that had to come out as they did for this line to run, innermost first."""
        return [guard for node, up in self._ancestors(line) for guard in self._guard(node, up)]

    def _guard(self, node: ast.AST, up: ast.AST) -> list[Guard]:
        first, last = getattr(up, "lineno", 0), getattr(up, "end_lineno", 0)
        if isinstance(up, ast.If):
            return [Guard(self.code(up.test), node not in up.orelse, up.lineno, self.comment(up.lineno, up), first, last)]
        if isinstance(up, ast.ExceptHandler):
            return [Guard(f"except {self.code(up.type)}".strip(), True, up.lineno, None, first, last)]
        if isinstance(up, ast.For):
            return [Guard(f"for {self.code(up.target)} in {self.code(up.iter)}", True, up.lineno, None, first, last)]
        if isinstance(up, ast.While):
            return [Guard(f"while {self.code(up.test)}", True, up.lineno, None, first, last)]
        return []

    def leavers(self, line: int) -> list[Guard]:
        """Returns the tests before a line whose body would have left the function: they were false."""
        found = []
        for node, up in self._ancestors(line):
            for block in (getattr(up, "body", None), getattr(up, "orelse", None)):
                if isinstance(block, list) and node in block:
                    found += [prior for prior in block[: block.index(node)] if isinstance(prior, ast.If) and _leaves(prior)]
        return [Guard(self.code(prior.test), False, prior.lineno, self.comment(prior.lineno, prior), prior.lineno, prior.lineno) for prior in found[-3:]]

    def comment(self, line: int, node: ast.AST | None = None) -> str | None:
        """Returns the comment directly above a line, else at its end, else the one that opens the body of an ``if``."""
        above = self._comment_block(line - 2)
        if above:
            return above
        beside = _BESIDE.match(self._rows[line - 1])
        if beside:
            return beside.group(1).strip()[:_TEXT]
        if isinstance(node, ast.If):
            return self._comment_block(node.body[0].lineno - 2) or None
        return None

    def _comment_block(self, index: int) -> str:
        rows: list[str] = []
        while 0 <= index < len(self._rows) and self._rows[index].strip().startswith("#"):
            rows.insert(0, self._rows[index].strip().lstrip("# "))
            index -= 1
        return " ".join(rows)[:_TEXT]

    def _ancestors(self, line: int) -> t.Iterator[tuple[ast.AST, ast.AST]]:
        node: ast.AST | None = self.statement(line)
        while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            up = self._parent.get(node)
            if up is not None:
                yield node, up
            node = up


_FUNCTIONS: dict[tuple[str, int], Function] = {}


def function_at(path: str, line: int) -> Function:
    """Returns the function of a file that holds a line.

    Raises:
        SyntaxError: what stands there cannot be parsed alone.
        OSError: there is no source.
    """
    rows = linecache.getlines(path)
    if not 0 < line <= len(rows):
        raise OSError(f"no source for {path}:{line}")
    first = line - 1
    while first > 0 and not rows[first].strip():
        first -= 1
    if not _DEF.match(rows[first]):
        depth = max(1, _indent(rows[first]))
        while first > 0 and not (_DEF.match(rows[first]) and _indent(rows[first]) < depth):
            first -= 1
    key = (path, first)
    if key not in _FUNCTIONS:
        _FUNCTIONS[key] = Function(rows, first)
    return _FUNCTIONS[key]


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def _ends(row: str, indent: int) -> bool:
    return bool(row.strip()) and _indent(row) <= indent and not row.lstrip().startswith((")", "#"))


def _leaves(node: ast.If) -> bool:
    return isinstance(node.body[-1], ast.Return) and not node.orelse
