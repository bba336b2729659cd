# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record import subject
from ansible_collections.llmops.inference.plugins.plugin_utils._check_baseline import baseline
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import write_record
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured
from ansible_collections.llmops.inference.tests.unit.check_changes import render


@pytest.fixture(name="keep")
def fixture_keep(tmp_path):
    def keep(records, workload="decode"):
        names = [f"{write_record(tmp_path / 'ct129', '20261130T101500Z-x-3494591af2ee', one)}.json" for one in records]
        (tmp_path / "ct129" / "baseline.json").write_text(json.dumps({"format": 1, "baselines": {workload: {"records": names}}}))

    keep.folder = tmp_path
    return keep


def judged(keep, before=None, after=None, **settings):
    gate = {"settings": {"tolerance_pct": 5, **settings}, "records_dir": str(keep.folder)}
    return baseline("ct129", before, {**(after or render()), "gate": gate})


def records(release=None, boots=(1.0, 0.995, 1.004), **changes):
    """Of the release that a render is of, on its hardware."""
    return measured(55.0, boots, release={"subject": subject((release or render())["release"])}, **changes)


def test_there_is_no_gate():
    found = baseline("ct129", None, render())
    assert (found["state"], found["metric"]) == ("off", None) and "sglang_server_gate is empty" in found["text"]


def test_there_is_no_baseline(keep):
    found = judged(keep)
    assert found["state"] == "none" and found["workload"] == "decode" and found["median"] is None
    assert found["text"] == "there is no baseline of decode for this host, so nothing will be judged: accept one with -e sglang_benchmark_accept=true"


def test_it_is_that_of_the_release_that_is_replaced(keep):
    keep(records())
    found = judged(keep, render(), render({"tp_size": (4, "hardware")}))
    assert (found["state"], found["starts"], found["median"], found["measured_at"]) == ("ready", 3, 55.0, "2026-11-30T10:15:00Z")
    assert found["low"] < 55.0 < found["high"]
    assert found["text"].startswith("output_tok_per_s of decode against 55.0 (54.") and found["text"].endswith("; 5 % worse is tolerated")


def test_few_starts_are_told(keep):
    keep(records(boots=(1.0,)))
    assert "1 start, measured 2026-11-30; 5 % worse is tolerated; of so few starts it judges only where" in judged(keep, render())["text"]


@pytest.mark.parametrize("metric, median", [("ttft_ms_p99", True), ("ttft_ms", True), ("goodput_per_s", False)])
def test_other_metrics(keep, metric, median):
    keep(records())
    found = judged(keep, render(), metric=metric)
    assert found["metric"] == metric and (found["median"] is not None) is median
    assert ("without a number" in found["text"]) is not median


def test_a_concurrency_that_was_not_measured(keep):
    keep(records())
    assert judged(keep, render(), concurrency=64)["median"] is None
    assert judged(keep, render(), concurrency=1)["text"].startswith("output_tok_per_s of decode at concurrency 1 against 55.0")


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"hardware": {"driver": "590.1"}}, "driver: 590.1, now 580.159.04"),
        ({"hardware": {"gpus": [{"name": "NVIDIA H200", "memory_mib": 143771, "power_limit_w": 700.0}]}}, "GPUs: 1 x NVIDIA H200, now 1 x NVIDIA RTX A6000"),
        ({"model": {"name": "qwen3.5-9b"}}, "model: qwen3.5-9b, now qwen3.6-27b"),
        ({"model": {"revision": "00000000"}}, "model revision: 00000000, now 9d2f1e0c"),
    ],
)
def test_other_conditions_make_it_stale(keep, changes, why):
    keep(records(**changes))
    found = judged(keep, render())
    assert found["state"] == "stale" and why in found["text"]
    ignored = [key for key in ("driver", "model", "model_revision") if key.replace("_", " ") in why]
    if "GPU" not in why:
        assert judged(keep, render(), ignore_conditions=ignored)["state"] == "ready"
    still = judged(keep, render(), stale="gate")
    assert still["state"] == "stale" and "judged though the baseline is stale" in still["text"]


def test_it_is_of_another_release(keep):
    keep(measured())
    found = judged(keep, render())
    assert found["state"] == "ready" and "the baseline is of an earlier release (from it to this one: engine " in found["text"]
    assert "earlier" not in judged(keep, render(problems=["x"], release=None))["text"], "what it replaces is not known"


def test_a_host_with_more_gpus_than_its_server_uses(keep):
    more = render()
    gpus = more["hardware"]["gpus"]
    more["hardware"]["gpus"] = [{**gpus[0], "name": "T4"}, *gpus, {**gpus[0], "name": "T4"}]
    keep(records())
    assert judged(keep, render(), more)["state"] == "ready"
    more["hardware"]["gpus"] = more["hardware"]["gpus"][:1]
    assert judged(keep, render(), more)["state"] == "stale"
    assert judged(keep, render(), render(hardware=None))["state"] == "ready"


@pytest.mark.parametrize("settings, text", [({"metrik": "x"}, "sglang_server_gate.metrik is no setting"), ({"workload": "nonsense"}, "must be one of")])
def test_settings_that_mean_nothing(keep, settings, text):
    found = judged(keep, **settings)
    assert found["state"] == "unusable" and text in found["text"]


def test_a_damaged_baseline(keep):
    keep(records())
    (keep.folder / "ct129" / "baseline.json").write_text("{")
    assert judged(keep)["state"] == "unusable"
