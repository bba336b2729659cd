# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Asked against effective: what became of each flag, and which optimisations the engine switched off by itself.

Works on the plain data of one candidate as ``_engine_probe`` returns it.
"""

from __future__ import annotations

import itertools
import re
import typing as t
from dataclasses import dataclass

HONOURED = "honoured"
TRANSLATED = "translated"
ADJUSTED = "adjusted"
NOT_HONOURED = "not honoured"
UNKNOWN = "unknown"

_SHOWN = 60
_OFF: tuple[t.Any, ...] = (None, False, "disabled", "none", [])
_ALIAS = re.compile(r"alias|normali[sz]e", re.IGNORECASE)
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Outcome:
    """What became of one flag that was asked for.

    Attributes:
        flag: as it was written.
        fields: names under which the inventory may know it.
        field: the engine's field that holds it, dotted inside a record; empty where there is none.
        asked, effective: plain values; ``effective`` is None where there is no field.
        outcome: ``honoured``, ``translated`` (another spelling of the same), ``adjusted`` (another value), ``not honoured``, ``unknown``.
        changes: the engine's changes of that field, in order.
        deprecated: what the engine says of an old spelling, or None.
        successor: what the engine wants to be written instead, or None.
    """

    flag: str
    fields: t.Sequence[str]
    field: str
    asked: t.Any
    effective: t.Any
    outcome: str
    changes: t.Sequence[t.Mapping[str, t.Any]]
    deprecated: str | None
    successor: str | None


def shown(value: t.Any) -> str:
    """Returns a value for a sentence, cut."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def flatten(effective: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns the engine's fields with the parts of records under dotted names beside them."""
    flat: dict[str, t.Any] = {}
    for name, value in effective.items():
        flat[name] = value
        if isinstance(value, t.Mapping):
            flat.update((f"{name}.{key}", inner) for key, inner in flatten(value).items())
    return flat


def outcomes(candidate: t.Mapping[str, t.Any]) -> list[Outcome]:
    """Returns what became of each flag; ``unknown`` for all where the engine's resolution did not finish."""
    flat = flatten(candidate["effective"])
    return [_outcome(flag, flat, candidate["changes"]) for flag in candidate["flags"]]


def _outcome(flag: t.Mapping[str, t.Any], flat: t.Mapping[str, t.Any], changes: t.Sequence[t.Mapping[str, t.Any]]) -> Outcome:
    field = _find_field(flag["fields"], flat)
    stored = list(flag["asked"].values())
    asked = stored[0] if stored else None
    steps = [change for change in changes if change["field"] == field]
    if not flat:
        verdict = UNKNOWN
    elif not field:
        verdict = _judge_without_field(flag, stored, flat)
    else:
        verdict = _judge(asked, flat[field], steps, bool(flag["deprecated"]))
    effective = flat.get(field) if field else None
    return Outcome(flag["flag"], flag["fields"], field, asked, effective, verdict, steps, flag["deprecated"], flag["successor"])


def _find_field(names: t.Sequence[str], flat: t.Mapping[str, t.Any]) -> str:
    """The field of a flag: one of its names, else the record's part that is made of the same words (``cuda_graph_config.prefill.backend``)."""
    for name in names:
        if name in flat:
            return name
    for name in names:
        words = set(name.split("_"))
        for field in flat:
            if "." in field and set(re.split(r"[._]", field)) - {"config"} == words:
                return field
    return ""


def _judge(asked: t.Any, effective: t.Any, steps: t.Sequence[t.Mapping[str, t.Any]], deprecated: bool) -> str:
    if asked == effective:
        return TRANSLATED if deprecated else HONOURED
    if len(steps) == 1 and _is_alias(steps[0]):
        return TRANSLATED
    if isinstance(asked, bool) or effective in _OFF:
        return NOT_HONOURED
    return ADJUSTED


