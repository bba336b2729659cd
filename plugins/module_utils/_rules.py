# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""All rules about a server that is to be: what its engine accepts and then dies of or ignores."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import (
    _rules_attention,
    _rules_flags,
    _rules_gpus,
    _rules_model,
    _rules_parallel,
    _rules_ports,
    _rules_speculative,
)
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

Rule = t.Callable[[Candidate], t.List[Finding]]

# What no engine says before it loads, or at all.
RULES: t.Tuple[Rule, ...] = (
    *_rules_parallel.RULES,
    *_rules_gpus.RULES,
    *_rules_attention.RULES,
    *_rules_speculative.RULES,
    *_rules_flags.RULES,
    *_rules_ports.RULES,
)
# What an engine says itself while it resolves its flags: only for where it could not be asked.
FALLBACK_RULES: t.Tuple[Rule, ...] = (
    *_rules_parallel.FALLBACK_RULES,
    *_rules_attention.FALLBACK_RULES,
    *_rules_speculative.FALLBACK_RULES,
    *_rules_flags.FALLBACK_RULES,
    *_rules_ports.FALLBACK_RULES,
    *_rules_model.FALLBACK_RULES,
)


def judge(candidate: Candidate, architectures: t.AbstractSet[str] = frozenset(), fallback: bool = False) -> list[Finding]:
    """Returns what all rules find, errors first.

    Args:
        candidate: the server.
        architectures: what the engine has models for (``_rules_model.known_architectures``); empty where that is not known.
        fallback: the engine could not be asked: what it says itself is judged as well.
    """
    rules = RULES + FALLBACK_RULES if fallback else RULES
    findings = [finding for rule in rules for finding in rule(candidate)]
    findings += _rules_model.architecture(candidate, architectures)
    return sorted(findings, key=lambda finding: ("error", "warning", "ignored", "note").index(finding.severity))
