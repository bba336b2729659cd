# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The report of drift: one document of all hosts, and the same in Markdown with the verdict first."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils._check_escape import code, escape
from ansible_collections.llmops.inference.plugins.plugin_utils._drift import DRIFT, REPAIRED, SAME, UNJUDGED, UNREACHABLE

FORMAT = 1
KIND = "drift"
# Whoever posts the report finds the one before by it.
MARKER = "<!-- llmops.inference: drift -->"
_WORST_FIRST = (UNREACHABLE, UNJUDGED, DRIFT, REPAIRED, SAME)
_LONG = 600

Entry = t.Mapping[str, t.Any]


def document(entries: t.Iterable[Entry], inventory: Entry, at: str) -> dict[str, t.Any]:
    """Returns the report as data.

    Args:
        entries: of all hosts, see ``_drift.describe``.
        inventory: ``commit`` and ``dirty``, see ``_inventory_commit``.
        at: the time, UTC.
    """
    hosts = sorted(entries, key=lambda entry: (_WORST_FIRST.index(entry["status"]), entry["host"]))
    counts = {status: sum(entry["status"] == status for entry in hosts) for status in _WORST_FIRST}
    return {"format": FORMAT, "kind": KIND, "at": at, "inventory": dict(inventory), "counts": counts, "hosts": hosts}


def verdict(counts: t.Mapping[str, int]) -> str:
    """Returns all of it in one sentence."""
    total = sum(counts.values())
    told = [
        f"{_hosts(counts[DRIFT])} of {total} {'differs' if counts[DRIFT] == 1 else 'differ'} from the inventory" if counts[DRIFT] else "",
        f"{_hosts(counts[UNREACHABLE])} could not be reached" if counts[UNREACHABLE] else "",
        f"{_hosts(counts[UNJUDGED])} could not be judged" if counts[UNJUDGED] else "",
        f"{_hosts(counts[REPAIRED])} differed and {'is' if counts[REPAIRED] == 1 else 'are'} repaired" if counts[REPAIRED] else "",
    ]
    sentence = ", ".join(filter(None, told))
    return sentence or f"no drift: {_hosts(total)} {'is' if total == 1 else 'are'} what the inventory says"


def sentences(entry: Entry) -> str:
    """Returns why a host fails the run; empty for one that does not."""
    if entry["status"] in (SAME, REPAIRED):
        return ""
    repair = entry["repair"].get("msg")
    return "; ".join([*(one["text"] for one in entry["findings"]), *([f"the repair failed: {repair}"] if repair else [])])


def markdown(report: Entry) -> str:
    """Returns the report for people: verdict, table, then each host that is not as the inventory says."""
    told = verdict(report["counts"])
    commit = report["inventory"].get("commit")
    at = f"Commit {code(commit[:12])}" if commit else "An inventory without a commit"
    changed = ", with changes that are not committed" if report["inventory"].get("dirty") else ""
    lines = [MARKER, f"# Drift: {told}", "", f"{at}{changed}; looked at {report['at']}.", ""]
    lines += ["| Host | State | Release asked for | Release there | Findings | Repaired |", "|---|---|---|---|---|---|"]
    lines += [_row(entry) for entry in report["hosts"]]
    for entry in report["hosts"]:
        lines += _section(entry) if entry["status"] != SAME else []
    return "\n".join(lines) + "\n"


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _row(entry: Entry) -> str:
    status = entry["status"] if entry["status"] == SAME else f"**{entry['status']}**"
    ids = [code(entry[name]) or "-" for name in ("asked", "there")]
    return f"| {' | '.join([escape(entry['host']), status, *ids, str(len(entry['findings'])), str(len(entry['repaired']))])} |"


def _section(entry: Entry) -> list[str]:
    lines = ["", f"## {escape(entry['host'])}: {entry['status']}", *([""] if entry["findings"] else [])]
    for one in entry["findings"]:
        hint = f". {_capital(one['hint'])}" if one["hint"] else ""
        lines.append(f"- **{one['kind']}**: {escape(one['text'], _LONG)}{escape(hint, _LONG)}")
    lines += _repair(entry)
    if entry["repairable"]:
        lines += ["", f"A deployment repairs what is of the server or the engine: {code('ansible-playbook llmops.inference.deploy -l ' + entry['host'])}"]
    return lines


def _repair(entry: Entry) -> list[str]:
    repair = entry["repair"]
    if not repair:
        return []
    if repair["msg"]:
        first = f"The repair failed: {escape(repair['msg'], _LONG)}"
    elif not entry["repaired"]:
        first = f"A deployment ({escape(repair['action'])}) repaired nothing."
    else:
        first = f"Repaired, and the server was {'' if repair['restarted'] else 'not '}restarted:"
    told = [f"- {escape(text, _LONG)}" for text in entry["repaired"]]
    return ["", first, *(["", *told] if told else [])]


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" if not text.startswith(("ansible-playbook", "systemctl")) else f"Run: {text}"
