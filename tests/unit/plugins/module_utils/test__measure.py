# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._measure import Clock, Manner, Measure, Point, failed_point, summary
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._server_load import Load
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "benchmark.schema.json").read_text())
TOKENS, REQUESTS = 11, 2
# 2026-11-30T10:15:00Z
NOON = 1796033700.0


class Stage:
    """A generator, a server and GPUs, all played by one clock.

    Attributes:
        durations: seconds of each run, warm-up and repetitions, in order; the last one goes on.
        loads: what the server tells of its load, in order; the last one goes on.
        late: how often its counters are asked in vain after a run.
        strangers: requests that its counters have besides ours, per run.
        fails: number of the run -> how many of its requests fail.
        gives_up: number of the run -> what the load generator says that gives no result.
        usage: whether answers say their number of tokens.
    """

    def __init__(self):
        self.durations = [2.0]
        self.loads = [Load(0, 0, 0.0)]
        self.late = 0
        self.strangers = 0
        self.fails = {}
        self.gives_up = {}
        self.trouble = ""
        self.usage = True
        self.has_metrics = True
        self.cached = 0
        self.flush_says = ""
        self.throttle = []
        self.accepts = None
        self.now = 100.0
        self.runs = []
        self.reports = []
        self.calls = Counter()
        self.counted = Counter()
        self.waiting = []

    # -- generator --------------------------------------------------------------------------------------------------------------

    def run(self, repetition_number, point, seconds, tick):
        place = len(self.runs)
        self.runs.append((repetition_number, point, seconds))
        if place in self.gives_up:
            raise BenchmarkError(self.gives_up[place])
        duration = self.durations[min(place, len(self.durations) - 1)]
        for _tick in range(int(duration * 2)):
            self.now += 0.5
            tick()
        failed = self.fails.get(place, 0)
        fine = REQUESTS - failed
        gaps = [[duration / 20] * (TOKENS - 1)] * fine + [[]] * failed
        self.waiting = [{}] * self.late + [
            {
                "num_requests_total": fine + self.strangers,
                "prompt_tokens_total": 8 * fine,
                "generation_tokens_total": TOKENS * fine,
                "cached_tokens_total": self.cached,
            }
        ]
        return {
            "duration": duration,
            "ttfts": [duration / 2] * fine + [0.0] * failed,
            "itls": gaps,
            "input_lens": [8] * REQUESTS,
            "output_lens": [TOKENS if self.usage else None] * fine + [0] * failed,
            "errors": [""] * fine + ["HTTP 500"] * failed,
        }

    # -- server -----------------------------------------------------------------------------------------------------------------

    def load(self):
        self.calls["load"] += 1
        return self.loads.pop(0) if len(self.loads) > 1 else self.loads[0]

    def counters(self):
        if not self.has_metrics:
            return {}
        if self.waiting:
            self.counted.update(self.waiting.pop(0))
        names = ("num_requests_total", "prompt_tokens_total", "generation_tokens_total", "cached_tokens_total")
        return {name: float(self.counted[name]) for name in names}

    def flush(self):
        self.calls["flush"] += 1
        return self.flush_says

    def accept_length(self):
        return self.accepts

    # -- GPUs and clock ---------------------------------------------------------------------------------------------------------

    def sample(self):
        self.calls["sample"] += 1

    def take(self):
        return [{"index": 0, "clock_mhz": 1980.0, "memory_clock_mhz": 2619.0, "power_w": 420.0, "temperature_c": 51.0, "throttle": list(self.throttle)}]

    def sleep(self, seconds):
        self.now += seconds

    def measure(self, point=None, **manner):
        clock = Clock(lambda: self.now, lambda: NOON + self.now - 100.0, self.sleep)
        manner = Manner("decode", TOKENS, **{"repetitions": 3, **manner})
        return Measure(self, self, self, manner, report=lambda *words: self.reports.append(words), clock=clock).point(point or Point(REQUESTS))


@pytest.fixture(name="stage")
def fixture_stage():
    return Stage()


def test_one_point(stage):
    found = stage.measure()
    assert (found["concurrency"], found["request_rate"], found["status"], found["remarks"]) == (2, None, "ok", [])
    assert found["warmup"] == {"repetitions": 2, "stable": True}
    assert [entry["output_tok_per_s"] for entry in found["repetitions"]] == [11.0] * 3
    assert found["summary"]["output_tok_per_s"]["median"] == 11.0 and found["summary"]["ttft_ms"]["median"] == 1000.0
    assert found["itl_histogram_ms"]["counts"][0] == 3 * REQUESTS * (TOKENS - 1), "of all repetitions"
    assert problems(json.loads(json.dumps(found, allow_nan=False)), SCHEMA["$defs"]["point"], SCHEMA) == []


