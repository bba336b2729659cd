# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line, clean, decode_message, journal_command, kernel_command, parse_entries

FIXTURES = Path(__file__).parents[2] / "fixtures"


def entries(*messages):
    return "".join(json.dumps({"__REALTIME_TIMESTAMP": str(n * 1000000), "__CURSOR": f"c{n}", "MESSAGE": m}) + "\n" for n, m in enumerate(messages, 1))


@pytest.mark.parametrize(
    "message, text",
    [
        pytest.param("plain", "plain", id="text"),
        pytest.param(None, "", id="null-above-4096-bytes-without-all"),
        pytest.param([104, 195, 188], "hü", id="bytes"),
        pytest.param([104, 255], "h\ufffd", id="bytes-that-are-no-text"),
        pytest.param([], "", id="no-bytes"),
        pytest.param(["a", [98], None], "a\nb\n", id="field-given-several-times"),
    ],
)
def test_decode_message(message, text):
    assert decode_message(message) == text


@pytest.mark.parametrize(
    "text, lines",
    [
        pytest.param("one", ["one"], id="one"),
        pytest.param("", [], id="empty"),
        pytest.param(" \n\n\t", [], id="blank"),
        pytest.param("  indented  ", ["  indented"], id="indentation-is-kept"),
        pytest.param("one\ntwo\n", ["one", "two"], id="two"),
        pytest.param("one\r\ntwo\r\n", ["one", "two"], id="carriage-returns-at-the-end"),
        pytest.param("\x1b[1;33mwarning\x1b[0m: \x1b[31mred\x1b[K", ["warning: red"], id="colours"),
        pytest.param("\x1b[?25lhidden cursor", ["hidden cursor"], id="private-sequence"),
        pytest.param("\r  0%|   | 0/3\r 33%|#  | 1/3\r100%|###| 3/3", ["100%|###| 3/3"], id="progress-bar"),
        pytest.param("\r  0%\r 50%\r", [" 50%"], id="progress-bar-open"),
        pytest.param("\r50%\n[2026] text", ["50%", "[2026] text"], id="progress-bar-then-text"),
        pytest.param("a\u2028b\x85c", ["a\u2028b\x85c"], id="other-separators-are-text"),
    ],
)
def test_clean(text, lines):
    assert clean(text) == lines


def test_parse_entries():
    output = entries("a", "b\nc", None, [27, 91, 51, 49, 109, 100], "\r1%\r2%")
    assert parse_entries(output) == ([Line(1.0, "a"), Line(2.0, "b"), Line(2.0, "c"), Line(4.0, "d"), Line(5.0, "2%")], "c5")


def test_parse_no_entries():
    assert parse_entries("") == ([], "")
    assert parse_entries("\n") == ([], "")


def test_fields_may_be_missing():
    assert parse_entries('{"MESSAGE": "a"}\n{"__CURSOR": "c"}\n') == ([Line(0.0, "a")], "c")


def test_a_line_separator_in_a_message_does_not_end_the_entry():
    """journalctl escapes control characters but prints these as they are."""
    raw = json.dumps({"__CURSOR": "c", "MESSAGE": "a\u2028b\x85c"}, ensure_ascii=False)
    assert parse_entries(raw + "\n") == ([Line(0.0, "a\u2028b\x85c")], "c")


def test_other_output_is_an_error():
    with pytest.raises(ValueError):
        parse_entries("-- No entries --\n")


def test_a_real_start():
    lines, cursor = parse_entries((FIXTURES / "journal-start.jsonl").read_text())
    assert cursor == "s=00000000000000000000000000000000;i=1eb;b=00000000000000000000000000000000;m=9d9772f;t=6616da1532ce4;x=356cba5109f7ae9e"
    assert lines[0].text.startswith("/opt/site/sglang/launch_server.py:56: UserWarning:")
    assert lines[0].seconds == 1795973251.46739
    assert lines[-1] == Line(1795973346.176228, "[2026-11-29 17:29:06] The server is fired up and ready to roll!")
    assert len(lines) == 22 - 3, "three entries of this export are null"


def test_a_real_kill():
    lines, cursor = parse_entries((FIXTURES / "journal-killed.jsonl").read_text())
    assert lines[0].text.startswith("'--disable-cuda-graph' is deprecated and will be removed"), "an entry with colours comes as bytes"
    assert diagnose([line.text for line in lines]).code == "killed"


JOURNALCTL = ["journalctl", "--output=json", "--all", "--no-pager", "--quiet"]
MATCHES = ["_SYSTEMD_INVOCATION_ID=abc", "+", "INVOCATION_ID=abc", "UNIT=sglang-a.service"]


@pytest.mark.parametrize(
    "cursor, whole, limit",
    [
        pytest.param("", False, ["--lines=2000"], id="first-look"),
        pytest.param("", True, [], id="whole"),
        pytest.param("s=1;i=2", False, ["--after-cursor=s=1;i=2"], id="what-is-new"),
        pytest.param("s=1;i=2", True, ["--after-cursor=s=1;i=2"], id="whole-but-for-what-was-seen"),
    ],
)
def test_journal_command(cursor, whole, limit):
    assert journal_command("sglang-a.service", "abc", cursor, whole) == [*JOURNALCTL, *limit, *MATCHES]


def test_the_first_look_is_not_at_everything():
    assert journal_command("sglang-a.service", "abc") == journal_command("sglang-a.service", "abc", "", False)


@pytest.mark.parametrize("since, word", [(1795973251.76739, "--since=@1795973251"), (0.0, "--since=@0")])
def test_kernel_command(since, word):
    """Whole seconds, rounded down, so that the first entry is not missed."""
    assert kernel_command(since) == [*JOURNALCTL, word, "--lines=2000", "_TRANSPORT=kernel"]
