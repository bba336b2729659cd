# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The same flags on two engines: what would be unknown, renamed, deprecated or resolved differently after an upgrade."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._outcome import UNKNOWN, flatten, shown
from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import on_one_line

# Differs on every start, or only names the engine itself.
_NOISE = ("random_seed",)


def compare(current: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns what changes between two preflight results of one argument vector.

    Args:
        current: the result of the engine that runs now.
        other: the result of the engine that is asked about.

    Returns:
        ``refused`` and ``new`` (findings that only the other engine has: errors, and the rest), ``flags`` (asked for, and becoming something else),
        ``resolved`` (not asked for, and chosen differently), ``verdict`` (``rejected``, ``unexplained``, ``differs``, ``same``).
    """
    known = {(row["code"], row["text"]) for row in current["findings"]}
    news = [row for row in other["findings"] if (row["code"], row["text"]) not in known and row["code"] != "memory_budget"]
    refused = [row for row in news if row["severity"] == "error"]
    # An engine that refuses tells no outcomes.
    flags = _flags(current["flags"], [flag for flag in other["flags"] if flag["outcome"] != UNKNOWN])
    resolved = _resolved(current, other)
    new = [row for row in news if row["severity"] != "error"]
    if any(row["severity"] == "error" for row in other["findings"]):
        verdict = "rejected"
    elif not (current["explained"] and other["explained"]):
        verdict = "unexplained"
    else:
        verdict = "differs" if new or flags or resolved else "same"
    return {
        "format": 1,
        "from": dict(current["engine"]),
        "to": dict(other["engine"]),
        "verdict": verdict,
        "refused": refused,
        "new": new,
        "flags": flags,
        "resolved": resolved,
    }


def _flags(current: t.Sequence[t.Mapping[str, t.Any]], other: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    now = {flag["flag"]: flag for flag in current}
    rows = []
    for flag in other:
        before = now.get(flag["flag"])
        if before and (before["outcome"], before["effective"]) != (flag["outcome"], flag["effective"]):
            rows.append({"flag": flag["flag"], "variable": flag["variable"], **{side: _what(entry) for side, entry in (("before", before), ("after", flag))}})
    return rows


def _what(flag: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {"outcome": flag["outcome"], "effective": flag["effective"]}


def _resolved(current: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    before, after = flatten(current["effective"]), flatten(other["effective"])
    asked = {flag["field"] for result in (current, other) for flag in result["flags"]}
    rows = []
    for field in sorted(before.keys() & after.keys()):
        whole = isinstance(before[field], t.Mapping) or isinstance(after[field], t.Mapping)
        if field in asked or field in _NOISE or whole or before[field] == after[field] or not (before[field] or after[field]):
            continue
        rows.append({"field": field, "before": before[field], "after": after[field]})
    return rows


def lines(difference: t.Mapping[str, t.Any], host: str) -> list[str]:
    """Returns the comparison, one line per entry."""
    versions = f"SGLang {difference['from'].get('version', '')} -> {difference['to'].get('version', '')}"
    said = {
        "rejected": "these flags would be refused",
        "unexplained": "what it would make of these flags could not be told",
        "differs": "it would start, and something would be different",
        "same": "nothing would be different",
    }
    rows = [f"{host}: {versions}: {said[difference['verdict']]}"]
    for title, found in (("refused", difference["refused"]), ("new", difference["new"])):
        rows += [f"  {title:<9} {on_one_line(row)}" for row in found]
    for row in difference["flags"]:
        sides = [f"{side['outcome']} ({shown(side['effective'])})" for side in (row["before"], row["after"])]
        rows.append(f"  flag      {row['flag']}: {sides[0]} -> {sides[1]}")
    rows += [f"  resolved  {row['field']}: {shown(row['before'])} -> {shown(row['after'])}" for row in difference["resolved"]]
    return rows
