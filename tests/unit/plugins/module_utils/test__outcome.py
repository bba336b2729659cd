# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _outcome as outcome

ANSWERS = Path(__file__).parents[2] / "fixtures" / "preflight"
CASES = ("F01", "F03", "F05")


def answer(version, name):
    return json.loads((ANSWERS / f"{version}.json").read_text())[name]


def flag(name, asked, *more, deprecated=None, successor=None):
    field = name.replace("-", "_")
    return {
        "flag": f"--{name}",
        "canonical": f"--{name}",
        "fields": [field, *more],
        "asked": {} if asked is Ellipsis else {field: asked},
        "deprecated": deprecated,
        "successor": successor,
    }


def change(field, before, after, **more):
    common = {"declared_by": None, "function": "_f", "at": "sglang/a.py:1", "statement": "", "because": [], "comment": None, "logged": [], "also": []}
    return {"field": field, "before": before, "after": after, **common, **more}


def guard(test, was=True):
    return {"test": test, "was": was, "line": 1, "comment": None}


def judged(one, effective, *changes):
    (result,) = outcome.outcomes({"flags": [one], "effective": effective, "changes": list(changes)})
    return result


def alias(statement="", **more):
    return change("algorithm", "NEXTN", "EAGLE", statement=statement, **more)


SAME = {"because": [guard('self.algorithm == "NEXTN"')]}
BRACES = "--graph-backend-{decode,prefill}=disabled"


@pytest.mark.parametrize(
    "one, effective, changes, verdict",
    [
        pytest.param(flag("tp-size", 2), {"tp_size": 2}, [], "honoured", id="as-asked"),
        pytest.param(flag("metrics", True), {"metrics": True}, [], "honoured", id="F03-on"),
        pytest.param(flag("metrics", False), {"metrics": False}, [], "honoured", id="F03-off-as-asked"),
        pytest.param(flag("backend", "disabled"), {"backend": "disabled"}, [], "honoured", id="off-as-asked"),
        pytest.param(flag("override", {"a": {"b": 1}}), {"override": {"a": {"b": 1}}}, [], "honoured", id="F01-object"),
        pytest.param(flag("tp-size", 2), {"tp_size": 2}, [change("tp_size", 2, 4), change("tp_size", 4, 2)], "honoured", id="there-and-back"),
        pytest.param(flag("model", "m", "model_path"), {"model_path": "m"}, [], "honoured", id="F05-alias-of-the-option"),
        pytest.param(flag("old", 2, deprecated="Deprecated"), {"old": 2}, [], "translated", id="F05-deprecated"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias("x = resolve_ALIAS(y)")], "translated", id="alias-by-word"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias("x = normalise(y)")], "translated", id="normalised"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias("x = normalize(y)")], "translated", id="normalized"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias("x = NAMES.get(y, y)")], "adjusted", id="a-lookup-may-be-anything"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(**SAME)], "translated", id="alias-by-condition"),
        pytest.param(
            flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(because=[guard("algorithm == 'NEXTN'")])], "translated", id="alias-by-bare-condition"
        ),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(None)], "adjusted", id="no-statement"),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(because=[guard(SAME["because"][0]["test"], False)])], "adjusted", id="was-not"),
        pytest.param(
            flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(because=[guard("self.x"), *SAME["because"]])], "adjusted", id="an-outer-condition"
        ),
        pytest.param(
            flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(because=[guard('self.algorithm == "NEXTN" and self.x')])], "adjusted", id="and-more"
        ),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "EAGLE"}, [alias(because=[guard('self.other == "NEXTN"')])], "adjusted", id="another-field"),
        pytest.param(
            flag("algorithm", "NEXTN"), {"algorithm": "OTHER"}, [alias("x = alias(y)"), change("algorithm", "EAGLE", "OTHER")], "adjusted", id="two-steps"
        ),
        pytest.param(flag("algorithm", "NEXTN"), {"algorithm": "none"}, [change("algorithm", "NEXTN", "none", **SAME)], "not honoured", id="alias-of-off"),
        pytest.param(flag("size", 8), {"size": 4}, [change("size", 8, 4, statement="x = alias(y)")], "adjusted", id="a-number-has-no-alias"),
        pytest.param(flag("size", 8), {"size": 4}, [], "adjusted", id="adjusted"),
        pytest.param(flag("sizes", [1, 2]), {"sizes": [1]}, [], "adjusted", id="F04-shorter-list"),
        pytest.param(flag("metrics", True), {"metrics": False}, [], "not honoured", id="F03-on-becomes-off"),
        pytest.param(flag("metrics", False), {"metrics": True}, [], "not honoured", id="F03-off-becomes-on"),
        pytest.param(flag("metrics", True), {"metrics": "full"}, [], "not honoured", id="bool-becomes-a-word"),
        *[pytest.param(flag("backend", "fa3"), {"backend": off}, [], "not honoured", id=f"becomes-{off}") for off in (None, False, "disabled", "none", [])],
        pytest.param(flag("old", ...), {"other": 1}, [], "not honoured", id="stores-nothing"),
        pytest.param(flag("old", ..., deprecated="Deprecated"), {"other": 1}, [], "not honoured", id="F05-stores-nothing-and-says-so"),
        pytest.param(flag("lost", 1), {"other": 1}, [], "unknown", id="no-field"),
        pytest.param(flag("tp-size", 2), {}, [], "unknown", id="not-resolved"),
        pytest.param(flag("old", ...), {}, [], "unknown", id="not-resolved-and-stores-nothing"),
        pytest.param(flag("graph-backend-prefill", "full"), {"graph_config": {"prefill": {"backend": "full"}}}, [], "honoured", id="part-of-a-record"),
        pytest.param(
            flag("graph-backend-prefill", "full"), {"graph_config": {"prefill": {"backend": "disabled"}}}, [], "not honoured", id="part-of-a-record-is-off"
        ),
        pytest.param(
            flag("no-graph", True, successor=BRACES),
            {"graph_config": {"prefill": {"backend": "disabled"}, "decode": {"backend": "disabled"}}},
            [],
            "translated",
            id="successor-with-braces",
        ),
        pytest.param(
            flag("no-graph", True, successor=BRACES),
            {"graph_config": {"prefill": {"backend": "full"}, "decode": {"backend": "disabled"}}},
            [],
            "not honoured",
            id="only-half-of-the-braces",
        ),
        pytest.param(
            flag("no-graph", True, successor="--graph-backend-prefill=disabled"),
            {"graph_config": {"prefill": {"backend": "disabled"}, "decode": {"backend": "full"}}},
            [],
            "translated",
            id="successor-without-braces",
        ),
        pytest.param(flag("old", ..., successor="--new-name=x"), {"new_name": "x"}, [], "translated", id="successor-of-what-stores-nothing"),
        pytest.param(flag("old", ..., successor="--new-name=x"), {"new_name": "y"}, [], "not honoured", id="another-value-in-the-successor"),
        pytest.param(flag("old", 1, successor="--new-name"), {"new_name": 1}, [], "unknown", id="successor-without-a-value"),
        pytest.param(flag("old", 1, successor="--gone=x"), {"new_name": 1}, [], "unknown", id="successor-is-no-field"),
    ],
)
def test_outcomes(one, effective, changes, verdict):
    assert judged(one, effective, *changes).outcome == verdict


