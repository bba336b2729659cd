# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._rules_memory import judge_memory
from ansible_collections.llmops.inference.tests.unit.memory import EIGHT, NINE, NOT_KNOWN, candidate, gpu, process

# The recorded cases that this file answers, before the start instead of from the log.
CASES = ("L01", "L02")
# An M70B of case L01: 80 layers, two GPUs of which each gets 65.7 GB.
SEVENTY = {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256}
FIFTY = {"mem_fraction_static": 0.7, "tp_size": 2, "gpus": [gpu(index, 49900, (47.1 + 1.52) * 1024) for index in range(2)]}
H80 = {"gpus": [gpu(0, 81559, 81004)]}


@pytest.mark.parametrize(
    "wanted, code, severity, words",
    [
        pytest.param({}, "memory_budget", "note", "19.5 times the context of 40,960, at most 4096 requests at once", id="fits"),
        pytest.param({"context_length": 1_000_000}, "kv_pool_too_small", "warning", "less than one context of 1,000,000", id="context"),
        pytest.param({"mem_fraction_static": 0.109}, "weights_do_not_fit", "error", "raise mem_fraction_static well above 0.110", id="fraction-short"),
        pytest.param({"mem_fraction_static": 0.115}, "kv_pool_too_small", "warning", "tokens, less than one context", id="fraction-just-enough"),
        pytest.param(
            {"config": SEVENTY, "mem_fraction_static": 0.7, "tp_size": 2, "gpus": [gpu(index, 81559, 81004) for index in range(2)], "engine": "0.5.12"},
            "weights_do_not_fit",
            "error",
            "'Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.7'",
            id="L01",
        ),
        pytest.param(
            {"config": SEVENTY, "mem_fraction_static": 0.7, "tp_size": 2, "gpus": [gpu(index, 81559, 81004) for index in range(2)]},
            "weights_do_not_fit",
            "error",
            "'Loaded weights leave no GPU memory for the KV cache'; raise mem_fraction_static well above 0.847",
            id="L01-newer",
        ),
        pytest.param(
            {"config": SEVENTY, "mem_fraction_static": 0.9, **H80}, "weights_do_not_fit", "error", "they do not fit; use more tp", id="larger-than-the-gpu"
        ),
        pytest.param(
            {**FIFTY, "config": {}, "weights": int(71.8 * 2**30), "engine": "0.5.12"},
            "weights_do_not_fit",
            "error",
            "35.9 GB of 47.1 GB free per GPU; mem_fraction_static 0.7 leaves 33.0 GB",
            id="L01-numbers-of-its-log",
        ),
        pytest.param(
            {**FIFTY, "config": {}, "weights": int(71.8 * 2**30), "mem_fraction_static": 0.77}, "memory_budget", "note", "pool 0.4", id="L01-with-its-remedy"
        ),
        pytest.param({"mem_fraction_static": 0.999}, "graphs_may_not_fit", "warning", "lower mem_fraction_static, cuda_graph_max_bs", id="L02"),
        pytest.param({"asked": {"max_running_requests": 5000}, "max_running_requests": 5000}, "memory_budget", "note", "5000 requests", id="all-requests"),
        pytest.param(
            {"config": NINE, "asked": {"max_running_requests": 500}, "max_running_requests": 500},
            "fewer_requests",
            "warning",
            "500 will be lowered to about 354: there is no memory for more; raise mamba_full_memory_ratio",
            id="state-slots",
        ),
        pytest.param(
            {"config": NINE, "max_mamba_cache_size": 3000},
            "kv_pool_too_small",
            "error",
            "weights and states leave no room",
            id="states-take-all",
        ),
        pytest.param({"config": NINE, "max_mamba_cache_size": 2}, "kv_pool_too_small", "error", "lower max_running_requests", id="no-slot-for-a-request"),
        pytest.param({"config": {**EIGHT, "compress_ratios": [4]}}, "memory_budget", "note", "tokens are not told", id="no-formula"),
        pytest.param({"config": {}, "weights": 16 << 30}, "memory_budget", "note", "weights take 16.0", id="only-the-size-of-the-files"),
        pytest.param({"config": {}, "weights": 160 << 30}, "weights_do_not_fit", "error", "160.0 GB of 139.1 GB", id="only-the-size-and-too-large"),
    ],
)
def test_judge_memory(wanted, code, severity, words):
    found = {finding.code: finding for finding in judge_memory(candidate(**wanted))}
    assert code in found, found
    assert found[code].severity == severity
    assert words in f"{found[code].text}; {found[code].hint}"
    assert found[code].source.startswith("SGLang, ") and found[code].fields
    assert ("memory_budget" in found) == (severity == "note" or code in ("graphs_may_not_fit", "fewer_requests"))


