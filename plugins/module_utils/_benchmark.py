# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The engine's own serving benchmark: its command line, and its result as numbers with units."""

from __future__ import annotations

import json
import typing as t
from dataclasses import asdict, dataclass

from ansible_collections.llmops.inference.plugins.module_utils._http import base_url

FORMAT = 1
_STATISTICS = ("mean", "median", "p99")
_LATENCIES = ("ttft", "tpot", "itl", "e2e_latency")


class BenchmarkError(RuntimeError):
    """A benchmark that gives no number; the message is for the operator."""


@dataclass(frozen=True)
class Profile:
    """One workload.

    Attributes:
        name: for the record.
        requests: measured requests.
        concurrency: requests in flight.
        input_tokens: prompt length, tokens.
        output_tokens: answer length, tokens; the end-of-sequence token is ignored.
        warmup_requests: requests before the measurement.
        seed: of the random prompts.
    """

    name: str = "single_stream_512"
    requests: int = 5
    concurrency: int = 1
    input_tokens: int = 128
    output_tokens: int = 512
    warmup_requests: int = 2
    seed: int = 1


@dataclass(frozen=True)
class Target:
    """The server that is measured.

    Attributes:
        bind: address that it is bound to.
        port: its HTTP port.
        tls: whether it speaks HTTPS.
        model_name: name that it serves.
        tokenizer: directory of the model, for its tokenizer.
    """

    bind: str
    port: int
    tls: bool
    model_name: str
    tokenizer: str


def benchmark_command(python: str, module: str, profile: Profile, target: Target, output: str) -> list[str]:
    """Returns the command that runs the engine's serving benchmark against a server.

    Args:
        python: interpreter of the engine.
        module: where this engine keeps the benchmark.
        profile: the workload; prompts are random token ids, so that nothing is downloaded.
        target: the server.
        output: file for the result.
    """
    words = [python, "-m", module, "--backend", "sglang", "--base-url", base_url(target.bind, target.port, target.tls)]
    words += ["--model", target.tokenizer, "--tokenizer", target.tokenizer, "--served-model-name", target.model_name]
    words += ["--dataset-name", "random-ids", "--random-range-ratio", "1"]
    words += ["--random-input-len", str(profile.input_tokens), "--random-output-len", str(profile.output_tokens)]
    words += ["--num-prompts", str(profile.requests), "--max-concurrency", str(profile.concurrency)]
    words += ["--warmup-requests", str(profile.warmup_requests), "--seed", str(profile.seed), "--disable-tqdm", "--output-file", output]
    return words


def parse_result(text: str, profile: Profile) -> dict[str, t.Any]:
    """Returns the numbers of the last run in the benchmark's output file. Units are in the names.

    Raises:
        BenchmarkError: there is no result, or no request succeeded.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise BenchmarkError("the engine's benchmark wrote no result")
    raw = json.loads(lines[-1])
    completed = int(raw.get("completed") or 0)
    if completed == 0:
        raise BenchmarkError("no request of the benchmark succeeded")
    result: dict[str, t.Any] = {
        "format": FORMAT,
        "profile": asdict(profile),
        "completed": completed,
        "failed": profile.requests - completed,
        "duration_s": round(raw["duration"], 3),
        "output_tok_per_s": round(raw["output_throughput"], 2),
        "total_tok_per_s": round(raw["total_throughput"], 2) if "total_throughput" in raw else None,
        "request_per_s": round(raw["request_throughput"], 4),
        "accept_length": raw.get("accept_length"),
    }
    for latency in _LATENCIES:
        name = latency.replace("_latency", "")
        result[f"{name}_ms"] = {statistic: round(raw[f"{statistic}_{latency}_ms"], 3) for statistic in _STATISTICS if f"{statistic}_{latency}_ms" in raw}
    return result
