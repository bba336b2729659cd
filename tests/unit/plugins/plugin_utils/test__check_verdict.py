# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_verdict as verdict

ERROR, SILENT, WARNING, NOTE = (
    {"code": code, "severity": severity, "text": code, "hint": "", "variables": ["v"]}
    for code, severity in (("bad", "error"), ("silent", "error"), ("odd", "warning"), ("fyi", "note"))
)


def host(name, judged, change="changed", sentence="because"):
    return {"host": name, "verdict": judged, "change": change, "restarts": True, "sentence": sentence if judged in verdict.FAILING else ""}


@pytest.mark.parametrize(
    "findings, unjudged, expected",
    [
        ([], "", ("passed", "")),
        ([NOTE], "", ("passed", "")),
        ([NOTE, WARNING], "", ("warned", "")),
        ([WARNING, SILENT], "", ("not honoured", "v: silent")),
        ([SILENT, ERROR], "", ("rejected", "v: bad")),
        ([ERROR, {**ERROR, "text": "worse"}], "", ("rejected", "v: bad; and 1 more")),
        ([ERROR], "no snapshot", ("unjudged", "no snapshot")),
    ],
)
def test_one_host(findings, unjudged, expected):
    assert verdict.of_host(findings, [SILENT], unjudged) == expected


@pytest.mark.parametrize("judged", verdict.VERDICTS[:-1])
def test_the_worst_counts(judged):
    better = verdict.VERDICTS[verdict.VERDICTS.index(judged) : -1]
    assert verdict.of_all([host(one, one) for one in reversed(better)]) == judged


def test_no_host_is_nothing():
    assert (verdict.of_all([]), verdict.sentence([]), verdict.headline([])) == ("nothing", "", "Nothing changes: no server changes")


def test_the_sentence():
    hosts = [host("a", "passed"), host("b", "unjudged"), host("c", "rejected", sentence="a flag")]
    assert verdict.sentence(hosts) == "1 rejected, 1 not judged of 3 servers that this change touches; c: a flag"
    assert verdict.sentence(hosts[2:]) == "1 rejected of the one server that this change touches; c: a flag"
    assert verdict.sentence(hosts[:1]) == ""


@pytest.mark.parametrize(
    "hosts, words",
    [
        ([host("a", "passed")], "1 server will be restarted"),
        ([host("a", "passed"), host("b", "warned"), host("c", "rejected")], "2 servers will be restarted, 1 is rejected"),
        ([{**host("a", "passed"), "restarts": False}, host("b", "passed")], "1 server will be restarted, 1 changes without a restart"),
        ([host(verdict.INVENTORY, "rejected", "unjudged")], "the inventory cannot be read"),
        ([host("a", "passed", "new")], "1 server will be started"),
        ([host("a", "passed", "removed"), host("b", "passed", "removed")], "2 servers leave the inventory and go on running"),
        ([host("a", "unjudged", "unjudged"), host("b", "not honoured")], "1 server asks for what it would not get, 1 could not be judged"),
    ],
)
def test_what_happens(hosts, words):
    assert verdict.consequence(hosts) == words
