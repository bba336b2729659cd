# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import html
import re

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import check_document
from ansible_collections.llmops.inference.plugins.plugin_utils._check_markdown import LIMIT, MARKER, check_markdown
from ansible_collections.llmops.inference.tests.unit import check_changes as made
from ansible_collections.llmops.inference.tests.unit.check_changes import HOSTILE, render, row

OURS = {"<br>", "<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>", MARKER}
FENCE = re.compile(r"^(`{3,})(?:diff)?\n.*?^\1$", re.DOTALL | re.MULTILINE)


def report(case, **more):
    return check_markdown(check_document(*case), **more)


def many(count, text=""):
    """So many hosts, each with a change of its own."""
    hosts = [row(render(), render({f"flag_{number}{text}": (text or number, "host")}, made.AFTER), f"ct{number}{text}") for number in range(count)]
    return made.changes(*hosts), made.answers(base=made.preflight(), head=made.preflight("language"))


@pytest.mark.parametrize(
    "case, title",
    [
        ((made.changes(), {}), "### Nothing changes: no server changes"),
        (made.rejected(), "### Rejected: 1 server is rejected"),
        (made.not_honoured(), "### Not honoured: 1 server asks for what it would not get"),
        (made.useful("a", "b"), "### Passed: 2 servers will be restarted"),
    ],
)
def test_marker_and_verdict_come_first(case, title):
    text = report(case)
    assert text.split("\n")[:2] == [MARKER, title] and text.count(MARKER) == 1
    assert text.split("\n")[-2].startswith("From `origin/main` (`1c34fe0f2c0a`) to `9d2f1e0c2c0a`. 17 servers do not change.")


def test_what_a_reviewer_needs_is_not_folded():
    text = re.sub(r"<details>.*?</details>", "", report(made.rejected()), flags=re.DOTALL)
    for told in ("sglang_server_flags.language_only", "requires at least one encoder urls", "sglang/srt/server_args.py:4116", "+ language_only: true"):
        assert told in text
    assert "--- ct129 before" not in text and "disable_piecewise_cuda_graph" not in text


def test_hosts_that_are_changed_alike_are_told_once():
    text = report(made.useful("ct129", "ct130"))
    assert "| `ct129`, `ct130` | restart | passed | `mem_fraction_static` |" in text
    assert text.count("#### ") == 1 and text.count("| `max_running_requests` | `48` | `56` |") == 1
    assert "<summary>Unit of ct129; check.json has those of the others</summary>" in text


def test_all_kinds_of_verdicts():
    text = report(made.mixed())
    assert re.findall(r"^#### (.*)$", text, re.MULTILINE) == [
        "`ct129`: rejected",
        "`ct130`: not honoured",
        "`ct133`: unjudged",
        "`ct131`, `ct132`: passed",
        "`ct134`: leaves the inventory",
    ]
    assert "| `ct134` | leaves the inventory | passed | - |" in text and "\n- requirements.yml changes: 0.1.0 -&#62; 0.2.0\n" in text
    assert "\n- there is no snapshot of ct133: record it" in text


def test_many_effective_changes_are_folded():
    before, after = ({f"field_{number:02}": number + more for number in range(20)} for more in (1, 2))
    text = report((made.changes(row(render(), render(release=made.AFTER))), made.answers(base=made.made(before), head=made.made(after))))
    shown, folded = text.split("<summary>8 more changes of the effective configuration</summary>")
    assert shown.count("| `field_") == 12 and folded.count("| `field_") == 8


def test_memory_of_what_fails_is_told_where_it_changes():
    changes, preflights = made.rejected()
    assert "Memory" not in report((changes, preflights))
    preflights["head"]["preflight"]["memory"] = made.memory(1.0, 32000)
    assert "| KV pool | 7.34 | 1.00 |" in report((changes, preflights))


def test_a_dirty_head_and_a_base_without_commit():
    changes = made.changes(head={"commit": None, "dirty": True}, unchanged=1)
    assert (
        report((changes, {}))
        .rstrip()
        .endswith("From `origin/main` (`1c34fe0f2c0a`) to no commit, with changes that are not committed. 1 server does not change.")
    )


def test_nothing_of_a_stranger_is_structure():
    text = report(made.hostile())
    outside = FENCE.sub("", text)
    assert "```" not in outside
    assert set(re.findall(r"<[^>]*>", outside)) <= OURS and text.count("<!--") == 1 and text.startswith(MARKER)
    assert not re.search(r"@\w|(?<!&)#\d|!\[|\]\(|://|www\.(?!&)", outside)
    assert "alert(1)" in outside, "it is there as text"
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    tables = [line for line in outside.split("\n") if line.startswith("|")]
    assert tables and {line.count("|") for line in tables} <= {4, 5}


def test_what_is_shown_reads_as_it_was_written():
    text = html.unescape(FENCE.sub("", report(made.hostile()))).replace("\u200b", "")
    assert HOSTILE.partition(" | ")[0] in text


def test_folded_parts_are_closed():
    text = FENCE.sub("", report(made.hostile()))
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>") > 0


@pytest.mark.parametrize("count, text", [(120, ""), (300, ""), (60, HOSTILE)], ids=["many", "hundreds", "hostile"])
def test_a_comment_has_a_limit(count, text):
    told = report(many(count, text))
    assert len(told.encode()) <= LIMIT
    assert told.startswith(f"{MARKER}\n### Rejected: {count} servers are rejected\n")
    left_out = re.search(r"^Left out, for a comment has a limit: .*\. The whole report is in check\.json\.$", told, re.MULTILINE)
    assert left_out and "more" in left_out[0]
    assert FENCE.sub("", told).count("<details>") == FENCE.sub("", told).count("</details>")


def test_the_least_important_is_left_out_first():
    whole = report(made.rejected())
    less = report(made.rejected(), limit=len(whole.encode()) + 2400)
    assert "Left out, for a comment has a limit: the unit of `ct129`. The whole report" in less and "<summary>1 more finding" in less
    assert "Left out" not in whole
    assert "why `ct129` is rejected" in report(made.rejected(), limit=2000)


def test_many_groups_are_counted():
    text = report(many(50), limit=10**6)
    assert "\n- and 5 more remarks in check.json\n" in report((made.changes(remarks=["x"] * 45), {}))
    assert "\n| and 10 more |  |  | see check.json |\n" in text and "Left out" not in text
