# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The client for the chat API as load generator: for what the engine's own benchmark cannot send (messages of several turns, tools, answers of their own
length)."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._client_process import ClientProcess
from ansible_collections.llmops.inference.plugins.module_utils._load_client_files import request_lines
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._workload import NO_TEXT, Prompt, Workload

# Returns what a repetition sends, by its number and point, and the seed of the arrivals.
Requests = t.Callable[[int, Point], t.Tuple[t.Sequence[Prompt], int]]


def needs_chat(workload: Workload) -> bool:
    """Whether a workload has requests that the engine's own benchmark cannot send as they are."""
    return workload.prefix != NO_TEXT and any(prompt.text is None or prompt.output_tokens for prompt in workload.prompts)


class ChatGenerator:
    """Sends repetitions with the client for the chat API.

    Args:
        process: that client, started.
        requests: what a repetition sends.
        output_tokens: length of the answers that do not say their own.
        folder: for requests and results; must exist.
    """

    def __init__(self, process: ClientProcess, requests: Requests, output_tokens: int, folder: Path) -> None:
        self._process = process
        self._requests = requests
        self._output_tokens = output_tokens
        self._input = folder / "requests.jsonl"
        self._output = folder / "chat_run.json"
        self._runs = 0

    def run(self, repetition_number: int, point: Point, seconds: float, tick: t.Callable[[], None]) -> dict[str, t.Any]:
        """Performs one repetition, see :class:`_measure.Generator`."""
        prompts, seed = self._requests(repetition_number, point)
        self._input.write_text(request_lines(prompts, self._output_tokens), encoding="utf-8")
        if self._output.exists():
            self._output.unlink()
        self._runs += 1
        order = {"run": self._runs, "requests": str(self._input), "output": str(self._output), "seed": seed}
        order.update(concurrency=point.concurrency, request_rate=point.request_rate)
        self._process.run(order, seconds, tick)
        if not self._output.exists():
            raise BenchmarkError("the client for the chat API wrote no result")
        found: dict[str, t.Any] = json.loads(self._output.read_text(encoding="utf-8"))
        return found
