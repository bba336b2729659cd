# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._record_choice import ChoiceError, choose_two
from ansible_collections.llmops.inference.tests.unit.report_records import by_host, record

FIRST, SECOND, OTHER = record(1, release="aaa"), record(2, release="bbb"), record(2, host="h200", release="bbb")
RECORDS = by_host([FIRST, SECOND, OTHER])
NAMES = ("20261101T101500Z-decode-aaa", "20261102T101500Z-decode-bbb")


def choose(*given, records=None):
    return choose_two(given, RECORDS if records is None else records, Path("/inventory/benchmarks"))


@pytest.mark.parametrize(
    "first, second",
    [
        pytest.param(f"ct129/{NAMES[0]}", f"ct129/{NAMES[1]}", id="id"),
        pytest.param(f"ct129/{NAMES[0]}.json", f" ct129/{NAMES[1]}.json ", id="path-below-the-directory"),
        pytest.param(NAMES[0], "ct129/20261102", id="name-and-beginning"),
        pytest.param("20261101", "ct129/20261102T10", id="beginnings"),
    ],
)
def test_two_records(first, second):
    old, new = choose(first, second)
    assert old is FIRST and new is SECOND


def test_the_order_is_the_operators():
    assert choose(f"h200/{NAMES[1]}", NAMES[0]) == (OTHER, FIRST)


def test_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.json").write_text(json.dumps(record(9)))
    assert choose("mine.json", NAMES[0]) == (record(9), FIRST)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert choose("~/mine.json", NAMES[0])[0] == record(9)


@pytest.mark.parametrize(
    "content, problem",
    [
        ("{}", "cannot be compared: it is no record of a benchmark"),
        ("{", "cannot be read: "),
        ("[" * 100_000, "is nested too deep"),
        ('{"kind": "benchmark", "format": 1}', "cannot be compared: its format is 1, and 2 is the one that is known here"),
    ],
)
def test_a_file_that_is_no_record(tmp_path, content, problem):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ChoiceError, match=f"^sglang_report_compare names {tmp_path}/x.json, which {problem}"):
        choose(str(tmp_path / "x.json"), NAMES[0])


@pytest.mark.parametrize(
    "given, problem",
    [
        ((), "two records, separated by a comma: .*; it has 0: none"),
        (("a",), "it has 1: a"),
        (tuple("abcdefg"), "it has 7: a, b, c, d, e, and 2 more"),
        ((NAMES[0], NAMES[0]), "one record twice"),
        (
            ("ct129/20261101T101500Z-decode-aab", NAMES[0]),
            "names .ct129/20261101T101500Z-decode-aab., which is neither .* below /inventory/benchmarks .HOST/NAME.; the nearest is .*aaa$",
        ),
        ((NAMES[1], NAMES[0]), f"names '{NAMES[1]}', which is 2 records: ct129/{NAMES[1]}, h200/{NAMES[1]}; name one of them"),
        (("ct129", NAMES[0]), "which is 2 records: "),
        (("", NAMES[0]), "names '', which is neither"),
    ],
)
def test_what_is_no_two_records(given, problem):
    with pytest.raises(ChoiceError, match=f"^sglang_report_compare .*{problem}"):
        choose(*given)


def test_there_is_none_at_all():
    with pytest.raises(ChoiceError, match="there is no record at all"):
        choose("a", "b", records={})
