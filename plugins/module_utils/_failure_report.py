# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a person reads when a release failed: what serves now, the cause, the lines that show it, and what to change."""

from __future__ import annotations

import typing as t

_WIDTH = 10


def _headline(result: t.Mapping[str, t.Any]) -> str:
    release, previous, rollback = result["release"], result["previous"] or "the unit that was there before", result["rollback"]
    if result["action"] == "refused":
        return f"release {release} failed here before and is not tried again; the server was not touched"
    if not rollback:
        return f"release {release} failed"
    if rollback["ready"]:
        return f"release {release} failed, {previous} serves again"
    return f"THE SERVER IS DOWN: release {release} failed, and so did putting {previous} back"


def _block(title: str, texts: t.Sequence[str]) -> list[str]:
    return [f"  {title if i == 0 else '':<{_WIDTH}} {text}" for i, text in enumerate(texts)]


def _diagnosis(title: str, diagnosis: t.Mapping[str, t.Any]) -> list[str]:
    doubt = {"suspected": "suspected: ", "unknown": "unknown: "}.get(diagnosis.get("certainty", ""), "")
    lines = _block(title, [doubt + diagnosis["cause"]])
    lines += _block("evidence", diagnosis.get("evidence") or [])
    lines += _block("do", [diagnosis["hint"]] if diagnosis.get("hint") else [])
    return lines + _block("inventory", [diagnosis["remedy"]] if diagnosis.get("remedy") else [])


def report(result: t.Mapping[str, t.Any], host: str) -> list[str]:
    """Returns the report of a failed deployment, one line per entry.

    Args:
        result: of sglang_release.
        host: name of the inventory host.
    """
    lines = [f"{host}: {_headline(result)}"]
    rollback = result["rollback"]
    if rollback and not rollback["ready"]:
        lines += _diagnosis("back", rollback["diagnosis"])
    lines += _diagnosis("cause", result["diagnosis"]) if result["diagnosis"] else []
    lines += _block("change", [result["suspects"]] if result["suspects"] else [])
    lines += _block("why", ["; ".join(result["reasons"])] if result["reasons"] else [])
    phases = [f"{entry['phase'].replace('_', ' ')} {entry['seconds']} s" for entry in result["phases"]]
    lines += _block("start", [", ".join(phases)] if phases else [])
    if rollback and rollback["ready"]:
        lines += _block("back", [f"{result['previous'] or 'the unit that was there before'} was proven after {rollback['elapsed']} s"])
    return lines + _block("note", [*result["remarks"], *(rollback.get("remarks", []) if rollback else [])])


def releases(result: t.Mapping[str, t.Any], host: str) -> list[str]:
    """Returns what a host has to go back to, one line per entry.

    Args:
        result: of sglang_release.
        host: name of the inventory host.
    """
    return [f"{host}: {result['action']}, release {result['release']}", *(f"  {_release(one)}" for one in result["releases"])]


def _release(one: t.Mapping[str, t.Any]) -> str:
    cause = f": {one['cause']}" if one["cause"] else ""
    return f"{one['release']}  {'good now' if one['good'] else 'was good' if one['state'] == 'good' else one['state']}{cause}"
