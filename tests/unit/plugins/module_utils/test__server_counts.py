# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._server_counts import ServerCounts

SILENT = "the server's own counters tell nothing of {} of 5 repetitions: they did not follow within 4 s, or began anew"


def counted(requests, verified=0, cached=0):
    """Counters after so many requests of 8 tokens in and 512 out."""
    return {
        "num_requests_total": float(requests),
        "prompt_tokens_total": 8.0 * requests,
        "generation_tokens_total": 512.0 * requests,
        "cached_tokens_total": float(cached),
        "spec_verify_calls_total": float(verified),
    }


class Server:
    """Tells counters one after the other; the last ones go on."""

    def __init__(self, *told, mean=None):
        self.told = list(told)
        self.mean = mean
        self.slept = []

    def counters(self):
        return self.told.pop(0) if len(self.told) > 1 else self.told[0]

    def accept_length(self):
        return self.mean


def repetitions(server, number=1, completed=4, requests=4, flushed=False):
    counts, found = ServerCounts(server, server.slept.append), []
    for _number in range(number):
        counts.begin()
        found.append(counts.end({"completed": completed, "requests": requests}, flushed))
    return counts, found


def test_one_repetition():
    counts, (found,) = repetitions(Server(counted(10), counted(14, cached=16)))
    assert (found["server"], found["cache_hit_rate"]) == ({"prompt_tokens": 32, "generation_tokens": 2048}, 0.5)
    assert (counts.strangers, counts.remarks(5)) == (0, [])


def test_counters_that_follow_late():
    server = Server(counted(10), *[counted(12)] * 7, counted(14))
    counts, (found,) = repetitions(server)
    assert found["server"]["generation_tokens"] == 2048 and server.slept == [0.5] * 7 and counts.silent == 0


def test_counters_that_follow_in_part_or_not_at_all():
    counts, (found,) = repetitions(Server(counted(10), counted(13)))
    assert (found["server"], found["cache_hit_rate"], counts.remarks(5)) == (None, None, [SILENT.format(1)])


def test_what_comes_with_the_next_repetition_is_neither_its_own_nor_anybody_elses():
    counts, found = repetitions(Server(*[counted(10)] * 10, counted(18), counted(18), counted(22)), number=3)
    assert [one["server"] and one["server"]["generation_tokens"] for one in found] == [None, None, 2048]
    assert (counts.strangers, counts.remarks(5)) == (0, [SILENT.format(2)])


def test_somebody_elses_requests():
    assert repetitions(Server(counted(10), counted(17)))[0].strangers == 3
    assert repetitions(Server(*[counted(10)] * 10, counted(21)), number=2)[0].strangers == 3


@pytest.mark.parametrize("after", [{}, counted(4)], ids=["no-answer", "started-anew"])
def test_counters_that_begin_anew(after):
    counts, (found,) = repetitions(Server(counted(10), after))
    assert (found["server"], found["cache_hit_rate"], counts.strangers, counts.silent) == (None, None, 0, 1)


def test_without_metrics_nothing_is_missed():
    counts, (found,) = repetitions(Server({}))
    assert (found["server"], found["accept_length"], found["accept_length_of"], counts.remarks(5)) == (None, None, None, [])


@pytest.mark.parametrize(
    ("told", "flushed", "expected"),
    [
        pytest.param([counted(10, 100), counted(14, 917)], False, (2.502, "repetition"), id="verifications-are-counted"),
        pytest.param([counted(10), counted(14)], True, (2.61, "repetition"), id="since-the-flush"),
        pytest.param([counted(10), counted(14)], False, (2.61, "server mean"), id="since-the-start"),
        pytest.param([counted(10, 100), counted(13, 900)], False, (2.61, "server mean"), id="they-did-not-follow"),
        pytest.param([{}], False, (2.61, "server mean"), id="no-metrics"),
    ],
)
def test_whose_acceptance_length(told, flushed, expected):
    """511 tokens of each answer were verified: the first one comes from the prompt."""
    _counts, (found,) = repetitions(Server(*told, mean=2.61), flushed=flushed)
    assert (found["accept_length"], found["accept_length_of"]) == expected
