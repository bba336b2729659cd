# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a running server says of its load: counters and gauges of ``/metrics``, or its load endpoints where metrics are off."""

from __future__ import annotations

import math
import re
import time
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._promise import ask_server_info

_SAMPLE = re.compile(r"^sglang:(\w+)(?:\{([^}]*)\})?\s+(\S+)")
_SAME_REQUESTS = re.compile(r'\b(?:tp|pp|moe_ep)_rank="\d*",?')
_SHARES = ("token_usage",)
# The last one is there with speculation only, and since 0.5.16.
_COUNTERS = ("prompt_tokens_total", "generation_tokens_total", "cached_tokens_total", "num_requests_total", "spec_verify_calls_total")
_FLUSH_ATTEMPTS, _FLUSH_PAUSE_SECONDS = 20, 0.5
_PROOF_SECONDS = 30.0

Ask = t.Callable[..., Reply]


class Load(t.NamedTuple):
    """Load of a server at one moment.

    Attributes:
        running: requests in the batch.
        queued: requests that wait.
        kv_usage: used share of the KV cache, 0 to 1; None when it does not say.
    """

    running: int
    queued: int
    kv_usage: float | None = None

    @property
    def requests(self) -> int:
        """All requests that are not done."""
        return self.running + self.queued


def parse_metrics(text: str) -> dict[str, float]:
    """Returns the sums of the engine's metrics over their labels, without the prefix; of a share the highest.

    Ranks that work on the same requests (tensor, pipeline, expert parallel) count once, the data-parallel ones each.

    Args:
        text: Prometheus text format.
    """
    groups: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        matched = _SAMPLE.match(line)
        try:
            value = float(matched[3]) if matched else math.nan
        except ValueError:
            continue
        if matched and math.isfinite(value):
            found = groups.setdefault(matched[1], {})
            whose = _SAME_REQUESTS.sub("", matched[2] or "")
            found[whose] = max(value, found.get(whose, value))
    return {name: max(found.values()) if name in _SHARES else sum(found.values()) for name, found in groups.items()}


def parse_loads(answer: t.Any) -> Load | None:
    """Returns the load over all data-parallel ranks from ``/v1/loads`` or ``/get_load``, or None when that is no such answer."""
    ranks = answer.get("loads") if isinstance(answer, dict) else answer
    if not isinstance(ranks, list) or not ranks or not all(isinstance(rank, dict) for rank in ranks):
        return None
    # /get_load counts waiting requests among num_reqs; /v1/loads names running ones apart.
    waiting = sum(int(rank.get("num_waiting_reqs") or 0) for rank in ranks)
    if all("num_running_reqs" in rank for rank in ranks):
        running = sum(int(rank["num_running_reqs"]) for rank in ranks)
    elif all("num_reqs" in rank for rank in ranks):
        running = max(sum(int(rank["num_reqs"]) for rank in ranks) - waiting, 0)
    else:
        return None
    usage = [float(rank["token_usage"]) for rank in ranks if isinstance(rank.get("token_usage"), (int, float))]
    return Load(running, waiting, max(usage) if usage else None)


class ServerLoad:
    """Asks one server for its load.

    Args:
        ask: a request to it (path, body, timeout), as :meth:`_http.Client.request`.
        sleep: waits so many seconds.
        flush: a request with the key for flushing, where that is another one: the engine takes each key only where it belongs.
    """

    def __init__(self, ask: Ask, sleep: t.Callable[[float], None] = time.sleep, flush: Ask | None = None) -> None:
        self._ask = ask
        self._ask_to_flush = flush or ask
        self._sleep = sleep
        self._way = ""

    def metrics(self) -> dict[str, float]:
        """Returns the engine's metrics; empty where they are off."""
        reply = self._ask("/metrics")
        return parse_metrics(reply.body) if reply.status == 200 else {}

    def counters(self) -> dict[str, float]:
        """Returns the counters that a repetition is held against; empty where metrics are off."""
        found = self.metrics()
        return {name: found.get(name, 0.0) for name in _COUNTERS} if "num_running_reqs" in found else {}

    def load(self) -> Load | None:
        """Returns the load, by the first way that this engine answers; None when it has none."""
        # Gauges last: 0.5.10 and 0.5.12 leave them at their last value for up to 30 s after the last request.
        ways = (self._way,) if self._way else ("/v1/loads", "/get_load", "/metrics")
        for way in ways:
            found = self._load(way)
            if found:
                self._way = way
                return found
        return None

    def _load(self, way: str) -> Load | None:
        if way != "/metrics":
            reply = self._ask(way)
            return parse_loads(reply.json()) if reply.status == 200 else None
        found = self.metrics()
        if "num_running_reqs" not in found:
            return None
        return Load(int(found["num_running_reqs"]), int(found.get("num_queue_reqs", 0)), found.get("token_usage"))

    def flush(self) -> str:
        """Empties the prefix cache; returns what kept the server from it, or an empty text. It does so only while no request runs."""
        reply = Reply(0)
        for attempt in range(_FLUSH_ATTEMPTS):
            if attempt:
                self._sleep(_FLUSH_PAUSE_SECONDS)
            reply = self._ask_to_flush("/flush_cache", {})
            if reply.status == 200:
                return ""
            if reply.status in (401, 403):
                return f"/flush_cache asks for the admin key (HTTP {reply.status})"
        return f"/flush_cache: {f'HTTP {reply.status} {reply.body.strip()[:200]}' if reply.status else reply.error}".strip()

    def serves(self) -> bool:
        """Whether it still answers: the engine generates a token for it, or says that it is generating."""
        return self._ask("/health_generate", timeout=_PROOF_SECONDS).status == 200

    def accept_length(self) -> float | None:
        """Returns the mean number of tokens per verification step since the server's start or last flush; None without speculation."""
        states = ask_server_info(self._ask).get("internal_states")
        value = states[0].get("avg_spec_accept_length") if isinstance(states, list) and states and isinstance(states[0], dict) else None
        return round(float(value), 3) if isinstance(value, (int, float)) else None
