# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy, Subject, because_of, judge, source_of, why
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import BRACES, OFF, answer, change, flag, guard

CASES = ("F05", "F07", "F08")
DEFAULTS = Policy()
SOURCES = {"tp_size": "sglang_server_flags.tp", "tensor_parallel_size": "sglang_server_flags.tp", "language_only": "ct129.language_only", "size": "ct129.size"}
IGNORED = Finding("ignored_here", "ignored", "size does nothing here", "take it away", "a.py:3", ("size",))


def judged(candidate, findings=(), policy=DEFAULTS, memory=None):
    return judge(candidate, findings, Subject({"version": "9.9"}, SOURCES, {"gpus": []}, policy), memory)


def one(asked=8, effective=8, *changes, name="size", **more):
    """A candidate with one flag."""
    return {"flags": [flag(name, asked, **more)], "effective": {} if effective is ... else {"size": effective, "other": 1}, "changes": list(changes)}


def rows(result, code):
    return [row for row in result["findings"] if row["code"] == code]


def test_the_whole_document():
    result = judged(one(8, 4, change("size", 8, 4)), memory={"rows": []})
    assert result == {
        "format": 1,
        "verdict": "warned",
        "explained": True,
        "engine": {"version": "9.9"},
        "hardware": {"gpus": []},
        "findings": [
            {
                "code": "adjusted",
                "severity": "warning",
                "text": "--size becomes 4, asked 8",
                "hint": "",
                "source": "_f, sglang/a.py:1",
                "fields": ["size"],
                "variables": ["ct129.size"],
            }
        ],
        "flags": [
            {
                "flag": "--size",
                "variable": "ct129.size",
                "field": "size",
                "asked": 8,
                "effective": 4,
                "outcome": "adjusted",
                "deprecated": None,
                "successor": None,
            }
        ],
        "changes": [change("size", 8, 4)],
        "effective": {"size": 4, "other": 1},
        "environment": {},
        "memory": {"rows": []},
        "probe": {"touched": [], "asked": {}, "missing": []},
    }
    assert json.loads(json.dumps(result)) == result


def test_the_probes_own_account_is_kept():
    result = judged({**one(), "touched": ["connect"], "asked": {"is_available": 3}, "missing": ["f"], "environment": {"A": "1"}})
    assert result["probe"] == {"touched": ["connect"], "asked": {"is_available": 3}, "missing": ["f"]} and result["environment"] == {"A": "1"}


def test_nothing_to_say():
    assert (judged(one())["verdict"], judged(one())["findings"]) == ("passed", [])


@pytest.mark.parametrize(
    "severities, verdict",
    [
        ([], "passed"),
        (["note"], "passed"),
        (["warning", "note"], "warned"),
        (["warning", "error", "note"], "rejected"),
        (["ignored"], "passed"),
    ],
    ids=["none", "note", "warning", "error", "ignored-what-was-not-asked"],
)
def test_the_verdict(severities, verdict):
    """F08: an error of our own rules rejects."""
    result = judged(one(), [Finding("c", severity, severity, fields=("other",)) for severity in severities])
    assert result["verdict"] == verdict
    assert [row["severity"] for row in result["findings"]] == [severity for severity in severities if severity != "ignored"]


@pytest.mark.parametrize(
    "policy, severity, verdict", [("ignore", "note", "passed"), ("warn", "warning", "warned"), ("fail", "error", "rejected")], ids=["ignore", "warn", "fail"]
)
@pytest.mark.parametrize("how", ["engine", "rule", "off"])
def test_policies(how, policy, severity, verdict):
    candidates = {"engine": one(8, None), "rule": one(), "off": {"changes": [OFF], "effective": {"disable_graph": True}}}
    for own in ("ignore", "warn", "fail"):
        settings = Policy(silently_disabled=policy, not_honoured=own) if how == "off" else Policy(not_honoured=policy, silently_disabled=own)
        result = judged(candidates[how], [IGNORED] if how == "rule" else [], settings)
        assert [row["severity"] for row in result["findings"]] == [severity]
        assert result["verdict"] == verdict


def test_policies_by_default():
    assert judged(one(8, None))["verdict"] == "rejected"
    assert judged({"changes": [OFF], "effective": {"disable_graph": True}})["verdict"] == "warned"


