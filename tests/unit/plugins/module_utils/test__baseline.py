# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._baseline import BaselineError, accept, empty, parse, parse_record, records_of
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point, record, repetition, start

NOW = "2026-11-30T11:00:00Z"
ENTRY = {"records": ["a.json"], "accepted_at": NOW, "commit": None}


def content(**baselines):
    return {"format": 1, "baselines": baselines}


def test_a_baseline_is_read():
    assert parse("") == parse(" \n") == empty() == content()
    assert parse(json.dumps(content(decode=ENTRY))) == content(decode=ENTRY)


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("{", "^baseline.json is damaged: Expecting .*; restore it from git$", id="no-json"),
        pytest.param("[]", "^baseline.json is damaged: it holds a list; restore it from git$", id="a-list"),
        pytest.param("{}", "^baseline.json has format None, this collection reads format 1: use the collection that wrote it$", id="no-format"),
        pytest.param(json.dumps({**content(), "format": 7}), "^baseline.json has format 7, this collection reads format 1", id="newer"),
        pytest.param('{"format": 1}', "^baseline.json is damaged: baselines is nothing; restore it from git$", id="no-baselines"),
        pytest.param(json.dumps(content(chat={"records": []})), "^baseline.json is damaged: the entry of chat names no records", id="no-records"),
        pytest.param(json.dumps(content(chat={"records": [1]})), "^baseline.json is damaged: the entry of chat names no records", id="no-names"),
        pytest.param(json.dumps(content(chat="a.json")), "^baseline.json is damaged: the entry of chat names no records", id="no-entry"),
    ],
)
def test_a_damaged_baseline(text, message):
    with pytest.raises(BaselineError, match=message):
        parse(text)


def test_a_record_is_read():
    assert parse_record(json.dumps(record()), "a.json") == record()
    assert parse_record('{"format": 1, "profile": {}}', "a.json") is None, "another kind of file"


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("<<<<<<<", "^a.json is damaged: Expecting value", id="a-conflict-of-git"),
        pytest.param("7", "^a.json is damaged: it holds a number", id="a-number"),
        pytest.param(json.dumps(record(format=3)), "^a.json has format 3, this collection reads records of format 2$", id="newer"),
        pytest.param(json.dumps(record(starts=[], workload="x")), "^a.json is damaged: it has no workload.name, starts; restore it", id="parts-missing"),
    ],
)
def test_a_damaged_record(text, message):
    with pytest.raises(BaselineError, match=message):
        parse_record(text, "a.json")


def test_records_of():
    known = {"a.json": record(), "b.json": record(host="h2")}
    both = content(decode={**ENTRY, "records": ["b.json", "a.json"]})
    assert records_of(both, "decode", known) == [known["b.json"], known["a.json"]]
    assert records_of(both, "chat", known) == []
    with pytest.raises(BaselineError, match="^the baseline of decode names b.json, and there is no such record: restore it from git, or accept another$"):
        records_of(both, "decode", {"a.json": record()})


UNCOUNTED = point([repetition(), repetition(0, output_tokens=None, output_tok_per_s=None, counted_by="unknown")])


def own(name, **changes):
    """A record of one start."""
    return record(**{"starts": [start(invocation=name)], **changes})


@pytest.mark.parametrize(
    "others, names, starts",
    [
        pytest.param({}, ["new"], 1, id="alone"),
        pytest.param({"new": own("new")}, ["new"], 1, id="itself"),
        pytest.param({"a": own("a"), "b": own("b")}, ["a", "b", "new"], 3, id="its-other-starts"),
        pytest.param({"a": own("new")}, ["a", "new"], 1, id="the-same-start-again"),
        pytest.param({"a": record(starts=[start(invocation="a"), start(invocation="b")])}, ["a", "new"], 3, id="two-starts-in-one-record"),
        pytest.param({"a": own("a", release={"subject": "b"})}, ["new"], 1, id="another-release"),
        pytest.param({"a": own("a", release={"id": "000000000000"})}, ["a", "new"], 2, id="another-id-of-the-same-subject"),
        pytest.param({"a": own("a", host="h2"), "b": own("b", instance="two")}, ["new"], 1, id="another-server"),
        pytest.param({"a": own("a", hardware={"driver": "590"})}, ["new"], 1, id="another-driver"),
        pytest.param({"a": own("a", workload={"cache": "warm"})}, ["new"], 1, id="another-cache-policy"),
        pytest.param({"a": own("a", workload={"slo": {"ttft_ms": 1}})}, ["new"], 1, id="another-slo"),
        pytest.param({"a": own("a", workload={"name": "chat"})}, ["new"], 1, id="another-workload"),
        pytest.param({"a": record(starts=[start(point(concurrency=4), invocation="a")])}, ["new"], 1, id="another-load"),
        pytest.param({"a": record(starts=[start(point(status="contended"), invocation="a")])}, ["new"], 1, id="contended"),
        pytest.param({"a": record(starts=[start(UNCOUNTED, invocation="a")])}, ["new"], 1, id="B03-uncounted"),
    ],
)
def test_accept(others, names, starts):
    found = accept(content(chat=ENTRY), "new", own("new"), others, accepted_at=NOW)
    commit = record()["inventory"]["commit"]
    assert found.content == content(chat=ENTRY, decode={"records": names, "accepted_at": NOW, "commit": commit})
    assert found.starts == starts
    assert ("measure it on" in found.text) == (starts < 3)
    assert parse(json.dumps(found.content)) == found.content


def test_what_is_said():
    assert accept(empty(), "new", own("new"), {}, accepted_at=NOW).text == (
        "baseline of decode: 1 record, 1 start; measure it on 2 more and accept it again: until then it judges only where this host's records tell its spread"
    )
    others = dict(zip("abc", measured()))
    assert accept(empty(), "new", own("new"), others, accepted_at=NOW).text == "baseline of decode: 4 records, 4 starts"


def test_nothing_is_changed_in_place():
    before = content(decode=ENTRY)
    accept(before, "new", own("new"), {}, accepted_at=NOW)
    assert before == content(decode=ENTRY)


@pytest.mark.parametrize("status", ["contended", "failed"])
def test_what_cannot_be_a_baseline(status):
    bad = record(starts=[start(point(), point(concurrency=4, status=status, remarks=["why"]))])
    with pytest.raises(BaselineError, match=f"^new cannot be the baseline of decode: {status}: why$"):
        accept(empty(), "new", bad, {}, accepted_at=NOW)


def test_B03_tokens_that_nobody_counted_are_no_baseline():
    with pytest.raises(BaselineError, match="^new cannot be the baseline of decode: nobody counted the tokens of 1 of 2 repetitions$"):
        accept(empty(), "new", record(starts=[start(UNCOUNTED)]), {}, accepted_at=NOW)
