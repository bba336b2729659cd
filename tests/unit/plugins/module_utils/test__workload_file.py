# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._workload import WorkloadError
from ansible_collections.llmops.inference.plugins.module_utils._workload_file import load

USER = {"role": "user", "content": "Hi"}
TOOLS = [{"type": "function", "function": {"name": "look"}}]


def read(*rows, **options):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return load(text, "/srv/data/own.v2.jsonl", output_tokens=64, **options)


@pytest.mark.parametrize(
    "row, messages, output_tokens, body",
    [
        pytest.param({"prompt": "Hi"}, [USER], 0, {}, id="prompt"),
        pytest.param({"prompt": "Hi", "output_tokens": 9}, [USER], 9, {}, id="output-tokens"),
        pytest.param({"messages": [USER]}, [USER], 0, {}, id="messages"),
        pytest.param({"messages": [USER], "tools": TOOLS}, [USER], 0, {"tools": TOOLS}, id="tools"),
        pytest.param({"messages": [USER], "tools": None}, [USER], 0, {}, id="no-tools"),
        pytest.param(
            {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "tool", "content": "3"}]},
            [USER, {"role": "assistant", "content": None, "tool_calls": [{}]}, {"role": "tool", "content": "3"}],
            0,
            {},
            id="a-tool-was-called",
        ),
        pytest.param({"conversations": [{"content": "Hi"}, {"content": "Ho"}]}, [USER], 0, {}, id="conversations"),
        pytest.param({"id": "7", "conversations": [{"from": "human", "value": "Hi"}]}, [USER], 0, {}, id="conversations-value"),
        pytest.param({"prompt": "Hi", "source": "x", "prompt_id": 3, "anything": 1}, [USER], 0, {}, id="notes"),
    ],
)
def test_a_line(row, messages, output_tokens, body):
    (prompt,) = read(row).prompts
    assert (list(prompt.messages), prompt.output_tokens, dict(prompt.body)) == (messages, output_tokens, body)


@pytest.mark.parametrize(
    "row, message",
    [
        pytest.param("{", "no JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", id="no-json"),
        pytest.param("[1]", "a JSON object is wanted, not [1]", id="no-object"),
        pytest.param({"promt": "Hi"}, "promt: there is no such key, did you mean prompt?", id="mistyped"),
        pytest.param({"prompt": "Hi", "output_token": 3}, "output_token: there is no such key, did you mean output_tokens?", id="mistyped-option"),
        pytest.param({"text": "Hi"}, "one of prompt, messages and conversations is wanted, it has text", id="none"),
        pytest.param({}, "one of prompt, messages and conversations is wanted, it has none", id="empty"),
        pytest.param({"prompt": "Hi", "messages": [USER]}, "one of prompt, messages and conversations is wanted, it has prompt, messages", id="two"),
        pytest.param({"prompt": " "}, 'prompt: a text is wanted, not " "', id="blank"),
        pytest.param({"prompt": ["Hi"]}, 'prompt: a text is wanted, not ["Hi"]', id="no-text"),
        pytest.param({"prompt": "Hi", "output_tokens": 0}, "output_tokens: 0 is no whole number of 1 or more", id="no-tokens"),
        pytest.param({"prompt": "Hi", "output_tokens": "9"}, "output_tokens: '9' is no whole number of 1 or more", id="tokens-as-text"),
        pytest.param({"prompt": "Hi", "output_tokens": True}, "output_tokens: True is no whole number of 1 or more", id="tokens-as-boolean"),
        pytest.param({"prompt": "Hi", "tools": TOOLS}, "tools: they go with messages", id="tools-without-messages"),
        pytest.param({"conversations": []}, 'conversations: a list of turns is wanted, each {"content": "..."}', id="no-turns"),
        pytest.param({"conversations": [{"text": "Hi"}]}, "conversations[0]: content or value is wanted, it has text", id="a-turn-of-another-form"),
        pytest.param({"messages": {}}, "messages: a list of messages is wanted", id="no-messages"),
        pytest.param({"messages": ["Hi"]}, 'messages[0]: {"role": ..., "content": ...} is wanted', id="a-message-that-is-a-text"),
        pytest.param(
            {"messages": [{"role": "usr", "content": "Hi"}]},
            "messages[0].role: 'usr' is none of system, developer, user, assistant, tool; did you mean user?",
            id="role",
        ),
        pytest.param({"messages": [{"role": "user"}]}, "messages[0].content: a text is wanted, not null", id="no-content"),
        pytest.param(
            {"messages": [USER, {"role": "assistant", "content": "Ho"}]},
            "messages: the last one is the assistant's, there is nothing to answer",
            id="nothing-to-answer",
        ),
    ],
)
def test_a_bad_line(row, message):
    with pytest.raises(WorkloadError) as caught:
        read({"prompt": "good"}, "", row)
    assert str(caught.value) == f"/srv/data/own.v2.jsonl, line 3: {message}"


def test_only_a_newline_ends_a_line():
    assert len(read('{"prompt": "one\u2028two"}\r', '{"prompt": "three"}').prompts) == 2


def test_a_workload_of_a_file():
    found = read({"prompt": "one"}, "", {"prompt": "two"})
    assert (found.name, found.requests, found.output_tokens, len(found.prompts), found.label) == ("own.v2", 2, 64, 2, "")
    assert read({"prompt": "one"}, {"prompt": "two"}, requests=1).requests == 1


@pytest.mark.parametrize(
    "rows, options, message",
    [
        ([], {}, "/srv/data/own.v2.jsonl has no prompt"),
        ([{"prompt": "one"}], {"requests": 8}, "/srv/data/own.v2.jsonl has 1 prompts, 8 are asked for in each repetition: add some, or ask for fewer"),
    ],
)
def test_too_few(rows, options, message):
    with pytest.raises(WorkloadError) as caught:
        read(*rows, **options)
    assert str(caught.value) == message
