# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._memory_budget import Draft, budget, judge_memory, used_gpus

# What this file answers of shared/cases/cases.yml, before the start instead of from the log.
CASES = ("L01", "L02")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "memory"
RECORDED = json.loads((FIXTURES / "recorded.json").read_text())
EIGHT = json.loads((FIXTURES / "qwen3-8b.json").read_text())
NINE = json.loads((FIXTURES / "qwen3.5-9b.json").read_text())
STORY = json.loads((FIXTURES / "qwen3.6-27b.json").read_text())
# An M70B of case L01: 80 layers, two GPUs of which each gets 65.7 GB.
SEVENTY = {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256}


def gpu(index=0, total=143771, free=None, processes=(), **more):
    return {"index": index, "memory_total_mib": total, "memory_free_mib": total - 615 if free is None else free, "processes": list(processes), **more}


def a6000s(**more):
    return [gpu(index, 49140, 48680, name="NVIDIA RTX A6000", **more) for index in range(2)]


def process(mib, unit="", name="python3", pid=4711):
    return {"pid": pid, "name": name, "memory_mib": mib, "unit": unit}


def candidate(config=EIGHT, engine="0.5.17", gpus=None, weights=None, environment=None, asked=None, **effective):
    effective = {"mem_fraction_static": 0.9, **effective}
    return Candidate(engine, asked or {}, effective, config, weights, [gpu()] if gpus is None else gpus, environment or {})


def rows(account):
    return {row.name: row for row in account.rows}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_starts_on_h200(name):
    """Weights, draft and states within 1.5 %, KV tokens and requests within 1 %, memory before within 0.1 GB; graphs no more than was estimated."""
    record = RECORDED[name]
    config, logged = json.loads((FIXTURES / f"{record['config']}.json").read_text()), record["logged"]
    gpus = [gpu(index, logged["memory_total_mib"], logged["memory_free_mib"]) for index in range(2)]
    account = budget(Candidate(record["engine"], {}, record["effective"], config, None, gpus))
    assert account is not None and account.verdict == "fits"
    found = rows(account)
    assert account.free_gb - found["CUDA context"].gb == pytest.approx(logged["before_gb"], abs=0.1)
    assert found["weights"].gb == pytest.approx(logged["weights_gb"], rel=0.01)
    assert account.kv_tokens == pytest.approx(logged["kv_tokens"], rel=0.01)
    assert found["KV pool"].gb == pytest.approx(logged["kv_gb"], rel=0.01)
    for row, key in (("draft weights", "draft_weights_gb"), ("states", "states_gb"), ("states of drafts", "state_copies_gb")):
        assert (row in found) == (key in logged)
        assert row not in found or found[row].gb == pytest.approx(logged[key], rel=0.015)
    if "max_running_requests" in logged:
        assert account.requests == pytest.approx(logged["max_running_requests"], rel=0.01)
    ranks = record["effective"]["tp_size"]
    assert sum(logged["graphs_gb"]) / ranks <= account.graphs_gb <= sum(logged["graphs_gb"]) / ranks + 2


@pytest.mark.parametrize(
    "engine, more, tokens, requests",
    [
        pytest.param("0.5.12", {"max_running_requests": 3}, 245350, 3, id="L01-story"),
        pytest.param("0.5.12", {"max_running_requests": 4}, 240652, 4),
        pytest.param("0.5.12", {"max_running_requests": 48}, 22195, 1, id="the-copies-for-48-requests-take-13.8-GB"),
        pytest.param("0.5.17", {"max_running_requests": 48}, 221311, 8, id="newer-engines-make-copies-for-what-can-run"),
        pytest.param("0.5.23", {"max_running_requests": 48}, 213413, 8, id="multimodal-buffers"),
    ],
)
def test_the_story(engine, more, tokens, requests):
    """242,880 tokens were logged on 2x A6000; the flags that are told (no max_running_requests) leave the number of copies open.

    With the 48 that the engine sets, copies of the states for 4 draft tokens would take 13.8 of the 15 GB that 0.5.12 has for states and KV pool;
    with 3 or 4 requests the account comes within 1 % of the log, so fewer were asked for, or the states were smaller.
    """
    flags = {"tp_size": 2, "mem_fraction_static": 0.88, "speculative_algorithm": "EAGLE", "speculative_num_draft_tokens": 4, "chunked_prefill_size": 4096}
    strategy = {"mamba_scheduler_strategy" if engine == "0.5.12" else "mamba_radix_cache_strategy": "extra_buffer"}
    account = budget(candidate(STORY, engine, a6000s(), **flags, **strategy, **more))
    assert account is not None
    assert (account.kv_tokens, account.requests) == (pytest.approx(tokens, abs=50), requests)
    if more["max_running_requests"] < 5:
        assert account.kv_tokens == pytest.approx(242880, rel=0.015)
    assert rows(account)["weights"].gb == pytest.approx(25.5, abs=0.1)
    assert account.wanted_tokens == 262144 and account.verdict == "context_does_not_fit"


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


