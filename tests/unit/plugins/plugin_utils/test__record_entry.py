# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import leaks
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION
from ansible_collections.llmops.inference.plugins.plugin_utils._record_entry import complete, judged, line
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, Stored
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point, record, repetition, start

CONTROLLERS = ("host", "collection", "inventory", "flags", "verdict")
INVENTORY = {"commit": "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "dirty": True}
FLAGS = [{"name": "tp_size", "value": 2, "layer": "hardware"}]


def of_the_host(**changes):
    return {name: value for name, value in record(**changes).items() if name not in CONTROLLERS}


def stored(baseline, others=()):
    """What is there: records of decode's baseline, and others."""
    records = {f"{place}.json": one for place, one in enumerate([*baseline, *others])}
    entry = {"records": [f"{place}.json" for place in range(len(baseline))]}
    return Stored(Path("ct129"), records, {"format": 1, "baselines": {"decode": entry} if baseline else {}})


def test_the_controllers_part():
    found = complete(of_the_host(), "web-1", INVENTORY, FLAGS)
    assert found == {**record(), "host": "web-1", "collection": VERSION, "inventory": INVENTORY, "flags": FLAGS, "verdict": {}}


def test_secrets_and_homes():
    dirty = of_the_host(environment={"HF_TOKEN": "hf_abcdefghijk"}, release={"argv": ["--model-path", "/home/alice/m"]})
    found = complete(dirty, "ct129", INVENTORY, [{"name": "api_key", "value": "s3cret", "layer": "extra"}])
    assert leaks(found) == [] and "s3cret" not in str(found) and "alice" not in str(found)


@pytest.mark.parametrize(
    "given, message",
    [
        pytest.param({}, "it is no record of a benchmark; pass the records of sglang_benchmark as they are", id="empty"),
        pytest.param(of_the_host(format=1), "its format is 1, and 2 is the one that is known here", id="format"),
        pytest.param(of_the_host(workload="decode"), "workload is not a mapping", id="workload"),
        pytest.param(of_the_host(starts=[{}]), "starts has a point without status and repetitions", id="points"),
        pytest.param(of_the_host(vitals={"x": float("nan")}), "Out of range float values are not JSON compliant", id="no-number"),
        pytest.param(of_the_host(vitals={"x": Path("x")}), "Object of type .* is not JSON serializable", id="no-data"),
    ],
)
def test_what_is_no_record(given, message):
    with pytest.raises(RecordFileError, match=f"^what was measured on ct129 cannot be kept: {message}"):
        complete(given, "ct129", INVENTORY, FLAGS)


def test_links_that_were_measured():
    links = {"text": "2 ranks (nccl)", "measured_at": "2026-11-29T22:32:45Z"}
    assert complete(of_the_host(), "ct129", INVENTORY, FLAGS, links=links)["hardware"] == {**record()["hardware"], "links_measured": links}
    assert "links_measured" not in complete(of_the_host(), "ct129", INVENTORY, FLAGS)["hardware"]
    with pytest.raises(RecordFileError, match="hardware is not a mapping"):
        complete(of_the_host(hardware="none"), "ct129", INVENTORY, FLAGS, links=links)


@pytest.mark.parametrize("flags", [[{"name": "x"}], [{"value": 1, "layer": "host"}]])
def test_flags_that_are_none(flags):
    with pytest.raises(RecordFileError, match="flags has an entry without name and value"):
        complete(of_the_host(), "ct129", INVENTORY, flags)


def test_without_a_baseline_there_is_no_verdict():
    assert judged(record(), stored([], measured()), "output_tok_per_s") == record(verdict={})


def test_the_verdict():
    (now,) = measured(90.0, boots=(1.0,), name="now")
    found = judged(now, stored(measured()), "output_tok_per_s")
    assert found["verdict"]["verdict"] == "slower" and {**found, "verdict": {}} == now
    assert judged(now, stored(measured()), "ttft_ms_p99")["verdict"]["metric"] == "ttft_ms_p99"


def test_the_hosts_past_counts():
    """One start says nothing alone; the host's other records tell how far starts differ."""
    (before,), (now,) = measured(boots=(1.0,)), measured(90.0, boots=(1.0,), name="now")
    assert judged(now, stored([before]), "output_tok_per_s")["verdict"]["low"] is None
    past = measured(name="past", release={"subject": "older"})
    assert judged(now, stored([before], past), "output_tok_per_s")["verdict"]["verdict"] == "slower"


def test_a_baseline_without_its_record():
    there = stored(measured())
    del there.records["1.json"]
    with pytest.raises(RecordFileError, match=r"^ct129/baseline.json: the baseline of decode names 1.json, and there is no such record"):
        judged(record(), there, "output_tok_per_s")


def against(baseline, *args, metric="output_tok_per_s", **changes):
    (now,) = measured(*args, boots=(1.0,), name="now", **changes)
    return judged(now, stored(baseline), metric)


FAILED = point([repetition(0, failed=4, completed=0, output_tok_per_s=None)], status="failed")
SWEEP = [start(*(point([rate * part for part in (0.99, 1.0, 1.01)], concurrency=number) for number, rate in ((1, 55.0), (4, 180.0), (16, 412.0))))]
RATE = "100.0 tok/s (99.4 to 100.6) at concurrency 1"


@pytest.mark.parametrize(
    "given, text",
    [
        pytest.param(record(), f"decode: {RATE}, no baseline", id="no-baseline"),
        pytest.param(against(measured()), f"decode: {RATE}, no measurable difference from the baseline", id="alike"),
        pytest.param(
            against(measured(), 90.0),
            "decode: 90.0 tok/s (89.5 to 90.5) at concurrency 1, slower than the baseline: -10.0 % (95 % interval -12.2 to",
            id="slower",
        ),
        pytest.param(against(measured(90.0)), f"decode: {RATE}, faster than the baseline: +11.1 % (95 % interval", id="faster"),
        pytest.param(against(measured(90.0), metric="tpot_ms"), f"decode: {RATE}, faster than the baseline in tpot_ms: -10.0 % (95 % interval", id="latency"),
        pytest.param(
            against(measured(workload={"cache": "warm"})),
            f"decode: {RATE}, not comparable with the baseline: measured under other conditions: cache policy: warm, now flushed",
            id="B05-cache-policy",
        ),
        pytest.param(against(measured(0.0)), f"decode: {RATE}, invalid baseline: output_tok_per_s of the baseline is 0: nothing", id="B05-zero"),
        pytest.param(against(measured(boots=(1.0,))), f"decode: {RATE}, no verdict: nothing can be told: the baseline has 1 start", id="too-few-starts"),
        pytest.param(
            record(starts=SWEEP),
            "decode: 55.0 tok/s (54.5 to 55.5) at concurrency 1, 412.0 tok/s (407.9 to 416.1) at concurrency 16, no baseline",
            id="a-sweep",
        ),
        pytest.param(
            record(starts=[start(point(concurrency=None, request_rate=2.5))]),
            "decode: 100.0 tok/s (99.4 to 100.6) at concurrency unlimited at 2.5 requests per s, no baseline",
            id="a-rate-of-requests",
        ),
        pytest.param(
            record(workload={"name": "short_cached", "label": "flattering: short prompts from a warm cache"}),
            f"short_cached (flattering: short prompts from a warm cache): {RATE}, no baseline",
            id="flattering",
        ),
        pytest.param(record(starts=[start(point(status="contended"))]), f"decode: {RATE}, contended, so the numbers count for nothing", id="contended"),
        pytest.param(
            record(starts=[start(point(warmup={"repetitions": 4, "stable": False})), start(point(warmup={"repetitions": 4, "stable": False}))]),
            f"decode: {RATE}, no baseline; the warm-up was not stable after 4 repetitions",
            id="still-warming-up",
        ),
        pytest.param(record(starts=[start(point(), FAILED)]), f"decode: {RATE}, failed, so the numbers count for nothing", id="B04-one-point-failed"),
        pytest.param(record(starts=[start(FAILED)]), "decode: no number was measured, failed, so the numbers count for nothing", id="B04-all-failed"),
    ],
)
def test_line(given, text):
    assert line(given).startswith(text) and "\n" not in line(given)
