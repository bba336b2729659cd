# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a deployment did, as data and in words; secrets masked."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._probe import present, sentence
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact, redact_data
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.module_utils._switch import Result
from ansible_collections.llmops.inference.plugins.module_utils._watch import Outcome


def describe_release(result: Result, store: Store | None, secrets: t.Sequence[str], holder: t.Mapping[str, t.Any] | None = None) -> dict[str, t.Any]:
    """Returns the keys of the module's result, the same ones on success and failure.

    Args:
        result: what was done.
        store: the releases of the instance; None where they cannot be read.
        secrets: values to mask.
        holder: who holds the instance's lock, where that is why nothing was done.
    """
    return {
        "action": result.action,
        "release": result.release,
        "previous": result.previous,
        "reasons": [redact(reason, secrets) for reason in result.reasons],
        "suspects": redact(result.suspects, secrets),
        "changes": result.changes,
        "differences": [redact(text, secrets) for text in result.differences],
        "gate": redact_data(dict(result.gate), secrets),
        "rollback": _rollback(result.rollback, secrets),
        "releases": store.history() if store else [],
        "holder": dict(holder or {}),
        "benchmark": store.read(result.release, "benchmark") if store else {},
        "start": store.read(result.release, "vitals") if store else {},
        **present(result.outcome, secrets),
    }


def _rollback(rollback: Outcome | None, secrets: t.Sequence[str]) -> dict[str, t.Any]:
    if rollback is None:
        return {}
    told = present(rollback, secrets)
    return {name: told[name] for name in ("ready", "phases", "elapsed", "diagnosis", "remarks")}


def failure(result: Result, unit: str, secrets: t.Sequence[str]) -> str:
    """Returns what a person reads first: a rollback that failed too, then the cause, what to do, what is suspected, and what serves now."""
    outcome = result.outcome or Outcome(False)
    what = "is not tried again" if result.action == "refused" else "failed"
    parts = [f"release {result.release} {what}: {sentence(outcome, secrets)}"]
    if result.suspects:
        parts.append(f"{result.suspects[0].upper()}{result.suspects[1:]}")
    parts += [remark for remark in outcome.remarks if "sglang_server_rollback_enabled" in remark]
    if result.action == "refused":
        parts.append("The server was not touched")
    text = ". ".join(parts)
    if result.rollback is None:
        return redact(f"{unit}: {text}", secrets)
    name = f"the last good release {result.previous}" if result.previous else "the unit that was there before"
    if result.rollback.ready:
        return redact(f"{unit}: {text}. {name[0].upper()}{name[1:]} is serving again", secrets)
    return redact(f"{unit}: THE SERVER IS DOWN: putting {name} back failed as well: {sentence(result.rollback, secrets)}. Before that, {text}", secrets)
