# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What one streamed answer says about speed: the chat and completion API (``data: {"choices": ...}``) and the engine's own ``/generate``.

Tokens are counted by the server's usage, never by chunks: with speculation one chunk holds several tokens, and some hold none. Runs on hosts with the
standard library alone.

Sources: WHATWG HTML, Server-sent events (fields, comments, line ends); OpenAI API reference, Chat completions, streaming (``usage`` comes in a last chunk
with empty ``choices``).
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

EXACT, UNKNOWN = "exact", "unknown"
TOKENS, CHUNKS = "tokens", "chunks"
# Of a delta: what a person or a program reads. Some servers shorten the name of the reasoning.
_CONTENT = ("content", "reasoning_content", "reasoning", "tool_calls")
_BROKEN = ("abort", "error")
_SHOWN = 200

TimedBytes = t.Tuple[float, bytes]
TimedLine = t.Tuple[float, t.Union[str, bytes]]


@dataclass(frozen=True)
class StreamResult:
    """One answer. Times are seconds on the clock of the lines, so since the request was sent where that clock began then.

    Attributes:
        error: why it failed; empty when it did not.
        completion_tokens: by the server's last usage; None where it sent none.
        prompt_tokens, cached_tokens: likewise.
        quality: ``exact``, or ``unknown`` where the server did not count.
        ttft_s: time of the first content; None without any.
        last_content_s: time of the last content; None without any.
        content_chunks: how many chunks had content.
        gaps_s: times between contents, one per token or one per chunk, see ``gaps_of``.
        gaps_of: ``tokens`` where every chunk told how many tokens there were until then: the gap before a chunk of n tokens counts as n gaps of a n-th;
            otherwise ``chunks``, which says nothing about a token.
        finish_reason: as the server called it, empty where it did not.
    """

    error: str
    completion_tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    quality: str
    ttft_s: float | None
    last_content_s: float | None
    content_chunks: int
    gaps_s: t.Sequence[float]
    gaps_of: str
    finish_reason: str

    @property
    def success(self) -> bool:
        """Whether the answer is whole."""
        return not self.error

    @property
    def tok_per_s_e2e(self) -> float | None:
        """Tokens / time from the request to the last content; None where one of them is not known."""
        return self.completion_tokens / self.last_content_s if self.completion_tokens is not None and self.last_content_s else None

    @property
    def tok_per_s_decode(self) -> float | None:
        """(Tokens - 1) / time from the first to the last content; None where one of them is not known."""
        seconds = (self.last_content_s or 0.0) - (self.ttft_s or 0.0)
        return (self.completion_tokens - 1) / seconds if self.completion_tokens is not None and seconds > 0 else None


def split(chunks: t.Iterable[TimedBytes]) -> t.Iterator[TimedLine]:
    """Yields the lines of a body that came in pieces, each with the time at which its end came.

    Args:
        chunks: time and bytes; a piece may end within a line or within a character.
    """
    rest, at = b"", 0.0
    for at, piece in chunks:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield at, line
    if rest:
        yield at, rest


def measure(lines: t.Iterable[TimedLine]) -> StreamResult:
    """Returns what a stream's lines say. Each ``data`` line is an event, as all these servers send it.

    Args:
        lines: time in seconds, and the line with or without its end.
    """
    stream = _Stream()
    for at, line in lines:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        data = _data(text.strip())
        if data:
            stream.take(at, data)
    return stream.result()


def _data(line: str) -> str:
    """What a line carries; empty for comments and other fields. A server or proxy in trouble sends bare JSON."""
    if line.startswith("data:"):
        return line[5:].lstrip()
    return line if line.startswith("{") else ""


def _error_text(error: t.Any) -> str:
    """The message of an error in any of the shapes that servers use."""
    if isinstance(error, dict):
        error = error.get("message") or json.dumps(error)
    return str(error)