def test_an_outcome_tells_all():
    steps = [change("size", 8, 6), change("size", 6, 4)]
    result = judged(flag("size", 8, "s", deprecated="d", successor="--x"), {"size": 4}, change("other", 8, 4), *steps)
    assert result == outcome.Outcome("--size", ["size", "s"], "size", 8, 4, "adjusted", steps, "d", "--x")
    assert judged(flag("lost", ...), {"a": 1}) == outcome.Outcome("--lost", ["lost"], "", None, None, "not honoured", [], None, None)


def test_an_exact_name_comes_before_a_record():
    effective = {"graph_config": {"backend": {"x": 1}}, "graph_backend_x": "own"}
    assert judged(flag("graph-backend-x", "own"), effective).field == "graph_backend_x"
    assert judged(flag("other", 1, "graph_backend_x"), effective).field == "graph_backend_x"


def test_flatten():
    record = {"a": 1, "g": {"p": {"b": 2}, "q": [3]}, "empty": {}}
    assert outcome.flatten(record) == {**record, "g.p": {"b": 2}, "g.p.b": 2, "g.q": [3]}


@pytest.mark.parametrize(
    "field, before, after, found",
    [
        ("disable_graph", False, True, True),
        ("disable_graph", True, False, False),
        ("disable_graph", None, True, False),
        ("disable_graph", 0, True, False),
        ("config.prefill.disable_graph", False, True, True),
        ("enable_overlap", True, False, True),
        ("enable_overlap", False, True, False),
        ("enable_overlap", True, None, False),
        ("use_mla", True, False, True),
        ("trust_remote", True, False, False),
        ("graph_backend", "full", "disabled", True),
        ("config.prefill.backend", "full", None, True),
        ("graph_backend", "full", "other", False),
        ("graph_backend", "disabled", None, False),
        ("graph_backend", None, "disabled", False),
        ("page_size", 16, None, False),
    ],
)
def test_what_switches_an_optimisation_off(field, before, after, found):
    candidate = {"effective": {}, "changes": [change(field, before, after)]}
    assert [item.change["field"] for item in outcome.disabled(candidate, [])] == ([field] if found else [])


OFF = change("disable_graph", False, True)


