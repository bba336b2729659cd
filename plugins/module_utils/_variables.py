# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Words about variables: names that no role knows, and what a value is."""

from __future__ import annotations

import difflib
import typing as t


def kind_of(value: t.Any) -> str:
    """Returns what a value is in words: its class would be one of Ansible's own, of no use to an operator."""
    kinds = ((bool, "a boolean"), (str, "text"), ((int, float), "a number"), (t.Mapping, "a mapping"), ((list, tuple), "a list"))
    return "nothing" if value is None else next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)


def unknown_variables(names: t.Iterable[str], known: t.Iterable[str], only_near: bool = False) -> list[str]:
    """Returns one sentence for each name that is not known, with the nearest known one.

    Args:
        names: variables that the inventory sets, in the collection's namespaces.
        known: options of all roles and playbooks.
        only_near: let names pass that resemble none: in a namespace that others use as well.
    """
    known = sorted(known)
    sentences = []
    for name in sorted(set(names) - set(known)):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.85 if only_near else 0.6)
        if only_near and not near:
            continue
        sentences.append(f"{name} is no variable of this collection{f'; did you mean {near[0]}?' if near else '.'}")
    return sentences
