# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import asdict

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, Diagnosis, fill, fill_whole, row


@pytest.mark.parametrize(
    "template, values, sentence",
    [
        ("nothing to fill", {}, "nothing to fill"),
        ("port {port}", {"port": 30000}, "port 30000"),
        ("the port[ {port}] is taken", {"port": 30000}, "the port 30000 is taken"),
        ("the port[ {port}] is taken", {}, "the port is taken"),
        ("the port[ {port}] is taken", {"port": ""}, "the port is taken"),
        ("the port[ {port}] is taken", {"port": None}, "the port is taken"),
        ("[{a}][ and {b}]", {"b": 0}, " and 0"),
        ("full[: {path} has {free} MB]", {"path": "/x"}, "full"),
        pytest.param("knows not {arguments}", {"arguments": "--x={y} [z] {}"}, "knows not --x={y} [z] {}", id="what-was-logged-is-no-template"),
        pytest.param("knows not {arguments}", {}, "knows not ?", id="never-an-error"),
    ],
)
def test_fill(template, values, sentence):
    assert fill(template, values) == sentence


def test_a_diagnosis_without_more():
    """Its first four fields are what other modules give."""
    found = Diagnosis("disk_full", "the disk is full", ["OSError"], "free space")
    assert found.sentence == "the disk is full: free space"
    assert asdict(found) == {
        "code": "disk_full",
        "cause": "the disk is full",
        "evidence": ["OSError"],
        "hint": "free space",
        "where": "",
        "certainty": "certain",
        "implicated": [],
        "captured": {},
        "remedy": "",
    }


@pytest.mark.parametrize(
    "template, values, line",
    [
        ("", {"x": 1}, ""),
        ("a: {b: null}", {}, "a: {b: null}"),
        ("a: {b: {x}}", {"x": 0.84}, "a: {b: 0.84}"),
        ("a: {{x}: null}", {"x": "b"}, "a: {b: null}"),
        ("a: {b: {x}}", {"x": 0}, "a: {b: 0}"),
        ("a: {b: {x}, c: {y}}", {"x": 1}, ""),
        ("a: {b: {x}}", {"x": ""}, ""),
    ],
)
def test_fill_whole(template, values, line):
    assert fill_whole(template, values) == line


def test_a_row_is_written_as_text():
    made = row("a_code", HOST, r"x (?P<n>\d)", "c", "h", "one two", details=(r"y (?P<m>\d)",), during=("begin", "END"), unless="z", raised=True)
    assert (made.code, made.where, made.implicated, made.raised, made.remedy) == ("a_code", "host", ("one", "two"), True, "")
    assert made.pattern.search("x 1")["n"] == "1" and made.details[0].search("y 2") and made.unless.search("z")
    assert [mark.search("BEGIN end") is not None for mark in made.during] == [True, True]
