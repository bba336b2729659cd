# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import (
    CONDITIONS,
    KEYS,
    Change,
    changes,
    differing,
    effective_changes,
    key_of,
    subject_changes,
    told_differences,
)
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point, record, start

GPU = {"name": "NVIDIA RTX A6000", "memory_mib": 49140, "power_limit_w": 300.0}


def hardware(**changes):
    return record(hardware=changes)


def swept(*loads):
    return record(starts=[start(*(point(concurrency=concurrency, request_rate=rate) for concurrency, rate in loads))])


@pytest.mark.parametrize(
    "current, expected",
    [
        pytest.param(record(), [], id="equal"),
        pytest.param(record(model={"name": "m"}), ["model: qwen3.6-27b, now m"], id="model"),
        pytest.param(record(model={"name": "m", "revision": "r"}), ["model: qwen3.6-27b, now m"], id="another-model-has-another-revision"),
        pytest.param(record(model={"revision": ""}), ["model revision: 9d2f1e0c, now none"], id="revision"),
        pytest.param(hardware(gpus=[GPU]), ["GPUs: 2 x NVIDIA RTX A6000, now 1 x NVIDIA RTX A6000"], id="fewer-gpus"),
        pytest.param(hardware(gpus=[]), ["GPUs: 2 x NVIDIA RTX A6000, now none"], id="no-gpus"),
        pytest.param(
            hardware(gpus=[GPU, {**GPU, "name": "NVIDIA L40", "memory_mib": 46068}]),
            ["GPUs: 2 x NVIDIA RTX A6000, now 1 x NVIDIA L40, 1 x NVIDIA RTX A6000"],
            id="another-gpu",
        ),
        pytest.param(hardware(gpus=[GPU, {**GPU, "power_limit_w": 250.0}]), ["GPU power limit: 2 x 300 W, now 1 x 250 W, 1 x 300 W"], id="power-limit-of-one"),
        pytest.param(hardware(gpus=[GPU, {**GPU, "power_limit_w": 300}]), [], id="a-whole-number-is-the-same"),
        pytest.param(hardware(gpus=[{**GPU, "memory_mib": 49139}] * 2), ["GPU memory: 2 x 49140 MiB, now 2 x 49139 MiB"], id="memory"),
        pytest.param(hardware(gpus=[{**GPU, "power_limit_w": None}] * 2), ["GPU power limit: 2 x 300 W, now 2 x none"], id="power-limit-not-known"),
        pytest.param(hardware(links="SYS"), ["GPU links: PHB, now SYS"], id="links"),
        pytest.param(
            hardware(driver="590.44.01", kernel="6.12.1-amd64"),
            ["driver: 580.159.04, now 590.44.01", "kernel: 6.1.0-25-amd64, now 6.12.1-amd64"],
            id="driver-and-kernel-in-the-order-of-the-table",
        ),
        pytest.param(hardware(cpus=24), ["CPUs: 48, now 24"], id="cpus"),
        pytest.param(hardware(cpu="AMD EPYC 9354", cpus=64), ["CPU: AMD EPYC 7402P 24-Core Processor, now AMD EPYC 9354"], id="another-cpu"),
        pytest.param(record(client={"name": "openai", "api": "/v1/chat/completions"}), ["client: engine, now openai"], id="client"),
        pytest.param(record(client={"api": "/v1/completions"}), ["API: /generate, now /v1/completions"], id="api"),
        pytest.param(record(client={"where": "controller"}), ["measured from: server, now controller"], id="where"),
        pytest.param(record(client={"version": "0.5.12", "module": "sglang.bench_serving"}), [], id="the-client-comes-with-the-engine"),
        pytest.param(record(workload={"name": "chat", "hash": "1" * 12, "output_tokens": 256}), ["workload: decode, now chat"], id="workload"),
        pytest.param(record(workload={"hash": "1" * 12}), ["prompts: 0a1b2c3d4e5f, now 111111111111"], id="only-the-hash"),
        pytest.param(
            record(workload={"hash": "1" * 12, "input_tokens": 128, "output_tokens": 64}),
            ["input length: as the prompts are, now 128 tokens", "output length: 512 tokens, now 64 tokens"],
            id="lengths-explain-the-hash",
        ),
        pytest.param(record(workload={"cache": "warm"}), ["cache policy: flushed, now warm"], id="B05-cache-policy"),
        pytest.param(record(workload={"seed": 2}), ["seed: 1, now 2"], id="seed"),
        pytest.param(record(workload={"requests": 8}), ["requests: 4, now 8"], id="requests"),
        pytest.param(record(workload={"slo": {"ttft_ms": 500}}), [], id="an-slo-is-for-goodput"),
        pytest.param(swept((16, None)), ["concurrency: 1, now 16"], id="B05-concurrency"),
        pytest.param(swept((1, None), (16, None)), [], id="a-sweep-with-the-same-point"),
        pytest.param(swept((4, None), (16, None)), ["concurrency: 1, now 4, 16"], id="a-sweep-without-it"),
        pytest.param(swept((1, 2.5)), ["request rate: unlimited, now 2.5 per s"], id="request-rate"),
        pytest.param(record(starts=[]), ["concurrency: 1, now not measured", "request rate: unlimited, now not measured"], id="nothing-measured"),
        pytest.param(record(flags=[], environment={}, engine={"version": "0.5.12"}, effective={}, release={"subject": "b"}), [], id="the-subject"),
        pytest.param(record(host="other", collection="0.2.0", vitals={}, verdict={"x": 1}), [], id="facts-that-are-no-conditions"),
        pytest.param({}, None, id="a-record-of-nothing"),
    ],
)
def test_differing(current, expected):
    found = [difference.text for difference in differing(record(), current)]
    assert found == expected or (expected is None and len(found) > 10)