@pytest.mark.parametrize(
    "candidate, code, text, hint, source",
    [
        pytest.param(
            one(8, None, change("size", 8, None, because=[guard("self.x")])),
            "not_honoured",
            "--size will not take effect: asked 8, the engine makes it None",
            "because `self.x`",
            "_f, sglang/a.py:1",
            id="by-a-change",
        ),
        pytest.param(
            one(8, None, change("size", 8, 6, at="first"), change("size", 6, None, statement="size = None")),
            "not_honoured",
            "--size will not take effect: asked 8, the engine makes it None",
            "by `size = None`",
            "_f, sglang/a.py:1",
            id="by-the-last-change",
        ),
        pytest.param(
            one(8, None),
            "not_honoured",
            "--size will not take effect: asked 8, the engine makes it None",
            "the engine does not say where",
            "the engine's own argument parser",
            id="nobody-says-where",
        ),
        pytest.param(
            one(8, None, deprecated="Deprecated: use x"),
            "not_honoured",
            "--size will not take effect: asked 8, the engine makes it None",
            "Deprecated: use x",
            "the engine's own argument parser",
            id="F05-nobody-says-where-but-it-is-deprecated",
        ),
        pytest.param(
            one(..., 1, name="old"),
            "not_honoured",
            "--old will not take effect",
            "the engine stores nothing for it",
            "the engine's own argument parser",
            id="stores-nothing",
        ),
        pytest.param(
            one(..., 1, name="old", deprecated="Deprecated: use x"),
            "not_honoured",
            "--old will not take effect",
            "Deprecated: use x",
            "the engine's own argument parser",
            id="F05-stores-nothing-and-says-so",
        ),
        pytest.param(
            one(8, 4, change("size", 8, 4, comment="too big", logged=["WARNING: less"])),
            "adjusted",
            "--size becomes 4, asked 8",
            '# too big; it logs "WARNING: less"',
            "_f, sglang/a.py:1",
            id="adjusted",
        ),
        pytest.param(one("a", "b", change("size", "a", "b", statement="f = alias(x)")), "translated", "--size a is b", "", "_f, sglang/a.py:1", id="alias"),
        pytest.param(
            one(deprecated="Use --new."),
            "translated",
            "--size is an old spelling that still works: Use --new.",
            "",
            "the engine's own argument parser",
            id="F05-deprecated",
        ),
        pytest.param(
            one(deprecated="Use it.", successor="--new=8"),
            "translated",
            "--size is an old spelling that still works: Use it.",
            "write --new=8",
            "the engine's own argument parser",
            id="F05-successor",
        ),
        pytest.param(
            {"flags": [flag("no-graph", True, successor=BRACES)], "effective": {"graph_config": {"decode": {"backend": "disabled"}}}, "changes": []},
            "translated",
            "--no-graph is an old spelling that still works",
            f"write {BRACES}",
            "the engine's own argument parser",
            id="F05-successor-with-braces",
        ),
    ],
)
def test_what_is_said_of_an_outcome(candidate, code, text, hint, source):
    (row,) = judged(candidate)["findings"]
    assert (row["code"], row["text"], row["hint"], row["source"]) == (code, text, hint, source)
    assert row["severity"] == {"not_honoured": "error", "adjusted": "warning", "translated": "note"}[code]


def test_unknown_outcomes_are_not_made_up():
    result = judged(one(8, ...))
    assert (result["flags"][0]["outcome"], result["findings"]) == ("unknown", [])


def test_long_values_are_cut():
    (row,) = judged(one("a" * 61, "b" * 60))["findings"]
    assert row["text"] == f"--size becomes {'b' * 60}, asked {'a' * 57}..."


def test_a_rule_knows_better_than_the_engine():
    result = judged(one(), [IGNORED])
    assert result["flags"][0]["outcome"] == "not honoured"
    (row,) = result["findings"]
    assert (row["code"], row["severity"], row["text"], row["hint"], row["source"]) == (
        "ignored_here",
        "error",
        "size does nothing here",
        "take it away",
        "a.py:3",
    )
    assert row["variables"] == ["ct129.size"]


def test_a_flag_that_is_given_twice_is_told_once():
    candidate = {"flags": [flag("size", 8)] * 2, "effective": {"size": None}, "changes": []}
    assert len(judged(candidate)["findings"]) == 1 and len(judged(candidate)["flags"]) == 2


def test_one_rule_for_two_fields_of_one_flag_is_said_once():
    finding = Finding("ignored_here", "ignored", "both do nothing", fields=("size", "alias"))
    candidate = {"flags": [flag("size", 8, "alias")], "effective": {"size": 8}, "changes": []}
    assert len(judged(candidate, [finding])["findings"]) == 1


@pytest.mark.parametrize(
    "code, told",
    [
        ("unknown", "flag_unknown"),
        ("abbreviation", "flag_abbreviated"),
        ("ambiguous", "flag_ambiguous"),
        ("invalid", "value_invalid"),
        ("unexpected", "word_unexpected"),
    ],
)
def test_parse_errors(code, told):
    """F05"""
    error = {"code": code, "flag": "--tp-size=x", "message": "is wrong", "nearest": ["--a", "--b"], "elsewhere": "SGLang 1 has it"}
    result = judged({"errors": [error]})
    assert result["verdict"] == "rejected" and result["explained"]
    assert result["findings"] == [
        {
            "code": told,
            "severity": "error",
            "text": "--tp-size=x is wrong",
            "hint": "SGLang 1 has it; nearest: --a, --b",
            "source": "the engine's own argument parser",
            "fields": ["tp_size"],
            "variables": ["sglang_server_flags.tp"],
        }
    ]


