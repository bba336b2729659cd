# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which of the changes between the good release and a failed one the evidence points to."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit

_LONGEST = 60
_DIRECTIVE = "unit."
# Kind of a change -> variables of the inventory that stand for it among what a diagnosis implicates.
_VARIABLES = {
    "engine": {"sglang_server_engine"},
    "model": {"sglang_server_model"},
    "secrets": {"sglang_server_api_key", "sglang_server_secret_env", "sglang_server_secret_flags"},
    "unit": {"sglang_server_unit_options", "sglang_server_user", "sglang_server_limit_nofile", "sglang_server_start_timeout_seconds"},
}
# What release.json tells of a unit already.
_TOLD = {"Description", "Environment", "EnvironmentFile", "ExecStart"}


@dataclass(frozen=True)
class Change:
    """One difference between two releases.

    Attributes:
        name: field of the engine (``mem_fraction_static``), environment variable, ``engine``, ``model``, ``secrets``, or ``unit.`` with a directive.
        text: it in words.
    """

    name: str
    text: str


def _flags(argv: t.Sequence[str]) -> dict[str, str]:
    """Words of a command line by flag. A value that begins with a dash is one only when it is a number."""
    found: dict[str, list[str]] = {}
    values: list[str] = []
    for word in argv:
        if word.startswith("-") and not word.lstrip("-").replace(".", "", 1).isdigit():
            name, equals, value = word.partition("=")
            values = found.setdefault(name, [])
            values += [value] if equals else []
        else:
            values.append(word)
    return {name: " ".join(values) for name, values in found.items()}


def _directives(unit: str, release: str) -> dict[str, str]:
    """Directives of a unit by name, the release's own directory left out."""
    found: dict[str, list[str]] = {}
    for pairs in parse_unit(unit.replace(release, "") if release else unit).values():
        for name, value in pairs:
            if name not in _TOLD:
                found.setdefault(name, []).append(value)
    return {name: " ".join(values) for name, values in found.items()}


def _said(value: str | None) -> str:
    if value is None:
        return "not set"
    return (value if len(value) <= _LONGEST else f"{value[:_LONGEST]}...") or "on"


def _between(before: t.Mapping[str, str], after: t.Mapping[str, str], field: t.Callable[[str], str]) -> list[Change]:
    names = [*before, *(name for name in after if name not in before)]
    changed = [name for name in names if before.get(name) != after.get(name)]
    return [Change(field(name), f"{name}: {_said(before.get(name))} -> {_said(after.get(name))}") for name in changed]


def _texts(mapping: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in mapping.items()}


def changes_between(good: t.Mapping[str, t.Any], failed: t.Mapping[str, t.Any], units: tuple[str, str] = ("", "")) -> list[Change]:
    """Returns what differs between two releases.

    Args:
        good: ``release.json`` of the release that serves.
        failed: that of the one that does not.
        units: texts of their ``unit.service``, in the same order; without them directives of the unit are not compared.
    """
    found = _between(_flags(good.get("argv", [])), _flags(failed.get("argv", [])), lambda name: name.lstrip("-").replace("-", "_"))
    found += _between(_texts(good.get("environment", {})), _texts(failed.get("environment", {})), lambda name: name)
    for part in ("engine", "model"):
        before, after = (" ".join(filter(None, _texts(release.get(part, {})).values())) for release in (good, failed))
        found += [Change(part, f"{part}: {before} -> {after}")] if before != after else []
    before, after = (", ".join(sorted(release.get("secrets", []))) for release in (good, failed))
    found += [Change("secrets", f"secrets: {before or 'none'} -> {after or 'none'}")] if before != after else []
    old, new = (_directives(unit, str(release.get("id", ""))) for unit, release in zip(units, (good, failed)))
    return found + (_between(old, new, lambda name: f"{_DIRECTIVE}{name}") if all(units) else [])


def _is_hit(change: Change, diagnosis: Diagnosis) -> bool:
    """What the cause has to do with, and what its deciding lines name."""
    known = {name.lstrip("-").replace("-", "_") for name in diagnosis.implicated} | set(diagnosis.implicated)
    kind, _dot, directive = change.name.partition(".")
    if change.name in known or known & _VARIABLES.get(kind, set()):
        return True
    if kind in _VARIABLES and not directive:
        return False
    name = directive or change.name
    spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
    # A word like "seed" says nothing alone; of several parts, or as a directive, it names the change.
    spellings |= {name, name.replace("_", "-")} if "_" in name or directive else set()
    return any(re.search(rf"(?<![\w/-]){re.escape(spelling)}(?![\w/-])", line) for spelling in spellings for line in diagnosis.evidence)


def suspects(diagnosis: Diagnosis, changes: t.Sequence[Change]) -> str:
    """Returns one sentence: the only change, or which of several the evidence points to; of no change that it can only be the unit.

    Args:
        diagnosis: why the release failed.
        changes: as :func:`changes_between` returns them.
    """
    if not changes:
        return "no flag, variable, engine or model changed since the good release: only the unit can differ"
    hit = [one for one in changes if _is_hit(one, diagnosis)]
    if len(changes) == 1:
        elsewhere = not hit and diagnosis.where == HOST and diagnosis.certainty == "certain"
        return f"the only change since the good release is {changes[0].text}" + ("; the evidence points to the host, not to it" if elsewhere else "")
    rest = ", ".join(one.name for one in changes if one not in hit)
    if not hit:
        return f"the evidence points to none of the {len(changes)} changes since the good release: {rest}"
    pointed = "; ".join(one.text for one in hit)
    return f"of the {len(changes)} changes since the good release the evidence points to {pointed}" + (f"; not to {rest}" if rest else "")
