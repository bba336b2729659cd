# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a change makes of the engine, from the preflights of both sides: effective configuration, outcomes of flags, findings and memory."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._outcome import NOT_HONOURED, flatten
from ansible_collections.llmops.inference.plugins.plugin_utils._check_flags import masked

# A document of docs/preflight.schema.json.
Preflight = t.Optional[t.Mapping[str, t.Any]]
Finding = t.Mapping[str, t.Any]
# Drawn at every start.
_NOISE = ("random_seed",)
# What the parser or the engine refuses is no policy's; see ``_preflight``, which tells the outcomes of flags after these and before its own rules.
_REFUSED = ("flag_unknown", "flag_abbreviated", "flag_ambiguous", "value_invalid", "word_unexpected", "engine_rejects", "unexplained")
_OF_ONE_FLAG = (NOT_HONOURED.replace(" ", "_"), "adjusted", "translated")


def effective_changes(before: Preflight, after: Preflight) -> list[dict[str, t.Any]]:
    """Returns field and values before and after of what the engine would run with otherwise, asked for or not; records by their parts.

    None for what is not there. An engine that refuses resolves nothing, and a field that only one of two engines has is none that changes.
    """
    if not (before and after and before["effective"] and after["effective"]):
        return []
    old, new = flatten(before["effective"]), flatten(after["effective"])
    same_engine = before["engine"].get("version") == after["engine"].get("version")
    names = {*old, *new} if same_engine else old.keys() & new.keys()
    rows = []
    for name in sorted(names):
        values = old.get(name), new.get(name)
        whole = any(isinstance(value, t.Mapping) for value in values)
        if name in _NOISE or whole or values[0] == values[1] or not any(values):
            continue
        rows.append({"field": name, "before": masked(name, values[0]), "after": masked(name, values[1])})
    return rows


def outcomes(after: Preflight, changed: t.Iterable[str]) -> list[dict[str, t.Any]]:
    """Returns what becomes of the flags that are asked for otherwise, and of each that is not honoured, with the reason where one is told.

    Args:
        after: of the candidate.
        changed: names of flags that the change touches.
    """
    if not after:
        return []
    touched, rows = set(changed), []
    for flag in after["flags"]:
        own = bool(touched & _names(flag))
        if not own and flag["outcome"] != NOT_HONOURED:
            continue
        finding = _told(flag, after["findings"])
        why = (finding["text"], finding["hint"], finding["source"]) if finding else ("", "", "")
        shown = {side: masked(next(iter(sorted(_names(flag)))), flag[side]) for side in ("asked", "effective")}
        row = {"flag": flag["flag"], "variable": flag["variable"], "outcome": flag["outcome"], **shown, "changed": own}
        rows.append({**row, "why": why[0], "hint": why[1], "source": why[2]})
    return rows


def by_policy(after: Preflight) -> list[Finding]:
    """Returns the errors that are errors only since a flag that does nothing is not tolerated (``sglang_server_not_honoured: fail``)."""
    if not after:
        return []
    told = [_told(flag, after["findings"]) for flag in after["flags"] if flag["outcome"] == NOT_HONOURED]
    return [finding for finding in told if finding and finding["severity"] == "error"]


def split_findings(before: Preflight, after: Preflight) -> dict[str, list[Finding]]:
    """Returns the findings of the candidate: ``new`` by this change, and ``before`` for those that were there. Of memory only what is wrong is told."""
    found: dict[str, list[Finding]] = {"new": [], "before": []}
    known = {_key(row) for row in before["findings"]} if before else set()
    for row in after["findings"] if after else ():
        if row["code"] != "memory_budget":
            found["before" if _key(row) in known else "new"].append(row)
    return found


def memory_changes(before: Preflight, after: Preflight) -> dict[str, t.Any] | None:
    """Returns the account of one GPU before and after, in GiB by the names of its rows, with the tokens of the KV pool; None where none is told."""
    old, new = ((side or {}).get("memory") or {} for side in (before, after))
    if not new:
        return None
    sides = [{row["name"]: round(row["gb"], 2) for row in side.get("rows", ())} for side in (old, new)]
    rows = [{"name": name, "before": sides[0].get(name), "after": sides[1].get(name)} for name in dict.fromkeys([*sides[1], *sides[0]])]
    pairs = {name: {"before": old.get(name), "after": new.get(name)} for name in ("kv_tokens", "verdict")}
    return {"rows": rows, **pairs}


def _names(flag: t.Mapping[str, t.Any]) -> set[str]:
    """The names under which an inventory may know a flag."""
    spelt = flag["flag"].lstrip("-").split("=", maxsplit=1)[0].replace("-", "_")
    return {name for name in (flag["field"], spelt) if name}


def _told(flag: t.Mapping[str, t.Any], findings: t.Iterable[Finding]) -> Finding | None:
    """The finding that tells the outcome of a flag: the first that is about it and is no refusal."""
    return next((row for row in findings if row["code"] not in _REFUSED and set(row["fields"]) & _names(flag)), None)


def _key(row: Finding) -> tuple[str, str, tuple[str, ...]]:
    """Which finding it is: sizes that a rule has computed may differ from one candidate to the next, values that were asked for may not."""
    text = row["text"] if row["code"] in _OF_ONE_FLAG else re.sub(r"\d[\d,.]*", "0", row["text"])
    return row["code"], text, tuple(row["fields"])
