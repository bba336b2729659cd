# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The verdict on a proposed change: of one host, of all, and in one sentence."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import on_one_line

REJECTED, NOT_HONOURED, UNJUDGED, WARNED, PASSED, NOTHING = "rejected", "not honoured", "unjudged", "warned", "passed", "nothing"
# The worst first.
VERDICTS = (REJECTED, NOT_HONOURED, UNJUDGED, WARNED, PASSED, NOTHING)
FAILING = (REJECTED, NOT_HONOURED, UNJUDGED)
CHANGED, NEW, REMOVED, NOT_RENDERED = "changed", "new", "removed", "unjudged"
_TITLES = {
    REJECTED: "Rejected",
    NOT_HONOURED: "Not honoured",
    UNJUDGED: "Not judged",
    WARNED: "Passed, with something to look at",
    PASSED: "Passed",
    NOTHING: "Nothing changes",
}
_WHAT = {REJECTED: "rejected", NOT_HONOURED: "not honoured", UNJUDGED: "not judged"}

# In the place of a host, where none can be named.
INVENTORY = "the inventory"

Host = t.Mapping[str, t.Any]
Finding = t.Mapping[str, t.Any]


def of_host(findings: t.Sequence[Finding], tolerable: t.Sequence[Finding], unjudged: str, refused: bool = False) -> tuple[str, str]:
    """Returns the verdict on a host, and why it fails in one sentence; empty where it does not.

    Args:
        findings: of the candidate.
        tolerable: those of its errors that a policy has made errors, see :func:`_check_preflight.by_policy`.
        unjudged: why it could not be judged; empty where it was.
        refused: that is because the collection's own checks of the inventory refuse it.
    """
    errors = [row for row in findings if row["severity"] == "error"]
    worse = [row for row in errors if row not in tolerable]
    if unjudged:
        return REJECTED if refused else UNJUDGED, unjudged
    if errors:
        chosen = worse or errors
        more = len(chosen) - 1
        return REJECTED if worse else NOT_HONOURED, f"{on_one_line(chosen[0])}{f'; and {more} more' if more else ''}"
    return (WARNED if any(row["severity"] == "warning" for row in findings) else PASSED), ""


def of_all(hosts: t.Iterable[Host]) -> str:
    """Returns the worst of the hosts' verdicts."""
    return min((host["verdict"] for host in hosts), key=VERDICTS.index, default=NOTHING)


def sentence(hosts: t.Sequence[Host]) -> str:
    """Returns why the whole change fails, in one line; empty where it does not."""
    failing = sorted((host for host in hosts if host["verdict"] in FAILING), key=lambda host: VERDICTS.index(host["verdict"]))
    if not failing:
        return ""
    counts = [(verdict, sum(host["verdict"] == verdict for host in failing)) for verdict in FAILING]
    told = ", ".join(f"{count} {_WHAT[verdict]}" for verdict, count in counts if count)
    of = "the one server" if len(hosts) == 1 else f"{len(hosts)} servers"
    return f"{told} of {of} that this change touches; {failing[0]['host']}: {failing[0]['sentence']}"


def headline(hosts: t.Sequence[Host]) -> str:
    """Returns the verdict and what happens when the change is merged, in one line without values of the inventory."""
    return f"{_TITLES[of_all(hosts)]}: {consequence(hosts)}"


def consequence(hosts: t.Sequence[Host]) -> str:
    """Returns what happens when the change is merged: "2 servers will be restarted, 1 is rejected"."""
    if [host["host"] for host in hosts] == [INVENTORY]:
        return "the inventory cannot be read"
    parts = [
        (_number(hosts, lambda host: _stays(host) and host["restarts"]), "will be restarted", "will be restarted"),
        (_number(hosts, lambda host: _stays(host) and not host["restarts"]), "changes without a restart", "change without a restart"),
        (_number(hosts, lambda host: host["change"] == NEW and host["verdict"] not in FAILING), "will be started", "will be started"),
        (_number(hosts, lambda host: host["change"] == REMOVED), "leaves the inventory and goes on running", "leave the inventory and go on running"),
        (_number(hosts, lambda host: host["verdict"] == REJECTED), "is rejected", "are rejected"),
        (_number(hosts, lambda host: host["verdict"] == NOT_HONOURED), "asks for what it would not get", "ask for what they would not get"),
        (_number(hosts, lambda host: host["verdict"] == UNJUDGED), "could not be judged", "could not be judged"),
    ]
    told = [(count, one if count == 1 else several) for count, one, several in parts if count]
    if not told:
        return "no server changes"
    first, *rest = told
    return ", ".join([f"{first[0]} server{'' if first[0] == 1 else 's'} {first[1]}", *(f"{count} {words}" for count, words in rest)])


def _stays(host: Host) -> bool:
    return host["change"] == CHANGED and host["verdict"] not in FAILING


def _number(hosts: t.Iterable[Host], wanted: t.Callable[[Host], bool]) -> int:
    return sum(1 for host in hosts if wanted(host))