def test_one_repetition(stage):
    stage.accepts, stage.cached = 2.5, 4
    entry = stage.measure(slo={"ttft_ms": 1500})["repetitions"][0]
    assert (entry["started_at"], entry["duration_s"], entry["requests"], entry["completed"]) == ("2026-11-30T10:15:04Z", 2.0, 2, 2)
    assert (entry["server"], entry["cache_hit_rate"], entry["accept_length"]) == ({"prompt_tokens": 16, "generation_tokens": 22}, 0.25, 2.5)
    assert (entry["goodput_per_s"], entry["counted_by"], entry["gpus"][0]["power_w"]) == (1.0, "server usage", 420.0)
    assert entry["accept_length_of"] == "server mean", "of salted prompts, and the engine does not count its verifications"
    assert stage.measure(cache="flushed")["repetitions"][0]["accept_length_of"] == "repetition"


@pytest.mark.parametrize(
    "durations, limit, expected",
    [
        pytest.param([2.0], 4, (2, True), id="warm"),
        pytest.param([4.0, 2.0, 2.0], 4, (3, True), id="first-one-slow"),
        pytest.param([8.0, 4.0, 2.0, 1.0], 4, (4, False), id="never"),
        pytest.param([2.0, 2.05], 4, (2, True), id="within-3-percent"),
        pytest.param([2.0, 2.2, 2.2], 4, (3, True), id="not-within-3-percent"),
        pytest.param([2.0], 1, (1, False), id="one-is-never-stable"),
    ],
)
def test_warming_up_until_two_agree(stage, durations, limit, expected):
    stage.durations = durations
    found = stage.measure(warmup_limit=limit, repetitions=1)
    assert (found["warmup"]["repetitions"], found["warmup"]["stable"]) == expected
    unstable = f"the warm-up was not stable after {expected[0]} repetition{'' if expected[0] == 1 else 's'}"
    assert found["remarks"] == ([] if expected[1] else [unstable])
    assert len(stage.runs) == expected[0] + 1


@pytest.mark.parametrize(
    "cache, numbers, flushes",
    [
        pytest.param("salted", [1000, 1001, 1, 2, 3], 0, id="salted"),
        pytest.param("flushed", [1000, 1001, 1, 2, 3], 3, id="flushed"),
        pytest.param("warm", [0, 0, 0, 0, 0], 0, id="warm"),
    ],
)
def test_what_is_sent_by_the_cache_policy(stage, cache, numbers, flushes):
    """B05: other prompts in every repetition, so that the second is not faster by the prefix cache, unless that is measured."""
    stage.measure(cache=cache, seconds=77.0)
    assert [number for number, _point, _seconds in stage.runs] == numbers
    assert stage.calls["flush"] == flushes
    assert {(point, seconds) for _number, point, seconds in stage.runs} == {(Point(REQUESTS), 77.0)}


def test_a_cache_that_cannot_be_flushed(stage):
    stage.flush_says = "/flush_cache asks for the admin key (HTTP 401)"
    found = stage.measure(cache="flushed")
    reason = "the prefix cache could not be flushed: /flush_cache asks for the admin key (HTTP 401) (repetition 1 of 3)"
    assert (found["status"], found["remarks"], found["repetitions"], found["summary"]) == ("failed", [reason], [], {})


BUSY, IDLE = Load(1, 1, 0.1), Load(0, 0, 0.0)


@pytest.mark.parametrize(
    "loads, status, remarks",
    [
        pytest.param([IDLE], "ok", [], id="idle"),
        pytest.param([BUSY, BUSY, IDLE], "ok", [], id="still-at-its-last-request"),
        pytest.param([BUSY] * 6 + [IDLE], "contended", ["2 requests that are not ours were served before the measurement"], id="before"),
        pytest.param([IDLE, Load(2, 0)], "ok", [], id="our-own"),
        pytest.param([IDLE, Load(1, 1)], "ok", [], id="our-own-wait"),
        pytest.param([IDLE, Load(2, 3)], "contended", ["3 requests that are not ours were served during the measurement"], id="during"),
        pytest.param(
            [Load(1, 0)] * 6 + [Load(3, 0)],
            "contended",
            ["1 requests that are not ours were served before the measurement", "1 requests that are not ours were served during the measurement"],
            id="before-and-during",
        ),
        pytest.param([None], "ok", ["the server does not tell its load: requests that are not ours would not be seen (set enable_metrics)"], id="not-told"),
    ],
)
def test_who_else_is_served(stage, loads, status, remarks):
    """B05"""
    stage.loads = list(loads)
    found = stage.measure()
    assert (found["status"], found["remarks"]) == (status, remarks)