@pytest.mark.parametrize(
    "wanted",
    [
        {"config": {}},
        {"gpus": []},
        {"gpus": [gpu(0, None, 5)]},
        {"gpus": [{"memory_total_mib": 8}]},
        {"base_gpu_id": 4},
        {"environment": {"CUDA_VISIBLE_DEVICES": "-1"}},
    ],
)
def test_nothing_is_said_where_model_or_memory_are_not_known(wanted):
    assert judge_memory(candidate(**wanted)) == []
    assert budget(candidate(**wanted)) is None


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
    found = judge_memory(candidate(gpus=[gpu(0, 143771, free, processes)]), None, own)
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


@pytest.mark.parametrize(
    "wanted, environment, indices",
    [
        ({}, {}, [0]),
        ({"tp_size": 2}, {}, [0, 1]),
        ({"tp_size": 2, "base_gpu_id": 1}, {}, [1, 2]),
        ({"tp_size": 2, "gpu_id_step": 2}, {}, [0, 2]),
        ({"tp_size": 2, "pp_size": 2}, {}, [0, 1, 2, 3]),
        ({"dp_size": 2, "tp_size": 2}, {}, [0, 1, 2, 3]),
        ({"dp_size": 2, "tp_size": 2, "enable_dp_attention": True}, {}, [0, 1]),
        ({"tp_size": 2}, {"CUDA_VISIBLE_DEVICES": "3,1"}, [3, 1]),
        ({"tp_size": 8}, {}, [0, 1, 2, 3]),
    ],
)
def test_used_gpus(wanted, environment, indices):
    found = used_gpus(candidate(gpus=[gpu(index, uuid=f"GPU-{index}") for index in range(4)], environment=environment, **wanted))
    assert [entry["index"] for entry in found] == indices


def test_a_mig_device_has_the_memory_of_its_profile():
    split = gpu(0, uuid="GPU-0", mig=True, mig_devices=[{"profile": "2g.35gb", "uuid": "MIG-1"}])
    account = budget(candidate(gpus=[split]))
    assert account is not None and account.free_gb == 35


@pytest.mark.parametrize(
    "wanted, name, gb",
    [
        pytest.param({"weights": 16_381_470_720}, "weights", 15.257, id="files"),
        pytest.param({"weights": 16_381_470_720, "dtype": "float32"}, "weights", 30.51, id="files-in-another-type"),
        pytest.param({"weights": 16_381_470_720, "quantization": "fp8"}, "weights", 8.79, id="quantised-on-load"),
        pytest.param({"tp_size": 2, "gpus": [gpu(0), gpu(1)], "weights": 16_381_470_720}, "weights", 7.629, id="share-of-two"),
        pytest.param({"pp_size": 2, "gpus": [gpu(0), gpu(1)]}, "weights", 7.628, id="two-stages"),
        pytest.param({"tp_size": 2, "gpus": [gpu(0), gpu(1)], "dp_size": 2, "enable_dp_attention": True}, "weights", 9.62, id="attention-copied"),
        pytest.param({"config": NINE, "weights": 19_310_000_000}, "weights", 17.53, id="files-with-a-draft-layer"),
        pytest.param({"kv_cache_dtype": "fp8_e4m3"}, "KV pool", 109.95, id="fp8-has-twice-the-tokens"),
        pytest.param({"max_total_tokens": 65536}, "KV pool", 9.0, id="fewer-tokens-asked-for"),
        pytest.param({"config": NINE, "mm_feature_transport": "cuda_ipc"}, "CUDA context", 2.19, id="pool-for-pictures"),
        pytest.param({"config": NINE, "engine": "0.5.23", "mm_feature_transport": "cuda_ipc"}, "multimodal buffers", 1.0977, id="buffers"),
        pytest.param(
            {"config": NINE, "engine": "0.5.23", "environment": {"SGLANG_VLM_CACHE_SIZE_MB": "512"}}, "multimodal buffers", 0.5, id="buffers-by-variable"
        ),
        pytest.param({"chunked_prefill_size": -1, "max_prefill_tokens": 16384}, "activations", 2.875, id="no-chunks"),
        pytest.param({"cuda_graph_max_bs": 512}, "graphs", 1.0, id="graphs-of-0.5.12"),
        pytest.param({"cuda_graph_max_bs": 512, "disable_cuda_graph": True}, "graphs", 0, id="no-graphs"),
        pytest.param({"cuda_graph_max_bs": 0, "disable_piecewise_cuda_graph": False, "piecewise_cuda_graph_tokens": [4] * 64}, "graphs", 0.5, id="piecewise"),
    ],
)
def test_rows(wanted, name, gb):
    account = budget(candidate(**wanted))
    assert account is not None
    assert rows(account)[name].gb == pytest.approx(gb, rel=0.002)


