# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._server_load import Load, ServerLoad, parse_loads, parse_metrics

METRICS = (Path(__file__).parents[2] / "fixtures" / "benchmark" / "metrics-0.5.23.txt").read_text()
SEEN = {"prompt_tokens_total": 854.0, "generation_tokens_total": 1936.0, "cached_tokens_total": 39.0, "num_requests_total": 11.0}
# Without speculation nothing is verified, and there is no such counter.
COUNTERS = {**SEEN, "spec_verify_calls_total": 0.0}


class Server:
    """Answers by path; a list is answered one after the other, the last one for good."""

    def __init__(self, **replies):
        self.replies = {f"/{path}": reply for path, reply in replies.items()}
        self.asked = []
        self.slept = []

    def ask(self, path, body=None, timeout=5.0):
        self.timeout = timeout
        self.asked.append((path, body))
        reply = self.replies.get(path, Reply(404))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        return reply

    @property
    def load(self):
        return ServerLoad(self.ask, self.slept.append)


def answer(value):
    return Reply(200, json.dumps(value))


def gauge(value, name="num_running_reqs", **labels):
    words = ",".join(f'{label}="{inner}"' for label, inner in labels.items())
    return f"sglang:{name}{{{words}}} {value}\n"


def rank(number, **values):
    """A rank's answer in the shape of /v1/loads."""
    return {"dp_rank": number, "timestamp": 1.5, "num_used_tokens": 7, "max_running_requests": 2048, "gen_throughput": 0.0, **values}


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param("", {}, id="empty"),
        pytest.param("# HELP sglang:a b\n# TYPE sglang:a gauge\npython_info 1.0\n", {}, id="comments-and-others"),
        pytest.param("sglang:a 2\n", {"a": 2.0}, id="no-labels"),
        pytest.param("sglang:a{} 1e3\n", {"a": 1000.0}, id="exponent"),
        pytest.param("sglang:a NaN\nsglang:b x\nsglang:c +Inf\n", {}, id="no-numbers"),
        pytest.param(gauge(2, is_streaming="true") + gauge(1, is_streaming="false"), {"num_running_reqs": 3.0}, id="sum-over-labels"),
        pytest.param(gauge(3, tp_rank="0") + gauge(3, tp_rank="1"), {"num_running_reqs": 3.0}, id="tensor-parallel"),
        pytest.param(gauge(3, pp_rank="0", tp_rank="0") + gauge(2, pp_rank="1", tp_rank="0"), {"num_running_reqs": 3.0}, id="pipeline-parallel"),
        pytest.param(gauge(3, moe_ep_rank="0", tp_rank="0") + gauge(3, moe_ep_rank="1", tp_rank="1"), {"num_running_reqs": 3.0}, id="expert-parallel"),
        pytest.param(gauge(3, dp_rank="0", tp_rank="0") + gauge(4, dp_rank="1", tp_rank="0"), {"num_running_reqs": 7.0}, id="data-parallel"),
        pytest.param(gauge(3, dp_rank="0", tp_rank="0") + gauge(4, dp_rank="1", tp_rank="1"), {"num_running_reqs": 7.0}, id="attention-data-parallel"),
        pytest.param(gauge(0.6, "token_usage", dp_rank="0") + gauge(0.7, "token_usage", dp_rank="1"), {"token_usage": 0.7}, id="a-share-is-no-sum"),
        pytest.param(
            gauge(39, "cached_tokens_total", cache_source="device") + gauge(1, "cached_tokens_total", cache_source="host"),
            {"cached_tokens_total": 40.0},
            id="sources",
        ),
    ],
)
def test_metrics(text, expected):
    assert parse_metrics(text) == expected


def test_metrics_of_a_real_server():
    found = parse_metrics(METRICS)
    assert {name: found[name] for name in SEEN} == SEEN
    assert (found["num_running_reqs"], found["num_queue_reqs"], found["token_usage"]) == (0.0, 0.0, 0.0)
    assert "fwd_occupancy" not in found and not any(name.startswith("python") for name in found)


def test_metrics_of_two_ranks_of_one_server_are_those_of_one():
    second = re.sub(r'tp_rank="0"', 'tp_rank="1"', METRICS)
    scheduler = "\n".join(line for line in second.splitlines() if 'tp_rank="1"' in line)
    assert parse_metrics(METRICS + scheduler) == parse_metrics(METRICS)


@pytest.mark.parametrize(
    "told, expected",
    [
        pytest.param({"loads": [rank(0, num_running_reqs=3, num_waiting_reqs=1, token_usage=0.25)]}, Load(3, 1, 0.25), id="v1-loads"),
        pytest.param(
            {"loads": [rank(0, num_running_reqs=3, num_waiting_reqs=0, token_usage=0.1), rank(1, num_running_reqs=2, num_waiting_reqs=1, token_usage=0.4)]},
            Load(5, 1, 0.4),
            id="v1-loads-of-two-ranks",
        ),
        # 0.5.10 and 0.5.12: num_reqs = running + waiting.
        pytest.param([{"dp_rank": 0, "num_reqs": 5, "num_waiting_reqs": 2, "num_tokens": 90, "ts_tic": 1.0}], Load(3, 2), id="get-load"),
        pytest.param([{"num_reqs": 1, "num_waiting_reqs": 0}, {"num_reqs": 2, "num_waiting_reqs": 1}], Load(2, 1), id="get-load-of-two-ranks"),
        pytest.param([{"num_reqs": 1, "num_waiting_reqs": 2}], Load(0, 2), id="caught-between-two-states"),
        pytest.param({"loads": []}, None, id="no-rank"),
        pytest.param({"load": 3}, None, id="another-answer"),
        pytest.param([{"load": 3}], None, id="another-list"),
        pytest.param([3], None, id="numbers"),
        pytest.param({"loads": {"0": {}}}, None, id="no-list"),
        pytest.param("busy", None, id="text"),
        pytest.param(None, None, id="no-json"),
    ],
)
def test_loads(told, expected):
    assert parse_loads(told) == expected


