# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._sse import CHUNKS, EXACT, TOKENS, UNKNOWN, measure, split

FIXTURES = Path(__file__).parents[2] / "fixtures" / "benchmark"
DONE = "data: [DONE]"


def recorded(name):
    """The timed lines of a case."""
    lines = [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines()]
    return [(line["t_ms"] / 1000, line["line"]) for line in lines]


def chunk(finish=None, tokens=None, prompt=4, **delta):
    """One line of the chat API; ``tokens`` is what its usage says."""
    event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return "data: " + json.dumps(event if tokens is None else {**event, "usage": {"prompt_tokens": prompt, "completion_tokens": tokens}})


def usage(tokens, **more):
    return "data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": tokens, **more}})


def native(text, tokens, finish=None, **more):
    """One line of /generate."""
    return "data: " + json.dumps({"text": text, "meta_info": {"prompt_tokens": 4, "completion_tokens": tokens, "finish_reason": finish, **more}})


def at_seconds(*lines, step=0.5):
    """One line every half second, the first at half a second."""
    return [(step * (1 + place), line) for place, line in enumerate(lines)]


def test_B01_several_tokens_per_chunk():
    found = measure(recorded("b01_spec_decode_multi_token_chunks"))
    assert found.success
    assert (found.completion_tokens, found.prompt_tokens, found.quality) == (24, 12, EXACT)
    assert found.content_chunks == 6
    assert (found.ttft_s, found.last_content_s) == (0.25, 0.5)
    assert found.tok_per_s_e2e == 48.0
    assert found.tok_per_s_decode == 92.0
    assert (found.gaps_of, len(found.gaps_s)) == (CHUNKS, 5)
    assert found.gaps_s == pytest.approx([0.05] * 5)


@pytest.mark.parametrize(
    "name, tokens, quality, error",
    [
        pytest.param("b03a_usage_only_last_chunk_empty_choices", 3, EXACT, "", id="B03-last-chunk-without-choices"),
        pytest.param("b03b_no_usage_at_all", None, UNKNOWN, "", id="B03-no-usage"),
        pytest.param("b03c_continuous_usage", 8, EXACT, "", id="B03-continuous-usage-is-not-summed"),
        pytest.param("b03d_midstream_error_event", None, UNKNOWN, "CUDA error: an illegal memory access was encountered", id="B03-error-in-the-stream"),
    ],
)
def test_B03_shapes_of_usage(name, tokens, quality, error):
    found = measure(recorded(name))
    assert (found.completion_tokens, found.quality, found.error) == (tokens, quality, error)
    assert found.success is (not error)
    assert found.ttft_s == 0.09


def test_B03_without_usage_there_is_no_rate():
    found = measure(recorded("b03b_no_usage_at_all"))
    assert (found.tok_per_s_e2e, found.tok_per_s_decode, found.gaps_of) == (None, None, CHUNKS)


