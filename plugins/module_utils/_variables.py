# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Finds misspelt variables: every name in the collection's namespaces that no role knows."""

from __future__ import annotations

import difflib
import typing as t


def unknown_variables(names: t.Iterable[str], known: t.Iterable[str]) -> list[str]:
    """Returns one sentence for each name that is not known, with the nearest known one.

    Args:
        names: variables that the inventory sets, in the collection's namespaces.
        known: options of all roles and playbooks.
    """
    known = sorted(known)
    sentences = []
    for name in sorted(set(names) - set(known)):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        sentences.append(f"{name} is no variable of this collection{f'; did you mean {near[0]}?' if near else '.'}")
    return sentences
