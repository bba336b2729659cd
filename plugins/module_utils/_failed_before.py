# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a release that failed on this host means for the next try.

A cause of the release (arguments, model, engine, memory for these flags) comes again: it is not tried again. A cause of the host (disk, busy GPU, port) may
be over. An unknown cause gets a second chance, and the same one twice counts as the release's own.
"""

from __future__ import annotations

import time
import typing as t
from dataclasses import fields

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import RELEASE, Diagnosis

OVERRIDE = "-e sglang_server_retry_failed_enabled=true"
_TRIES = 2


def failed_state(before: t.Mapping[str, t.Any], diagnosis: t.Mapping[str, t.Any], **kept: t.Any) -> dict[str, t.Any]:
    """Returns what is kept with a failed release.

    Args:
        before: its state until now.
        diagnosis: of this failure, secrets masked.
        kept: since (wall-clock seconds), secrets (digest of those it was started with), suspects (which of the changes since the good release the evidence
            points to), journal (the last lines, secrets masked: journals are often volatile).
    """
    same = _failed(before) and _diagnosis(before).get("code") == diagnosis.get("code")
    return {"state": "failed", "tries": before.get("tries", 1) + 1 if same else 1, "diagnosis": dict(diagnosis), **kept}


def _failed(state: t.Mapping[str, t.Any]) -> bool:
    return state.get("state") == "failed"


def _diagnosis(state: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
    return state.get("diagnosis") or {}


def _own(state: t.Mapping[str, t.Any]) -> bool:
    where = _diagnosis(state).get("where", "")
    return bool(where == RELEASE or (not where and state.get("tries", 1) >= _TRIES))


def _when(state: t.Mapping[str, t.Any]) -> str:
    since = state.get("since")
    return time.strftime("on %Y-%m-%d %H:%M", time.localtime(since)) if since else "before"


def refusal(state: t.Mapping[str, t.Any], secrets: str) -> Diagnosis | None:
    """Returns why a release is not tried again, or None when it may be.

    Args:
        state: its stored state.
        secrets: digest of the secrets it would get; other secrets are another try.
    """
    if not _failed(state) or not _own(state) or state.get("secrets") != secrets:
        return None
    stored = _diagnosis(state)
    known = {one.name: stored[one.name] for one in fields(Diagnosis) if one.name in stored}
    twice = "" if stored.get("where") else ", and the same way before that"
    cause = f"it failed here {_when(state)}{twice}: {stored.get('cause', 'unknown')}"
    advice = f"{stored['hint']}; " if stored.get("hint") else ""
    return Diagnosis(**{"code": "unknown", **known, "cause": cause, "hint": f"{advice}to try it again as it is: {OVERRIDE}"})


def retried(state: t.Mapping[str, t.Any]) -> str:
    """Returns the note that goes with a new try of a release that failed, or an empty string."""
    if not _failed(state):
        return ""
    kind = {"host": "a cause of the host", "": "an unknown cause"}.get(_diagnosis(state).get("where", ""), "a cause of its own")
    return f"it failed here {_when(state)} for {kind} ({_diagnosis(state).get('cause', 'unknown')}) and is tried again"