def test_B03_continuous_usage_gives_the_time_of_a_token():
    found = measure(recorded("b03c_continuous_usage"))
    assert found.gaps_of == TOKENS
    assert found.gaps_s == pytest.approx([0.05 / 3] * 6)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(chunk(content="x"), id="content"),
        pytest.param(chunk(reasoning_content="x"), id="reasoning"),
        pytest.param(chunk(reasoning="x", content=None), id="reasoning-by-its-short-name"),
        pytest.param(chunk(tool_calls=[{"index": 0, "function": {"name": "look", "arguments": ""}}]), id="tool-call"),
        pytest.param('data: {"choices": [{"index": 0, "text": "x", "finish_reason": null}]}', id="completion-api"),
        pytest.param('data: {"choices": [{"index": 0, "text": "x"}]}\r\n', id="crlf"),
        pytest.param('data:{"choices": [{"index": 0, "delta": {"content": "x"}}]}', id="no-blank-after-data"),
        pytest.param('{"choices": [{"index": 0, "delta": {"content": "x"}}]}', id="no-data"),
        pytest.param(b'data: {"choices": [{"index": 0, "delta": {"content": "\xc3\xa4"}}]}', id="bytes"),
        pytest.param(b'data: {"choices": [{"index": 0, "delta": {"content": "\xc3"}}]}', id="a-broken-character"),
    ],
)
def test_what_is_content(line):
    found = measure(at_seconds(chunk(role="assistant", content=""), line, chunk("stop"), usage(1), DONE))
    assert (found.error, found.ttft_s, found.content_chunks, found.completion_tokens) == ("", 1.0, 1, 1)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(": ping", id="comment"),
        pytest.param("", id="end-of-event"),
        pytest.param("\r\n", id="end-of-event-crlf"),
        pytest.param("data:", id="nothing"),
        pytest.param("event: message", id="event"),
        pytest.param("retry: 3000", id="retry"),
        pytest.param("id: 7", id="id"),
        pytest.param(chunk(content=""), id="empty-content"),
        pytest.param(chunk(content=None, reasoning_content=None, tool_calls=None), id="null"),
        pytest.param(chunk(), id="no-delta"),
        pytest.param('data: {"choices": null, "usage": null}', id="nulls"),
        pytest.param('data: {"choices": [null, {"delta": null}], "usage": 3}', id="other-types"),
        pytest.param('data: {"choices": [], "usage": {"completion_tokens": true}}', id="usage-that-is-no-number"),
        pytest.param('data: {"error": null, "choices": []}', id="no-error"),
    ],
)
def test_what_is_none(line):
    found = measure(at_seconds(line, chunk(content="x"), line, chunk("stop"), DONE))
    assert (found.error, found.ttft_s, found.content_chunks, found.completion_tokens) == ("", 1.0, 1, None)


@pytest.mark.parametrize(
    "lines, error",
    [
        pytest.param([], "the stream ended after 0 events without a finish reason or [DONE]", id="nothing"),
        pytest.param([chunk(content="x")], "the stream ended after 1 events without a finish reason or [DONE]", id="cut-off"),
        pytest.param([chunk(content="x"), chunk("stop")], "", id="finish-reason-only"),
        pytest.param([chunk(content="x"), DONE], "", id="done-only"),
        pytest.param([chunk(role="assistant"), chunk("stop"), DONE], "the stream had no content", id="no-content"),
        pytest.param([chunk(content="x"), 'data: {"error": "out of memory"}', DONE], "out of memory", id="error-is-a-text"),
        pytest.param([chunk(content="x"), 'data: {"error": {"code": 500}}'], '{"code": 500}', id="error-without-message"),
        pytest.param(['{"object": "error", "message": "too long", "code": 400}'], "too long", id="error-of-older-engines"),
        pytest.param(['data: {"error": {"message": "first"}}', 'data: {"error": {"message": "second"}}'], "first", id="the-first-error"),
        pytest.param(
            [chunk(content="x"), 'data: {"choi'], 'event 2 is no JSON (Unterminated string starting at: line 1 column 2 (char 1)): {"choi', id="garbage"
        ),
        pytest.param(["data: [1]", DONE], "event 1 is no JSON object: [1]", id="no-object"),
        pytest.param([chunk(content="x"), chunk("abort"), DONE], "the server ended the answer: abort", id="aborted"),
        pytest.param(
            [native("x", 1), native("x", 1, {"type": "abort", "message": "Abort in waiting queue"}), DONE],
            "the server ended the answer: Abort in waiting queue",
            id="native-aborted",
        ),
        pytest.param([native("x", 1), 'data: {"error": {"message": "too long"}}', DONE], "too long", id="native-error"),
        pytest.param([native("x", 1)], "the stream ended after 1 events without a finish reason or [DONE]", id="native-cut-off"),
    ],
)
def test_failures(lines, error):
    found = measure(at_seconds(*lines))
    assert (found.error, found.success) == (error, not error)


