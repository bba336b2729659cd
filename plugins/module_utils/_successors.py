# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What other engines' parser tables say of a flag that one engine does not have: which had it, and what they wanted to be written instead."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers


def told_elsewhere(name: str, tables: t.Iterable[t.Mapping[str, t.Any]]) -> str:
    """Returns a phrase about a flag that other engines know, empty where none does.

    An engine that names a successor tells more than one that merely has the flag; among equals the newest speaks.

    Args:
        name: the flag without dashes in front, ``_`` or ``-`` inside.
        tables: parsed ``flags.json`` documents of other engines.
    """
    option = f"--{name.replace('_', '-')}"
    known = [(document["engine"], entry) for document in tables for entry in document["flags"] if option in entry["options"]]
    if not known:
        return ""
    engine, entry = max(known, key=lambda pair: (bool(pair[1].get("successor")), bool(pair[1].get("deprecated")), numbers(pair[0])))
    if entry.get("successor"):
        return f"SGLang {engine} has it as an old spelling of {entry['successor']}"
    if entry.get("deprecated"):
        return f"SGLang {engine} says of it: {entry['deprecated']}"
    return f"SGLang {engine} has it"
