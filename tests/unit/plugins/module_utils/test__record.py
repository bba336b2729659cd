# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record import (
    FORMAT,
    Subject,
    describe_engine,
    describe_model,
    effective,
    make_record,
    silent_changes,
    stored,
    subject,
)
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import leaks
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record as whole_record
from ansible_collections.llmops.inference.tests.unit.benchmark_records import start
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "benchmark.schema.json").read_text())
FIXTURES = Path(__file__).parents[2] / "fixtures" / "benchmark"
# What the controller adds.
CONTROLLER = {"host": "ct129", "collection": "0.1.0", "inventory": {"commit": None, "dirty": None}, "flags": [], "verdict": {}}
SECRET = "s3cret-of-the-server"
RELEASE = {
    "format": 1,
    "id": "3494591af2ee",
    "argv": ["--model-path", "/home/ops/models/qwen", "--tp-size", "2", "--admin-api-key", "other-secret"],
    "environment": {"NCCL_P2P_LEVEL": "PHB", "HF_TOKEN": "hf_0123456789"},
    "engine": {"name": "0.5.23-cuda-a1b2c3d4-py312-x86_64"},
    "model": {"name": "qwen", "revision": "9d2f1e0c"},
    "secrets": ["api_key"],
    "probe": {"port": 30000},
}
CLIENT = {"name": "engine", "module": "sglang.benchmark.serving", "api": "/generate", "where": "server"}
WORKLOAD = whole_record()["workload"]
MODEL = {"name": "qwen", "revision": "9d2f1e0c", "architecture": None, "quantization": None}
HARDWARE = whole_record()["hardware"]


def made(**changes):
    fields = {"instance": "main", "release": RELEASE, "preflight": {}, "vitals": {}, "server_info": {}, "model": MODEL, "hardware": HARDWARE, **changes}
    return make_record(Subject(**fields), WORKLOAD, [start()], client=CLIENT, measured_at="2026-11-30T10:15:00Z", secrets=(SECRET, ""))


def misfits(record):
    return problems(json.loads(json.dumps({**record, **CONTROLLER}, allow_nan=False)), SCHEMA)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="plain"),
        pytest.param({"hardware": {"gpus": [], "links": "", "driver": "", "cpu": "x86_64", "cpus": 2, "kernel": "6"}}, id="no-gpus"),
        pytest.param({"vitals": {"kv_cache_tokens": 1}, "server_info": {"version": "0.5.23", "dtype": "auto"}}, id="told"),
    ],
)
def test_it_fits_the_schema_with_what_the_controller_adds(changes):
    assert misfits(made(**changes)) == []
    assert set(made(**changes)) | set(CONTROLLER) == set(SCHEMA["required"]) and SCHEMA["properties"]["format"]["const"] == FORMAT


def test_a_measured_record():
    """Measured on a server of the cpu engine with a tiny model: its numbers say something about the format and nothing about speed."""
    measured = json.loads((FIXTURES / "record-0.5.23.json").read_text())
    assert misfits(measured) == [] and leaks(measured) == []
    assert [point["concurrency"] for point in measured["starts"][0]["points"]] == [1, 2]
    for point in measured["starts"][0]["points"]:
        for repetition in point["repetitions"]:
            assert repetition["server"] == {"prompt_tokens": repetition["input_tokens"], "generation_tokens": repetition["output_tokens"]}
            assert repetition["cache_hit_rate"] < 0.05, "salted prompts are new to the server"


def test_no_secret_is_in_it():
    """U09"""
    info = {"version": "0.5.23", "api_key": SECRET, "server_args": {"api_key": SECRET}, "sampling_backend": f"x {SECRET}"}
    record = made(server_info=info)
    text = json.dumps(record)
    assert not [secret for secret in (SECRET, "other-secret", "hf_0123456789", "/home/ops") if secret in text]
    assert record["release"]["argv"][:4] == ["--model-path", "~/models/qwen", "--tp-size", "2"]
    assert record["environment"]["NCCL_P2P_LEVEL"] == "PHB" and leaks(record, [SECRET]) == []


def test_a_release_whose_document_is_gone():
    record = made(release={})
    assert (record["release"]["argv"], record["engine"]["version"], record["environment"]) == ([], "", {})


@pytest.mark.parametrize(
    "changes, same",
    [
        pytest.param({}, True, id="equal"),
        pytest.param({"id": "other", "probe": {"port": 1}, "unit": "x", "secrets": []}, True, id="what-does-not-count"),
        pytest.param({"environment": {"HF_TOKEN": "hf_0123456789", "NCCL_P2P_LEVEL": "PHB"}}, True, id="order-of-the-environment"),
        pytest.param({"argv": ["--tp-size", "4"]}, False, id="arguments"),
        pytest.param({"environment": {}}, False, id="environment"),
        pytest.param({"engine": {"name": "0.5.12"}}, False, id="engine"),
        pytest.param({"model": {"name": "qwen", "revision": "other"}}, False, id="weights"),
    ],
)
def test_what_a_change_changes(changes, same):
    assert (subject({**RELEASE, **changes}) == subject(RELEASE)) is same
    assert len(subject(RELEASE)) == 12 and int(subject(RELEASE), 16)