def test_others_between_two_looks_are_in_the_counters(stage):
    stage.strangers = 2
    found = stage.measure()
    assert (found["status"], found["remarks"]) == ("contended", ["2 requests that are not ours were served during the measurement"])


def test_without_a_limit_of_requests_only_the_counters_tell(stage):
    stage.loads = [IDLE, Load(50, 3)]
    found = stage.measure(Point(None, 2.5))
    assert (found["concurrency"], found["request_rate"], found["status"]) == (None, 2.5, "ok")
    stage.strangers = 1
    assert stage.measure(Point(None, 2.5))["status"] == "contended"


def test_contention_of_one_point_is_not_that_of_the_next(stage):
    clock = Clock(lambda: stage.now, lambda: NOON, stage.sleep)
    measure = Measure(stage, stage, stage, Manner("decode", TOKENS, repetitions=1), report=lambda *words: None, clock=clock)
    stage.strangers = 3
    assert measure.point(Point(2))["status"] == "contended"
    stage.strangers = 0
    assert measure.point(Point(2))["status"] == "ok"


def test_peaks_are_of_one_repetition(stage):
    stage.loads = [IDLE, Load(2, 0, 0.2), Load(2, 0, 0.2), Load(1, 1, 0.5), Load(2, 0, 0.25)]
    stage.durations = [2.0, 2.0, 4.0, 2.0]
    found = stage.measure(repetitions=2)
    assert [(entry["queued"], entry["kv_usage"]) for entry in found["repetitions"]] == [(1, 0.5), (0, 0.25)]


def test_a_server_that_does_not_tell_its_load_has_no_peaks(stage):
    stage.loads = [None]
    entry = stage.measure(repetitions=1)["repetitions"][0]
    assert (entry["queued"], entry["kv_usage"]) == (None, None)


def test_looks_that_saw_no_request_are_no_peaks(stage):
    """A short repetition may lie between two looks."""
    stage.loads = [IDLE]
    entry = stage.measure(repetitions=1)["repetitions"][0]
    assert (entry["queued"], entry["kv_usage"]) == (None, None)


def test_counters_that_follow_late(stage):
    stage.late = 3
    entry = stage.measure(repetitions=1)["repetitions"][0]
    assert entry["server"] == {"prompt_tokens": 16, "generation_tokens": 22}


def test_counters_that_never_follow(stage):
    stage.late = 99
    found = stage.measure(repetitions=2)
    assert [(entry["server"], entry["cache_hit_rate"]) for entry in found["repetitions"]] == [(None, None)] * 2, "unknown is not 0"
    remark = "the server's own counters tell nothing of 2 of 2 repetitions: they did not follow within 4 s, or began anew"
    assert (found["status"], found["remarks"]) == ("ok", [remark])


def test_a_server_without_metrics(stage):
    stage.has_metrics = False
    found = stage.measure(repetitions=1)
    assert (found["status"], found["repetitions"][0]["server"], found["repetitions"][0]["cache_hit_rate"]) == ("ok", None, None)


def test_counters_that_begin_anew_say_nothing(stage):
    """A server that was started anew meanwhile counts from 0."""
    stage.counted.update(dict.fromkeys(("num_requests_total", "prompt_tokens_total", "generation_tokens_total", "cached_tokens_total"), 500))
    run = stage.run

    def restarted(*words):
        raw = run(*words)
        stage.counted.clear()
        return raw

    stage.run = restarted
    stage.counters()
    counters = stage.counters
    stage.counters = lambda: counters() if len(stage.runs) > 2 else {**counters(), "prompt_tokens_total": 500.0, "num_requests_total": 500.0}
    found = stage.measure(repetitions=1)
    assert (found["status"], found["repetitions"][0]["server"], found["repetitions"][0]["cache_hit_rate"]) == ("ok", None, None)


def test_failed_requests_fail_the_point(stage):
    """B04: what was measured before is kept, and is no number."""
    stage.fails = {3: 1}
    found = stage.measure()
    assert (found["status"], found["remarks"]) == ("failed", ["1 of 2 requests failed: HTTP 500 (repetition 2 of 3)"])
    assert [entry["failed"] for entry in found["repetitions"]] == [0, 1] and found["summary"] == {} and len(stage.runs) == 4
    assert problems(json.loads(json.dumps(found, allow_nan=False)), SCHEMA["$defs"]["point"], SCHEMA) == []


def test_failed_requests_fail_the_point_in_the_warm_up(stage):
    stage.fails = {0: 2}
    found = stage.measure(failed_pct=100.0)
    assert (found["status"], found["remarks"], found["repetitions"]) == ("failed", ["2 of 2 requests failed: HTTP 500 (warming up)"], [])
    assert found["warmup"] == {"repetitions": 0, "stable": False}