def _number(found: t.Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _has_content(choice: dict[str, t.Any]) -> bool:
    delta = choice.get("delta")
    return bool(choice.get("text")) or (isinstance(delta, dict) and any(delta.get(name) for name in _CONTENT))


class _Stream:
    """Gathers events."""

    def __init__(self) -> None:
        self._error = ""
        self._ended = False
        self._finish = ""
        self._events = 0
        # Of each content: when, and how many tokens there were then.
        self._contents: list[tuple[float, int | None]] = []
        self._counts: dict[str, int] = {}

    def take(self, at: float, data: str) -> None:
        """Takes what one event carries."""
        self._events += 1
        if data == "[DONE]":
            self._ended = True
            return
        try:
            event = json.loads(data)
        except ValueError as error:
            self._fail(f"event {self._events} is no JSON ({error}): {data[:_SHOWN]}")
            return
        if not isinstance(event, dict):
            self._fail(f"event {self._events} is no JSON object: {data[:_SHOWN]}")
        elif event.get("error") or event.get("object") == "error":
            self._fail(_error_text(event.get("error") or event))
        elif isinstance(event.get("meta_info"), dict):
            self._native(at, event)
        else:
            self._chat(at, event)

    def _fail(self, error: str) -> None:
        self._error = self._error or error

    def _count(self, usage: t.Any) -> int | None:
        """Keeps the last usage, and returns its completion tokens."""
        if not isinstance(usage, dict):
            return None
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("cached_tokens")
        tokens = _number(usage.get("completion_tokens"))
        for name, number in (("completion", tokens), ("prompt", _number(usage.get("prompt_tokens"))), ("cached", _number(cached))):
            if number is not None:
                self._counts[name] = number
        return tokens

    def _finished(self, reason: t.Any) -> None:
        """Takes a finish reason: a word, or the engine's own mapping."""
        if not reason:
            return
        self._finish = str(reason.get("type", "") if isinstance(reason, dict) else reason)
        if self._finish in _BROKEN:
            message = reason.get("message") if isinstance(reason, dict) else ""
            self._fail(f"the server ended the answer: {message or self._finish}")

    def _chat(self, at: float, event: dict[str, t.Any]) -> None:
        tokens = self._count(event.get("usage"))
        choices = event.get("choices")
        told = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
        if any(_has_content(choice) for choice in told):
            self._contents.append((at, tokens))
        for choice in told:
            self._finished(choice.get("finish_reason"))

    def _native(self, at: float, event: dict[str, t.Any]) -> None:
        """The engine's own event; its text is all of the answer so far, or what is new, as the server was told."""
        known = self._counts.get("completion", 0)
        tokens = self._count(event["meta_info"])
        # The last event repeats what was there.
        if (event.get("text") or event.get("output_ids")) and (tokens is None or tokens > known):
            self._contents.append((at, tokens))
        self._finished(event["meta_info"].get("finish_reason"))

    def _gaps(self) -> tuple[list[float], str]:
        """Times between contents, and what they are between."""
        if len(self._contents) < 2:
            return [], ""
        if any(tokens is None for _at, tokens in self._contents):
            times = [at for at, _tokens in self._contents]
            return [after - before for before, after in zip(times, times[1:])], CHUNKS
        gaps: list[float] = []
        before, counted = self._contents[0]
        for at, tokens in self._contents[1:]:
            new = (tokens or 0) - (counted or 0)
            # Content without a new token was held back by the server: its time belongs to the next token.
            if new > 0:
                gaps += [(at - before) / new] * new
                before, counted = at, tokens
        return gaps, TOKENS

    def _why_not(self) -> str:
        if self._error:
            return self._error
        if not self._ended and not self._finish:
            return f"the stream ended after {self._events} events without a finish reason or [DONE]"
        return "" if self._contents else "the stream had no content"

    def result(self) -> StreamResult:
        """Returns what came."""
        gaps, gaps_of = self._gaps()
        completion = self._counts.get("completion")
        return StreamResult(
            error=self._why_not(),
            completion_tokens=completion,
            prompt_tokens=self._counts.get("prompt"),
            cached_tokens=self._counts.get("cached"),
            quality=UNKNOWN if completion is None else EXACT,
            ttft_s=self._contents[0][0] if self._contents else None,
            last_content_s=self._contents[-1][0] if self._contents else None,
            content_chunks=len(self._contents),
            gaps_s=gaps,
            gaps_of=gaps_of,
            finish_reason=self._finish,
        )