@pytest.mark.parametrize(
    "name, version, lock",
    [
        pytest.param("0.5.23-cuda-1a2b3c4d-py312-x86_64", "0.5.23", "1a2b3c4d", id="release"),
        pytest.param("0.5.10-cpu-87074912-py311-x86_64", "0.5.10", "87074912", id="cpu"),
        pytest.param("0.5.23.post1-cuda-1a2b3c4d-py312-aarch64", "0.5.23.post1", "1a2b3c4d", id="post"),
        pytest.param("by-hand", "", "", id="another-name"),
        pytest.param("", "", "", id="none"),
    ],
)
def test_the_engine(name, version, lock):
    assert describe_engine(name) == {"name": name, "version": version, "lock": lock}


@pytest.mark.parametrize(
    "config, architecture, quantization",
    [
        pytest.param(None, None, None, id="no-configuration"),
        pytest.param({}, None, None, id="empty"),
        pytest.param({"architectures": ["Qwen3ForCausalLM"]}, "Qwen3ForCausalLM", None, id="architecture"),
        pytest.param({"architectures": [], "quantization_config": None}, None, None, id="nothing-in-it"),
        pytest.param({"architectures": ["A", "B"], "quantization_config": {"quant_method": "fp8"}}, "A", "fp8", id="quantized"),
    ],
)
def test_the_model(tmp_path, config, architecture, quantization):
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    expected = {"name": "qwen", "revision": "9d2f", "architecture": architecture, "quantization": quantization}
    assert describe_model("qwen", "9d2f", tmp_path) == expected


INFO = {
    "attention_backend": "fa3",
    "mem_fraction_static": 0.85,
    "chat_template": None,
    "log_level": "info",
    "cuda_graph_config": {"decode": {"backend": "full", "max_bs": 32, "bs": [1, 2]}},
}


@pytest.mark.parametrize(
    "preflight, more",
    [
        pytest.param({}, {}, id="no-preflight"),
        pytest.param({"flags": [{"field": "log_level"}, {"field": ""}]}, {"log_level": "info"}, id="asked-for"),
        pytest.param({"changes": [{"field": "chat_template"}]}, {"chat_template": None}, id="changed-by-the-engine"),
        pytest.param({"flags": [{"field": "not_told"}], "changes": []}, {}, id="not-told"),
    ],
)
def test_what_the_server_runs_with(preflight, more):
    always = {"attention_backend": "fa3", "mem_fraction_static": 0.85, "cuda_graph_config.decode.backend": "full", "cuda_graph_config.decode.max_bs": 32}
    assert effective(preflight, INFO) == {**always, **more}


def change(field, before, after, tests=(), logged=(), function=None):
    return {"field": field, "before": before, "after": after, "because": [{"test": test} for test in tests], "logged": list(logged), "function": function}


@pytest.mark.parametrize(
    "changes, expected",
    [
        pytest.param([], [], id="none"),
        pytest.param([change("a", 1, 2, ["x > 1"])], [("a", 1, 2, "x > 1")], id="one"),
        pytest.param([change("a", 1, 2, ["x", "y"])], [("a", 1, 2, "x and y")], id="two-tests"),
        pytest.param([change("a", 1, 2, function="_handle")], [("a", 1, 2, "_handle")], id="function"),
        pytest.param([change("a", 1, 2)], [("a", 1, 2, "")], id="no-reason"),
        pytest.param([change("a", 1, 2, ["x"]), change("a", 2, 3, ["y"])], [("a", 1, 3, "y")], id="first-and-last"),
        pytest.param([change("a", 1, 2), change("a", 2, 1)], [], id="back-again"),
        pytest.param([change("a", 1, 2, ["x"]), change("a", 2, 3, ["y"], ["a is 3"])], [("a", 1, 3, "x")], id="what-it-runs-with-was-said-later"),
        pytest.param([change("a", 1, 2, logged=["a is now 2"])], [], id="said-in-the-log"),
        pytest.param([change("a", None, 2)], [], id="a-default-found"),
        pytest.param([change("b", 1, 2), change("a", False, True)], [("a", False, True, ""), ("b", 1, 2, "")], id="sorted"),
    ],
)
def test_silent_changes(changes, expected):
    found = silent_changes({"changes": changes})
    assert [(entry["field"], entry["asked"], entry["runs"], entry["why"]) for entry in found] == expected


def test_what_stays_on_the_host():
    assert stored([made()]) == {"format": 2, "records": [made()]}
