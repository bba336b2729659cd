# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_records import read_records
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record

BASELINE = {"format": 1, "baselines": {"decode": {"records": ["a.json"]}}}


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode())


def test_records_and_baselines_are_found(tmp_path):
    put(tmp_path, "ct129/a.json", record())
    put(tmp_path, "ct129/baseline.json", BASELINE)
    put(tmp_path, "gpu/deeper/b.json", record(host="gpu"))
    for other in ("ct129/a.md", "ct129/a.svg", ".git/x.json", "ct129/.a.json"):
        put(tmp_path, other, "{")
    found = read_records(tmp_path)
    assert {host: list(records) for host, records in found.records.items()} == {"ct129": ["a.json"], "gpu": ["b.json"]}
    assert (found.baselines, found.skipped, found.count) == ({"ct129": BASELINE}, [], 2)


@pytest.mark.parametrize(
    "content, reason",
    [
        pytest.param("{", "Expecting property name enclosed in double quotes", id="cut"),
        pytest.param("", "Expecting value", id="empty"),
        pytest.param(b"\xff\xfe", "'utf-8' codec can't decode", id="binary"),
        pytest.param("[" * 100000, "it is nested too deep for a record", id="deep"),
        pytest.param("[]", "it is no record of a benchmark", id="a-list"),
        pytest.param({"format": 1, "benchmark": {}}, "it is no record of a benchmark", id="another-document"),
        pytest.param(record(format=9), "its format is 9, and 2 is the one that is known here", id="newer"),
    ],
)
def test_what_is_no_record_is_told(tmp_path, content, reason):
    put(tmp_path, "ct129/x.json", content)
    put(tmp_path, "ct129/y.json", record())
    found = read_records(tmp_path)
    assert found.count == 1
    assert len(found.skipped) == 1 and found.skipped[0].startswith(f"ct129/x.json: {reason}")


LINKS = {"format": 1, "messages": [], "ranks": 2, "measured_at": "2026-11-29T22:32:45Z"}


@pytest.mark.parametrize("content", [{**LINKS, "kind": "links"}, LINKS, {"format": 1, "kind": "deployed"}], ids=["links", "old-links", "another-kind"])
def test_what_says_that_it_is_of_another_kind_is_no_complaint(tmp_path, content):
    put(tmp_path, "ct129/links.json", content)
    put(tmp_path, "ct129/y.json", record())
    found = read_records(tmp_path)
    assert (found.count, found.skipped) == (1, [])


def test_a_damaged_baseline_is_told(tmp_path):
    put(tmp_path, "ct129/baseline.json", {"format": 7})
    (told,) = read_records(tmp_path).skipped
    assert told.startswith("ct129/baseline.json: baseline.json has format 7")


def test_a_second_record_of_the_same_name_is_told(tmp_path):
    for folder in ("a", "b"):
        put(tmp_path, f"{folder}/x.json", record())
    assert read_records(tmp_path).skipped == ["b/x.json: ct129 has another record of that name"]


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "x.json").mkdir()
    (told,) = read_records(tmp_path).skipped
    assert told.startswith("x.json: ") and "directory" in told


def test_an_empty_directory(tmp_path):
    found = read_records(tmp_path)
    assert (found.records, found.baselines, found.skipped) == ({}, {}, [])
