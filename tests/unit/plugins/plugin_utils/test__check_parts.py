# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_parts as parts
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import check_document
from ansible_collections.llmops.inference.tests.unit import check_changes as made
from ansible_collections.llmops.inference.tests.unit.check_changes import render, row

FINDING = {"code": "c", "severity": "error", "text": "it is <wrong>", "hint": "do this", "source": "a.py:3", "fields": [], "variables": ["a", "b"]}
OUTCOME = {
    "flag": "--page",
    "variable": "v.page",
    "outcome": "adjusted",
    "asked": 8,
    "effective": None,
    "changed": True,
    "why": "w",
    "hint": "h",
    "source": "",
}


def host(case):
    return check_document(*case)["hosts"][0]


def changed(after, before=None):
    return host((made.changes(row(before or render(), after)), made.answers(head=made.made({"a": 1}))))


@pytest.mark.parametrize("count, words", [(1, "`h0`"), (4, "`h0`, `h1`, `h2`, `h3`"), (6, "`h0`, `h1`, `h2`, `h3` and 2 more")])
def test_names(count, words):
    assert parts.names([{"host": f"h{number}"} for number in range(count)]) == words


def test_a_finding_says_variable_what_to_do_and_source():
    assert parts.findings("Why:", [FINDING]) == "Why:\n\n- `a`, `b`: it is &#60;wrong&#62;<br>do this<br>`c`".replace("`c`", "<code>c; a.py:3</code>")
    assert parts.findings("Why:", []) == ""
    assert parts.findings("", [{**FINDING, "variables": [], "hint": "", "source": ""}]) == "- it is &#60;wrong&#62;<br>`c`"


@pytest.mark.parametrize("new, title", [([], "2 more findings, there before this change"), ([FINDING], "2 more findings, 1 of them new by this change")])
def test_other_findings(new, title):
    assert title in parts.other_findings([FINDING, {**FINDING, "text": "x"}], new)
    assert parts.other_findings([], new) == ""


def test_the_difference_is_by_layer():
    after = render({"tp_size": (4, "hardware"), "a": ("4", "host"), "b": ("x\n+ y", "host"), "c": ("", "host"), "d": ({"k": [1]}, "host")}, version="0.5.16")
    after["release"]["environment"] = {"A": "b"}
    assert parts.difference(changed(after)).split("\n") == [
        "```diff",
        "@@ hardware: sglang_server_hardware_flags @@",
        "- tp_size: 2",
        "+ tp_size: 4",
        "@@ host: sglang_server_flags @@",
        '+ a: "4"',
        '+ b: "x\\n+ y"',
        '+ c: ""',
        '+ d: {"k": [1]}',
        "@@ environment @@",
        "+ A=b",
        "- NCCL_P2P_LEVEL=PHB",
        "@@ engine @@",
        "- name: 0.5.12-cuda-a1b2c3d4-py312-x86_64",
        "+ name: 0.5.16-cuda-a1b2c3d4-py312-x86_64",
        "- version: 0.5.12",
        "+ version: 0.5.16",
        "```",
    ]
    assert parts.difference(changed(render())) == ""


def test_a_long_difference_is_cut():
    lines = parts.difference(changed(render({f"x{number}": (1, "host") for number in range(200)}))).split("\n")
    assert len(lines) == 123 and lines[-2] == "  ... and 81 more lines"


def test_secrets():
    assert parts.secrets(changed(render(secrets={"api_key": "vaulted 2"}))) == "Secrets:\n\n- api_key: its vaulted value changes"
    assert parts.secrets(changed(render())) == ""


def test_effective():
    rows = [{"field": "a", "before": None, "after": "x|y"}]
    assert parts.effective(rows) == "| Effective | Before | After |\n| --- | --- | --- |\n| `a` | none | <code>x&#124;y</code> |"
    assert parts.effective([]) == ""


@pytest.mark.parametrize(
    "rows, known, text",
    [
        ([], [], ""),
        ([{"outcome": "honoured"}], [], "The one changed flag runs as asked."),
        ([{"outcome": "honoured"}, {"outcome": "honoured"}], [], "All 2 changed flags run as asked."),
        ([{"outcome": "unknown"}], [], ""),
        ([{"outcome": "honoured"}, {"outcome": "unknown"}], [], ""),
        ([{"outcome": "not honoured"}], ["w"], ""),
        (
            [{"outcome": "honoured"}, {}],
            [],
            "What becomes of the flags that are asked for:\n\n- `--page` (`v.page`) is **adjusted**: asked `8`, the engine has none<br>w; h",
        ),
    ],
)
def test_outcomes(rows, known, text):
    assert parts.outcomes({"verdict": "passed", "outcomes": [{**OUTCOME, **changes} for changes in rows]}, known) == text


def test_flags_of_a_change_that_fails_do_not_run_as_asked():
    assert parts.outcomes({"verdict": "rejected", "outcomes": [{**OUTCOME, "outcome": "honoured"}]}) == ""


def test_memory():
    assert parts.memory(host(made.useful())).split("\n")[2:] == [
        "| weights | 25.48 | 25.48 |",
        "| KV pool | 7.34 | 8.30 |",
        "| tokens of the KV pool | 240,652 | 272,000 |",
    ]
    assert parts.memory(host(made.not_honoured())) == "Memory stays as it is, with 240,652 tokens in the KV pool."
    assert parts.memory({"memory": None}) == ""
    new = host((made.changes(row(None, render())), made.answers(head=made.preflight())))
    assert "| KV pool | - | 7.34 |" in parts.memory(new)


def test_judged_by():
    one, other = ({"host": name, "baseline": {"text": text}} for name, text in (("a", "x"), ("b", "y")))
    assert parts.judged_by([one]) == "Gate: x."
    assert parts.judged_by([one, {**one, "host": "c"}]) == "Gate: x."
    assert parts.judged_by([one, other, {**one, "host": "c"}]) == "Gate:\n\n- `a`, `c`: x\n- `b`: y"
    assert parts.judged_by([{"host": "a", "baseline": None}]) == ""


def test_upgrade():
    text = parts.upgrade(host(made.upgrade()))
    assert "<summary>the flags as they are: SGLang 0.5.16 -&#62; 0.5.23: these flags would be refused</summary>" in text
    assert "\nrefused sglang_server_flags.enforce_piecewise_cuda_graph: --enforce-piecewise-cuda-graph is not a flag of this engine\n" in text
    assert parts.upgrade(host(made.useful())) == ""
    same = {"from": {}, "to": {}, "verdict": "same", "refused": [], "new": [], "flags": [], "resolved": []}
    assert "Nothing else." in parts.upgrade({"upgrade": same})


@pytest.mark.parametrize(
    "after, words",
    [
        (render({"tp_size": (4, "hardware")}), "`tp_size`"),
        (render({"tp_size": (2, "host")}), "`tp_size`"),
        (render({f"x{number}": (1, "host") for number in range(6)}), "`x0`, `x1`, `x2`, `x3`, 2 more"),
        (render(version="0.5.16", secrets={}), "engine, secrets"),
        (render(), "-"),
    ],
)
def test_summary(after, words):
    assert parts.summary(changed(after)) == words


def test_only_the_unit():
    after = render()
    after["release"]["unit"] = "[Service]\n"
    assert parts.summary(changed(after)) == "the unit"