@pytest.mark.parametrize("wanted", NOT_KNOWN)
def test_nothing_is_said_where_model_or_memory_are_not_known(wanted):
    assert judge_memory(candidate(**wanted)) == []


OWN = "sglang-main.service"


@pytest.mark.parametrize(
    "free, processes, own, expected, words",
    [
        pytest.param(143156, [], "", {"memory_budget": "note"}, "", id="idle"),
        pytest.param(13156, [process(130000, OWN)], OWN, {"memory_budget": "note"}, "of 139.8 GB free", id="its-own-old-server"),
        pytest.param(13156, [process(130000, OWN)], "", {"gpu_busy": "error"}, f"{OWN} (pid 4711, 127.0 GB on GPU 0)", id="own-unit-is-not-told"),
        pytest.param(13156, [process(130000, "other.service")], OWN, {"gpu_busy": "error"}, "other.service (pid 4711", id="another-server"),
        pytest.param(13156, [process(130000, "", "jupyter")], OWN, {"gpu_busy": "error"}, "jupyter (pid 4711, 127.0 GB", id="no-server"),
        pytest.param(13156, [], OWN, {"gpu_busy": "error"}, "something that nvidia-smi does not list", id="nobody-to-name"),
        pytest.param(0, [process(143000, "", "")], OWN, {"gpu_busy": "error"}, "a process (pid 4711", id="nothing-free"),
        pytest.param(
            23000, [process(120000)], OWN, {"gpu_busy": "warning", "kv_pool_too_small": "warning"}, "are needed for one whole context", id="a-small-pool"
        ),
        pytest.param(103156, [process(40000)], OWN, {"memory_budget": "note"}, "of 100.7 GB free", id="busy-and-enough"),
        pytest.param(13156, [process(None)], OWN, {"gpu_busy": "error"}, "0.0 GB on GPU 0", id="memory-of-the-process-not-known"),
    ],
)
def test_memory_that_others_hold(free, processes, own, expected, words):
    found = judge_memory(candidate(gpus=[gpu(0, 143771, free, processes)]), own)
    assert {finding.code: finding.severity for finding in found} == expected
    assert words in found[0].text


def test_a_busy_gpu_is_not_blamed_for_weights_that_never_fit():
    found = judge_memory(candidate(SEVENTY, gpus=[gpu(0, 81559, 40000, [process(41000)])]))
    assert [finding.code for finding in found] == ["weights_do_not_fit"]


@pytest.mark.parametrize(
    "frees, tensor, unequal", [((143156, 129000), 2, False), ((143156, 128000), 2, True), ((143156, 128000), 1, False), ((128000, 128000), 2, False)]
)
def test_the_engine_refuses_gpus_with_unequal_memory(frees, tensor, unequal):
    gpus = [gpu(index, 143771, free) for index, free in enumerate(frees)]
    found = {finding.code: finding for finding in judge_memory(candidate(gpus=gpus, tp_size=tensor))}
    assert ("gpus_unbalanced" in found) == unequal
    assert not unequal or found["gpus_unbalanced"].severity == "error"
