# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._workload import (
    SHIPPED,
    Prompt,
    Workload,
    WorkloadError,
    prompts,
    requests,
    shipped,
    user_prompt,
)

WITH_TEXT = sorted(name for name in SHIPPED if name != "random_ids")
COLD = ("chat", "decode", "long_context")


def asked(workload, repetition=0, count=4, seed=1, salt="run"):
    return prompts(workload, repetition=repetition, seed=seed, salt=salt, count=count)


def first_line(text):
    return text.splitlines()[0]


def own(*messages, **more):
    """A workload of one request."""
    return Workload("own", 1, None, 8, (Prompt(messages, **more),))


def test_what_is_shipped():
    told = {name: (workload.requests, workload.input_tokens, workload.output_tokens, workload.label) for name, workload in SHIPPED.items()}
    assert told == {
        "decode": (4, None, 512, ""),
        "chat": (16, None, 256, ""),
        "long_context": (4, 4096, 64, ""),
        "shared_prefix": (16, 2048, 128, ""),
        "short_cached": (4, None, 512, "flattering: short prompts from a warm cache"),
        "random_ids": (5, 128, 512, ""),
    }
    assert all(workload.description for workload in SHIPPED.values())
    assert all(shipped(name) == workload for name, workload in SHIPPED.items())


@pytest.mark.parametrize("name", WITH_TEXT)
def test_the_same_seed_gives_the_same_prompts(name):
    assert asked(shipped(name)) == asked(shipped(name))
    assert len(asked(shipped(name), count=50)) == 50


@pytest.mark.parametrize("name", COLD)
def test_another_seed_gives_another_order(name):
    assert asked(shipped(name), seed=1, salt="") != asked(shipped(name), seed=2, salt="")


@pytest.mark.parametrize("name", COLD)
@pytest.mark.parametrize("count", (1, 4, 64))
def test_no_prompt_begins_like_another(name, count):
    """Neither in a repetition nor between repetitions and runs: the prefix cache has nothing to offer."""
    found = [text for salt in ("one", "two") for repetition in range(3) for text in asked(shipped(name), repetition, count, salt=salt)]
    assert len({first_line(text) for text in found}) == len(found)
    assert all(first_line(text).startswith("Session ") for text in found)


def test_repetitions_take_other_prompts_until_all_were_taken():
    found = [text for repetition in range(7) for text in asked(shipped("decode"), repetition, salt="")]
    assert len(set(found)) == 28
    assert asked(shipped("decode"), 7, salt="") == asked(shipped("decode"), 0, salt="")


def test_shared_prefix_shares_within_a_repetition_only():
    first, second = (asked(shipped("shared_prefix"), repetition, count=40) for repetition in (0, 1))
    shared = 8000
    assert len({text[:shared] for text in first}) == 1
    assert len(set(first)) == 40
    assert first_line(first[0]) != first_line(second[0])
    assert asked(shipped("shared_prefix"), salt="other")[0][:30] != first[0][:30]


def test_short_cached_is_one_prompt_without_salt():
    assert len({text for repetition in range(3) for text in asked(shipped("short_cached"), repetition, salt=f"run {repetition}")}) == 1


@pytest.mark.parametrize("name", ("long_context", "shared_prefix"))
@pytest.mark.parametrize("tokens, per_token", [(100, 1.0), (100, 4.0), (4096, 4.0), (30000, 4.0)])
def test_size_of_a_document(name, tokens, per_token):
    (text,) = asked(shipped(name, input_tokens=tokens, characters_per_token=per_token), count=1)
    question = len(text.rsplit("\n\n", 1)[1])
    assert tokens * per_token - 40 <= len(text) - question <= tokens * per_token + 40


def test_documents_differ():
    assert len({text[:400] for text in asked(shipped("long_context"), salt="")}) > 1


def test_random_ids_have_no_text():
    with pytest.raises(WorkloadError, match="^random_ids has no prompts: the client makes up token ids$"):
        asked(shipped("random_ids"))


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("decod", {}, "there is no workload 'decod': did you mean decode?"),
        ("x", {}, "there is no workload 'x': there are decode, chat, long_context, shared_prefix, short_cached, random_ids"),
        ("chat", {"input_tokens": 5}, "input_tokens: the prompts of chat have the length that they have"),
        ("random_ids", {"input_tokens": 0}, "input_tokens: 0 must be more than 0"),
        ("chat", {"requests": -1}, "requests: -1 must be more than 0"),
        ("long_context", {"characters_per_token": 0.0}, "characters_per_token: 0.0 must be more than 0"),
    ],
)
def test_a_workload_that_there_is_not(name, options, message):
    with pytest.raises(WorkloadError) as caught:
        shipped(name, **options)
    assert str(caught.value) == message


def test_hash_is_over_prompts_and_parameters():
    decode = shipped("decode")
    assert len(decode.hash) == 12 and int(decode.hash, 16) >= 0
    assert len({workload.hash for workload in SHIPPED.values()}) == len(SHIPPED)
    assert replace(decode, name="other", label="other", description="other").hash == decode.hash
    others = [
        shipped("decode", output_tokens=64),
        shipped("decode", requests=5),
        replace(decode, prompts=decode.prompts[1:]),
        replace(decode, prefix="warm"),
        replace(decode, prompts=(replace(decode.prompts[0], output_tokens=3), *decode.prompts[1:])),
    ]
    assert len({workload.hash for workload in (decode, *others)}) == 6
    assert shipped("long_context", characters_per_token=1.0).hash != shipped("long_context").hash


@pytest.mark.parametrize(
    "messages, first",
    [
        pytest.param([{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}], "Be short.", id="before-the-system-message"),
        pytest.param([{"role": "user", "content": "Hi"}], "Hi", id="text"),
        pytest.param([{"role": "user"}], "", id="no-content"),
    ],
)
def test_the_salt_comes_first(messages, first):
    (found,) = requests(own(*messages), repetition=0, seed=1, salt="s", count=1)
    line, empty, rest = found.messages[0]["content"].split("\n")
    assert (line[:8], empty, rest) == ("Session ", "", first)
    assert list(found.messages[1:]) == messages[1:]


def test_the_salt_before_parts():
    (found,) = requests(own({"role": "user", "content": [{"type": "text", "text": "Hi"}]}), repetition=0, seed=1, salt="s", count=1)
    assert [part["type"] for part in found.messages[0]["content"]] == ["text", "text"]
    assert found.messages[0]["content"][0]["text"].startswith("Session ")


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(Prompt(({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"})), id="several-turns"),
        pytest.param(Prompt(({"role": "system", "content": "a"},)), id="no-user"),
        pytest.param(Prompt(({"role": "user", "content": [{"type": "text", "text": "a"}]},)), id="parts"),
        pytest.param(Prompt(({"role": "user", "content": "a"},), body={"tools": [{}]}), id="tools"),
    ],
)
def test_what_is_more_than_one_text(prompt):
    assert prompt.text is None
    with pytest.raises(WorkloadError, match="^own has requests of several messages or with tools, which only the client for the chat API can send$"):
        asked(Workload("own", 1, None, 8, (user_prompt("a"), prompt)), count=2)