def test_goodput_depends_on_its_slo():
    (found,) = differing(record(), record(workload={"slo": {"ttft_ms": 500}}), metric="goodput_per_s")
    assert found.data() == {"name": "SLO", "baseline": "none", "current": '{"ttft_ms": 500}', "text": 'SLO: none, now {"ttft_ms": 500}'}


@pytest.mark.parametrize(
    "ignore, expected",
    [
        ([], ["GPUs", "driver"]),
        (["driver"], ["GPUs"]),
        (["gpus"], ["GPU power limit", "driver"]),
        (["GPUs", "GPU power limit"], ["driver"]),
        (["gpus", "gpu_power_limit", "driver"], []),
        (["concurrency"], ["GPUs", "driver"]),
    ],
)
def test_ignored_conditions(ignore, expected):
    """What is ignored explains nothing either."""
    gpu = {**GPU, "name": "NVIDIA L40", "power_limit_w": 250.0}
    assert [one.name for one in differing(record(), record(hardware={"driver": "590", "gpus": [gpu] * 2}), ignore=ignore)] == expected


def test_a_load_cannot_be_ignored():
    assert [one.name for one in differing(record(), swept((16, None)), ignore=["concurrency"])] == ["concurrency"]
    assert not {"concurrency", "request_rate"} & set(KEYS)


def test_names_are_one_to_one():
    assert len({key_of(row.name) for row in CONDITIONS}) == len(CONDITIONS)
    names = [row.name for row in CONDITIONS]
    assert all(names.index(before) < names.index(row.name) for row in CONDITIONS for before in row.implied_by)


def test_told_differences():
    now = record(host="h2", client={"version": "0.5.12", "module": "sglang.bench_serving"})
    assert [one.text for one in told_differences(record(), now)] == [
        "host: ct129, now h2",
        "client module: sglang.benchmark.serving, now sglang.bench_serving",
        "client version: 0.5.23, now 0.5.12",
    ]
    assert told_differences(record(), record()) == []


def test_measured_links_are_told_and_no_condition():
    before, now = (record(hardware={"links_measured": {"text": text}}) for text in ("2 ranks, 80 MiB at 276.2 GB/s", "2 ranks, 80 MiB at 12.1 GB/s"))
    assert differing(before, now) == []
    assert [one.text for one in told_differences(before, now)] == ["measured links: 2 ranks, 80 MiB at 276.2 GB/s, now 2 ranks, 80 MiB at 12.1 GB/s"]
    assert [one.text for one in told_differences(record(), now)] == ["measured links: not known, now 2 ranks, 80 MiB at 12.1 GB/s"]


