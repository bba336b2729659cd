#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that streams like the engine and goes wrong on demand: what a real one will not do when a test wants it. On loopback, standard library alone.

Which fault a request gets: the one that its prompt names (``fault: cut``), else the next of those that the server was started with, in turns.

As a program: ``faulty_server.py PORT [FAULT ...]``; port 0 takes a free one. It prints its URL when it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import sys
import threading

WORD = "w\u00e4rd "
# Steps of a stream that are no bytes: seconds to wait, and these.
CUT, NEVER = "cut", "never"
STATUSES = {"unauthorized": (401, "Unauthorized"), "too_many": (429, "Too Many Requests"), "failing": (500, "Internal Server Error"), "busy": (503, "Busy")}
FAULTS = (
    "none",
    "several_tokens",
    "empty_chunks",
    "no_usage",
    "last_usage",
    "error_event",
    "error_text",
    "abort",
    "cut",
    "cut_line",
    "cut_transfer",
    "early_end",
    "short",
    "slow_first",
    "never",
    "garbage",
    "keep_alive",
    "crlf",
    "split_characters",
    *STATUSES,
)
PROMPT_TOKENS = 7
SLOW_SECONDS = 0.3


def event(data, end="\n\n"):
    """One event of a stream; characters stand in it as they are."""
    return ("data: " + (data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)) + end).encode()