def test_all_requests_that_are_not_done():
    assert Load(3, 2).requests == 5


@pytest.mark.parametrize(
    "replies, expected, way",
    [
        pytest.param(
            {"metrics": Reply(200, gauge(9)), "v1/loads": answer({"loads": [rank(0, num_running_reqs=1)]})}, Load(1, 0), "/v1/loads", id="loads-first"
        ),
        pytest.param({"get_load": answer([{"num_reqs": 2, "num_waiting_reqs": 1}])}, Load(1, 1), "/get_load", id="older"),
        pytest.param({"v1/loads": Reply(401), "metrics": Reply(200, gauge(2) + gauge(1, "num_queue_reqs"))}, Load(2, 1), "/metrics", id="metrics"),
        pytest.param({"metrics": Reply(200, METRICS)}, Load(0, 0, 0.0), "/metrics", id="real-metrics"),
        pytest.param({"metrics": Reply(200, "python_info 1\n")}, None, "", id="metrics-of-something-else"),
        pytest.param({"v1/loads": Reply(200, "<html>")}, None, "", id="no-json"),
        pytest.param({}, None, "", id="none"),
    ],
)
def test_the_load_by_the_first_way_that_answers(replies, expected, way):
    """Gauges of 0.5.10 and 0.5.12 stand still for up to 30 s after the last request, so they come last."""
    server = Server(**replies)
    load = server.load
    assert load.load() == expected
    server.asked.clear()
    assert load.load() == expected
    if way:
        assert server.asked == [(way, None)], "the way is kept"


def test_counters():
    assert Server(metrics=Reply(200, METRICS)).load.counters() == COUNTERS
    assert Server(metrics=Reply(200, gauge(0))).load.counters() == dict.fromkeys(COUNTERS, 0.0), "before the first request there are none"


@pytest.mark.parametrize("reply", [Reply(404), Reply(0, error="refused"), Reply(200, ""), Reply(200, "sglang:prompt_tokens_total 3\n")])
def test_no_counters_where_metrics_are_off(reply):
    assert Server(metrics=reply).load.counters() == {}


@pytest.mark.parametrize(
    "replies, trouble, attempts",
    [
        pytest.param([Reply(200)], "", 1, id="at-once"),
        pytest.param([Reply(400, "busy"), Reply(400, "busy"), Reply(200)], "", 3, id="after-the-last-request"),
        pytest.param([Reply(400, "Flush cache failed.\n")], "/flush_cache: HTTP 400 Flush cache failed.", 20, id="busy-for-good"),
        pytest.param([Reply(401)], "/flush_cache asks for the admin key (HTTP 401)", 1, id="another-key"),
        pytest.param([Reply(403)], "/flush_cache asks for the admin key (HTTP 403)", 1, id="not-allowed"),
        pytest.param([Reply(0, error="Connection refused")], "/flush_cache: Connection refused", 20, id="gone"),
        pytest.param([Reply(500, "x" * 500)], f"/flush_cache: HTTP 500 {'x' * 200}", 20, id="long-answers-are-cut"),
    ],
)
def test_flushing(replies, trouble, attempts):
    server = Server(flush_cache=replies)
    assert server.load.flush() == trouble
    assert server.asked == [("/flush_cache", {})] * attempts
    assert server.slept == [0.5] * (attempts - 1)


def test_flushing_has_a_key_of_its_own():
    """The engine takes the admin key for flushing only, and the other key for everything else."""
    server, admin = Server(metrics=Reply(200, METRICS)), Server(flush_cache=Reply(200))
    load = ServerLoad(server.ask, server.slept.append, flush=admin.ask)
    assert (load.flush(), load.counters()) == ("", COUNTERS)
    assert (server.asked, admin.asked) == ([("/metrics", None)], [("/flush_cache", {})])


@pytest.mark.parametrize(
    "told, expected",
    [
        pytest.param({"internal_states": [{"avg_spec_accept_length": 2.71828}]}, 2.718, id="speculation"),
        pytest.param({"internal_states": [{"avg_spec_accept_length": None}]}, None, id="not-yet"),
        pytest.param({"internal_states": [{}]}, None, id="none"),
        pytest.param({"internal_states": []}, None, id="no-rank"),
        pytest.param({"internal_states": ["x"]}, None, id="another-shape"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_the_accept_length(told, expected):
    assert Server(server_info=answer(told)).load.accept_length() == expected
    assert Server(get_server_info=answer(told)).load.accept_length() == expected


@pytest.mark.parametrize(("reply", "serves"), [(Reply(200), True), (Reply(503), False), (Reply(0, error="Connection refused"), False)])
def test_whether_it_still_serves(reply, serves):
    server = Server(health_generate=reply)
    assert server.load.serves() is serves and server.timeout == 30.0
