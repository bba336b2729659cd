# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of JSON Schema that our schemas use, for where no package for it is installed (ansible-test's units); an unknown keyword is an error."""

from __future__ import annotations

import re

_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
_WORDS = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "anyOf", "required", "properties", "additionalProperties"}
_WORDS |= {"items", "minItems", "minLength", "minimum", "pattern"}


def problems(value, schema, root=None, path="record"):
    """Returns what is wrong with a value, one sentence each, with the way to it."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return [] if schema else [f"{path} must not be there"]
    assert set(schema) <= _WORDS, f"unknown keywords: {sorted(set(schema) - _WORDS)}"
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    types = schema.get("type", list(_TYPES))
    if not any(_is(value, one) for one in ([types] if isinstance(types, str) else types)):
        return [f"{path} is no {types}: {value!r}"]
    found = _plain(value, schema, path)
    if "anyOf" in schema:
        options = [problems(value, one, root, path) for one in schema["anyOf"]]
        found += [] if any(not option for option in options) else options[-1]
    if isinstance(value, dict):
        found += _object(value, schema, root, path)
    if isinstance(value, list):
        found += [problem for i, one in enumerate(value) for problem in problems(one, schema.get("items", True), root, f"{path}[{i}]")]
    return found


def _is(value, name):
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _plain(value, schema, path):
    short = isinstance(value, (str, list)) and len(value) < schema.get("minLength" if isinstance(value, str) else "minItems", 0)
    small = _is(value, "number") and value < schema.get("minimum", value)
    other = value not in schema.get("enum", [value]) or value != schema.get("const", value)
    unlike = isinstance(value, str) and not re.search(schema.get("pattern", ""), value)
    return [f"{path} is {value!r}"] if short or small or other or unlike else []


def _object(value, schema, root, path):
    own = schema.get("properties", {})
    found = [f"{path} has no {name}" for name in schema.get("required", []) if name not in value]
    for name, inner in value.items():
        found += problems(inner, own.get(name, schema.get("additionalProperties", True)), root, f"{path}.{name}")
    return found