class Chat:
    """Events of the chat API."""

    @staticmethod
    def chunk(_text, new, tokens, finish=None, usage=True):
        found = {"choices": [{"index": 0, "delta": {"content": new} if new else {}, "finish_reason": finish}]}
        return {**found, "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens}} if usage else found

    @staticmethod
    def start():
        return [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]

    @staticmethod
    def last(tokens):
        return [{"choices": [], "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens}}]


class Native:
    """Events of ``/generate``: the text so far each time."""

    @staticmethod
    def chunk(text, _new, tokens, finish=None, usage=True):
        reason = {"type": finish, "message": "Aborted"} if finish else None
        counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens, "cached_tokens": 0} if usage else {}
        return {"text": text, "meta_info": {**counts, "finish_reason": reason}}

    @staticmethod
    def start():
        return []

    @staticmethod
    def last(_tokens):
        return []


def steps(fault, kind, tokens):
    """What is sent for one request: bytes, seconds to wait, or how it ends early.

    Args:
        fault: one of FAULTS that has status 200.
        kind: Chat or Native.
        tokens: how many are asked for.
    """
    count = max(1, tokens // 2) if fault == "short" else tokens
    size = 4 if fault == "several_tokens" else 1
    end = "\r\n\r\n" if fault == "crlf" else "\n\n"
    continuous = fault not in ("no_usage", "last_usage")
    if fault == "slow_first":
        yield SLOW_SECONDS
    for found in kind.start():
        yield event(found, end)
    if fault == "never":
        yield NEVER
    for place, done in enumerate(range(size, count + size, size)):
        now = min(done, count)
        new = WORD * (now - place * size)
        if place == count // 2:
            yield from broken(fault, kind, place, now)
        if fault == "empty_chunks":
            yield event(kind.chunk(WORD * place, "", place), end)
        if fault == "keep_alive":
            yield b": ping\n\n"
        whole = event(kind.chunk(WORD * now, new, now, usage=continuous), end)
        if fault == "split_characters":
            middle = whole.index("\u00e4".encode()) + 1
            yield whole[:middle]
            yield 0.01
            yield whole[middle:]
        else:
            yield whole
    yield event(kind.chunk(WORD * count, "", count, "length", continuous), end)
    if fault != "no_usage":
        for found in kind.last(count):
            yield event(found, end)
    yield event("[DONE]", end)


def broken(fault, kind, place, now):
    """What comes in the middle of a stream that breaks."""
    if fault == "error_event":
        yield event({"error": {"message": "CUDA error: an illegal memory access was encountered", "code": 500}})
        yield event("[DONE]")
        yield CUT
    elif fault == "error_text":
        yield event({"error": "out of memory"})
        yield CUT
    elif fault == "abort":
        yield event(kind.chunk(WORD * place, "", place, "abort"))
        yield event("[DONE]")
        yield CUT
    elif fault == "garbage":
        yield event('{"choices": [{]')
    elif fault == "cut_line":
        yield event(kind.chunk(WORD * now, WORD, now))[:40]
        yield CUT
    elif fault in ("cut", "early_end"):
        yield CUT
    elif fault == "cut_transfer":
        yield "cut transfer"


class FaultyServer:
    """The server; ``url`` is known when it listens.

    Args:
        faults: of the requests, in turns; none for a server without fault.
        pause: seconds between two steps of a stream.
    """

    def __init__(self, faults=(), pause=0.0):
        unknown = [fault for fault in faults if fault not in FAULTS]
        if unknown:
            raise ValueError(f"there is no fault {unknown[0]!r}: there are {', '.join(FAULTS)}")
        self._faults = itertools.cycle(faults or ("none",))
        self._pause = pause
        self._running = 0
        self.counts = {"prompt_tokens_total": 0, "generation_tokens_total": 0, "num_requests_total": 0}
        self.flushes = 0
        self.url = ""

    async def listen(self, port=0):
        """Begins to listen and returns the asyncio server."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _connection(self, reader, writer):
        # A client that has enough goes away.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            method, path, body = await self._request(reader)
            if method == "POST" and path in ("/v1/chat/completions", "/generate"):
                await self._answer(writer, path, json.loads(body or b"{}"))
            else:
                self._reply(writer, *self._other(path))
            await writer.drain()
        writer.close()

    @staticmethod
    async def _request(reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _version = head.split("\r\n", 1)[0].split(" ", 2)
        length = re.search(r"(?im)^content-length:\s*(\d+)", head)
        return method, path.split("?", 1)[0], await reader.readexactly(int(length[1])) if length else b""

    @staticmethod
    def _reply(writer, status, body, kind="application/json"):
        text = body if isinstance(body, str) else json.dumps(body)
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(text.encode())}\r\nConnection: close\r\n\r\n"
        writer.write((head + text).encode())

    def _other(self, path):
        if path == "/flush_cache":
            self.flushes += 1
            return 200, "Cache flushed.\n", "text/plain"
        if path == "/metrics":
            figures = {**self.counts, "num_running_reqs": self._running, "num_queue_reqs": 0, "token_usage": 0.0}
            return 200, "".join(f'sglang:{name}{{model_name="faulty"}} {float(value)}\n' for name, value in figures.items()), "text/plain"
        answers = {
            "/server_info": {"version": "0.5.23", "model_path": "faulty", "internal_states": [{"avg_spec_accept_length": 2.5}]},
            "/get_server_info": {"version": "0.5.23", "model_path": "faulty", "internal_states": [{"avg_spec_accept_length": 2.5}]},
            "/get_load": [{"dp_rank": 0, "num_reqs": self._running, "num_waiting_reqs": 0, "num_tokens": 0}],
            "/v1/models": {"object": "list", "data": [{"id": "faulty", "object": "model", "max_model_len": 32768}]},
            "/health": {},
        }
        return (200, answers[path]) if path in answers else (404, {"error": {"message": f"there is no {path}"}})

    async def _answer(self, writer, path, body):
        kind = Native if path == "/generate" else Chat
        parameters = body.get("sampling_params", {})
        tokens = int(parameters.get("max_new_tokens") or body.get("max_tokens") or body.get("max_completion_tokens") or 8)
        named = re.search(r"fault: (\w+)", json.dumps(body))
        fault = named[1] if named and named[1] in FAULTS else next(self._faults)
        if fault in STATUSES:
            status, message = STATUSES[fault]
            self._reply(writer, status, {"error": {"message": message, "code": status}})
            return
        sent = max(1, tokens // 2) if fault == "short" else tokens
        # Before the client can have seen the end, so that counters that are asked for then are complete.
        for name, number in (("prompt_tokens_total", PROMPT_TOKENS), ("generation_tokens_total", sent), ("num_requests_total", 1)):
            self.counts[name] += number
        self._running += 1
        try:
            await self._stream(writer, fault, steps(fault, kind, tokens))
        finally:
            self._running -= 1

    async def _stream(self, writer, fault, found):
        """Sends steps as chunks of HTTP/1.1. ``early_end`` ends the body properly, the other cuts close the connection within it."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        for step in found:
            if step == NEVER:
                await asyncio.sleep(3600)
            elif isinstance(step, str):
                break
            elif isinstance(step, float):
                await asyncio.sleep(step)
            else:
                writer.write(f"{len(step):x}\r\n".encode() + step + b"\r\n")
                await writer.drain()
                await asyncio.sleep(self._pause)
        if fault == "cut_transfer":
            writer.write(b"ff\r\ndata: ")
        elif fault not in ("cut", "cut_line"):
            writer.write(b"0\r\n\r\n")


@contextlib.contextmanager
def serving(*faults, pause=0.0):
    """Runs a server in a thread while a test uses it."""
    server = FaultyServer(faults, pause)
    loop = asyncio.new_event_loop()
    listener = loop.run_until_complete(server.listen())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(end(listener))
        loop.close()


async def end(listener):
    """Ends a server with the answers that have not ended."""
    listener.close()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def run(port, faults):
    server = FaultyServer(faults)
    async with await server.listen(port) as listener:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), sys.argv[2:]))