def test_the_pool_is_what_the_fraction_leaves_in_whole_pages():
    account = budget(candidate(page_size=64))
    assert account is not None
    found, cell = rows(account), 36 * 8 * 256 * 2
    before = account.free_gb - found["CUDA context"].gb
    assert account.rest_gb == pytest.approx(before * 0.9 - account.weights_gb)
    assert account.kv_tokens == int(account.rest_gb * 2**30 / cell) // 64 * 64
    assert found["kept free"].gb == account.reserve_gb == pytest.approx(before * 0.1)
    exactly = account.free_gb - before + (account.weights_gb + 40960 * cell / 2**30) / 0.9
    assert account.needed_gb == pytest.approx(exactly)
    enough, short = (budget(candidate(gpus=[gpu(0, 143771, exactly * 1024 + mib)])) for mib in (1, -1))
    assert enough and short and (enough.verdict, short.verdict) == ("fits", "context_does_not_fit")


NEXTN = {"speculative_algorithm": "EAGLE", "speculative_num_draft_tokens": 4, "max_running_requests": 48, "mamba_radix_cache_strategy": "extra_buffer"}
OTHER = {"speculative_draft_model_path": "/srv/models/draft"}
HEAD = {
    "num_hidden_layers": 1,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "head_dim": 128,
}


@pytest.mark.parametrize(
    "engine, more, draft, gb, in_pool, how",
    [
        pytest.param("0.5.12", {}, None, 4.24, False, "loads it after its pool", id="after-the-pool"),
        pytest.param("0.5.17", {}, None, 4.24, False, "1 layer(s) of the model", id="before-the-pool"),
        pytest.param("0.5.17", {**OTHER}, None, 0, True, "is not known", id="unknown-draft"),
        pytest.param("0.5.17", {**OTHER}, Draft(HEAD), 2.678, True, "estimate", id="draft-of-its-own"),
        pytest.param("0.5.17", {**OTHER}, Draft(HEAD, 3 << 30), 3.0, True, "of files", id="draft-with-files"),
        pytest.param("0.5.17", {**OTHER}, Draft({}), 0, True, "config.json is not known", id="draft-without-a-config"),
        pytest.param("0.5.17", {"speculative_algorithm": "NGRAM"}, None, 0, True, "NGRAM", id="no-model"),
    ],
)
def test_drafts(engine, more, draft, gb, in_pool, how):
    account = budget(candidate(NINE, engine, **{**NEXTN, **more}), draft=draft)
    assert account is not None
    found = rows(account)
    assert found["draft weights"].gb == pytest.approx(gb, rel=0.005) and how in found["draft weights"].how
    assert account.weights_gb == pytest.approx(found["weights"].gb + (gb if engine != "0.5.12" else 0), rel=0.005)
    assert ("draft KV" in found) != in_pool
    outside = found["draft KV"].gb + (gb if engine == "0.5.12" else 0) if "draft KV" in found else 0
    assert account.reserve_gb == pytest.approx(found["kept free"].gb - outside, rel=0.005)


def test_a_draft_that_the_engine_counts_makes_a_token_larger():
    deepseek_like = {**EIGHT, "num_nextn_predict_layers": 1}
    cells = {}
    for engine in ("0.5.17", "0.5.23"):
        account = budget(candidate(deepseek_like, engine, **NEXTN))
        assert account is not None and account.kv_tokens
        cells[engine] = rows(account)["KV pool"].gb * 2**30 / account.kv_tokens
    assert cells["0.5.23"] / cells["0.5.17"] == pytest.approx(37 / 36)


@pytest.mark.parametrize(
    "more, slots, each",
    [
        ({}, 1063, 3),
        ({"mamba_radix_cache_strategy": "no_buffer"}, 1063, 3),
        ({"mamba_radix_cache_strategy": "extra_buffer"}, 1063, 5),
        ({"mamba_radix_cache_strategy": "extra_buffer_lazy"}, 1063, 4),
        ({"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": True}, 1063, 4),
        ({"disable_radix_cache": True}, 1063, 1),
        ({"disable_radix_cache": True, "max_running_requests": 64}, 64, 1),
        ({"max_mamba_cache_size": 100}, 100, 3),
        ({"max_mamba_cache_size": 100, "dp_size": 2, "tp_size": 2, "enable_dp_attention": True}, 50, 3),
        ({"mamba_ssm_dtype": "bfloat16"}, 2079, 3),
        ({"mamba_full_memory_ratio": 0.45}, 696, 3),
    ],
)
def test_states(more, slots, each):
    account = budget(candidate(NINE, gpus=[gpu(0), gpu(1)], **more))
    assert account is not None
    assert rows(account)["states"].how == f"{slots} slots of linear attention, {each} for a request"


@pytest.mark.parametrize(
    "more, fraction",
    [
        ({}, 0.91),
        ({"chunked_prefill_size": 2048}, 0.929),
        ({"gpus": a6000s(), "chunked_prefill_size": 2048}, 0.924),
        ({"gpus": a6000s(), "tp_size": 2}, 0.859),
    ],
)
def test_a_fraction_that_nobody_knows_is_the_engines_rule(more, fraction):
    account = budget(Candidate("0.5.17", {}, {key: value for key, value in more.items() if key != "gpus"}, EIGHT, None, more.get("gpus", [gpu()])))
    assert account is not None
    assert account.fraction == pytest.approx(fraction, abs=0.002)
    assert "estimated" in rows(account)["kept free"].how
