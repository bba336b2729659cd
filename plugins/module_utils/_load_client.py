# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A load generator for the chat API, as users' programs call it. Runs in an engine's interpreter, with that engine's aiohttp (see ``_load_client_files``).

The engine's own client is the first choice; this one is for what that one does not do: messages of several turns, tools, tokens counted by usage in every
chunk, and an answer that failed after its status of 200.

It is given the path of a plan: ``{"base_url", "model", "api_key_variable", "ca_path", "timeout_s"}``, prints ``{"event": "ready"}``, and then performs each
run that comes as a line on standard input: ``{"run": 1, "requests": PATH, "output": PATH, "concurrency": 4, "request_rate": null, "seed": 1}``. ``requests``
has one ``{"messages": [...], "output_tokens": 512, "body": {...}}`` a line. After ``{"event": "done", "run": 1}`` the result lies in ``output``. It ends with
its input.

Seconds in the result are those of the engine's client: a request begins when it is sent, and ends with its last content.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import ssl
import sys
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ._sse import StreamResult, measure, split

PATH = "/v1/chat/completions"
_SHOWN = 300

Answer = t.Tuple[str, t.List[t.Tuple[float, bytes]]]


@dataclass(frozen=True)
class Plan:
    """The server, for all runs.

    Attributes:
        base_url: without a path; IPv6 addresses are bracketed.
        model: name that it serves.
        api_key_variable: environment variable that holds the key; empty for none.
        ca_path: CA bundle for https; None for the system's.
        timeout_s: for one whole answer.
    """

    base_url: str
    model: str
    api_key_variable: str = ""
    ca_path: str | None = None
    timeout_s: float = 3600.0


def body(model: str, request: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns the body of a request: greedy, and as long as asked, so that every run has the same work. The request's own ``body`` goes over it."""
    return {
        "model": model,
        "messages": request["messages"],
        "max_tokens": request["output_tokens"],
        "temperature": 0.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        **request.get("body", {}),
    }


def arrivals(count: int, request_rate: float | None, seed: int) -> list[float]:
    """Returns when each request arrives, seconds from the start: all at once, or as a Poisson process of ``request_rate`` a second."""
    if not request_rate:
        return [0.0] * count
    source = random.Random(seed)
    found, at = [], 0.0
    for _request in range(count):
        found.append(at)
        at += source.expovariate(request_rate)
    return found


def outcome(answer: Answer) -> StreamResult:
    """Returns what an answer says. One that failed has no numbers."""
    error, pieces = answer
    found = measure(split(pieces))
    # What the server said goes before how the connection ended.
    error = "; ".join(part for part in (found.error if pieces or not error else "", error) if part)
    return found if not error else StreamResult(error, 0, 0, 0, found.quality, 0.0, 0.0, 0, (), "", "")


def result(duration: float, answers: t.Sequence[Answer]) -> dict[str, t.Any]:
    """Returns the result of a run, with the keys of the engine's client, and one entry of each list per request.

    The length of a prompt that the server did not tell is 0, that of an answer None. ``itls`` are of tokens or of chunks, as ``itls_of`` says.
    """
    found = [outcome(answer) for answer in answers]
    return {
        "duration": duration,
        "completed": sum(one.success for one in found),
        "input_lens": [one.prompt_tokens or 0 for one in found],
        "output_lens": [one.completion_tokens for one in found],
        "cached_tokens": [one.cached_tokens for one in found],
        "ttfts": [one.ttft_s for one in found],
        "itls": [list(one.gaps_s) for one in found],
        "itls_of": [one.gaps_of for one in found],
        "latencies": [one.last_content_s for one in found],
        "errors": [one.error for one in found],
    }


class Load:
    """Performs runs against one server.

    Args:
        aiohttp: the library.
        plan: the server.
        key: sent as a bearer token when not empty.
        clock: seconds.
    """

    def __init__(self, aiohttp: t.Any, plan: Plan, key: str = "", clock: t.Callable[[], float] = time.perf_counter) -> None:
        self._aiohttp = aiohttp
        self._plan = plan
        self._clock = clock
        # Packed chunks would come when the packer has enough of them.
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}

    async def perform(self, requests: t.Sequence[t.Mapping[str, t.Any]], order: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Returns the result of one run.

        Args:
            requests: see the module.
            order: ``concurrency`` (None for no limit), ``request_rate`` (None for all at once), ``seed``.
        """
        bodies = [json.dumps(body(self._plan.model, request)).encode() for request in requests]
        gate = asyncio.Semaphore(order.get("concurrency") or len(bodies) or 1)
        # What is parsed while others stream costs them time: answers are kept as they came until the last has ended.
        gc.collect()
        gc.disable()
        try:
            async with self._session() as session:
                begun = self._clock()
                times = arrivals(len(bodies), order.get("request_rate"), order.get("seed", 1))
                answers = await asyncio.gather(*(self._turn(session, gate, begun + at, text) for at, text in zip(times, bodies)))
                duration = self._clock() - begun
        finally:
            gc.enable()
        return result(duration, answers)

    def _session(self) -> t.Any:
        """A session that uses no proxy and, as the engine's client, one connection for one request: an idle one may be closed while it is taken."""
        context = ssl.create_default_context(cafile=self._plan.ca_path) if self._plan.ca_path else True
        connector = self._aiohttp.TCPConnector(limit=0, force_close=True, ssl=context)
        timeout = self._aiohttp.ClientTimeout(total=self._plan.timeout_s)
        return self._aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False, read_bufsize=1 << 20)

    async def _turn(self, session: t.Any, gate: asyncio.Semaphore, at: float, text: bytes) -> Answer:
        """Waits until a request has arrived and a place is free, then sends it."""
        wait = at - self._clock()
        if wait > 0:
            await asyncio.sleep(wait)
        async with gate:
            return await self._ask(session, text)

    async def _ask(self, session: t.Any, text: bytes) -> Answer:
        pieces: list[tuple[float, bytes]] = []
        error = ""
        sent = self._clock()
        try:
            async with session.post(self._plan.base_url + PATH, data=text, headers=self._headers) as response:
                if response.status == 200:
                    async for piece in response.content.iter_any():
                        pieces.append((self._clock() - sent, piece))
                else:
                    error = f"HTTP {response.status}: {(await response.text(errors='replace'))[:_SHOWN]}"
        except asyncio.TimeoutError:
            error = f"the answer had not ended after {self._plan.timeout_s:g} s"
        except (self._aiohttp.ClientError, OSError) as problem:
            error = f"{type(problem).__name__}: {problem}"
        return error, pieces


def say(event: dict[str, t.Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    import aiohttp

    plan = Plan(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    load = Load(aiohttp, plan, os.environ.get(plan.api_key_variable, ""))
    say({"event": "ready"})
    for line in sys.stdin:
        order = json.loads(line)
        with open(order["requests"], encoding="utf-8") as lines:
            requests = [json.loads(request) for request in lines if request.strip()]
        found = asyncio.run(load.perform(requests, order))
        Path(order["output"]).write_text(json.dumps(found), encoding="utf-8")
        say({"event": "done", "run": order["run"]})
