# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a server's own counters say of one repetition after the other. What they do not say is None, never 0."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._server_load import ServerLoad

REPETITION, SERVER_MEAN = "repetition", "server mean"
_ATTEMPTS, _PAUSE_SECONDS = 8, 0.5


class ServerCounts:
    """Holds a server's counters against the repetitions of one point.

    Args:
        server: tells its counters.
        sleep: waits so many seconds.

    Attributes:
        strangers: requests that are not ours, the most that it has counted in one repetition.
        silent: repetitions of which its counters told nothing.
    """

    def __init__(self, server: ServerLoad, sleep: t.Callable[[float], None]) -> None:
        self._server = server
        self._sleep = sleep
        self._before: dict[str, float] = {}
        self._owed = 0
        self.strangers = 0
        self.silent = 0

    def begin(self) -> None:
        """Notes where the counters stand."""
        self._before = self._server.counters()

    def end(self, entry: t.Mapping[str, t.Any], flushed: bool) -> dict[str, t.Any]:
        """Returns the repetition's ``server``, ``cache_hit_rate``, ``accept_length`` and ``accept_length_of``.

        Args:
            entry: the repetition, see :func:`_repetition.repetition`.
            flushed: whether the cache was flushed before it, with which the engine begins its mean of the acceptance length anew.
        """
        delta = self._of_this(entry)
        verified, prompts = delta.get("spec_verify_calls_total", 0.0), delta.get("prompt_tokens_total", 0.0)
        if verified > 0:
            # The first token of an answer comes from its prompt, no draft was verified for it.
            accepted: float | None = round((delta["generation_tokens_total"] - delta["num_requests_total"]) / verified, 3)
        else:
            accepted = self._server.accept_length()
        own = REPETITION if verified > 0 or flushed else SERVER_MEAN
        return {
            "server": {"prompt_tokens": int(prompts), "generation_tokens": int(delta["generation_tokens_total"])} if delta else None,
            "cache_hit_rate": round(delta["cached_tokens_total"] / prompts, 4) if prompts > 0 else None,
            "accept_length": accepted,
            "accept_length_of": None if accepted is None else own,
        }

    def remarks(self, repetitions: int) -> list[str]:
        """Returns what has to be said beside the numbers.

        Args:
            repetitions: how many were held against the counters.
        """
        if not self.silent:
            return []
        waited = f"{_ATTEMPTS * _PAUSE_SECONDS:g} s"
        return [f"the server's own counters tell nothing of {self.silent} of {repetitions} repetitions: they did not follow within {waited}, or began anew"]

    def _of_this(self, entry: t.Mapping[str, t.Any]) -> dict[str, float]:
        """What was counted over this repetition alone; empty where that cannot be told."""
        if not self._before:
            return {}
        expected, owed = entry["completed"] + self._owed, self._owed
        delta = self._wait(expected)
        counted = int(delta.get("num_requests_total", 0))
        # What the repetition before still owed comes with the tokens of that one.
        self._owed = max(expected - counted, 0) if delta else 0
        self.strangers = max(self.strangers, counted - entry["requests"] - owed)
        if delta and not owed and not self._owed:
            return delta
        self.silent += 1
        return {}

    def _wait(self, expected: int) -> dict[str, float]:
        """How far the counters went; they follow the answers by a moment. Empty where they began anew or are not told any more."""
        delta: dict[str, float] = {}
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(_PAUSE_SECONDS)
            after = self._server.counters()
            delta = {name: after.get(name, 0.0) - value for name, value in self._before.items()}
            if delta["num_requests_total"] >= expected:
                break
        return delta if min(delta.values()) >= 0 else {}
