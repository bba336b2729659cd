# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._chat_generator import ChatGenerator, needs_chat
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._workload import SHIPPED, Prompt, user_prompt

TWO_TURNS = Prompt(({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}))


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        pytest.param((user_prompt("Hello"),), False, id="texts"),
        pytest.param((user_prompt("Hello"), user_prompt("Hello", 32)), True, id="a-length-of-its-own"),
        pytest.param((user_prompt("Hello"), TWO_TURNS), True, id="two-messages"),
        pytest.param((Prompt(({"role": "user", "content": "Hello"},), 0, {"tools": [{}]}),), True, id="tools"),
    ],
)
def test_who_sends_a_workload(prompts, expected):
    assert needs_chat(replace(SHIPPED["decode"], prompts=prompts)) is expected


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_workloads_are_sent_by_the_engine(name):
    assert not needs_chat(SHIPPED[name])


class Process:
    """Plays the client: writes what it is told to."""

    def __init__(self, writes=True):
        self.orders = []
        self.writes = writes

    def run(self, order, seconds, tick):
        with open(order["requests"], encoding="utf-8") as lines:
            requests = [json.loads(line) for line in lines]
        self.orders.append({**order, "requests": requests, "seconds": seconds})
        tick()
        if self.writes:
            with open(order["output"], "w", encoding="utf-8") as stream:
                json.dump({"duration": 1.0, "output_lens": [64] * len(requests)}, stream)


def test_a_repetition(tmp_path):
    process, ticks = Process(), []
    generator = ChatGenerator(process, lambda number, point: ([user_prompt(f"Hello {number}"), user_prompt("Bye", 32)], 7 + number), 64, tmp_path)
    assert generator.run(3, Point(2, 1.5), 60.0, lambda: ticks.append(1)) == {"duration": 1.0, "output_lens": [64, 64]}
    generator.run(4, Point(2), 60.0, lambda: None)
    first, second = process.orders
    assert [(line["messages"][0]["content"], line["output_tokens"]) for line in first["requests"]] == [("Hello 3", 64), ("Bye", 32)]
    assert {name: first[name] for name in ("run", "seed", "concurrency", "request_rate", "seconds")} == {
        "run": 1,
        "seed": 10,
        "concurrency": 2,
        "request_rate": 1.5,
        "seconds": 60.0,
    }
    assert (second["run"], second["request_rate"], ticks) == (2, None, [1])


def test_a_result_of_the_repetition_before_does_not_count(tmp_path):
    process = Process()
    generator = ChatGenerator(process, lambda number, point: ([user_prompt("Hello")], 1), 64, tmp_path)
    generator.run(1, Point(1), 60.0, lambda: None)
    process.writes = False
    with pytest.raises(BenchmarkError, match="wrote no result"):
        generator.run(2, Point(1), 60.0, lambda: None)
