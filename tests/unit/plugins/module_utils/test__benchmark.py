# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import BenchmarkError, Profile, Target, benchmark_command, parse_result

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "benchmark"
PROFILE = Profile("custom", requests=2, concurrency=1, input_tokens=64, output_tokens=128, warmup_requests=1)
# Numbers of two real runs of the cpu engine with a tiny model: they say something about the format and nothing about speed.
RESULTS = {
    "0.5.12": {"output_tok_per_s": 404.09, "total_tok_per_s": 606.13, "request_per_s": 3.1569, "duration_s": 0.634, "ttft": 158.959, "e2e": 310.177},
    "0.5.23": {"output_tok_per_s": 242.49, "total_tok_per_s": 363.74, "request_per_s": 1.8945, "duration_s": 1.056, "ttft": 286.636, "e2e": 516.306},
}


def words_after(command, option):
    return [command[i + 1] for i, word in enumerate(command) if word == option]


def test_benchmark_command():
    target = Target("0.0.0.0", 30000, False, "qwen", "/models/qwen")
    command = benchmark_command("/e/bin/python", "sglang.benchmark.serving", PROFILE, target, "/tmp/out.jsonl")
    assert command[:3] == ["/e/bin/python", "-m", "sglang.benchmark.serving"]
    expected = {
        "--backend": "sglang",
        "--base-url": "http://127.0.0.1:30000",
        "--model": "/models/qwen",
        "--tokenizer": "/models/qwen",
        "--served-model-name": "qwen",
        "--dataset-name": "random-ids",
        "--random-range-ratio": "1",
        "--random-input-len": "64",
        "--random-output-len": "128",
        "--num-prompts": "2",
        "--max-concurrency": "1",
        "--warmup-requests": "1",
        "--seed": "1",
        "--output-file": "/tmp/out.jsonl",
    }
    assert {option: words_after(command, option) for option in expected} == {option: [word] for option, word in expected.items()}
    assert len(command) == 3 + 2 * len(expected) + 1 and "--disable-tqdm" in command


@pytest.mark.parametrize("bind, tls, url", [("::", True, "https://[::1]:1"), ("10.0.0.5", False, "http://10.0.0.5:1")])
def test_the_server_that_is_measured(bind, tls, url):
    command = benchmark_command("p", "m", Profile(), Target(bind, 1, tls, "qwen", "/m"), "o")
    assert words_after(command, "--base-url") == [url]


@pytest.mark.parametrize("version", RESULTS)
def test_a_real_result(version):
    expected = RESULTS[version]
    result = parse_result((FIXTURES / f"{version}.jsonl").read_text(), PROFILE)
    assert {name: result[name] for name in expected if name in result} == {name: value for name, value in expected.items() if name in result}
    assert (result["completed"], result["failed"], result["accept_length"], result["format"]) == (2, 0, None, 1)
    assert result["profile"] == {
        "name": "custom",
        "requests": 2,
        "concurrency": 1,
        "input_tokens": 64,
        "output_tokens": 128,
        "warmup_requests": 1,
        "seed": 1,
    }
    for latency in ("ttft", "tpot", "itl"):
        assert sorted(result[f"{latency}_ms"]) == ["mean", "median", "p99"], latency
    assert result["ttft_ms"]["median"] == expected["ttft"]
    assert result["e2e_ms"]["median"] == expected["e2e"]
    assert json.loads(json.dumps(result)) == result


def test_the_last_run_of_a_file_counts():
    older, newer = ((FIXTURES / f"{version}.jsonl").read_text() for version in RESULTS)
    assert parse_result(f"{older}\n{newer}\n\n", PROFILE) == parse_result(newer, PROFILE)


def changed(**fields):
    return json.dumps({**json.loads((FIXTURES / "0.5.23.jsonl").read_text()), **fields})


def test_an_engine_that_does_not_count_the_prompts():
    raw = json.loads((FIXTURES / "0.5.23.jsonl").read_text())
    del raw["total_throughput"]
    assert parse_result(json.dumps(raw), PROFILE)["total_tok_per_s"] is None


def test_failed_requests_are_counted():
    assert parse_result(changed(completed=2), Profile(requests=5))["failed"] == 3


def test_the_accept_length_of_speculative_decoding():
    assert parse_result(changed(accept_length=2.71), PROFILE)["accept_length"] == 2.71


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "the engine's benchmark wrote no result", id="empty"),
        pytest.param("\n \n", "the engine's benchmark wrote no result", id="blank"),
        pytest.param(changed(completed=0), "no request of the benchmark succeeded", id="all-failed"),
        pytest.param("{}", "no request of the benchmark succeeded", id="no-number"),
    ],
)
def test_no_number_without_a_success(text, message):
    with pytest.raises(BenchmarkError, match=f"^{message}$"):
        parse_result(text, PROFILE)