def _is_alias(step: t.Mapping[str, t.Any]) -> bool:
    """True when a word was replaced by another one only because it was that word."""
    before, after = step["before"], step["after"]
    if not isinstance(before, str) or not isinstance(after, str) or after in _OFF:
        return False
    tests = [guard["test"] for guard in step["because"][:1] if guard["was"]]
    same = rf"(\w+\.)?{re.escape(str(step['field']))} == ['\"]{re.escape(before)}['\"]"
    return bool(_ALIAS.search(step["statement"] or "")) or any(re.fullmatch(same, test) for test in tests)


def _judge_without_field(flag: t.Mapping[str, t.Any], stored: t.Sequence[t.Any], flat: t.Mapping[str, t.Any]) -> str:
    """A flag that no field holds: its successor tells, where the engine names one; a flag that stores nothing does nothing."""
    expected = _successor_values(flag["successor"] or "", flat)
    if expected:
        return TRANSLATED if all(flat[field] == value for field, value in expected) else NOT_HONOURED
    return UNKNOWN if stored else NOT_HONOURED


def _successor_values(successor: str, flat: t.Mapping[str, t.Any]) -> list[tuple[str, str]]:
    """Reads ``--cuda-graph-backend-{decode,prefill}=disabled`` as fields and the values that they must have."""
    name, equals, value = successor.partition("=")
    if not equals:
        return []
    choices = [match.split(",") for match in _BRACES.findall(name)]
    pattern = _BRACES.sub("{}", name[2:].replace("-", "_"))
    fields = [_find_field([pattern.format(*words)], flat) for words in itertools.product(*choices)]
    return [(field, value) for field in fields if field]


@dataclass(frozen=True)
class Disabled:
    """A default optimisation that the engine switched off by itself.

    Attributes:
        change: the change that did it.
        logged: whether the engine said so.
        asked: flags of the operator that stand in its condition: then it follows from them.
    """

    change: t.Mapping[str, t.Any]
    logged: bool
    asked: t.Sequence[str]


def disabled(candidate: t.Mapping[str, t.Any], results: t.Sequence[Outcome]) -> list[Disabled]:
    """Returns the optimisations that were on by default, were not asked for, and end switched off."""
    flat = flatten(candidate["effective"])
    asked = {result.field for result in results}
    found = {}
    for change in candidate["changes"]:
        field = change["field"]
        if field in found or field in asked or flat.get(field, change["after"]) != change["after"] or not _switches_off(change):
            continue
        found[field] = Disabled(change, bool(change["logged"]), _named_in_condition(change, results))
    return list(found.values())


def _switches_off(change: t.Mapping[str, t.Any]) -> bool:
    name = change["field"].rsplit(".", maxsplit=1)[-1]
    before, after = change["before"], change["after"]
    if name.startswith("disable_"):
        return before is False and after is True
    if isinstance(before, bool):
        return before and after is False and name.startswith(("enable_", "use_"))
    return name.endswith("backend") and isinstance(before, str) and before not in _OFF and after in _OFF


def _named_in_condition(change: t.Mapping[str, t.Any], results: t.Sequence[Outcome]) -> list[str]:
    words = {word for guard in change["because"][:1] for word in re.findall(r"\w+", guard["test"])}
    return [result.flag for result in results if words & set(result.fields)]


def implicated(tests: t.Iterable[str], message: str, flags: t.Sequence[t.Mapping[str, t.Any]]) -> list[t.Mapping[str, t.Any]]:
    """Returns the flags of the candidate that stand in a condition (``self.language_only and ...``) or that a message names.

    A plain word of a message ("model", "port") is none: only ``--encoder-urls`` and ``encoder_urls`` are.
    """
    words = {word for test in tests for word in re.findall(r"[A-Za-z_]\w*", test)}
    words |= {word.replace("-", "_") for word in re.findall(r"(?<=--)\w[\w-]*|[A-Za-z]+_\w+", message)}
    return [flag for flag in flags if words & set(flag["fields"])]
