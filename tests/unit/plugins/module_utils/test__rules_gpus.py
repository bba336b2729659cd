# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_gpus as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

PART = "MIG-aaaaaaaa-0000-5000-8000-000000000001"


def gpu(number, name="NVIDIA H200", memory=143771, parts=()):
    parts = [{"profile": "1g.18gb", "uuid": part} for part in parts]
    return {"name": name, "uuid": f"GPU-{number}", "compute_capability": "9.0", "memory_total_mib": memory, "mig": bool(parts), "mig_devices": parts}


ONE, TWO, FOUR = ([gpu(number) for number in range(count)] for count in (1, 2, 4))
SPLIT = [gpu(0, parts=(PART, PART.replace("a", "b")))]
MIXED = [gpu(0, "NVIDIA RTX A6000", 49140), gpu(1, "NVIDIA GeForce RTX 3090", 24576)]
EMPTY = [{**gpu(0), "mig": True}]


def judge(rule, gpus, asked, environment):
    return rule(Candidate(engine="0.5.23", asked=asked, gpus=gpus, environment=environment))


def env(devices, **more):
    return {"CUDA_VISIBLE_DEVICES": devices, **more}


CASES = (
    # F12: what is visible against what is needed
    (rules.gpu_count, TWO, {"tp_size": 2}, env("0,1"), None, None, ""),
    (rules.gpu_count, TWO, {"tp_size": 1}, env("GPU-1"), None, None, ""),
    (rules.gpu_count, SPLIT, {}, env(PART), None, None, ""),
    (rules.gpu_count, SPLIT, {}, env("MIG-GPU-0/3/0"), None, None, ""),
    (rules.gpu_count, SPLIT, {"tp_size": 2}, env(PART), "mig_is_one_gpu", "error", "sees 1 MIG device and this node needs 2 GPUs (tp_size 2)"),
    (rules.gpu_count, SPLIT, {"tp_size": 2}, {}, "mig_is_one_gpu", "error", "use GPUs without MIG"),
    (rules.gpu_count, TWO, {}, env(""), "no_gpu_visible", "error", "CUDA_VISIBLE_DEVICES='' leaves the server no GPU;"),
    (rules.gpu_count, TWO, {}, env("-1"), "no_gpu_visible", "error", "name GPUs from 0 to 1"),
    (rules.gpu_count, TWO, {}, env("0,0"), "no_gpu_visible", "error", "it names 0 twice"),
    (rules.gpu_count, EMPTY, {}, {}, "no_gpu_visible", "error", "split by MIG and has no MIG device"),
    (rules.gpu_count, [], {}, {}, "no_gpu", "error", "this host has no NVIDIA GPU"),
    (rules.gpu_count, [], {}, env("0"), "no_gpu", "error", "this host has no NVIDIA GPU"),
    (rules.gpu_count, [], {"device": "cpu"}, {}, None, None, ""),
    (rules.gpu_count, [], {"device": "cuda:0"}, {}, "no_gpu", "error", "set device to cpu"),
    (rules.gpu_count, [], {}, {"SGLANG_USE_CPU_ENGINE": "1"}, None, None, ""),
    (rules.gpu_count, [], {}, {"SGLANG_USE_CPU_ENGINE": "0"}, "no_gpu", "error", ""),
    (rules.gpu_count, None, {"tp_size": 64}, env(""), None, None, ""),
    # tp, pp, dp and nodes
    (rules.gpu_count, TWO, {"tp_size": 4}, {}, "too_few_gpus", "error", "needs 4 GPUs (tp_size 4) and the server sees 2;"),
    (rules.gpu_count, FOUR, {"tp_size": 2}, env("1,7,2"), "too_few_gpus", "error", "sees 1 (CUDA_VISIBLE_DEVICES counts up to '7')"),
    (rules.gpu_count, FOUR, {"tp_size": 2, "pp_size": 2}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 3, "pp_size": 2}, {}, "too_few_gpus", "error", "6 GPUs (tp_size 3 x pp_size 2)"),
    (rules.gpu_count, FOUR, {"tp_size": 2, "dp_size": 2}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 2, "dp_size": 3}, {}, "too_few_gpus", "error", "6 GPUs (tp_size 2 x dp_size 3)"),
    (rules.gpu_count, FOUR, {"tp_size": 4, "dp_size": 4, "enable_dp_attention": True}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 4, "attn_dp_size": 4}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 8, "nnodes": 2}, {}, None, None, ""),
    (rules.gpu_count, TWO, {"tp_size": 8, "nnodes": 2}, {}, "too_few_gpus", "error", "4 GPUs (tp_size 8 over 2 nodes)"),
    (rules.gpu_count, FOUR, {"tp_size": 4, "pp_size": 2, "nnodes": 2}, {}, None, None, ""),
    (rules.gpu_count, TWO, {"tp_size": 2, "pp_size": 4, "nnodes": 2}, {}, "too_few_gpus", "error", "this node needs 4 GPUs"),
    (rules.gpu_count, TWO, {"tp_size": 4, "pp_size": 2, "nnodes": 4}, {}, None, None, ""),
    # base_gpu_id, gpu_id_step
    (rules.gpu_count, FOUR, {"tp_size": 2, "base_gpu_id": 2}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 2, "base_gpu_id": 3}, {}, "gpu_id_out_of_range", "error", "lead to GPU 4, the server sees 0 to 3"),
    (rules.gpu_count, FOUR, {"tp_size": 2, "base_gpu_id": -1}, {}, "gpu_id_out_of_range", "error", "base_gpu_id -1"),
    (rules.gpu_count, FOUR, {"tp_size": 2, "gpu_id_step": 3}, {}, None, None, ""),
    (rules.gpu_count, FOUR, {"tp_size": 2, "gpu_id_step": 4}, {}, "gpu_id_out_of_range", "error", "gpu_id_step 4"),
    (rules.gpu_count, FOUR, {"tp_size": 2, "base_gpu_id": 1}, env("0,1,9"), "gpu_id_out_of_range", "error", "0 to 1 (CUDA_VISIBLE_DEVICES counts up to '9')"),
    (
        rules.gpu_count,
        ONE,
        {"tp_size": 1, "base_gpu_id": 1},
        {},
        "gpu_id_out_of_range",
        "error",
        "base_gpu_id 1 and gpu_id_step 1 lead to GPU 1, the server sees 0 to 0",
    ),
    (rules.gpu_count, TWO, {"tp_size": 2, "gpu_id_step": 2}, {}, "gpu_id_out_of_range", "error", "base_gpu_id 0 and gpu_id_step 2 lead to GPU 2"),
    (rules.gpu_count, ONE, {"dp_size": 2}, {}, "too_few_gpus", "error", "(tp_size 1 x dp_size 2)"),
    (rules.gpu_count, ONE, {"pp_size": 2}, {}, "too_few_gpus", "error", "(tp_size 1 x pp_size 2)"),
    (rules.gpus_shared, FOUR, {"tp_size": 2, "pp_size": 2, "gpu_id_step": 2}, {}, "gpu_shared_by_ranks", "warning", "gives [0, 2, 2, 4]"),
    (rules.gpus_shared, FOUR, {"tp_size": 2, "pp_size": 2}, {}, None, None, ""),
    (rules.gpus_shared, None, {"tp_size": 2, "pp_size": 2, "gpu_id_step": 2}, {}, None, None, ""),
    # how the variable is written
    (rules.visible_devices_form, FOUR, {}, env("0,1"), None, None, ""),
    (rules.visible_devices_form, FOUR, {}, {}, None, None, ""),
    (rules.visible_devices_form, FOUR, {}, env("0,9,1"), "visible_devices_cut", "warning", "ends before '9', which names no GPU here: the server sees 1"),
    (rules.visible_devices_form, FOUR, {}, env("9"), None, None, ""),
    (rules.visible_devices_form, None, {}, env("0,9"), None, None, ""),
    (rules.visible_devices_form, SPLIT, {}, env(f"{PART},MIG-b"), "mig_hides_devices", "warning", "names 2 devices"),
    (rules.visible_devices_form, [*SPLIT, gpu(1)], {}, env("0,1"), "mig_hides_devices", "warning", "exactly one MIG device"),
    (rules.visible_devices_form, SPLIT, {}, env(PART), None, None, ""),
    (rules.visible_devices_form, [*SPLIT, gpu(1)], {}, {}, None, None, ""),
    # F12: the order of different GPUs
    (rules.gpu_order, MIXED, {}, env("0"), "gpu_order_mixed", "warning", "CUDA_DEVICE_ORDER=PCI_BUS_ID"),
    (rules.gpu_order, MIXED, {}, {}, "gpu_order_mixed", "warning", "different GPUs (NVIDIA RTX A6000, NVIDIA GeForce RTX 3090)"),
    (rules.gpu_order, MIXED, {}, env("0", CUDA_DEVICE_ORDER="FASTEST_FIRST"), "gpu_order_mixed", "warning", ""),
    (rules.gpu_order, MIXED, {}, env("0", CUDA_DEVICE_ORDER="PCI_BUS_ID"), None, None, ""),
    (rules.gpu_order, MIXED, {}, env("GPU-1"), None, None, ""),
    (rules.gpu_order, MIXED, {}, env("MIG-1"), None, None, ""),
    (rules.gpu_order, MIXED, {"device": "cpu"}, {}, None, None, ""),
    (rules.gpu_order, TWO, {}, {}, None, None, ""),
    (rules.gpu_order, None, {}, {}, None, None, ""),
    # different sizes under tensor parallelism
    (rules.gpu_memory, MIXED, {"tp_size": 2}, {}, "gpu_memory_mixed", "note", "24576 to 49140 MiB"),
    (rules.gpu_memory, MIXED, {"tp_size": 1}, {}, None, None, ""),
    (rules.gpu_memory, MIXED, {"tp_size": 2}, env("0"), None, None, ""),
    (rules.gpu_memory, MIXED, {"tp_size": 2, "device": "cpu"}, {}, None, None, ""),
    (rules.gpu_memory, MIXED, {"dp_size": 2}, {}, None, None, ""),
    (rules.gpu_memory, TWO, {"tp_size": 2}, {}, None, None, ""),
    (rules.gpu_memory, [gpu(0), gpu(1, memory=None)], {"tp_size": 2}, {}, None, None, ""),
)


