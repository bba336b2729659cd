# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The engine's values as plain data: JSON types, and one level of dotted names for records inside a field."""

from __future__ import annotations

import dataclasses
import enum
import typing as t

_DEPTH = 5
_TEXT = 200


def field_names(cls: type) -> list[str]:
    """Returns the fields of a dataclass (engines up to 0.5.16) or of a msgspec Struct (later)."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    return list(getattr(cls, "__struct_fields__", ()))


def plain(value: t.Any, depth: int = 0) -> t.Any:
    """Returns a value as JSON can hold it; what has no plain form becomes its ``repr``, cut."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict) and depth <= _DEPTH:
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) and depth <= _DEPTH:
        return [plain(inner, depth + 1) for inner in value]
    if field_names(type(value)) and depth <= _DEPTH:
        return {name: plain(getattr(value, name, None), depth + 1) for name in field_names(type(value))}
    return repr(value)[:_TEXT]


def flat(field: str, value: t.Any) -> dict[str, t.Any]:
    """Returns a field under its name, or each part of a record in it under a dotted name (``cuda_graph_config.prefill.backend``)."""
    shown = plain(value)
    if not isinstance(shown, dict) or isinstance(value, dict):
        return {field: shown}
    parts: dict[str, t.Any] = {}
    for key, inner in shown.items():
        if isinstance(inner, dict):
            parts.update((f"{field}.{key}.{name}", deep) for name, deep in inner.items())
        else:
            parts[f"{field}.{key}"] = inner
    return parts
