# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a change asks for otherwise: flags by layer, environment variables, and secrets by their names; values of secrets never show."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._redact import redact_data, redact_environment

Render = t.Optional[t.Mapping[str, t.Any]]
PLAIN = "plain text"
_LAYERS = ("model", "hardware", "host", "extra")
_HOW = {PLAIN: "in plain text", "looked up": "looked up"}


def masked(name: str, value: t.Any) -> t.Any:
    """Returns a value, masked where its name or its looks say that it is a secret."""
    return redact_data({name: value})[name]


def flag_changes(before: Render, after: Render) -> list[dict[str, t.Any]]:
    """Returns flag, layer, variable and the asked values before and after (None: not asked), the lowest layer first.

    A flag that moves to another layer leaves the one and comes into the other.
    """
    old, new = _asked(before), _asked(after)
    rows = []
    for name in sorted({*old, *new}):
        sides = [flags.get(name) for flags in (old, new)]
        if sides[0] == sides[1]:
            continue
        for layer in sorted({side[0] for side in sides if side}, key=_rank):
            values = [side[1] if side and side[0] == layer else None for side in sides]
            fields = sorted({side[2] for side in sides if side})
            variable = _variable(name, layer, before, after)
            rows.append({"flag": name, "fields": fields, "layer": layer, "variable": variable, "before": values[0], "after": values[1]})
    return sorted(rows, key=lambda row: (_rank(row["layer"]), row["layer"], row["flag"]))


def environment_changes(before: Render, after: Render) -> list[dict[str, t.Any]]:
    """Returns name and values before and after (None: not set) of environment variables that are no secrets."""
    old, new = (redact_environment(_release(render).get("environment") or {}) for render in (before, after))
    raw_old, raw_new = (_release(render).get("environment") or {} for render in (before, after))
    names = sorted(name for name in {*old, *new} if raw_old.get(name) != raw_new.get(name))
    return [{"name": name, "before": old.get(name), "after": new.get(name)} for name in names]


def secret_changes(before: Render, after: Render) -> list[str]:
    """Returns a sentence for each secret that comes, goes or changes; a value that is looked up outside of the inventory cannot be compared."""
    old, new = (dict((render or {}).get("secrets") or {}) for render in (before, after))
    told = []
    for name in sorted({*old, *new}):
        if name not in old:
            told.append(f"{name}: is new ({_kept(new[name])})")
        elif name not in new:
            told.append(f"{name}: is taken away")
        elif old[name] != new[name]:
            how = [_kept(side[name]) for side in (old, new)]
            told.append(f"{name}: its vaulted value changes" if how == ["vaulted", "vaulted"] else f"{name}: was {how[0]}, is now {how[1]}")
    return told


def plain_secrets(render: Render) -> list[dict[str, t.Any]]:
    """Returns a finding for each secret whose value anybody who reads the repository reads."""
    named = sorted(name for name, how in ((render or {}).get("secrets") or {}).items() if how == PLAIN)
    return [
        {
            "code": "secret_in_plain_text",
            "severity": "warning",
            "text": f"{name} stands in the inventory in plain text: whoever reads the repository has it, and git keeps it",
            "hint": "encrypt it with ansible-vault, and change the secret itself",
            "source": "",
            "fields": [name],
            "variables": _sources(render, name),
        }
        for name in named
    ]


def _release(render: Render) -> t.Mapping[str, t.Any]:
    return (render or {}).get("release") or {}


def _asked(render: Render) -> dict[str, tuple[str, t.Any, str]]:
    """Layer, value and the engine's field by flag, as the inventory writes it: another engine may call the same flag otherwise."""
    rows = [(str(row["name"]), row) for row in (render or {}).get("flags") or ()]
    return {_written(render, field): (str(row["layer"]), masked(field, row["value"]), field) for field, row in rows}


def _written(render: Render, field: str) -> str:
    variable, dot, name = "".join(_sources(render, field)).partition(".")
    return name if dot and variable.startswith("sglang_") else field


def _rank(layer: str) -> int:
    return _LAYERS.index(layer) if layer in _LAYERS else len(_LAYERS)


def _variable(name: str, layer: str, before: Render, after: Render) -> str:
    """The inventory variable of that layer."""
    for render in (after, before):
        asked = _asked(render).get(name)
        if asked and asked[0] == layer:
            return "".join(_sources(render, asked[2]))
    return ""


def _sources(render: Render, name: str) -> list[str]:
    found = ((render or {}).get("sources") or {}).get(name)
    return [str(found)] if found else []


def _kept(how: t.Any) -> str:
    """How a secret is kept, in words; the digest of what is vaulted is nobody's concern."""
    return "vaulted" if str(how).startswith("vaulted") else _HOW.get(str(how), "of an unknown kind")
