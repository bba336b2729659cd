# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server that goes wrong does so as it says, and the parser of streams sees it, over a real connection."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http.client import IncompleteRead

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Client
from ansible_collections.llmops.inference.plugins.module_utils._sse import measure, split
from ansible_collections.llmops.inference.tests import faulty_server as faulty

ENDED = "the stream ended after {} events without a finish reason or [DONE]"
CUDA = "CUDA error: an illegal memory access was encountered"
GARBAGE = 'event 6 is no JSON (Expecting property name enclosed in double quotes: line 1 column 15 (char 14)): {"choices": [{]'
CUT_LINE = "event 6 is no JSON"
BODIES = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "stream": True},
    "/generate": {"text": "Hi", "sampling_params": {"max_new_tokens": 8}, "stream": True},
}


def ask(url, path, timeout=5.0, body=None):
    """What came over the line, with times from the request, and whether the connection was cut."""
    request = urllib.request.Request(url + path, json.dumps(body or BODIES[path]).encode(), {"Content-Type": "application/json"})
    pieces, cut = [], False
    begun = time.monotonic()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout) as response:
        try:
            while True:
                piece = response.read1(65536)
                if not piece:
                    break
                pieces.append((time.monotonic() - begun, piece))
        except (IncompleteRead, ConnectionError) as error:
            cut = True
            if getattr(error, "partial", b""):
                pieces.append((time.monotonic() - begun, error.partial))
    return pieces, cut


@pytest.fixture(scope="module")
def url():
    with faulty.serving() as server:
        yield server.url


def test_every_fault_is_tried():
    tried = {mark.args[1][place].values[0] for mark in test_chat.pytestmark if mark.name == "parametrize" for place in range(len(mark.args[1]))}
    assert tried | {"never", *faulty.STATUSES} == set(faulty.FAULTS)


@pytest.mark.parametrize(
    "fault, error, tokens, contents, of",
    [
        pytest.param("none", "", 8, 8, "tokens", id="none"),
        pytest.param("several_tokens", "", 8, 2, "tokens", id="several-tokens"),
        pytest.param("empty_chunks", "", 8, 8, "tokens", id="empty-chunks"),
        pytest.param("no_usage", "", None, 8, "chunks", id="no-usage"),
        pytest.param("last_usage", "", 8, 8, "chunks", id="last-usage"),
        pytest.param("error_event", CUDA, 4, 4, "tokens", id="error-event"),
        pytest.param("error_text", "out of memory", 4, 4, "tokens", id="error-text"),
        pytest.param("abort", "the server ended the answer: abort", 4, 4, "tokens", id="abort"),
        pytest.param("cut", ENDED.format(5), 4, 4, "tokens", id="cut"),
        pytest.param("cut_line", CUT_LINE, 4, 4, "tokens", id="cut-line"),
        pytest.param("cut_transfer", ENDED.format(5), 4, 4, "tokens", id="cut-transfer"),
        pytest.param("early_end", ENDED.format(5), 4, 4, "tokens", id="early-end"),
        pytest.param("short", "", 4, 4, "tokens", id="short"),
        pytest.param("slow_first", "", 8, 8, "tokens", id="slow-first"),
        pytest.param("garbage", GARBAGE, 8, 8, "tokens", id="garbage"),
        pytest.param("keep_alive", "", 8, 8, "tokens", id="keep-alive"),
        pytest.param("crlf", "", 8, 8, "tokens", id="crlf"),
        pytest.param("split_characters", "", 8, 8, "tokens", id="split-characters"),
    ],
)
def test_chat(url, fault, error, tokens, contents, of):
    body = {**BODIES["/v1/chat/completions"], "messages": [{"role": "user", "content": f"fault: {fault}"}]}
    pieces, cut = ask(url, "/v1/chat/completions", body=body)
    found = measure(split(pieces))
    assert found.error.startswith(error) and bool(found.error) == bool(error)
    assert (found.completion_tokens, found.content_chunks, found.gaps_of) == (tokens, contents, of)
    assert cut or not fault.startswith("cut")
    if fault == "slow_first":
        assert found.ttft_s >= faulty.SLOW_SECONDS


@pytest.mark.parametrize(
    "fault, error, tokens, contents",
    [
        pytest.param("none", "", 8, 8, id="none"),
        pytest.param("several_tokens", "", 8, 2, id="several-tokens"),
        pytest.param("error_event", CUDA, 4, 4, id="error-event"),
        pytest.param("abort", "the server ended the answer: Aborted", 4, 4, id="abort"),
        pytest.param("cut", ENDED.format(4), 4, 4, id="cut"),
        pytest.param("short", "", 4, 4, id="short"),
        pytest.param("no_usage", "", None, 9, id="no-usage"),
    ],
)
def test_native(url, fault, error, tokens, contents):
    pieces, _cut = ask(url, "/generate", body={**BODIES["/generate"], "text": f"fault: {fault}"})
    found = measure(split(pieces))
    assert (found.error, found.completion_tokens, found.content_chunks) == (error, tokens, contents)


@pytest.mark.parametrize("fault", sorted(faulty.STATUSES))
@pytest.mark.parametrize("path", sorted(BODIES))
def test_statuses(fault, path):
    with faulty.serving(fault) as server, pytest.raises(urllib.error.HTTPError) as caught:
        ask(server.url, path)
    assert caught.value.code == faulty.STATUSES[fault][0]


def test_never():
    with faulty.serving("never") as server, pytest.raises(OSError):
        ask(server.url, "/v1/chat/completions", timeout=0.2)


def test_faults_in_turns():
    with faulty.serving("none", "short") as server:
        found = [measure(split(ask(server.url, "/generate")[0])).completion_tokens for _request in range(4)]
    assert found == [8, 4, 8, 4]


def test_what_else_it_answers():
    with faulty.serving() as server:
        ask(server.url, "/generate")
        client = Client(server.url)
        assert 'sglang:generation_tokens_total{model_name="faulty"} 8.0\n' in client.request("/metrics").body
        assert client.request("/get_load").json()[0]["num_reqs"] == 0
        assert client.request("/server_info").json()["internal_states"][0]["avg_spec_accept_length"] == 2.5
        assert client.request("/flush_cache", {}).status == 200
        assert server.flushes == 1
        assert client.request("/nothing").status == 404


def test_a_fault_that_there_is_not():
    with pytest.raises(ValueError, match="^there is no fault 'x': there are none, "):
        faulty.FaultyServer(["x"])