@pytest.mark.parametrize(
    "flag_name, fields, told, variables",
    [
        ("--tensor-parallel-size", ["tp_size", "tp_size", "tensor_parallel_size"], ["tp_size", "tensor_parallel_size"], ["sglang_server_flags.tp"]),
        ("--tp=x", ["size"], ["size", "tp"], ["ct129.size"]),
        ("--tp", [], ["tp"], ["sglang_server_flags.tp"]),
        ("--ep", [], ["ep"], []),
    ],
    ids=["another-spelling", "another-name-of-argparse", "as-written", "not-known"],
)
def test_fields_of_parse_errors(flag_name, fields, told, variables):
    """F05: the variable is named by whatever name it has the flag."""
    (row,) = judged({"errors": [{"code": "invalid", "flag": flag_name, "message": "m", "nearest": [], "fields": fields}]})["findings"]
    assert (row["fields"], row["variables"]) == (told, variables)


@pytest.mark.parametrize(
    "more, hint", [({}, ""), ({"elsewhere": ""}, ""), ({"elsewhere": "x"}, "x"), ({"nearest": ["--a"]}, "nearest: --a")], ids=["bare", "empty", "told", "near"]
)
def test_hints_of_parse_errors(more, hint):
    """F05"""
    (row,) = judged({"errors": [{"code": "unknown", "flag": "--zzz", "message": "m", "nearest": [], **more}]})["findings"]
    assert (row["hint"], row["variables"]) == (hint, [])


def test_a_refusal_in_the_engines_own_words():
    """F07"""
    result = judged(answer("0.5.12", "language"))
    (row,) = rows(result, "engine_rejects")
    assert row == {
        "code": "engine_rejects",
        "severity": "error",
        "text": 'the engine refuses: "requires at least one encoder urls to be set via --encoder-urls"',
        "hint": "because `self.language_only and len(self.encoder_urls) == 0`",
        "source": "_handle_encoder_disaggregation, sglang/srt/server_args.py:4116",
        "fields": ["language_only", "language_only"],
        "variables": ["ct129.language_only"],
    }
    assert (result["verdict"], result["explained"], result["effective"]) == ("rejected", True, {})


@pytest.mark.parametrize(
    "because, fields",
    [
        ([guard("self.size > 1")], ["size"]),
        ([guard("self.x"), guard("self.size > 1")], ["size"]),
        ([guard("self.x"), guard("self.y"), guard("self.size > 1")], []),
        ([], []),
    ],
    ids=["inner", "second", "third-is-too-far", "none"],
)
def test_who_is_to_blame_for_a_refusal(because, fields):
    rejection = {"message": "no", "because": because, "at": None, "function": None, "type": "ValueError"}
    (row,) = judged({**one(8, ...), "rejection": rejection})["findings"]
    assert (row["fields"], row["source"], row["severity"]) == (fields, "", "error")


@pytest.mark.parametrize("policy", ["ignore", "warn", "fail"])
@pytest.mark.parametrize(
    "candidate, hint",
    [
        ({"unexplained": "ImportError: x"}, "only the rules of this collection were checked"),
        ({**one(8, ...), "unexplained": "ImportError: x"}, "only the words and the rules of this collection were checked"),
    ],
    ids=["no-answer", "words-only"],
)
def test_unexplained_never_passes_and_is_no_error(candidate, hint, policy):
    result = judged(candidate, policy=Policy(policy, policy))
    assert (result["verdict"], result["explained"]) == ("warned", False)
    (row,) = result["findings"]
    assert (row["code"], row["severity"], row["hint"]) == ("unexplained", "warning", hint)
    assert row["text"] == "what the engine makes of these flags could not be told: ImportError: x"
    assert {entry["outcome"] for entry in result["flags"]} <= {"unknown"}


def test_unexplained_is_rejected_by_our_own_rules():
    result = judged({"unexplained": "x"}, [Finding("heads", "error", "40 heads")])
    assert result["verdict"] == "rejected" and [row["code"] for row in result["findings"]] == ["unexplained", "heads"]


