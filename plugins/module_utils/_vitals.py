# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Phases and vital signs of a start, read from the engine's log lines (wordings of SGLang 0.5.6 to 0.5.23)."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._journal import Line

# A phase begins with the first line that matches; a later phase never goes back to an earlier one.
PHASES: tuple[tuple[str, t.Pattern[str]], ...] = (
    ("process", re.compile(r"(?!)")),
    ("arguments", re.compile(r"server_args=")),
    ("distributed", re.compile(r"Init (?:torch distributed|parallel) begin")),
    ("weights", re.compile(r"Load weight begin")),
    ("kv_cache", re.compile(r"Load weight end")),
    ("graphs", re.compile(r"Capture .*graph begin", re.IGNORECASE)),
    ("http", re.compile(r"max_total_num_tokens=\d")),
    ("warm_up", re.compile(r"Uvicorn running on")),
    ("ready", re.compile(r"The server is fired up and ready to roll")),
)
TITLES = {
    "process": "starting the process",
    "arguments": "resolving the arguments",
    "distributed": "initialising distributed communication",
    "weights": "loading weights",
    "kv_cache": "allocating the KV cache",
    "graphs": "capturing CUDA graphs",
    "http": "starting the HTTP server",
    "warm_up": "warming up",
    "ready": "proving a generation",
}

_FLOAT = r"([\d.]+)"
_VITALS: tuple[tuple[t.Pattern[str], tuple[tuple[str, t.Callable[[str], t.Any]], ...]], ...] = (
    (re.compile(rf"Load weight end\..*?elapsed={_FLOAT} s"), (("weights_seconds", float),)),
    (re.compile(rf"Load weight end\..*?mem usage={_FLOAT} GB"), (("weights_gb", float),)),
    (re.compile(r"KV [Cc]ache (?:is )?allocated\..*?dtype: ([\w.]+)"), (("kv_cache_dtype", lambda dtype: dtype.replace("torch.", "")),)),
    (re.compile(r"max_total_num_tokens=(\d+)"), (("kv_cache_tokens", int),)),
    (re.compile(r"max_total_num_tokens=.*?max_running_requests=(\d+)"), (("max_running_requests", int),)),
    (re.compile(r"max_total_num_tokens=.*?context_len=(\d+)"), (("context_length", int),)),
    (re.compile(rf"max_total_num_tokens=.*?available_(?:gpu|cpu)_mem={_FLOAT} GB"), (("available_memory_gb", float),)),
)
_GRAPHS = re.compile(r"Capture (.*?) ?(?:cuda|cpu) graph end.*?(?:elapsed=|elapsed: )([\d.]+) s", re.IGNORECASE)


class StartLog:
    """Follows one start. Feed it lines; read ``phase``, :meth:`durations` and ``vitals``.

    Args:
        started: wall-clock seconds at which the unit was started.
    """

    def __init__(self, started: float) -> None:
        self._begun: list[tuple[str, float]] = [("process", started)]
        self.vitals: dict[str, t.Any] = {}

    @property
    def phase(self) -> str:
        """The phase the start is in."""
        return self._begun[-1][0]

    def feed(self, lines: t.Iterable[Line]) -> None:
        """Takes the next lines of the journal."""
        for line in lines:
            self._advance(line)
            self._measure(line.text)

    def _advance(self, line: Line) -> None:
        names = [name for name, begin in PHASES]
        for name, begin in PHASES[names.index(self.phase) + 1 :]:
            if begin.search(line.text):
                self._begun.append((name, line.seconds))
                return

    def _measure(self, text: str) -> None:
        for pattern, fields in _VITALS:
            found = pattern.search(text)
            if found:
                # The target model comes first: a draft model's lines and those of further ranks do not replace its values.
                for i, (name, convert) in enumerate(fields):
                    self.vitals.setdefault(name, convert(found.group(i + 1)))
        graph = _GRAPHS.search(text)
        if graph:
            self.vitals.setdefault("graphs_seconds", {})[graph.group(1).strip() or "decode"] = float(graph.group(2))

    def durations(self, now: float) -> list[dict[str, t.Any]]:
        """Returns the phases so far, in order, each with its seconds; the last one runs until ``now`` (wall clock)."""
        ends = [begun for name, begun in self._begun[1:]] + [now]
        return [{"phase": name, "seconds": round(max(0.0, end - begun), 1)} for (name, begun), end in zip(self._begun, ends)]
