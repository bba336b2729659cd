# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Subject, judge
from ansible_collections.llmops.inference.plugins.module_utils._preflight_difference import compare, lines
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import answer, flag

CASES = ("F05",)


def result(effective=None, findings=(), flags=(), version="1", **more):
    return judge({"flags": list(flags), "effective": effective or {}, **more}, findings, Subject({"version": version}, {"tp_size": "v.tp"}))


@pytest.mark.parametrize(
    "current, other, verdict",
    [
        pytest.param({}, {}, "same", id="same"),
        pytest.param({}, {"findings": [Finding("c", "error", "x")]}, "rejected", id="refused"),
        pytest.param({"findings": [Finding("c", "error", "x")]}, {"findings": [Finding("c", "error", "x")]}, "rejected", id="refused-by-both"),
        pytest.param({"findings": [Finding("c", "error", "x")]}, {}, "same", id="refused-by-the-current-one-only"),
        pytest.param({}, {"findings": [Finding("c", "warning", "x")]}, "differs", id="warned"),
        pytest.param({"findings": [Finding("c", "note", "x")]}, {"findings": [Finding("c", "note", "x")]}, "same", id="known-already"),
        pytest.param({"findings": [Finding("c", "note", "x")]}, {"findings": [Finding("c", "note", "y")]}, "differs", id="another-text"),
        pytest.param({}, {"findings": [Finding("memory_budget", "note", "x")]}, "same", id="other-numbers-of-the-budget"),
        pytest.param({"effective": {"a": 1}}, {"effective": {"a": 2}}, "differs", id="resolved"),
        pytest.param({}, {"unexplained": "x"}, "unexplained", id="unexplained"),
        pytest.param({"unexplained": "x"}, {}, "unexplained", id="current-unexplained"),
        pytest.param({"unexplained": "x"}, {"unexplained": "x"}, "unexplained", id="both-unexplained"),
        pytest.param({}, {"unexplained": "x", "findings": [Finding("c", "error", "x")]}, "rejected", id="unexplained-and-refused"),
    ],
)
def test_the_verdict(current, other, verdict):
    assert compare(result(**current), result(**other, version="2"))["verdict"] == verdict


def test_the_whole_difference():
    current = result({"tp_size": 2, "page": 1, "gone": 1}, [Finding("a", "note", "known")], [flag("tp-size", 2)])
    findings = [Finding("a", "note", "known"), Finding("b", "warning", "new"), Finding("c", "error", "refused")]
    difference = compare(current, result({"tp_size": 4, "page": 64, "come": 1}, findings, [flag("tp-size", 2)], "2"))
    assert {name: difference[name] for name in ("format", "from", "to", "verdict")} == {
        "format": 1,
        "from": {"version": "1"},
        "to": {"version": "2"},
        "verdict": "rejected",
    }
    assert [row["text"] for row in difference["refused"]] == ["refused"]
    assert [row["text"] for row in difference["new"]] == ["--tp-size becomes 4, asked 2", "new"]
    assert difference["flags"] == [
        {
            "flag": "--tp-size",
            "variable": "v.tp",
            "before": {"outcome": "honoured", "effective": 2},
            "after": {"outcome": "adjusted", "effective": 4},
        }
    ]
    assert difference["resolved"] == [{"field": "page", "before": 1, "after": 64}], "what both have and nobody asked for"


@pytest.mark.parametrize(
    "before, after, fields",
    [
        ({"random_seed": 1}, {"random_seed": 2}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, ["a.b"]),
        ({"a": {"b": 1}}, {"a": None}, []),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ["a", "b"]),
        ({"a": 1}, {"a": 1}, []),
        ({"a": None}, {"a": False}, []),
        ({"a": None}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": None}, ["a"]),
        ({"a": 1}, {}, []),
    ],
    ids=["noise", "in-a-record", "record-gone", "sorted", "equal", "nothing-either-way", "switched-on", "switched-off", "gone"],
)
def test_resolved(before, after, fields):
    assert [row["field"] for row in compare(result(before), result(after))["resolved"]] == fields


def test_what_one_of_both_was_asked_for_is_no_choice():
    asked = [flag("a", 1)]
    assert compare(result({"a": 1}, flags=asked), result({"a": 2}))["resolved"] == []
    assert compare(result({"a": 1}), result({"a": 2}, flags=asked))["resolved"] == []


@pytest.mark.parametrize(
    "before, after, told",
    [
        ({"tp_size": 2}, {}, []),
        ({}, {"tp_size": 2}, [("unknown", "honoured")]),
        ({}, {}, []),
        ({"tp_size": 2}, {"other": 1}, []),
    ],
    ids=["other-tells-nothing", "current-told-nothing", "neither", "other-has-no-field"],
)
def test_what_the_other_engine_does_not_tell_is_no_difference(before, after, told):
    asked = [flag("tp-size", 2)]
    rows = compare(result(before, flags=asked), result(after, flags=asked))["flags"]
    assert [(row["before"]["outcome"], row["after"]["outcome"]) for row in rows] == told


def test_an_engine_that_refuses_tells_no_outcomes():
    rejection = {"message": "no", "because": [], "at": None, "function": None, "type": "ValueError"}
    difference = compare(result({"tp_size": 2}, flags=[flag("tp-size", 2)]), result(flags=[flag("tp-size", 2)], rejection=rejection))
    assert (difference["verdict"], difference["flags"]) == ("rejected", [])


def test_lines():
    finding = Finding("c", "error", "is gone", "write --new", "s", ("tp_size",))
    current = result({"tp_size": 2, "a": "x" * 61}, flags=[flag("tp-size", 2)])
    other = result({"tp_size": None, "a": "y" * 60}, [finding, Finding("n", "note", "new")], [flag("tp-size", 2)], "2")
    assert lines(compare(current, other), "ct129") == [
        "ct129: SGLang 1 -> 2: these flags would be refused",
        "  refused   v.tp: --tp-size will not take effect: asked 2, the engine makes it None (the engine does not say where)",
        "  refused   v.tp: is gone (write --new)",
        "  new       new",
        "  flag      --tp-size: honoured (2) -> not honoured (None)",
        f"  resolved  a: {'x' * 57}... -> {'y' * 60}",
    ]


@pytest.mark.parametrize(
    "other, said",
    [
        ({}, "nothing would be different"),
        ({"effective": {"a": 2}}, "it would start, and something would be different"),
        ({"unexplained": "x"}, "what it would make of these flags could not be told"),
    ],
)
def test_the_first_line(other, said):
    assert lines(compare(result({"a": 1} if other else {}), result(**other)), "h")[0] == f"h: SGLang 1 -> 1: {said}"


def real(version, name):
    return judge(answer(version, name), [], Subject({"version": version}))


def test_an_upgrade_of_real_engines():
    """F05"""
    difference = compare(real("0.5.16", "graphs"), real("0.5.23", "graphs"))
    assert difference["verdict"] == "rejected"
    assert [row["text"] for row in difference["refused"]] == ["--enforce-piecewise-cuda-graph is not a flag of this engine"]
    difference = compare(real("0.5.16", "plain"), real("0.5.23", "plain"))
    assert (difference["refused"], difference["flags"]) == ([], [])
    assert "random_seed" not in [row["field"] for row in difference["resolved"]]
    assert compare(real("0.5.23", "plain"), real("0.5.23", "plain"))["verdict"] == "same"