@pytest.mark.parametrize(
    "more, asked, code, severity, text",
    [
        pytest.param({}, (), "silently_disabled", "warning", ": a default optimisation is switched off and the engine logs nothing of it", id="silent"),
        pytest.param({"logged": ["WARNING: off"]}, (), "disabled", "note", ": and the engine will log it", id="logged"),
        pytest.param(
            {"because": [guard("self.disable_all")]},
            ("disable-all",),
            "disabled_by_flag",
            "note",
            ", which follows from --disable-all: as asked",
            id="by-a-flag-that-says-so",
        ),
        pytest.param(
            {"because": [guard("self.size > 1")]},
            ("size",),
            "silently_disabled",
            "warning",
            ", which follows from --size: a default optimisation is switched off and the engine logs nothing of it",
            id="by-another-flag",
        ),
        pytest.param(
            {"because": [guard("self.size and self.disable_all")]},
            ("size", "disable-all"),
            "disabled_by_flag",
            "note",
            ", which follows from --size, --disable-all: as asked",
            id="one-of-two-says-so",
        ),
        pytest.param(
            {"because": [guard("self.size and self.disable_all")], "logged": ["W"]},
            ("size", "disable-all"),
            "disabled",
            "note",
            ", which follows from --size, --disable-all: and the engine will log it",
            id="logged-and-by-flags",
        ),
    ],
)
def test_disabled(more, asked, code, severity, text):
    flags = [flag(name, True) for name in asked]
    effective = {"disable_graph": True, **{name.replace("-", "_"): True for name in asked}}
    (row,) = judged({"flags": flags, "effective": effective, "changes": [{**OFF, **more}]})["findings"]
    assert (row["code"], row["severity"]) == (code, severity)
    assert row["text"] == f"disable_graph: False becomes True{text}"
    assert (row["source"], row["fields"]) == ("_f, sglang/a.py:1", [])


def test_what_was_switched_on_again_is_not_told():
    assert judged({"effective": {"disable_graph": False}, "changes": [OFF, change("disable_graph", True, False)]})["findings"] == []


def test_variables_are_named_once():
    subject = Subject(sources={"a": "v", "b": "v", "c": "w"})
    assert subject.variables(["zzz", "b", "a", "c", "b"]) == ["v", "w"]
    assert Subject().variables(["a"]) == []
    aliased = Subject(sources={"tensor_parallel_size": "sglang_server_flags.tp_size"})
    assert aliased.variables(["tp_size"]) == aliased.variables(["tensor_parallel_size"]) == ["sglang_server_flags.tp_size"]


def test_the_variable_of_a_flag_is_that_of_its_field():
    candidate = {"flags": [flag("alias", 2, "tp_size")], "effective": {"tp_size": 2}, "changes": []}
    result = judge(candidate, [], Subject(sources={"alias": "other", "tp_size": "own"}))
    assert result["flags"][0]["variable"] == "own"
    assert judge(candidate, [], Subject())["flags"][0]["variable"] == ""


@pytest.mark.parametrize(
    "guards, said",
    [
        ([], ""),
        ([guard("a")], "because `a`"),
        ([guard("a", False), guard("b"), guard("c")], "because `not (a)` and `b`"),
    ],
)
def test_because_of(guards, said):
    assert because_of(guards) == said


@pytest.mark.parametrize(
    "more, said",
    [
        ({}, ""),
        ({"statement": "x = 1"}, "by `x = 1`"),
        ({"statement": "x = 1", "because": [guard("a")]}, "because `a`"),
        (
            {"because": [guard("a")], "comment": "8. VLM", "logged": ["W: first", "second"], "also": ["sglang/srt/x.py:3", "y.py:4"]},
            'because `a`; # 8. VLM; it logs "W: first"; set again at x.py:3, y.py:4',
        ),
    ],
    ids=["nothing", "statement", "condition-over-statement", "all"],
)
def test_why(more, said):
    assert why(change("f", 1, 2, **more)) == said


def test_source_of():
    assert source_of(change("f", 1, 2)) == "_f, sglang/a.py:1"
    assert source_of(change("f", 1, 2, at=None)) == ""


@pytest.mark.parametrize(
    "version, name, verdict, codes",
    [
        ("0.5.12", "plain", "warned", ["translated", "silently_disabled"]),
        ("0.5.12", "language", "rejected", ["engine_rejects", "silently_disabled"]),
        ("0.5.12", "removed", "rejected", ["translated", "not_honoured", "silently_disabled"]),
        ("0.5.12", "lone", "warned", ["silently_disabled", "disabled"]),
        ("0.5.12", "draft", "warned", ["translated", "adjusted", "silently_disabled"]),
        ("0.5.12", "short", "rejected", ["flag_abbreviated", "flag_unknown", "value_invalid"]),
        ("0.5.16", "plain", "passed", ["translated"]),
        ("0.5.16", "graphs", "passed", ["translated", "translated"]),
        ("0.5.23", "plain", "passed", ["translated"]),
        ("0.5.23", "graphs", "rejected", ["flag_unknown"]),
        ("0.5.23", "disabled", "passed", ["translated"]),
    ],
)
def test_answers_of_real_engines(version, name, verdict, codes):
    result = judged(answer(version, name))
    assert (result["verdict"], [row["code"] for row in result["findings"]]) == (verdict, codes)
