# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import asyncio
import gc
import io
import json
import sys
from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _load_client as client
from ansible_collections.llmops.inference.plugins.module_utils._load_client import Load, Plan, arrivals, body, outcome, result

REQUEST = {"messages": [{"role": "user", "content": "Hi"}], "output_tokens": 2, "body": {}}
FIRST = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": null}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}\n\n'
SECOND = b'data: {"choices": [{"delta": {"content": "b"}, "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = (FIRST, SECOND, DONE)


class ClientError(Exception):
    """The library's own error."""


class Library:
    """What of aiohttp the client uses: answers come from a script, each piece takes a second of a clock that is moved by hand.

    Args:
        scripts: one answer per request: a status and what comes, pieces or an error.
    """

    ClientError = ClientError

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.now = 100.0
        self.sent = []
        self.in_flight = self.most = 0
        self.options = {}

    def clock(self):
        return self.now

    def TCPConnector(self, **options):
        self.options.update(options)
        return "connector"

    def ClientTimeout(self, total):
        return total

    def ClientSession(self, **options):
        self.options.update(options)
        return Session(self)


class Session:
    def __init__(self, library):
        self.library = library

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        return None

    def post(self, url, data, headers):
        self.library.sent.append((url, json.loads(data), headers))
        return Response(self.library, *self.library.scripts.pop(0))


class Response:
    def __init__(self, library, status, *coming):
        self.library, self.status, self.coming = library, status, coming
        self.content = self

    async def __aenter__(self):
        self.library.in_flight += 1
        self.library.most = max(self.library.most, self.library.in_flight)
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_error):
        self.library.in_flight -= 1

    async def text(self, errors):
        return b"".join(self.coming).decode(errors=errors)

    async def iter_any(self):
        for piece in self.coming:
            await asyncio.sleep(0)
            if isinstance(piece, Exception):
                raise piece
            self.library.now += 1.0
            yield piece


def perform(library, requests=(REQUEST,), plan=None, key="", **order):
    load = Load(library, plan or Plan("http://[::1]:30000", "tiny"), key, library.clock)
    return asyncio.run(load.perform(requests, order))


def test_a_run():
    library = Library((200, *WHOLE))
    assert perform(library) == {
        "duration": 3.0,
        "completed": 1,
        "input_lens": [5],
        "output_lens": [3],
        "cached_tokens": [None],
        "ttfts": [1.0],
        "itls": [[0.5, 0.5]],
        "itls_of": ["tokens"],
        "latencies": [2.0],
        "errors": [""],
    }
    ((url, sent, headers),) = library.sent
    assert url == "http://[::1]:30000/v1/chat/completions"
    assert sent == body("tiny", REQUEST)
    assert "Authorization" not in headers
    assert gc.isenabled()


def test_how_it_connects():
    library = Library((200, *WHOLE))
    perform(library, plan=Plan("http://h", "tiny", timeout_s=7.0), key="secret")
    assert library.sent[0][2]["Authorization"] == "Bearer secret"
    shown = {name: library.options[name] for name in ("limit", "force_close", "ssl", "trust_env", "timeout")}
    assert shown == {"limit": 0, "force_close": True, "ssl": True, "trust_env": False, "timeout": 7.0}


@pytest.mark.parametrize(
    "script, error",
    [
        pytest.param((503, b"busy"), "HTTP 503: busy", id="503"),
        pytest.param((401, b"x" * 999), "HTTP 401: " + "x" * 300, id="401-long"),
        pytest.param((200, FIRST, asyncio.TimeoutError()), "the answer had not ended after 3600 s", id="timeout"),
        pytest.param((200, OSError("no route")), "OSError: no route", id="no-connection"),
        pytest.param((200, FIRST, ClientError("not completed")), "ClientError: not completed", id="broken-off"),
        pytest.param((200, FIRST, b'data: {"error": {"message": "CUDA error"}}\n\n', ClientError("reset")), "CUDA error; ClientError: reset", id="error-first"),
        pytest.param((200, FIRST), "the stream ended after 1 events without a finish reason or [DONE]", id="cut-off"),
    ],
)
def test_a_request_that_fails(script, error):
    found = perform(Library(script, (200, *WHOLE)), (REQUEST, REQUEST), concurrency=1)
    assert found["errors"][0].endswith(error)
    assert [found[name] for name in ("completed", "output_lens", "ttfts", "itls", "latencies")] == [1, [0, 3], [0.0, 1.0], [[], [0.5, 0.5]], [0.0, 2.0]]


