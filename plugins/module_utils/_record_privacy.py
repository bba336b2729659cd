# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Keeps secrets (see ``_redact``) and home directories out of records, which go into git."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK, redact, redact_data, redact_environment

# The home of anybody, with his name; what lies below it stays.
_HOME = re.compile(r"(?<![\w.-])(?:(?:/var)?/home/|/Users/)[^/\s'\":,]+|(?<![\w./-])/root(?![\w.-])")


def clean(record: t.Mapping[str, t.Any], secrets: t.Iterable[str] = ()) -> dict[str, t.Any]:
    """Returns a copy of a record that may be stored: secrets masked, home directories as ``~``.

    Args:
        record: a whole record.
        secrets: values to mask wherever they stand.
    """
    known = tuple(secrets)
    found: dict[str, t.Any] = redact_data(record, known)
    if record.get("environment"):
        found["environment"] = redact_data(redact_environment(record["environment"]), known)
    if record.get("flags"):
        found["flags"] = [{**flag, "value": redact_data({flag["name"]: flag["value"]}, known)[flag["name"]]} for flag in record["flags"]]
    if (record.get("release") or {}).get("argv"):
        found["release"] = {**found["release"], "argv": _arguments(found["release"]["argv"])}
    return t.cast(t.Dict[str, t.Any], _homeless(found))


def leaks(record: t.Mapping[str, t.Any], secrets: t.Iterable[str] = ()) -> list[str]:
    """Returns where a record holds what it must not, by the keys that lead there: "release.argv.3"; empty for a clean one."""
    return _differences(record, clean(record, secrets))


def _arguments(argv: t.Sequence[str]) -> list[str]:
    """Words of a command line: a secret is the word after its option."""
    return [MASK if before.startswith("--") and redact(f"{before} x") != f"{before} x" else word for before, word in zip(["", *argv], argv)]


def _homeless(value: t.Any) -> t.Any:
    if isinstance(value, t.Mapping):
        return {key: _homeless(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_homeless(inner) for inner in value]
    return _HOME.sub("~", value) if isinstance(value, str) else value


def _differences(before: t.Any, after: t.Any) -> list[str]:
    """Paths of the values that differ between two pieces of data; an empty path for the whole."""
    if before == after:
        return []
    if isinstance(before, t.Mapping) and isinstance(after, t.Mapping):
        pairs = [(key, before[key], after[key]) for key in before]
    elif isinstance(before, list) and isinstance(after, list):
        pairs = [(str(i), *pair) for i, pair in enumerate(zip(before, after))]
    else:
        return [""]
    return [f"{key}.{path}".rstrip(".") for key, old, new in pairs for path in _differences(old, new)]
