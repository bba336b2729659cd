# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a benchmark asks a server: the shipped workloads, and their prompts for one repetition.

The same seed gives the same prompts in the same repetition. A salt that differs between runs makes the first line of each prompt another, so that no prompt is
in the prefix cache, also where the cache cannot be flushed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import random
import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._workload_blocks import BLOCKS
from ansible_collections.llmops.inference.plugins.module_utils._workload_texts import CODING_TASKS, COUNT_TO_A_HUNDRED, DOCUMENT_QUESTIONS, QUESTIONS

# English text and code with the tokenizers of today's models; a tokenizer of single bytes has 1.
CHARACTERS_PER_TOKEN = 4.0

COLD, SHARED, WARM, NO_TEXT = "cold", "shared", "warm", "no text"


class WorkloadError(ValueError):
    """A workload that cannot be used as asked; the message is for the operator."""


@dataclass(frozen=True)
class Prompt:
    """One request.

    Attributes:
        messages: as the chat API takes them.
        output_tokens: answer length, where it is this request's own; 0 takes the workload's.
        body: more of the request's body, for example ``tools``.
    """

    messages: t.Sequence[t.Mapping[str, t.Any]]
    output_tokens: int = 0
    body: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The prompt, where it is nothing but one text of a user."""
        if self.body or len(self.messages) != 1 or self.messages[0]["role"] != "user" or not isinstance(self.messages[0]["content"], str):
            return None
        return self.messages[0]["content"]


@dataclass(frozen=True)
class Workload:
    """What is asked.

    Attributes:
        name: for the record.
        requests: how many in one repetition, where nothing else is asked.
        input_tokens: prompt length; exact for ``random_ids``, about right for documents, None where the prompts decide.
        output_tokens: answer length of each request that does not say its own.
        prompts: what the requests are taken from; for documents, the questions at their end.
        label: what a reader of the number must know, empty for an ordinary workload.
        description: one sentence.
        prefix: ``cold``: each prompt begins with a line of its own; ``shared``: one line and one document for all of a repetition; ``warm``: no such
            line, the prompts come again; ``no text``: the client makes up token ids.
        document_characters: length of the document before each question, 0 for none.
    """

    name: str
    requests: int
    input_tokens: int | None
    output_tokens: int
    prompts: t.Sequence[Prompt]
    label: str = ""
    description: str = ""
    prefix: str = COLD
    document_characters: int = 0

    @property
    def hash(self) -> str:
        """12 hex digits over prompts and parameters; what names and describes it does not count, nor does a salt."""
        prompts = [[list(prompt.messages), prompt.output_tokens, dict(prompt.body)] for prompt in self.prompts]
        blocks = BLOCKS if self.document_characters else ()
        meaning = [self.requests, self.input_tokens, self.output_tokens, self.prefix, self.document_characters, prompts, blocks]
        return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]


def user_prompt(text: str, output_tokens: int = 0) -> Prompt:
    """Returns the request of one text."""
    return Prompt(({"role": "user", "content": text},), output_tokens)


def _pool(texts: t.Sequence[str]) -> tuple[Prompt, ...]:
    return tuple(user_prompt(text) for text in texts)


SHIPPED: t.Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("decode", 4, None, 512, _pool(CODING_TASKS), description="coding tasks as an engineer gives them, 512 tokens of answer"),
        Workload("chat", 16, None, 256, _pool(QUESTIONS), description="short questions about anything, 256 tokens of answer"),
        Workload(
            "long_context",
            4,
            4096,
            64,
            _pool(DOCUMENT_QUESTIONS),
            description="a question about a long text: almost all of the work is prefill",
            document_characters=round(4096 * CHARACTERS_PER_TOKEN),
        ),
        Workload(
            "shared_prefix",
            16,
            2048,
            128,
            _pool(DOCUMENT_QUESTIONS),
            description="different questions about one text, which the prefix cache keeps within a repetition",
            prefix=SHARED,
            document_characters=round(2048 * CHARACTERS_PER_TOKEN),
        ),
        Workload(
            "short_cached",
            4,
            None,
            512,
            _pool((COUNT_TO_A_HUNDRED,)),
            label="flattering: short prompts from a warm cache",
            description="one very short prompt over and over, whose answer a draft model guesses",
            prefix=WARM,
        ),
        Workload("random_ids", 5, 128, 512, (), description="token ids at random; a draft model guesses almost none", prefix=NO_TEXT),
    )
}


def shipped(name: str, *, input_tokens: int | None = None, characters_per_token: float = CHARACTERS_PER_TOKEN, **changes: int) -> Workload:
    """Returns a shipped workload, in another size where asked.

    Args:
        name: of the workload.
        input_tokens: length of a document or of random prompts.
        characters_per_token: of the model's tokenizer.
        changes: ``requests``, ``output_tokens``.

    Raises:
        WorkloadError: there is no such workload, or it has no length to choose, or a number is not positive.
    """
    if name not in SHIPPED:
        near = difflib.get_close_matches(name, SHIPPED, 1)
        raise WorkloadError(f"there is no workload {name!r}: " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(SHIPPED)}"))
    workload = SHIPPED[name]
    if input_tokens is not None and workload.input_tokens is None:
        raise WorkloadError(f"input_tokens: the prompts of {name} have the length that they have")
    numbers = {"input_tokens": input_tokens, "characters_per_token": characters_per_token, **changes}
    wrong = [f"{key}: {number!r}" for key, number in numbers.items() if number is not None and not number > 0]
    if wrong:
        raise WorkloadError(f"{wrong[0]} must be more than 0")
    tokens = input_tokens or workload.input_tokens
    characters = round((tokens or 0) * characters_per_token) if workload.document_characters else 0
    return replace(workload, input_tokens=tokens, document_characters=characters, **t.cast("dict[str, t.Any]", changes))


def requests(workload: Workload, *, repetition: int, seed: int, salt: str, count: int) -> list[Prompt]:
    """Returns the requests of one repetition.

    Args:
        workload: what is asked.
        repetition: its number, from 0; each takes other prompts until all were taken.
        seed: of the order.
        salt: differs between runs whose prompts must not be found in a cache; empty for no such line.
        count: how many.

    Raises:
        WorkloadError: the workload has no text.
    """
    if workload.prefix == NO_TEXT:
        raise WorkloadError(f"{workload.name} has no prompts: the client makes up token ids")
    order = list(workload.prompts)
    random.Random(f"{seed}").shuffle(order)
    document = _document(workload.document_characters, random.Random(f"{seed}/{repetition}")) if workload.prefix == SHARED else ""
    found = []
    for place in range(count):
        taken = repetition * count + place
        prompt, again = order[taken % len(order)], taken // len(order)
        if workload.document_characters and workload.prefix != SHARED:
            document = _document(workload.document_characters, random.Random(f"{seed}/{repetition}/{place}"))
        # Questions about one document come again within a repetition, and must not be the same prompt.
        number = f"Question {place + 1}. " if workload.prefix == SHARED and again else ""
        lines = _first_line(workload.prefix, salt, repetition, place) + (f"{document}\n\n" if document else "") + number
        found.append(_prepended(prompt, lines))
    return found


def prompts(workload: Workload, *, repetition: int, seed: int, salt: str, count: int) -> list[str]:
    """Returns the requests of one repetition as texts; see ``requests``.

    Raises:
        WorkloadError: the workload has no text, or a request is more than one text.
    """
    texts = [prompt.text for prompt in requests(workload, repetition=repetition, seed=seed, salt=salt, count=count)]
    if any(text is None for text in texts):
        raise WorkloadError(f"{workload.name} has requests of several messages or with tools, which only the client for the chat API can send")
    return [text for text in texts if text is not None]


def _first_line(prefix: str, salt: str, repetition: int, place: int) -> str:
    if prefix == WARM or not salt:
        return ""
    whose = f"{salt}/{repetition}" if prefix == SHARED else f"{salt}/{repetition}/{place}"
    return f"Session {hashlib.sha256(whose.encode()).hexdigest()[:16]}\n\n"


def _prepended(prompt: Prompt, text: str) -> Prompt:
    """A request with a text before everything else in it."""
    if not text:
        return prompt
    first, *rest = prompt.messages
    content = first.get("content")
    content = [{"type": "text", "text": text}, *content] if isinstance(content, list) else f"{text}{content or ''}"
    return replace(prompt, messages=({**first, "content": content}, *rest))


def _document(characters: int, order: random.Random) -> str:
    """A text of about this many characters: numbered sections in another order each time, the last one cut at a line or word."""
    sections: list[str] = []
    length = 0
    while length < characters:
        blocks = list(BLOCKS)
        order.shuffle(blocks)
        for block in blocks:
            section = f"Section {len(sections) + 1}\n\n{block}"
            sections.append(section)
            length += len(section) + 2
            if length >= characters:
                break
    text = "\n\n".join(sections)
    return text if len(text) <= characters else text[:characters].rsplit(maxsplit=1)[0]
