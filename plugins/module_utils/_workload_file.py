# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A workload from an operator's own file: one JSON object a line, in one of three forms.

``{"prompt": "..."}``; ``{"messages": [{"role": "user", "content": "..."}, ...]}`` as the chat API takes them, with ``tools`` where wanted;
``{"conversations": [{"content": "..."}, ...]}``, or with ``value``, of which the first turn is the prompt, as the engine's benchmark reads it.
``output_tokens`` is the answer's length of one line. Other keys are taken for notes, unless they look like a mistyped one.
"""

from __future__ import annotations

import difflib
import json
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._workload import Prompt, Workload, WorkloadError, user_prompt

_FORMS = ("prompt", "messages", "conversations")
_KEYS = (*_FORMS, "output_tokens", "tools")
_ROLES = ("system", "developer", "user", "assistant", "tool")
# Keys of data sets that are about, and near to none of ours by meaning.
_NOTES = ("id", "source", "conversation_id", "tokens", "model", "language", "category", "message_id", "prompt_id")


def load(text: str, source: str, *, output_tokens: int, requests: int | None = None) -> Workload:
    """Returns the workload of a file.

    Args:
        text: what is in it.
        source: its path, for messages; the last part of it becomes the workload's name.
        output_tokens: answer length of lines that do not say their own.
        requests: how many in one repetition; all lines unless given.

    Raises:
        WorkloadError: a line cannot be used, or there are fewer than asked for.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(_prompt(line))
            except WorkloadError as error:
                raise WorkloadError(f"{source}, line {number}: {error}") from None
    if not found:
        raise WorkloadError(f"{source} has no prompt")
    if requests is not None and requests > len(found):
        raise WorkloadError(f"{source} has {len(found)} prompts, {requests} are asked for in each repetition: add some, or ask for fewer")
    name = source.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return Workload(name, requests or len(found), None, output_tokens, tuple(found), description=f"{len(found)} prompts of a file")


def _prompt(line: str) -> Prompt:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise WorkloadError(f"no JSON: {error}") from None
    if not isinstance(row, dict):
        raise WorkloadError(f"a JSON object is wanted, not {json.dumps(row)[:40]}")
    _check_keys(row)
    tokens = row.get("output_tokens", 0)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or ("output_tokens" in row and tokens < 1):
        raise WorkloadError(f"output_tokens: {tokens!r} is no whole number of 1 or more")
    body = {"tools": row["tools"]} if row.get("tools") else {}
    if "messages" in row:
        return Prompt(_messages(row["messages"]), tokens, body)
    if body:
        raise WorkloadError("tools: they go with messages")
    return user_prompt(_text("prompt", row["prompt"]) if "prompt" in row else _first_turn(row["conversations"]), tokens)


def _check_keys(row: t.Mapping[str, t.Any]) -> None:
    for key in row:
        near = [] if key in _KEYS or key in _NOTES else difflib.get_close_matches(key, _KEYS, 1, 0.75)
        if near:
            raise WorkloadError(f"{key}: there is no such key, did you mean {near[0]}?")
    forms = [form for form in _FORMS if form in row]
    if len(forms) != 1:
        have = f"it has {', '.join(map(str, row))}" if not forms and row else f"it has {', '.join(forms) or 'none'}"
        raise WorkloadError(f"one of prompt, messages and conversations is wanted, {have}")


def _text(name: str, value: t.Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise WorkloadError(f"{name}: a text is wanted, not {json.dumps(value)[:40]}")
    return value


def _first_turn(turns: t.Any) -> str:
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], dict):
        raise WorkloadError('conversations: a list of turns is wanted, each {"content": "..."}')
    first = turns[0]
    if "content" not in first and "value" not in first:
        raise WorkloadError(f"conversations[0]: content or value is wanted, it has {', '.join(map(str, first)) or 'none'}")
    return _text("conversations[0]", first["content"] if "content" in first else first["value"])


def _messages(messages: t.Any) -> tuple[dict[str, t.Any], ...]:
    if not isinstance(messages, list) or not messages:
        raise WorkloadError("messages: a list of messages is wanted")
    for place, message in enumerate(messages):
        name = f"messages[{place}]"
        if not isinstance(message, dict):
            raise WorkloadError(f'{name}: {{"role": ..., "content": ...}} is wanted')
        role = message.get("role")
        if role not in _ROLES:
            near = difflib.get_close_matches(str(role), _ROLES, 1)
            raise WorkloadError(f"{name}.role: {role!r} is none of {', '.join(_ROLES)}{f'; did you mean {near[0]}?' if near else ''}")
        if not isinstance(message.get("content"), list) and not (role == "assistant" and message.get("tool_calls")):
            _text(f"{name}.content", message.get("content"))
    if messages[-1]["role"] == "assistant":
        raise WorkloadError("messages: the last one is the assistant's, there is nothing to answer")
    return tuple(messages)
