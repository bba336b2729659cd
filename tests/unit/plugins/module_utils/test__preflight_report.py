# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Subject, judge
from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import report, sentence
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import answer, change, flag

HARDWARE = {"gpus": [{"name": "NVIDIA RTX A6000"}] * 2}
MEMORY = {"rows": [{"name": "weights", "gb": 25.5, "how": "by the index"}, {"name": "KV cache", "gb": -0.125, "how": "how " * 60}]}


def result(findings=(), memory=None, candidate=None, hardware=None, sources=None):
    return judge(candidate or {}, findings, Subject({"version": "0.5.23"}, sources or {}, HARDWARE if hardware is None else hardware), memory)


def test_the_report_of_a_real_engine():
    subject = Subject({"version": "0.5.12"}, {"language_only": "sglang_server_flags.language_only"}, HARDWARE)
    assert report(judge(answer("0.5.12", "language"), [], subject, {"rows": MEMORY["rows"][:1]})) == [
        "preflight rejected: SGLang 0.5.12 on 2x NVIDIA RTX A6000; flags: 9 not told",
        "  FAILS",
        '    sglang_server_flags.language_only: the engine refuses: "requires at least one encoder urls to be set via --encoder-urls"',
        "      because `self.language_only and len(self.encoder_urls) == 0`",
        "      [engine_rejects; _handle_encoder_disaggregation, sglang/srt/server_args.py:4116]",
        "  DESERVES A LOOK",
        "    disable_piecewise_cuda_graph: False becomes True: a default optimisation is switched off and the engine logs nothing of it",
        "      because `self.get_model_config().is_multimodal`; # 8. Multimodal / VLM models",
        "      [silently_disabled; _handle_piecewise_cuda_graph, sglang/srt/server_args.py:1337]",
        "  the engine chose: chunked_prefill_size 4096, attention_backend flashinfer, max_running_requests 48",
        "  MEMORY of each GPU, GiB (the engine's log calls it GB)",
        "    weights                    25.50  by the index",
    ]


def test_the_order_is_by_severity_and_as_found():
    findings = [Finding(f"{severity}{number}", severity, f"{severity} {number}") for number in (1, 2) for severity in ("note", "warning", "error")]
    assert [line.strip() for line in report(result(findings))[1:]] == [
        "FAILS",
        "error 1",
        "error 2",
        "DESERVES A LOOK",
        "warning 1",
        "warning 2",
        "WORTH KNOWING",
        "note 1",
        "note 2",
    ]


def test_nothing_to_report():
    assert report(result()) == ["preflight passed: SGLang 0.5.23 on 2x NVIDIA RTX A6000; flags: none"]


@pytest.mark.parametrize(
    "hardware, cached, told",
    [
        ({"gpus": []}, False, "on the CPU; flags: none"),
        ({}, False, "on the CPU; flags: none"),
        ({"gpus": [{"name": "B"}, {"name": "A"}, {"name": "B"}]}, False, "on 2x B + 1x A; flags: none"),
        ({"gpus": [{"name": "A"}], "recorded": True}, False, "on 1x A by recorded facts; flags: none"),
        ({"gpus": [{"name": "A"}], "recorded": False}, True, "on 1x A; flags: none; unchanged, answered from the cache"),
    ],
)
def test_the_headline(hardware, cached, told):
    assert report(result(hardware=hardware), cached) == [f"preflight passed: SGLang 0.5.23 {told}"]


@pytest.mark.parametrize("severity, verdict", [("note", "passed"), ("warning", "passed with warnings"), ("error", "rejected")])
def test_the_headline_says_the_verdict(severity, verdict):
    assert report(result([Finding("c", severity, "x")]))[0].startswith(f"preflight {verdict}: ")


def test_flags_are_counted_by_outcome():
    flags = [flag("a", 1), flag("b", 1), flag("c", 8)]
    headline = report(result(candidate={"flags": flags, "effective": {"a": 1, "b": 1, "c": 4}, "changes": []}))[0]
    assert headline.endswith("; flags: 2 honoured, 1 adjusted")


def test_what_could_not_be_told_is_not_called_an_outcome():
    assert report(result(candidate={"flags": [flag("a", 1), flag("b", 1)]}))[0].endswith("; flags: 2 not told")


def test_rows_of_the_memory_are_wrapped_under_their_words():
    first, second, third, *more = report(result(memory=MEMORY))[1:]
    assert (first, second) == ("  MEMORY of each GPU, GiB (the engine's log calls it GB)", "    weights                    25.50  by the index")
    assert third.startswith(f"    KV cache{' ' * 19}-0.12  how how") and len(third) <= 150
    assert more and all(line.startswith(f"{' ' * 38}how") and len(line) <= 150 for line in more)
    assert " ".join([third, *more]).split().count("how") == 60


@pytest.mark.parametrize("severity, source", [("error", True), ("warning", True), ("note", False)])
def test_sources_belong_to_what_is_wrong(severity, source):
    lines = report(result([Finding("code", severity, "text", "hint", "a.py:3", ("a", "b"))], sources={"a": "v", "b": "w"}))[2:]
    assert lines == ["    v, w: text", "      hint", *(["      [code; a.py:3]"] if source else [])]


@pytest.mark.parametrize("version, name", [("0.5.12", "draft"), ("0.5.12", "lone"), ("0.5.12", "short"), ("0.5.16", "graphs"), ("0.5.23", "disabled")])
def test_one_screen_is_wide_enough(version, name):
    lines = report(judge(answer(version, name), [Finding("c", "error", "a word " * 60, "hint " * 90, "x" * 20)], Subject(hardware=HARDWARE), MEMORY))
    assert all(len(line) <= 150 for line in lines) and lines[-1].endswith("how")
    assert max(map(len, lines)) > 140


def test_what_cannot_be_broken_is_not():
    path = f"/{'x' * 200}"
    assert f"      {path}" in report(result([Finding("c", "error", f"cannot read {path}")])), "to be copied"


@pytest.mark.parametrize(
    "field, before, asked, shown",
    [
        ("attention_backend", None, False, True),
        ("attention_backend", "fa3", False, False),
        ("attention_backend", None, True, False),
        ("cuda_graph_config.prefill.backend", None, False, True),
        ("cuda_graph_config.prefill.tc_compiler", None, False, False),
        ("cuda_graph_max_bs_more", None, False, False),
        ("tokenizer_path", None, False, False),
    ],
)
def test_what_the_engine_chose(field, before, asked, shown):
    candidate = {"flags": [flag(field, "v")] if asked else [], "effective": {field: "v"}, "changes": [change(field, before, "v")]}
    assert (f"  the engine chose: {field} v" in report(result(candidate=candidate))) is shown


def test_the_last_choice_counts_and_none_is_no_choice():
    changes = [change("page_size", None, 1), change("page_size", None, 64), change("kv_cache_dtype", None, None)]
    assert report(result(candidate={"changes": changes}))[1:] == ["  the engine chose: page_size 64"]


def test_the_failure_message():
    findings = [Finding("a", "error", "first", "do this", "s", ("tp_size",)), Finding("b", "warning", "not this"), Finding("c", "error", "second")]
    assert sentence(result(findings, sources={"tp_size": "sglang_server_flags.tp"})) == "sglang_server_flags.tp: first (do this). second."
    assert sentence(result(findings[1:2])) == ""
