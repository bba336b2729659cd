# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gate import judge, read_settings
from ansible_collections.llmops.inference.plugins.plugin_utils._gate_inputs import GateInputError, gate_inputs
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import read_host, write_record
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, record

DEFAULTS = {"metric": "output_tok_per_s", "tolerance_pct": 5.0, "workload": "decode", "concurrency": None, "ignore_conditions": [], "stale": "pass"}
CHAT = {"name": "chat"}


@pytest.fixture(name="records_dir")
def fixture_records_dir(tmp_path):
    return tmp_path / "benchmarks"


def keep(records_dir, records, baseline=()):
    """Writes records of the host, the baseline's first."""
    folder = records_dir / "ct129"
    names = [f"{write_record(folder, '20261130T101500Z-x-3494591af2ee', one)}.json" for one in (*baseline, *records)]
    if baseline:
        content = {"format": 1, "baselines": {"decode": {"records": names[: len(baseline)]}}}
        (folder / "baseline.json").write_text(json.dumps(content))


def test_nothing_is_there(records_dir):
    assert gate_inputs(records_dir, "ct129", {}) == {"settings": DEFAULTS, "baseline": [], "history": []}
    assert not records_dir.exists()


def test_settings_are_whole_and_plain(records_dir):
    given = {"tolerance_pct": 3, "ignore_conditions": ["driver"], "metric": "ttft_ms_p99", "concurrency": 4}
    found = gate_inputs(records_dir, "ct129", given)["settings"]
    assert found == {**DEFAULTS, **given, "tolerance_pct": 3.0} == json.loads(json.dumps(found))
    assert read_settings(found) == read_settings(given), "the host reads them again"


def test_baseline_and_history(records_dir):
    past = measured(97.0, name="past")
    keep(records_dir, [*past, record(workload=CHAT)], baseline=measured())
    found = gate_inputs(records_dir, "ct129", {})
    assert found["baseline"] == measured()
    assert [one["starts"][0]["invocation"] for one in found["history"]] == ["past97-0", "past97-1", "past97-2"]
    assert gate_inputs(records_dir, "ct129", {"workload": "chat"})["baseline"] == []
    assert len(gate_inputs(records_dir, "ct129", {"ignore_conditions": ["workload"]})["history"]) == 4


def test_the_past_is_small(records_dir):
    keep(records_dir, [record()])
    (found,) = gate_inputs(records_dir, "ct129", {})["history"]
    assert not found.keys() & {"vitals", "effective", "silent_changes", "flags", "verdict"}
    assert len(json.dumps(found)) < 0.65 * len(json.dumps(record()))


@pytest.mark.parametrize("metric", ["output_tok_per_s", "ttft_ms", "goodput_per_s"])
@pytest.mark.parametrize("past", [[], measured(name="past", release={"subject": "older"})], ids=["no-past", "past"])
@pytest.mark.parametrize("starts", [1, 3])
def test_it_judges_as_with_whole_records(records_dir, metric, past, starts):
    keep(records_dir, past, baseline=measured(boots=(1.0, 0.995, 1.004)[:starts]))
    whole = read_host(records_dir / "ct129").records.values()
    found = gate_inputs(records_dir, "ct129", {"metric": metric})
    (now,) = measured(90.0, boots=(1.0,), name="now", release={"subject": "subject-b"})
    verdicts = [judge(read_settings(found["settings"]), found["baseline"], now, "subject-a", history=history) for history in (found["history"], whole)]
    assert verdicts[0] == verdicts[1]
    if metric != "goodput_per_s":
        assert verdicts[0].outcome == ("regression" if past or starts > 1 else "not enough starts")


@pytest.mark.parametrize(
    "settings, message",
    [
        pytest.param([], "sglang_server_gate must be a mapping of settings, not a list", id="no-mapping"),
        pytest.param({"tolerance": 5}, "sglang_server_gate.tolerance is no setting of the gate; did you mean tolerance_pct?", id="setting"),
        pytest.param({"workload": "decod"}, "sglang_server_gate.workload must be one of .*; did you mean decode?", id="workload"),
    ],
)
def test_settings_that_are_wrong(records_dir, settings, message):
    with pytest.raises(GateInputError, match=message.replace("?", r"\?")):
        gate_inputs(records_dir, "ct129", settings)


@pytest.mark.parametrize(
    "name, text, message",
    [
        pytest.param("baseline.json", "{", "baseline.json is damaged: .*; restore it from git", id="baseline"),
        pytest.param("20261130T101500Z-decode-x.json", "{", "20261130T101500Z-decode-x.json is damaged: ", id="record"),
        pytest.param("baseline.json", '{"format": 1, "baselines": {"decode": {"records": ["x.json"]}}}', "names x.json, and there is no such", id="missing"),
    ],
)
def test_files_that_are_damaged(records_dir, name, text, message):
    keep(records_dir, [record()])
    (records_dir / "ct129" / name).write_text(text)
    with pytest.raises(GateInputError, match=message):
        gate_inputs(records_dir, "ct129", {})


def test_a_name_that_is_none_of_a_directory(records_dir):
    with pytest.raises(GateInputError, match="the records of '../x' cannot be kept"):
        gate_inputs(records_dir, "../x", {})
