# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client for the chat API with each engine's own HTTP library: against a server that goes wrong, and beside the engine's client against a real one."""

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._server_load import parse_metrics
from ansible_collections.llmops.inference.plugins.module_utils._workload import requests, shipped, user_prompt
from ansible_collections.llmops.inference.tests.faulty_server import PROMPT_TOKENS, serving
from ansible_collections.llmops.inference.tests.tiny_server import EngineClient, OwnClient, python_of, tiny_server

VERSIONS = ("0.5.10", "0.5.23")
TOKENS = 8
CUT = "the stream ended after 5 events without a finish reason or [DONE]; ClientPayloadError: "
# Fault: what the client says about it.
ERRORS = {
    "none": "",
    "several_tokens": "",
    "empty_chunks": "",
    "last_usage": "",
    "slow_first": "",
    "keep_alive": "",
    "crlf": "",
    "split_characters": "",
    "error_event": "CUDA error: an illegal memory access was encountered",
    "error_text": "out of memory",
    "abort": "the server ended the answer: abort",
    "cut": CUT,
    "cut_transfer": CUT,
    "early_end": "the stream ended after 5 events without a finish reason or [DONE]",
    "cut_line": "event 6 is no JSON",
    "garbage": "event 6 is no JSON",
    "unauthorized": "HTTP 401: ",
    "too_many": "HTTP 429: ",
    "failing": "HTTP 500: ",
    "busy": "HTTP 503: ",
}


@pytest.mark.parametrize("version", VERSIONS)
def test_faults(version, tmp_path):
    """All at once, so that no request is disturbed by what happens to another."""
    with serving() as server, OwnClient(python_of(version), server.url, tmp_path) as client:
        found = client.run([user_prompt(f"fault: {fault}") for fault in ERRORS], TOKENS)
    for place, (fault, error) in enumerate(ERRORS.items()):
        assert found["errors"][place].startswith(error) and bool(found["errors"][place]) == bool(error), (fault, found["errors"][place])
        assert (found["output_lens"][place], found["input_lens"][place]) == ((TOKENS, PROMPT_TOKENS) if not error else (0, 0)), fault
    assert found["completed"] == sum(not error for error in ERRORS.values())


def test_what_is_not_told_and_what_is_short(tmp_path):
    with serving() as server, OwnClient(python_of(VERSIONS[-1]), server.url, tmp_path) as client:
        found = client.run([user_prompt("fault: no_usage"), user_prompt("fault: short")], TOKENS)
    assert (found["completed"], found["output_lens"], found["itls_of"]) == (2, [None, TOKENS // 2], ["chunks", "tokens"])


def test_an_answer_that_never_ends(tmp_path):
    with serving() as server, OwnClient(python_of(VERSIONS[-1]), server.url, tmp_path, timeout_s=0.5) as client:
        found = client.run([user_prompt("fault: never"), user_prompt("fault: none")], TOKENS)
    assert found["errors"] == [
        "the stream ended after 1 events without a finish reason or [DONE]; the answer had not ended after 0.5 s",
        "",
    ]


def test_a_server_that_is_not_there(tmp_path):
    with OwnClient(python_of(VERSIONS[-1]), "http://[::1]:9", tmp_path) as client:
        (error,) = client.run([user_prompt("Hi")], TOKENS)["errors"]
    assert error.startswith("ClientConnectorError: ")


@pytest.fixture(scope="module", name="real")
def fixture_real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    version = VERSIONS[-1]
    with tiny_server(version, folder) as (server, url):
        python = python_of(version)
        with OwnClient(python, url, folder / "own") as own, EngineClient(python, url, folder / "engine") as engine:
            yield server, own, engine


@pytest.mark.parametrize("concurrency", (1, 4, 16))
def test_both_clients_count_what_the_server_counts(real, concurrency):
    """The engine's client asks the chat API for no usage: its prompts are counted without the template, so only the server's count can be compared."""
    server, own, engine = real
    prompts = requests(shipped("chat"), repetition=0, seed=1, salt=f"{concurrency}", count=16)
    totals = []
    for client in (own, engine):
        before = parse_metrics(server.request("/metrics").body)
        found = client.run(prompts, 24, concurrency)
        after = parse_metrics(server.request("/metrics").body)
        counted = [round(after[name] - before.get(name, 0.0)) for name in ("prompt_tokens_total", "generation_tokens_total")]
        assert (found["completed"], set(found["errors"])) == (16, {""})
        assert sum(found["output_lens"]) == counted[1]
        assert client is engine or sum(found["input_lens"]) == counted[0]
        totals.append(counted)
    assert totals[0] == totals[1]
    assert totals[0][1] == 16 * 24
