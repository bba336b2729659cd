# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The history of a fleet's performance as Markdown: one table for each server and workload, the newest record first."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._record_compare import FASTER, NOT_COMPARABLE, SAME, SLOWER
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import Change
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_history import Series, Step
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_markdown import code, escape

_TITLES = ("Measured", "Commit", "Changed", "tok/s before", "tok/s", "Verdict")
_RULE = ("---", "---", "---", "---:", "---:", "---")
# An engine's move may change a hundred flags, and a table is read.
_MOST = 12
_BREAK = "<br>"


def history_report(found: t.Sequence[Series], remarks: t.Sequence[str] = (), authors: bool = False) -> str:
    """Returns the report.

    Args:
        found: the histories, those of one server beside each other.
        remarks: what a reader has to know of the whole, in sentences.
        authors: whether commits are told with their authors' names.
    """
    parts = ["# History of performance", _summary(found), "\n".join(f"- {escape(text)}" for text in remarks)]
    server = ""
    for series in found:
        if series.server != server:
            server = series.server
            parts.append(f"## {escape(server)}")
        lines = [_TITLES, _RULE, *(_line(step, authors) for step in series.steps)]
        parts += [f"### {escape(series.workload)}", "\n".join(f"| {' | '.join(cells)} |" for cells in lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(found: t.Sequence[Series]) -> str:
    dates = sorted(step.measured_at[:10] for series in found for step in series.steps)
    servers = len({series.server for series in found})
    if not dates:
        return "There is no record yet."
    return (
        f"{_counted(len(dates), 'record')} of {_counted(servers, 'server')}, {escape(dates[0])} to {escape(dates[-1])}. "
        "Each is held against the record before it of the same server and workload; numbers are output tokens per second, the median with its 95 % interval. "
        "Under a commit are the others of the inventory since that record."
    )


def _line(step: Step, authors: bool) -> list[str]:
    at = f" at {step.load}" if step.load else ""
    return [
        escape(step.measured_at[:16].replace("T", " ")),
        _BREAK.join(_commit(step, authors)),
        _BREAK.join(_changes(step)),
        f"{_span(step.old)}{at if step.old else ''}",
        f"{_span(step.new)}{at if step.new else ''}",
        _BREAK.join([_verdict(step), *_accepted(step)]),
    ]


def _commit(step: Step, authors: bool) -> list[str]:
    """The lines of the cell; the message is that of the commit that the record names, or there is none."""
    if not step.commit:
        return ["the record names none"]
    lines = [_message(step.known, authors) if step.known else f"{code(step.commit[:7])} (git does not know it here)"]
    lines += ["and changes that were not committed"] if step.dirty else []
    lines += [_message(commit, authors) for commit in step.between.commits]
    lines += [f"and {_counted(step.between.left_out, 'more commit')}"] if step.between.left_out else []
    return [*lines, *([f"({escape(step.between.remark)})"] if step.between.remark else [])]


def _message(commit: t.Any, authors: bool) -> str:
    return f"{code(commit.id[:7])} {escape(commit.subject)}{f' ({escape(commit.author)})' if authors else ''}"


def _changes(step: Step) -> list[str]:
    if step.comparison is None:
        return ["-"]
    told = [_change(change) for change in step.changes[:_MOST]]
    more = len(step.changes) - _MOST
    return [*told, *([f"and {more} more"] if more > 0 else [])] or ["nothing"]


def _change(change: Change) -> str:
    values = f"{code(change.name)} {code(change.before)} -> {code(change.after)}"
    if change.kind == "release":
        return f"{values}, in nothing that a record names"
    where = change.layer or (change.kind if change.kind == "environment" else "")
    return f"{values} ({escape(where)})" if where else values


def _span(found: view.Range | None) -> str:
    return f"{view.number(found.median)} ({view.number(found.low)} to {view.number(found.high)})" if found else "-"


def _verdict(step: Step) -> str:
    if step.status != "ok":
        return f"{step.status}, counts for nothing"
    if step.comparison is None:
        return "first record"
    verdict, reason = step.comparison.get("verdict"), escape(step.comparison.get("reason") or "")
    ratio = _ratio(step.comparison)
    if verdict in (FASTER, SLOWER):
        return f"**{verdict}**{ratio}"
    if verdict == SAME:
        return f"{SAME}{ratio}" if ratio else f"no verdict: {reason.replace('nothing can be told: ', '', 1)}"
    differs = [escape(one.get("text") if isinstance(one, dict) else one) for one in step.comparison.get("differs") or []]
    return f"{NOT_COMPARABLE}: {'; '.join(differs)}" if verdict == NOT_COMPARABLE and differs else f"{escape(verdict or 'no verdict')}: {reason}"


def _accepted(step: Step) -> list[str]:
    """What the numbers are against the accepted baseline, where they differ from it: the record before may have had other work beside it."""
    verdict = step.accepted.get("verdict")
    return [f"**{verdict}** than the accepted baseline{_ratio(step.accepted)}"] if step.status == "ok" and verdict in (FASTER, SLOWER) else []


def _ratio(comparison: t.Mapping[str, t.Any]) -> str:
    ratio, low, high = (comparison.get(name) for name in ("ratio", "low", "high"))
    return f", {ratio:.2f} ({low:.2f} to {high:.2f})" if view.is_number(ratio) and view.is_number(low) and view.is_number(high) else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