@pytest.mark.parametrize(
    "lines, gaps, of",
    [
        pytest.param([chunk(content="a", tokens=1)], [], "", id="one-content"),
        pytest.param([chunk(content="a", tokens=1), chunk(content="b", tokens=2)], [0.5], TOKENS, id="one-token"),
        pytest.param([chunk(content="a", tokens=3), chunk(content="b", tokens=5)], [0.25, 0.25], TOKENS, id="several-tokens"),
        pytest.param([chunk(content="a", tokens=1), chunk(tokens=2), chunk(content="b", tokens=3)], [0.5, 0.5], TOKENS, id="a-token-without-content"),
        pytest.param([chunk(content="a", tokens=1), chunk(content="b", tokens=1), chunk(content="c", tokens=2)], [1.0], TOKENS, id="content-without-token"),
        pytest.param([chunk(content="a", tokens=1), chunk(content="b"), chunk(content="c", tokens=3)], [0.5, 0.5], CHUNKS, id="not-every-chunk-tells"),
        pytest.param([chunk(content="a"), chunk(content="b"), usage(9)], [0.5], CHUNKS, id="only-the-last-tells"),
    ],
)
def test_gaps(lines, gaps, of):
    found = measure(at_seconds(*lines, DONE))
    assert (found.gaps_s, found.gaps_of) == (gaps, of)


@pytest.mark.parametrize("texts", [pytest.param(("a", "a", "ab", "abcd", "abcd"), id="whole"), pytest.param(("a", "", "b", "b", ""), id="only-what-is-new")])
def test_native_stream(texts):
    """Engines send the whole text again, or only what is new, as their flag says; the last event repeats the count."""
    tokens = (1, 1, 2, 4, 4)
    finish = (None, None, None, None, {"type": "length", "length": 4})
    lines = [native(text, count, why, cached_tokens=2) for text, count, why in zip(texts, tokens, finish)]
    found = measure(at_seconds(*lines, DONE))
    assert (found.error, found.completion_tokens, found.prompt_tokens, found.cached_tokens) == ("", 4, 4, 2)
    assert (found.ttft_s, found.last_content_s, found.content_chunks) == (0.5, 2.0, 3)
    assert (found.gaps_s, found.gaps_of, found.finish_reason) == ([1.0, 0.25, 0.25], TOKENS, "length")


def test_native_stream_of_ids():
    lines = [(0.5, 'data: {"output_ids": [5], "meta_info": {"completion_tokens": 1}}'), (1.0, DONE)]
    assert measure(lines).ttft_s == 0.5


@pytest.mark.parametrize("details, cached", [({}, None), ({"prompt_tokens_details": None}, None), ({"prompt_tokens_details": {"cached_tokens": 3}}, 3)])
def test_cached_tokens(details, cached):
    assert measure(at_seconds(chunk(content="x"), usage(1, **details), DONE)).cached_tokens == cached


@pytest.mark.parametrize("size", (1, 2, 3, 7, 1000))
def test_a_body_in_pieces(size):
    """A piece may end within a character or a line, and the last line may have no end."""
    body = "\r\n".join([": ping", chunk(content="UMLAUT"), "", chunk("stop"), usage(2), DONE]).replace("UMLAUT", "\u00e4").encode()
    pieces = [(place / 1000, body[place : place + size]) for place in range(0, len(body), size)]
    found = measure(split(pieces))
    assert (found.error, found.completion_tokens, found.content_chunks) == ("", 2, 1)
    assert b"".join(line for _at, line in split(pieces)) == body.replace(b"\n", b"")


def test_the_time_of_a_line_is_that_of_its_end():
    assert list(split([(1.0, b"a"), (2.0, b"b\nc"), (3.0, b"d\n\ne")])) == [(2.0, b"ab"), (3.0, b"cd"), (3.0, b""), (3.0, b"e")]
    assert list(split([])) == []
