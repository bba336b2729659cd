# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The engine's own serving benchmark as load generator: its prompts, its command line, its result."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._client_process import ClientProcess
from ansible_collections.llmops.inference.plugins.module_utils._http import base_url
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError

# Engines whose marker does not say it keep their benchmark here.
DEFAULT_MODULE = "sglang.benchmark.serving"


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

    @property
    def url(self) -> str:
        """Base URL under which it answers on its own host."""
        return base_url(self.bind, self.port, self.tls)


class Batch(t.NamedTuple):
    """What one repetition sends.

    Attributes:
        size: requests.
        prompts: their texts; empty for random token ids.
        input_tokens: length of a prompt of random token ids.
        output_tokens: length of every answer; the end-of-sequence token is ignored.
        seed: of random ids, of the order and of the arrivals.
    """

    size: int
    prompts: t.Sequence[str]
    input_tokens: int
    output_tokens: int
    seed: int


# Returns what a repetition sends, by its number and point.
Batches = t.Callable[[int, Point], Batch]


def benchmark_module(python: str) -> str:
    """Returns where an engine keeps its benchmark; the marker that the installation wrote says it.

    Args:
        python: interpreter of the engine.
    """
    marker = Path(python).parent.parent / "engine.json"
    return str(json.loads(marker.read_text()).get("benchmark_module", DEFAULT_MODULE)) if marker.exists() else DEFAULT_MODULE


def has_chat_template(tokenizer: str) -> bool:
    """Whether the model's tokenizer has a chat template; a base model is sent the bare prompts."""
    folder = Path(tokenizer)
    if any((folder / name).exists() for name in ("chat_template.jinja", "chat_template.json")):
        return True
    config = folder / "tokenizer_config.json"
    return config.exists() and bool(json.loads(config.read_text()).get("chat_template"))


def engine_words(target: Target, batch: Batch, point: Point, *, dataset: str, output: str, template: bool) -> list[str]:
    """Returns the arguments of the engine's benchmark for one repetition. Warm-up and flushing are not its business here.

    Args:
        target: the server.
        batch: what is sent.
        point: how much at once.
        dataset: file with the prompts, for a batch that has some.
        output: file for the result.
        template: whether the model's chat template is put around the prompts.
    """
    words = ["--backend", "sglang", "--base-url", target.url, "--model", target.tokenizer, "--tokenizer", target.tokenizer]
    words += ["--served-model-name", target.model_name, "--num-prompts", str(batch.size), "--seed", str(batch.seed)]
    if batch.prompts:
        words += ["--dataset-name", "custom", "--dataset-path", dataset, "--sharegpt-output-len", str(batch.output_tokens)]
        words += ["--apply-chat-template"] if template else []
    else:
        # As token ids: the text of random ids has another number of tokens.
        words += ["--dataset-name", "random-ids", "--tokenize-prompt", "--random-range-ratio", "1"]
        words += ["--random-input-len", str(batch.input_tokens), "--random-output-len", str(batch.output_tokens)]
    words += ["--max-concurrency", str(point.concurrency)] if point.concurrency else []
    words += ["--request-rate", f"{point.request_rate:g}"] if point.request_rate else []
    return [*words, "--warmup-requests", "0", "--disable-tqdm", "--output-details", "--output-file", output]


def dataset_lines(prompts: t.Sequence[str]) -> str:
    """Returns prompts in the form of the engine's custom dataset, which wants an answer to each."""
    return "".join(json.dumps({"conversations": [{"content": prompt}, {"content": "An answer."}]}) + "\n" for prompt in prompts)


def parse_run(text: str, asked: int) -> dict[str, t.Any]:
    """Returns what the engine's benchmark wrote.

    Args:
        text: its output file.
        asked: requests that it was told to send.

    Raises:
        BenchmarkError: there is no result, or it is of another number of requests.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise BenchmarkError("the engine's benchmark wrote no result")
    try:
        raw: dict[str, t.Any] = json.loads(lines[-1])
    except ValueError:
        raise BenchmarkError(f"the engine's benchmark wrote a result that cannot be read: {lines[-1][:100]}") from None
    sent = len(raw.get("output_lens", ()))
    if sent != asked:
        raise BenchmarkError(f"the engine's benchmark sent {sent} of {asked} requests: it leaves out prompts of less than two tokens")
    return raw


class EngineGenerator:
    """Sends repetitions with the engine's benchmark.

    Args:
        process: that runs it, started.
        target: the server.
        batches: what a repetition sends.
        folder: for prompts and results; must exist.
        template: whether the model has a chat template.
    """

    def __init__(self, process: ClientProcess, target: Target, batches: Batches, folder: Path, template: bool) -> None:
        self._process = process
        self._target = target
        self._batches = batches
        self._dataset = folder / "prompts.jsonl"
        self._output = folder / "run.jsonl"
        self._template = template
        self._runs = 0

    def run(self, repetition_number: int, point: Point, seconds: float, tick: t.Callable[[], None]) -> dict[str, t.Any]:
        """Performs one repetition, see :class:`_measure.Generator`."""
        batch = self._batches(repetition_number, point)
        self._dataset.write_text(dataset_lines(batch.prompts), encoding="utf-8")
        if self._output.exists():
            self._output.unlink()
        self._runs += 1
        words = engine_words(self._target, batch, point, dataset=str(self._dataset), output=str(self._output), template=self._template)
        self._process.run({"run": self._runs, "words": words}, seconds, tick)
        return parse_run(self._output.read_text() if self._output.exists() else "", batch.size)