@pytest.mark.parametrize("rule, gpus, asked, environment, code, severity, words", CASES)
def test_rule(rule, gpus, asked, environment, code, severity, words):
    found = judge(rule, gpus, asked, environment)
    assert [(finding.code, finding.severity) for finding in found] == ([(code, severity)] if code else [])
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source for finding in found)


# As entrypoints/engine.py and managers/data_parallel_controller.py of 0.5.12 to 0.5.23 compute them.
@pytest.mark.parametrize(
    "asked, numbers",
    [
        ({}, [0]),
        ({"tp_size": 4}, [0, 1, 2, 3]),
        ({"tp_size": 2, "pp_size": 2}, [0, 1, 2, 3]),
        ({"tp_size": 2, "dp_size": 2, "gpu_id_step": 2}, [0, 2, 4, 6]),
        ({"tp_size": 2, "pp_size": 2, "dp_size": 2}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"tp_size": 8, "nnodes": 2, "base_gpu_id": 4}, [4, 5, 6, 7]),
        ({"tp_size": 4, "pp_size": 2, "nnodes": 2}, [0, 1, 2, 3]),
        ({"tp_size": 4, "pp_size": 2, "nnodes": 4}, [0, 1]),
        ({"tp_size": 2, "pp_size": 4, "nnodes": 2}, [0, 1, 2, 3]),
        ({"tp_size": 0, "pp_size": 0, "nnodes": 0, "dp_size": 0}, [0]),
    ],
)
def test_gpus_needed(asked, numbers):
    assert rules.gpus_needed(Candidate(asked=asked)) == numbers


def test_what_is_visible_and_used():
    candidate = Candidate(asked={"tp_size": 2, "base_gpu_id": 1}, gpus=FOUR, environment=env("3,2"))
    assert [device.uuid for device in rules.visible_gpus(candidate)] == ["GPU-3", "GPU-2"]
    assert [device.uuid for device in rules.used_gpus(candidate)] == ["GPU-2"]
    assert rules.visible_gpus(Candidate()) == []


def test_all_rules_are_listed():
    assert [rule.__name__ for rule in rules.RULES] == ["gpu_count", "gpus_shared", "visible_devices_form", "gpu_order", "gpu_memory"]
