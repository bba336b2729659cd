# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The published schema of benchmark records: what the code makes fits it, and so does every record that is committed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._baseline import parse_record
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point, failed_point
from ansible_collections.llmops.inference.plugins.module_utils._record import FORMAT as RECORD_FORMAT
from ansible_collections.llmops.inference.plugins.module_utils._record_compare import compare_records
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import leaks
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point, record, repetition, start
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "benchmark.schema.json").read_text())
COMMITTED = [path for path in sorted((ROOT / "inventories").rglob("*.json")) if '"kind": "benchmark"' in path.read_text()]
UNKNOWN = dict.fromkeys(("output_tokens", "output_tok_per_s", "accept_length_of", "kv_usage", "queued", "server", "gpus"))
UNKNOWN["counted_by"] = "unknown"
VERDICTS = {
    "compared": compare_records(measured(), measured(90.0, name="now"), history=measured(name="old")),
    "thin": compare_records(measured(boots=(1.0,)), measured(90.0, boots=(1.0,), name="now")),
    "conditions": compare_records(measured(), measured(hardware={"driver": "590"})),
    "invalid": compare_records(measured(0.0), measured()),
    "none": compare_records([], measured()),
}
FITTING = {
    "whole": record(),
    "without-gpus": record(hardware={"gpus": [], "links": "", "driver": ""}, inventory={"commit": None, "dirty": None}),
    "failed": record(starts=[start(point([repetition(0, failed=4, completed=0, output_tok_per_s=None, output_tokens=None)], status="failed"))]),
    "a-point-failed": record(starts=[start(point(), failed_point(Point(4), "HTTP 500 (warming up)"))]),
    "a-start-failed": record(starts=[start(), {"invocation": "", "started_at": None, "points": [failed_point(Point(None, 2.5), "it did not come back")]}]),
    "nothing-told": record(starts=[start(point([repetition(0, **UNKNOWN)]))]),
    "by-rate": record(starts=[start(point(concurrency=None, request_rate=2.5))]),
    **{f"verdict-{name}": record(verdict=verdict) for name, verdict in VERDICTS.items()},
}
MISFITS = {
    "another format": {"format": 1},
    "another kind": {"kind": "preflight"},
    "unknown key": {"tokens_per_second": 1},
    "unknown key inside": {"hardware": {"gpu": []}},
    "type": {"host": 7},
    "time": {"measured_at": "2026-11-30 10:15"},
    "cache policy": {"workload": {"cache": "cold"}},
    "hash": {"workload": {"hash": "xyz"}},
    "no start": {"starts": []},
    "no point": {"starts": [{**start(), "points": []}]},
    "status": {"starts": [start(point(status="good"))]},
    "negative": {"starts": [start(point([repetition(duration_s=-1)]))]},
    "true is no number": {"starts": [start(point([repetition(requests=True)]))]},
    "who counted": {"starts": [start(point([repetition(counted_by="chunks")]))]},
    "half a verdict": {"verdict": {"verdict": "faster"}},
    "an invented verdict": {"verdict": {**VERDICTS["compared"], "verdict": "fine"}},
}


def test_the_version_of_the_schema_is_that_of_the_code():
    assert SCHEMA["properties"]["format"] == {"const": RECORD_FORMAT} and f"format {RECORD_FORMAT}" in SCHEMA["title"]


@pytest.mark.parametrize("name", FITTING)
def test_records_that_fit(name):
    fitting = json.loads(json.dumps(FITTING[name], allow_nan=False))
    assert problems(fitting, SCHEMA) == []


@pytest.mark.parametrize("name", MISFITS)
def test_records_that_do_not(name):
    assert problems(record(**MISFITS[name]), SCHEMA)


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_nothing_may_be_missing(key):
    less = record()
    del less[key]
    assert problems(less, SCHEMA) == [f"record has no {key}"]


def test_it_says_all_that_a_record_may_hold():
    assert set(SCHEMA["properties"]) == set(SCHEMA["required"]) == set(record())


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_records(path):
    committed = parse_record(path.read_text(), path.name)
    assert problems(committed, SCHEMA) == [] and leaks(committed) == []


def test_the_checker_agrees_with_a_whole_one():
    jsonschema = pytest.importorskip("jsonschema")
    whole = jsonschema.Draft202012Validator(SCHEMA)
    whole.check_schema(SCHEMA)
    assert [name for name, fitting in FITTING.items() if not whole.is_valid(json.loads(json.dumps(fitting)))] == []
    assert [name for name, changes in MISFITS.items() if whole.is_valid(record(**copy.deepcopy(changes)))] == []


def test_an_unknown_keyword_is_an_error():
    with pytest.raises(AssertionError, match="unknown keywords"):
        problems(1, {"maximum": 3})