def test_a_load_generator_that_gives_up_fails_the_point(stage):
    stage.gives_up = {4: "the load generator took longer than 900 s"}
    found = stage.measure()
    assert (found["status"], found["remarks"]) == ("failed", ["the load generator took longer than 900 s (repetition 3 of 3)"])
    assert len(found["repetitions"]) == 2


def test_a_point_of_which_nothing_was_measured():
    found = failed_point(Point(None, 2.5), "the server did not come back")
    assert (found["status"], found["remarks"], found["request_rate"]) == ("failed", ["the server did not come back"], 2.5)
    assert problems(found, SCHEMA["$defs"]["point"], SCHEMA) == []


def test_failed_requests_that_are_put_up_with_are_told(stage):
    """B04"""
    stage.fails = {3: 1}
    found = stage.measure(failed_pct=50.0)
    assert [entry["failed"] for entry in found["repetitions"]] == [0, 1, 0]
    assert [entry["output_tok_per_s"] for entry in found["repetitions"]] == [11.0, 5.5, 11.0]


def test_answers_without_usage_give_no_speed(stage):
    """B03"""
    stage.usage = False
    found = stage.measure()
    assert "output_tok_per_s" not in found["summary"] and found["summary"]["request_per_s"]["median"] == 1.0
    assert {(entry["counted_by"], entry["output_tokens"]) for entry in found["repetitions"]} == {("unknown", None)}
    assert (found["status"], found["remarks"]) == ("ok", ["answers did not tell their number of tokens in 3 of 3 repetitions, which have no tok/s"])
    assert stage.reports[-1] == ("decode, concurrency 2: repetition 3 of 3", 0.0, "about 2 s left")


def test_gpus_that_were_slowed_down(stage):
    stage.throttle = ["sw_power_cap", "hw_thermal_slowdown"]
    assert all(set(gpu["throttle"]) == {"hw_thermal_slowdown", "sw_power_cap"} for entry in stage.measure()["repetitions"] for gpu in entry["gpus"])


def test_gpus_that_are_not_sampled_any_more(stage):
    stage.trouble = "nvidia-smi gave no answer (it is not there)"
    assert stage.measure()["remarks"] == ["nvidia-smi gave no answer (it is not there)"]


def test_the_server_is_looked_at_every_other_second(stage):
    stage.durations = [20.0]
    stage.measure(repetitions=1, warmup_limit=1)
    assert 18 <= stage.calls["load"] <= 24
    assert 8 <= stage.calls["sample"] <= 11


@pytest.mark.parametrize(
    "point, words",
    [
        pytest.param(Point(), "concurrency 1", id="default"),
        pytest.param(Point(16), "concurrency 16", id="many"),
        pytest.param(Point(None, 2.5), "2.5 requests/s", id="rate"),
        pytest.param(Point(8, 2.0), "concurrency 8, 2 requests/s", id="both"),
    ],
)
def test_a_point_in_words(point, words):
    assert str(point) == words


def test_what_is_told_meanwhile(stage):
    stage.durations = [4.0, 4.0, 2.0]
    stage.measure(Point(4))
    assert stage.reports == [
        ("decode, concurrency 4: warming up (1 of at most 4)", 0.0, ""),
        ("decode, concurrency 4: warming up (2 of at most 4)", 0.0, ""),
        ("decode, concurrency 4: repetition 1 of 3", 0.0, "about 12 s left"),
        ("decode, concurrency 4: repetition 2 of 3", 0.0, "11.0 tok/s so far, about 4 s left"),
        ("decode, concurrency 4: repetition 3 of 3", 0.0, "11.0 tok/s so far, about 2 s left"),
    ]


@pytest.mark.parametrize(
    "entries, expected",
    [
        pytest.param([], set(), id="none"),
        pytest.param([{"output_tok_per_s": 5.0, "ttft_ms": {"p50": 1.0, "p99": 9.0}}], {"output_tok_per_s": 5.0, "ttft_ms": 1.0}, id="one"),
        pytest.param([{"output_tok_per_s": 5.0}, {"output_tok_per_s": None}], set(), id="not-all-of-them"),
        pytest.param([{"ttft_ms": {}, "request_per_s": 1.0}], {"request_per_s": 1.0}, id="no-latencies"),
        pytest.param([{"request_per_s": 1.0}, {"request_per_s": 3.0}, {"request_per_s": 2.0}], {"request_per_s": 2.0}, id="median"),
    ],
)
def test_the_summary(entries, expected):
    found = summary(entries)
    assert {name: estimate["median"] for name, estimate in found.items()} == dict(expected)
    assert all(estimate["repetitions"] == len(entries) for estimate in found.values())