def flag(name, value, layer="host"):
    return {"name": name, "value": value, "layer": layer}


def flagged(*flags, **changes):
    return record(flags=list(flags), **changes)


@pytest.mark.parametrize(
    "before, after, expected",
    [
        pytest.param(record(), record(), [], id="equal"),
        pytest.param(flagged(flag("mem_fraction_static", 0.85)), flagged(flag("mem_fraction_static", 0.88)), ["mem_fraction_static 0.85 -> 0.88"], id="value"),
        pytest.param(flagged(), flagged(flag("enforce_piecewise_cuda_graph", True)), ["enforce_piecewise_cuda_graph not set -> true"], id="new"),
        pytest.param(flagged(flag("b", 1), flag("a", "x y")), flagged(), ["a x y -> not set", "b 1 -> not set"], id="gone-in-order-of-names"),
        pytest.param(flagged(flag("tp_size", 2, "model")), flagged(flag("tp_size", 2, "host")), [], id="another-layer-is-no-change"),
        pytest.param(flagged(flag("o", {"b": 1, "a": [2]})), flagged(flag("o", {"a": [2], "b": 2})), ['o {"a": [2], "b": 1} -> {"a": [2], "b": 2}'], id="json"),
        pytest.param(record(), record(environment={"NCCL_P2P_LEVEL": "SYS"}), ["NCCL_P2P_LEVEL PHB -> SYS"], id="environment"),
        pytest.param(record(), record(environment={}), ["NCCL_P2P_LEVEL PHB -> not set"], id="environment-gone"),
        pytest.param(record(), record(engine={"version": "0.5.24", "lock": "b", "name": "x"}), ["engine 0.5.23 -> 0.5.24"], id="engine"),
        pytest.param(record(), record(engine={"lock": "b", "name": "x"}), ["engine's lock a1b2c3d4 -> b"], id="lock"),
        pytest.param(record(), record(engine={"name": "x"}), ["engine 0.5.23-cuda-a1b2c3d4-py312-x86_64 -> x"], id="build"),
        pytest.param(record(release={"argv": ["--a", "1"]}), record(release={"argv": ["--a", "2", "--b"]}), ["arguments 1 -> 2 --b"], id="arguments"),
        pytest.param(record(release={"argv": ["--a"]}), record(release={"argv": []}), ["arguments --a -> none"], id="arguments-gone"),
        pytest.param(
            flagged(release={"argv": []}), flagged(flag("b", True), release={"argv": ["--b"]}), ["b not set -> true"], id="flags-explain-the-arguments"
        ),
        pytest.param({}, {}, [], id="records-of-nothing"),
    ],
)
def test_subject_changes(before, after, expected):
    assert subject_changes(before, after) == expected


def test_changes_have_a_kind_and_flags_their_layer():
    before, after = record(engine={"version": "0.5.19"}), record(environment={"NCCL_DEBUG": "INFO"})
    after["flags"] = [{"name": "tp_size", "value": 4, "layer": "host"}, {"name": "reasoning_parser", "value": "qwen3", "layer": "host"}, *after["flags"][1:2]]
    assert changes(before, after) == [
        Change("engine", "engine", "0.5.19", "0.5.23"),
        Change("flag", "mem_fraction_static", "0.85", "not set", "hardware"),
        Change("flag", "tp_size", "2", "4", "hardware -> host"),
        Change("environment", "NCCL_DEBUG", "not set", "INFO"),
    ]
    before, after = record(), record(release={"argv": ["--new"]})
    assert [change.kind for change in changes(before, after)] == ["arguments"]


def test_effective_changes():
    before = record(effective={"attention_backend": "fa3", "only_before": 1, "tp_size": 2})
    after = record(effective={"attention_backend": "triton", "only_after": 1, "random_seed": 7, "tp_size": 1, "mem_fraction_static": 0.9})
    assert effective_changes(before, after) == ["attention_backend fa3 -> triton"], "what was asked for is told as a flag, a drawn seed says nothing"
    assert effective_changes(record(), record()) == effective_changes({}, {}) == []