@pytest.mark.parametrize(
    "effective, changes, found",
    [
        pytest.param({"disable_graph": True}, [OFF], [False], id="stays-off"),
        pytest.param({"disable_graph": False}, [OFF, change("disable_graph", True, False)], [], id="on-again-later"),
        pytest.param({"disable_graph": True}, [OFF, change("disable_graph", True, False), OFF], [False], id="off-on-off-is-told-once"),
        pytest.param({"other": 1}, [OFF], [False], id="no-such-field-at-the-end"),
        pytest.param({"disable_graph": True}, [change("disable_graph", False, True, logged=["WARNING: off"])], [True], id="logged"),
        pytest.param({"config": {"p": {"backend": None}}}, [change("config.p.backend", "full", None)], [False], id="in-a-record"),
        pytest.param({"config": {"p": {"backend": "full"}}}, [change("config.p.backend", "full", None)], [], id="in-a-record-on-again"),
    ],
)
def test_disabled(effective, changes, found):
    assert [item.logged for item in outcome.disabled({"effective": effective, "changes": changes}, [])] == found


def test_what_was_asked_for_is_not_switched_off_by_itself():
    candidate = {"flags": [flag("disable-graph", True)], "effective": {"disable_graph": True}, "changes": [OFF]}
    assert outcome.disabled(candidate, outcome.outcomes(candidate)) == []


@pytest.mark.parametrize(
    "because, asked",
    [
        ([guard("self.speculative_algorithm is not None")], ["--speculative-algorithm"]),
        ([guard("self.tp_size > 1 and cfg.speculative_algorithm")], ["--tp-size", "--speculative-algorithm"]),
        ([guard("self.is_multimodal")], []),
        ([guard("self.is_multimodal"), guard("self.tp_size > 1")], []),
        ([guard("self.tp_size_more")], []),
        ([], []),
    ],
    ids=["one", "two", "none", "outer", "another-word", "unconditional"],
)
def test_what_a_switch_off_follows_from(because, asked):
    flags = [flag("tp-size", 2), flag("speculative-algorithm", "X")]
    candidate = {"flags": flags, "effective": {"tp_size": 2, "speculative_algorithm": "X"}, "changes": [{**OFF, "because": because}]}
    (found,) = outcome.disabled(candidate, outcome.outcomes(candidate))
    assert found.asked == asked


@pytest.mark.parametrize(
    "tests, message, named",
    [
        pytest.param(["self.language_only and len(self.urls) == 0"], "refused", ["--language-only"], id="condition"),
        pytest.param([], "set --language-only as well", ["--language-only"], id="option-in-the-message"),
        pytest.param([], "--language-only=true is wrong", ["--language-only"], id="option-with-a-value"),
        pytest.param([], "language_only needs more", ["--language-only"], id="field-in-the-message"),
        pytest.param([], "the model needs another port", [], id="plain-words-of-a-message"),
        pytest.param(["model is None"], "x", ["--model"], id="plain-word-of-a-condition"),
        pytest.param([], "set --model", ["--model"], id="plain-option"),
        pytest.param(["self.language_only_more"], "x", [], id="longer-word"),
        pytest.param(["self.mode == 1", "self.port > 2"], "--language-only", ["--language-only", "--port"], id="all-in-the-order-of-the-flags"),
        pytest.param(["x == 3"], "", [], id="nothing"),
    ],
)
def test_implicated(tests, message, named):
    flags = [flag("model", "m"), flag("language-only", True), flag("port", 1)]
    assert [one["flag"] for one in outcome.implicated(iter(tests), message, flags)] == named


@pytest.mark.parametrize(
    "version, name, verdicts, off",
    [
        ("0.5.12", "plain", {"--speculative-algorithm": "translated", "--tp-size": "honoured"}, ["disable_piecewise_cuda_graph"]),
        ("0.5.12", "removed", {"--enable-piecewise-cuda-graph": "not honoured"}, ["disable_piecewise_cuda_graph"]),
        ("0.5.12", "draft", {"--speculative-num-draft-tokens": "adjusted"}, ["disable_piecewise_cuda_graph"]),
        ("0.5.12", "lone", {"--speculative-num-steps": "honoured"}, ["disable_piecewise_cuda_graph", "disable_overlap_schedule"]),
        ("0.5.12", "language", {"--language-only": "unknown", "--tp-size": "unknown"}, ["disable_piecewise_cuda_graph"]),
        ("0.5.16", "graphs", {"--enforce-piecewise-cuda-graph": "translated"}, []),
        ("0.5.16", "disabled", {"--disable-cuda-graph": "translated"}, []),
        ("0.5.23", "plain", {"--speculative-algorithm": "translated"}, []),
        ("0.5.23", "disabled", {"--disable-cuda-graph": "translated"}, []),
    ],
)
def test_answers_of_real_engines(version, name, verdicts, off):
    candidate = answer(version, name)
    results = outcome.outcomes(candidate)
    assert {result.flag: result.outcome for result in results if result.flag in verdicts} == verdicts
    assert [item.change["field"] for item in outcome.disabled(candidate, results)] == off


def test_who_logs_is_told_apart():
    candidate = answer("0.5.12", "lone")
    assert [item.logged for item in outcome.disabled(candidate, outcome.outcomes(candidate))] == [False, True]
