# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_preflight as check
from ansible_collections.llmops.inference.tests.unit.check_changes import made, memory, preflight
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import flag


@pytest.mark.parametrize(
    "before, after, fields",
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"random_seed": 1, "a": 1}, {"random_seed": 2, "a": 1}, []),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, ["a.b"]),
        ({"a": None, "x": 1}, {"a": False, "x": 1}, []),
        ({"x": 1}, {"x": 1, "a": 1}, ["a"]),
        ({"a": 1, "x": 1}, {"x": 1}, ["a"]),
        ({"a": 1}, {}, []),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ["a", "b"]),
    ],
    ids=["same", "value", "noise", "record", "nothing-either-way", "new", "gone", "refused", "sorted"],
)
def test_effective(before, after, fields):
    assert [row["field"] for row in check.effective_changes(made(before), made(after))] == fields


def test_effective_of_two_engines_and_of_none():
    assert check.effective_changes(made({"a": 1, "b": 1}), made({"a": 2, "c": 1}, version="0.5.23")) == [{"field": "a", "before": 1, "after": 2}]
    assert check.effective_changes(None, made({"a": 1})) == check.effective_changes(made({"a": 1}), None) == []
    assert check.effective_changes(made({"api_key": "hunter22", "a": 1}), made({"api_key": "hunter33", "a": 1}))[0]["after"] == "********"


def test_outcomes_of_what_changes_and_of_what_does_nothing():
    asked = [flag("tp-size", 2), flag("page", 8), flag("lost", True), flag("same", 1)]
    document = made({"tp_size": 2, "page": 4, "lost": False, "same": 1}, asked)
    rows = check.outcomes(document, ["tp_size", "page"])
    assert [(row["flag"], row["outcome"], row["changed"], row["why"]) for row in rows] == [
        ("--tp-size", "honoured", True, ""),
        ("--page", "adjusted", True, "--page becomes 4, asked 8"),
        ("--lost", "not honoured", False, "--lost will not take effect: asked True, the engine makes it False"),
    ]
    assert check.outcomes(None, ["tp_size"]) == []


def test_an_alias_is_the_same_flag():
    (row,) = [row for row in check.outcomes(preflight(), ["tp_size"]) if row["changed"]]
    assert (row["flag"], row["asked"], row["effective"], row["variable"]) == ("--tp-size", 2, 2, "sglang_server_hardware_flags.tp_size")


@pytest.mark.parametrize(
    "document, codes",
    [
        pytest.param(preflight("removed"), ["not_honoured"], id="real"),
        pytest.param(preflight("removed", not_honoured="warn"), [], id="tolerated"),
        pytest.param(preflight(), [], id="honoured"),
        pytest.param(preflight("language"), [], id="refused"),
        pytest.param(preflight("lone", findings=[Finding("by_rule", "ignored", "x", fields=("speculative_num_steps",))]), ["by_rule"], id="by-a-rule"),
        pytest.param(
            made({"a": False}, [flag("a", True)], [Finding("other", "error", "x", fields=("a",))]), ["not_honoured"], id="another-error-of-the-same-flag"
        ),
        pytest.param(None, [], id="none"),
    ],
)
def test_errors_that_are_policy(document, codes):
    assert [row["code"] for row in check.by_policy(document)] == codes


def test_findings_are_new_or_were_there():
    before = made({"a": 1}, findings=[Finding("kv", "warning", "about 240,652 tokens"), Finding("gone", "note", "gone")])
    after = made({"a": 1}, findings=[Finding("kv", "warning", "about 272,000 tokens"), Finding("come", "note", "come"), Finding("memory_budget", "note", "x")])
    found = check.split_findings(before, after)
    assert {side: [row["code"] for row in rows] for side, rows in found.items()} == {"new": ["come"], "before": ["kv"]}
    assert [row["code"] for row in check.split_findings(None, after)["new"]] == ["kv", "come"]
    assert check.split_findings(before, None) == {"new": [], "before": []}


def test_another_value_of_one_flag_is_new():
    sides = [made({"page": 4}, [flag("page", asked)]) for asked in (8, 6)]
    assert [row["code"] for row in check.split_findings(*sides)["new"]] == ["adjusted"]


def test_memory():
    found = check.memory_changes({"memory": memory()}, {"memory": memory(8.304, 272000)})
    assert found == {
        "rows": [{"name": "weights", "before": 25.48, "after": 25.48}, {"name": "KV pool", "before": 7.34, "after": 8.3}],
        "kv_tokens": {"before": 240652, "after": 272000},
        "verdict": {"before": "fits", "after": "fits"},
    }
    assert check.memory_changes(None, {"memory": memory()})["rows"][0] == {"name": "weights", "before": None, "after": 25.48}
    assert check.memory_changes({"memory": memory()}, {"memory": None}) is check.memory_changes({"memory": memory()}, None) is None
