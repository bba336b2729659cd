# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a diagnosis is, and what a row of the table that leads to one is."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

# Where a failure lies. What a release did wrong it will do again; what the host did may be over.
RELEASE = "release"
HOST = "host"
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Diagnosis:
    """Why a start failed.

    Attributes:
        code: stable name of the cause.
        cause: one sentence for a person.
        evidence: the deciding lines, without colours, time stamps and ranks.
        hint: what to do.
        where: ``release`` (arguments, model, engine, memory for these flags), ``host`` (disk, busy GPU, port, driver, permissions) or empty: not known.
        certainty: ``certain``, ``suspected`` or ``unknown``.
        implicated: flags, variables of the inventory and of the environment that have to do with it.
        captured: what the journal tells in figures and names, by name.
        remedy: the line of the inventory to change, in YAML; empty unless it is known whole: name, and value by a rule or by the engine's own figures.
    """

    code: str
    cause: str
    evidence: list[str] = field(default_factory=list)
    hint: str = ""
    where: str = ""
    certainty: str = "certain"
    implicated: list[str] = field(default_factory=list)
    captured: dict[str, t.Any] = field(default_factory=dict)
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """The cause and what to do."""
        return f"{self.cause}: {self.hint}"


@dataclass(frozen=True)
class Row:
    """One row of the table: how a cause shows in a journal, and what it means.

    Attributes:
        code: stable name of the cause; several rows may have the same one.
        where: :data:`RELEASE`, :data:`HOST` or empty.
        pattern: matches a deciding line. Named groups become values; a number behind a name (``port_2``) is dropped.
        cause: sentence with ``{value}``; a part in brackets is left out when one of its values is not known.
        hint: what to do, the same way.
        implicated: flags and variables, separated by blanks.
        details: patterns whose named groups are values as well, each from its last line up to the deciding one, otherwise from its first one after that.
        collect: a pattern whose group is collected from all lines into a list of different values.
        unless: a line that matches makes the row void.
        also: a line must match this, too.
        during: begin and end of a phase that the deciding line must lie in.
        raised: the deciding line must be that of an exception or of a fatal error: logged otherwise it was caught, and is at most suspected.
        frames: must match in the frames of the traceback that ends with the deciding line (one per line, Python's own modules left out at the end); only for
            exceptions.
        until: a line behind the last deciding one that matches makes the row void.
        check: has the last word, with the values.
        certainty: as in :class:`Diagnosis`.
        facts: values that the row as such stands for.
        derive: returns more values from those there are.
        remedy: line of the inventory with ``{value}``, left out as a whole when one of its values is not known.
    """

    code: str
    where: str
    pattern: t.Pattern[str]
    cause: str
    hint: str
    implicated: tuple[str, ...] = ()
    details: tuple[t.Pattern[str], ...] = ()
    collect: t.Pattern[str] | None = None
    unless: t.Pattern[str] | None = None
    also: t.Pattern[str] | None = None
    during: tuple[t.Pattern[str], t.Pattern[str]] | None = None
    raised: bool = False
    frames: t.Pattern[str] | None = None
    until: t.Pattern[str] | None = None
    check: t.Callable[[t.Mapping[str, t.Any]], bool] | None = None
    certainty: str = "certain"
    facts: t.Mapping[str, t.Any] = field(default_factory=dict)
    derive: t.Callable[[t.Mapping[str, t.Any]], t.Mapping[str, t.Any]] | None = None
    remedy: str = ""


def row(code: str, where: str, pattern: str, cause: str, hint: str, implicated: str = "", **more: t.Any) -> Row:  # noqa: PLR0917
    """Returns a row; patterns come as text, what is implicated as words.

    Args:
        code: see :class:`Row`, as all that follows.
        where: where the failure lies.
        pattern: regular expression.
        cause: sentence.
        hint: what to do.
        implicated: flags and variables, separated by blanks.
        more: the other attributes.
    """
    for name in ("collect", "unless", "also", "frames", "until"):
        if name in more:
            more[name] = re.compile(more[name])
    more["details"] = tuple(re.compile(text) for text in more.get("details", ()))
    if "during" in more:
        begin, end = more["during"]
        more["during"] = (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    return Row(code, where, re.compile(pattern), cause, hint, tuple(implicated.split()), **more)


def fill(template: str, values: t.Mapping[str, t.Any]) -> str:
    """Returns the sentence: ``{name}`` replaced, ``[parts]`` left out that need a value which is not there."""

    def part(found: t.Match[str]) -> str:
        return found[1] if all(values.get(name) not in (None, "") for name in _FIELD.findall(found[1])) else ""

    return _FIELD.sub(lambda found: str(values.get(found[1], "?")), _OPTIONAL.sub(part, template))


def fill_whole(template: str, values: t.Mapping[str, t.Any]) -> str:
    """Returns the line with ``{name}`` replaced, or an empty one when a value is not there."""
    return fill(template, values) if all(values.get(name) not in (None, "") for name in _FIELD.findall(template)) else ""
