# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Says of each change who made it, under which condition, what is written beside it, and what the engine logged about it."""

from __future__ import annotations

import ast
import types
import typing as t

from .source import Function, Guard, function_at
from .watch import Change, Place, Record

_TEXT = 300


def short(path: str) -> str:
    """Returns a path below the environment's packages."""
    return path.rsplit("site-packages/", maxsplit=1)[-1]


def explain(change: Change, logs: t.Sequence[Record]) -> dict[str, t.Any]:
    """Returns one change as the result shows it. A source that cannot be read leaves the reason empty, never wrong."""
    row: dict[str, t.Any] = {
        "field": change.field,
        "before": change.before,
        "after": change.after,
        "declared_by": change.origin.declared_by,
        "function": None,
        "at": None,
        "statement": None,
        "because": [],
        "comment": None,
        "logged": [],
        "via": [place.function for place in change.origin.stack[1:]],
        "also": [f"{short(place.path)}:{place.line}" for place in change.also],
    }
    if not change.origin.stack:
        return row
    place = change.origin.stack[0]
    row["function"], row["at"] = place.function, f"{short(place.path)}:{place.line}"
    try:
        source = function_at(place.path, place.line)
    except (OSError, SyntaxError):
        return row
    guards = _ruling(change.origin.rules, source.guards(place.line))
    statement = source.statement(place.line)
    row["statement"] = source.code(statement)[:_TEXT]
    row["because"] = [guard.to_json() for guard in guards or source.leavers(place.line) or _callers_guards(change.origin.stack[1:3])]
    beside = source.comment(statement.lineno) if statement else None
    row["comment"] = next((guard.comment for guard in guards[:1] if guard.comment), None) or beside
    row["logged"] = [f"{record.level}: {record.message[:_TEXT]}" for record in logs if _belongs(record, change, place, guards)]
    return row


def _ruling(rules: t.Mapping[str, types.CodeType], guards: t.Sequence[Guard]) -> list[Guard]:
    """Where the engine walks a table of rules (``for name, predicate in rules: if predicate():``), the predicate's own source comes first."""
    for guard in guards:
        code = rules.get(guard.test[:-2] if guard.test.endswith("()") else guard.test)
        if code is None:
            continue
        try:
            table = function_at(code.co_filename, code.co_firstlineno)
        except (OSError, SyntaxError):
            continue
        for node in ast.walk(table.tree):
            if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
                return [_rule(table, node), *guards]
    return list(guards)


def _rule(table: Function, node: ast.Lambda) -> Guard:
    return Guard(table.code(node.body), True, node.lineno, table.comment(node.lineno) or table.comment(node.lineno - 1), node.lineno, node.lineno)


def _callers_guards(stack: t.Sequence[Place]) -> list[Guard]:
    for place in stack:
        try:
            found = function_at(place.path, place.line).guards(place.line)
        except (OSError, SyntaxError):
            return []
        if found:
            return found
    return []


def _belongs(record: Record, change: Change, place: Place, guards: t.Sequence[Guard]) -> bool:
    """A log line belongs to a change of its function when it stands under the same test, or names the field or its flag."""
    if (record.place.path, record.place.function) != (place.path, place.function):
        return False
    field = change.field.split(".", maxsplit=1)[0]
    if f"--{field.replace('_', '-')}" in record.message or change.field.rsplit(".", maxsplit=1)[-1] in record.message:
        return True
    tests = [guard for guard in guards if guard.first <= place.line <= guard.last]
    return bool(tests) and tests[0].first <= record.place.line <= tests[0].last