@pytest.mark.parametrize("concurrency, most", [(1, 1), (3, 3), (None, 8), (64, 8)])
def test_concurrency(concurrency, most):
    library = Library(*[(200, *WHOLE)] * 8)
    assert perform(library, [REQUEST] * 8, concurrency=concurrency)["completed"] == 8
    assert library.most == most


def test_the_server_may_not_count():
    found = perform(Library((200, b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n', DONE)))
    assert (found["completed"], found["output_lens"], found["input_lens"], found["errors"]) == (1, [None], [0], [""])


def test_nothing_to_do():
    assert perform(Library(), ())["completed"] == 0


def test_a_body_asks_for_the_same_work_each_time():
    assert body("m", {"messages": [], "output_tokens": 9}) == {
        "model": "m",
        "messages": [],
        "max_tokens": 9,
        "temperature": 0.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    assert body("m", {"messages": [], "output_tokens": 9, "body": {"ignore_eos": False, "tools": [1]}})["tools"] == [1]


@pytest.mark.parametrize("rate", (None, 0))
def test_all_at_once(rate):
    assert arrivals(3, rate, 1) == [0.0] * 3


def test_arrivals_at_a_rate():
    found = arrivals(4000, 8.0, 1)
    assert found == arrivals(4000, 8.0, 1) != arrivals(4000, 8.0, 2)
    assert found == sorted(found) and found[0] == 0.0
    assert found[-1] / 3999 == pytest.approx(1 / 8, rel=0.05)


def test_requests_wait_for_their_arrival(monkeypatch):
    waited = []

    async def sleep(seconds, real=asyncio.sleep):
        waited.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    perform(Library(*[(200, *WHOLE)] * 3), [REQUEST] * 3, request_rate=2.0, seed=5)
    assert [seconds for seconds in waited if seconds] == pytest.approx(arrivals(3, 2.0, 5)[1:], abs=3.1)


def test_a_failed_answer_has_no_numbers():
    assert outcome(("x", [(1.0, FIRST)])).ttft_s == 0.0
    assert result(1.0, [("x", [])])["errors"] == ["x"]


def test_the_process(monkeypatch, tmp_path, capsys):
    """Plan and orders in, events and a file out."""
    plan, requests, output = (tmp_path / name for name in ("plan.json", "requests.jsonl", "result.json"))
    plan.write_text(json.dumps({"base_url": "http://h", "model": "tiny", "api_key_variable": "THE_KEY"}))
    requests.write_text(json.dumps(REQUEST) + "\n\n")
    library = Library((200, *WHOLE), (200, *WHOLE))
    monkeypatch.setitem(sys.modules, "aiohttp", library)
    monkeypatch.setattr(sys, "argv", ["client", str(plan)])
    monkeypatch.setenv("THE_KEY", "secret")
    order = {"requests": str(requests), "output": str(output), "concurrency": 1, "request_rate": None, "seed": 1}
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps({"run": run, **order}) + "\n" for run in (1, 2))))
    client.main()
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events == [{"event": "ready"}, {"event": "done", "run": 1}, {"event": "done", "run": 2}]
    assert json.loads(output.read_text())["completed"] == 1
    assert {sent[2]["Authorization"] for sent in library.sent} == {"Bearer secret"}


def test_a_ca_bundle(monkeypatch):
    monkeypatch.setattr(client, "ssl", SimpleNamespace(create_default_context=lambda cafile: f"trusts {cafile}"))
    library = Library((200, *WHOLE))
    perform(library, plan=Plan("https://h", "tiny", ca_path="/etc/ca.pem"))
    assert library.options["ssl"] == "trusts /etc/ca.pem"
