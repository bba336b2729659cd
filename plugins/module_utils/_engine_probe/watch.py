# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Sees every value that the engine's resolution changes, and every line that it logs meanwhile.

Engines up to 0.5.16 write attributes of ``ServerArgs`` in ``__post_init__``; from 0.5.14 on passes declare their decisions in a list
``_resolved_overrides``, which later engines keep instead of writing. One hook on ``__setattr__`` sees both: it notes the writes, and replaces that
list by one that notes what is appended. A pass that returns its decisions has left its frame by then, so its executed lines are traced.
"""

from __future__ import annotations

import ast
import dataclasses
import logging
import re
import sys
import types
import typing as t

from .source import function_at
from .values import field_names, flat, plain

# Functions that carry a decision and do not make it.
_PLUMBING = frozenset(
    (
        "declare_resolution",
        "run_post_process_pass",
        "run_hook",
        "materialize_declarations",
        "_invoke_provider",
        "append",
        "extend",
        "record_foreign_defaults",
        "validate_declarations",
        "__setattr__",
        "apply_model_overrides",
    )
)
_ENTRIES = ("__post_init__", "run_resolution_pipeline")
_PASSES = "/srt/arg_groups/"
_STACK = 6
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Place(t.NamedTuple):
    """A line of the engine that ran."""

    function: str
    path: str
    line: int


class Origin(t.NamedTuple):
    """Where a change comes from.

    Attributes:
        stack: where it happened, the deciding function first.
        rules: predicates by the name of the local variable that held them, where the engine walks a table of rules.
        declared_by: the engine's own name of the rule, where it keeps one.
    """

    stack: list[Place]
    rules: dict[str, types.CodeType]
    declared_by: str | None = None


@dataclasses.dataclass
class Change:
    """One value that resolution changed.

    Attributes:
        field: name of the field, dotted for a part of a record.
        before, after: plain values.
        origin: where it comes from.
        also: further lines that set the same value again: taking the first cause away may not be enough.
    """

    field: str
    before: t.Any
    after: t.Any
    origin: Origin
    also: list[Place] = dataclasses.field(default_factory=list)


class Record(t.NamedTuple):
    """One line that the engine logged."""

    level: str
    message: str
    place: Place


class Logs:
    """Notes log records where they are made: handlers do not survive ``basicConfig(force=True)``, and the operator's level is obeyed."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._make = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._note)

    def _note(self, *args: t.Any, **kwargs: t.Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        try:
            message = record.getMessage()
        except Exception:
            # A broken line must not break the engine: logging forgives it as well.
            message = str(record.msg)
        place = Place(record.funcName or "", record.pathname, record.lineno)
        self.records.append(Record(record.levelname, _COLOURS.sub("", message), place))
        return record


class Watch:
    """The hook. :meth:`install` puts it into the engine's classes.

    Attributes:
        changes: what was seen, in order.
        now: values after what was seen so far.
    """

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.now: dict[str, t.Any] = {}
        self._active = False
        self._owner: t.Any = None
        # With the record itself: a dead one's identity would be given to another.
        self._inside: dict[tuple[int, str], tuple[t.Any, list[Place]]] = {}
        self._executed: dict[types.CodeType, set[int]] = {}

    def install(self, cls: type, records: t.Sequence[type]) -> None:
        """Watches the fields of ``cls`` (``ServerArgs``) and of records that live in its fields."""
        self._watch_fields(cls)
        for record in records:
            self._watch_record(record)
        for name in ("__post_init__", "resolve_once"):
            if hasattr(cls, name):
                self._watch_step(cls, name)

    def trace(self, frame: types.FrameType, event: str, arg: t.Any) -> t.Any:
        """For ``sys.settrace``: notes the executed lines of the engine's passes."""
        code = frame.f_code
        if _PASSES not in code.co_filename or code.co_name in _PLUMBING or code.co_name.startswith("<"):
            return None
        lines = self._executed[code] = set()

        def note(inner: types.FrameType, what: str, _arg: t.Any) -> t.Any:
            if what == "line":
                lines.add(inner.f_lineno)
            return note

        return note

    def _watch_step(self, cls: type, name: str) -> None:
        step, watch = getattr(cls, name), self

        def watched(owner: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
            if watch._active:
                return step(owner, *args, **kwargs)
            watch._owner = owner
            if not watch.now:
                watch.now = {field: getattr(owner, field, None) for field in field_names(cls)}
            watch._active = True
            try:
                return step(owner, *args, **kwargs)
            finally:
                watch._active = False

        setattr(cls, name, watched)

    def _watch_fields(self, cls: type) -> None:
        assign: t.Any = cls.__setattr__
        watch = self

        class Declarations(t.List[t.Any]):
            """The engine's list of decisions, one that tells."""

            def append(self, entry: t.Any) -> None:
                super().append(entry)
                watch._declared(entry, sys._getframe(1))

            def extend(self, entries: t.Iterable[t.Any]) -> None:
                for entry in list(entries):
                    self.append(entry)

        def assigned(owner: t.Any, name: str, value: t.Any) -> None:
            if watch._active and owner is watch._owner:
                if name == "_resolved_overrides" and isinstance(value, list) and not isinstance(value, Declarations):
                    value = Declarations(value)
                elif name in watch.now:
                    # What materialize_declarations writes was seen when it was declared.
                    if sys._getframe(1).f_code.co_name != "materialize_declarations":
                        watch._add(name, watch.now[name], value, _origin(sys._getframe(1)))
                    watch.now[name] = value
            assign(owner, name, value)

        cls.__setattr__ = assigned  # type: ignore[method-assign, assignment]

    def _watch_record(self, cls: type) -> None:
        assign: t.Any = cls.__setattr__
        watch = self

        def assigned(owner: t.Any, name: str, value: t.Any) -> None:
            if watch._active and sys._getframe(1).f_code.co_name != "__init__":
                before = getattr(owner, name, None)
                origin = _origin(sys._getframe(1))
                if before != value:
                    watch._inside[(id(owner), name)] = owner, origin.stack
                path = watch._path_of(owner)
                if path:
                    watch._note(f"{path}.{name}", plain(before), plain(value), origin)
            assign(owner, name, value)

        cls.__setattr__ = assigned  # type: ignore[method-assign, assignment]

    def _path_of(self, record: t.Any) -> str | None:
        """Where a record lives: two levels are enough for ``cuda_graph_config.prefill``."""
        for field, value in self.now.items():
            for part in field_names(type(value)):
                if getattr(value, part, None) is record:
                    return f"{field}.{part}"
        return None

    def _declared(self, entry: tuple[str, dict[str, t.Any]], frame: types.FrameType) -> None:
        source, fields = entry
        for field, value in fields.items():
            if field in self.now:
                place = self._decided_in_pass(frame, field)
                stack, rules, _none = _origin(frame)
                if place:
                    # A pass that has left its frame is not on the stack; one that has not is there with a later line.
                    stack = [place, *(stack[1:] if stack and stack[0][:2] == place[:2] else stack)]
                self._add(field, self.now[field], value, Origin(stack, rules, source))
                self.now[field] = value

    def _add(self, field: str, before: t.Any, after: t.Any, origin: Origin) -> None:
        old, new = flat(field, before), flat(field, after)
        for key in sorted(old.keys() | new.keys()):
            inside = self._inside.get((id(_reach(after, key.split(".")[1:-1])), key.rsplit(".", 1)[-1])) if "." in key else None
            self._note(key, old.get(key), new.get(key), origin._replace(stack=inside[1]) if inside else origin)

    def _note(self, field: str, before: t.Any, after: t.Any, origin: Origin) -> None:
        if before != after or type(before) is not type(after):
            self.changes.append(Change(field, before, after, origin))
            return
        earlier = next((change for change in reversed(self.changes) if change.field == field), None)
        if earlier and earlier.after == after and origin.stack and origin.stack[0] not in (*earlier.origin.stack[:1], *earlier.also):
            earlier.also.append(origin.stack[0])

    def _decided_in_pass(self, frame: types.FrameType | None, field: str) -> Place | None:
        """Passes return what they decide: the deciding line is the last executed one of theirs that names the field."""
        while frame is not None:
            for key in ("fn", "declared", "entry"):
                code = getattr(frame.f_locals.get(key), "__code__", None)
                if code in self._executed:
                    return self._line_in_pass(code, field)
            if frame.f_code in self._executed and frame.f_code.co_name not in _PLUMBING:
                statement = _statement(frame.f_code.co_filename, frame.f_lineno)
                named = statement is not None and any(isinstance(node, ast.keyword) and node.arg == field for node in ast.walk(statement))
                return None if named else self._line_in_pass(frame.f_code, field)
            frame = frame.f_back
        return None

    def _line_in_pass(self, code: types.CodeType, field: str) -> Place | None:
        hits = []
        for line in self._executed.get(code, ()):
            statement = _statement(code.co_filename, line)
            if statement is None or isinstance(statement, _COMPOUND):
                continue
            if any(_names(node, field) for node in ast.walk(statement)):
                hits.append(statement.lineno)
        return Place(code.co_name, code.co_filename, max(hits)) if hits else None


def _statement(path: str, line: int) -> ast.stmt | None:
    """A source that cannot be read must not break the engine."""
    try:
        return function_at(path, line).statement(line)
    except (OSError, SyntaxError):
        return None


def _names(node: ast.AST, field: str) -> bool:
    return (isinstance(node, ast.Constant) and node.value == field) or (isinstance(node, ast.keyword) and node.arg == field)


def _origin(frame: types.FrameType | None) -> Origin:
    places: list[Place] = []
    rules: dict[str, types.CodeType] = {}
    while frame is not None and frame.f_code.co_name != "<module>":
        code = frame.f_code
        if "/sglang/" in code.co_filename and code.co_name not in _PLUMBING:
            if not places:
                functions = [(key, value) for key, value in frame.f_locals.items() if isinstance(value, types.FunctionType)]
                rules = {key: value.__code__ for key, value in functions if value.__name__ == "<lambda>"}
            places.append(Place(code.co_name, code.co_filename, frame.f_lineno))
            if code.co_name in _ENTRIES:
                break
        frame = frame.f_back
    return Origin(places[:_STACK], rules)


def _reach(value: t.Any, parts: t.Sequence[str]) -> t.Any:
    for part in parts:
        value = getattr(value, part, None)
    return value
