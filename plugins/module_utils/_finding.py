# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""One judgement of a rule, in words for the operator."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One judgement.

    Attributes:
        code: stable name.
        severity: ``error`` (it will not run), ``warning`` (it may not, or not as asked), ``ignored`` (its fields are accepted and do nothing), ``note``.
        text: one sentence.
        hint: what to do.
        source: the document, issue or source line that the rule comes from.
        fields: the engine's fields that are to blame, so that the inventory variable can be named.
    """

    code: str
    severity: str
    text: str
    hint: str = ""
    source: str = ""
    fields: t.Tuple[str, ...] = ()


def errors(findings: t.Iterable[Finding]) -> list[Finding]:
    """Returns those that keep a server from running."""
    return [finding for finding in findings if finding.severity == "error"]
