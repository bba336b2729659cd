# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation, Readiness
from ansible_collections.llmops.inference.tests.unit.timeline import MODELS, REFUSED, UNREADY, FakeHost

EXPECT = Expectation(30000, "qwen")


def look(host, **options):
    """One look; returns (what is wrong, the readiness)."""
    readiness = Readiness(host, replace(EXPECT, **options))
    return readiness.look(host.pids), readiness


def test_ready():
    host = FakeHost()
    wrong, readiness = look(host)
    assert (wrong, readiness.ready, readiness.listening, readiness.unhealthy) == (None, True, True, "")
    assert host.asked == [(0, "/ready"), (0, "/v1/models"), (0, "/generate")]
    assert host.bodies[2]["sampling_params"]["max_new_tokens"] > 0, "a generation is bounded"


def test_nothing_listens():
    wrong, readiness = look(FakeHost(listening=[(0, [])]))
    assert (wrong, readiness.ready, readiness.listening) == (None, False, False)


@pytest.mark.parametrize(
    "listeners, pid",
    [
        pytest.param([Listener(455, "python3 -m http.server")], 455, id="N08-another-process"),
        pytest.param([Listener(901, "sglang"), Listener(455, "python3 -m http.server")], 455, id="N08-beside-the-own"),
        pytest.param([Listener(0, "a process outside this namespace")], 0, id="N08-cannot-be-seen"),
    ],
)
def test_a_foreign_listener(listeners, pid):
    host = FakeHost(listening=[(0, listeners)])
    wrong, readiness = look(host)
    assert (wrong.code, wrong.where, readiness.ready) == ("foreign_listener", "host", False)
    assert f"port 30000 is answered by another process (pid {pid}: " in wrong.cause
    assert host.asked == [], "it is not even asked"


def test_a_listener_of_the_unit_is_its_own():
    """N08"""
    assert look(FakeHost(listening=[(0, [Listener(900, "a"), Listener(901, "b")])]))[1].ready


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("path, where", [("/ready", "the health check"), ("/v1/models", "/v1/models"), ("/generate", "/generate")])
def test_a_refused_probe_fails_fast(path, where, status):
    """N04"""
    wrong, readiness = look(FakeHost(replies={path: [(0, Reply(status, "", "Unauthorized"))]}))
    assert (wrong.code, readiness.ready) == ("probe_unauthorized", False)
    assert wrong.cause == f"the server refused the probe of {where} with HTTP {status}: the API key sent is not the server's"
    assert wrong.hint == "set sglang_server_api_key to the key the server runs with"


@pytest.mark.parametrize(
    "unready, told",
    [(UNREADY, "HTTP 503"), (REFUSED, "[Errno 111] Connection refused"), (Reply(0, error="timed out"), "timed out"), (Reply(500, ""), "HTTP 500")],
    ids=["503", "refused", "slow", "500"],
)
def test_not_yet(unready, told):
    """N01: and the list of models, which answers long before the warm-up ends, is not asked for."""
    host = FakeHost(replies={"/ready": [(0, unready)]})
    wrong, readiness = look(host)
    assert (wrong, readiness.ready, readiness.unhealthy) == (None, False, told)
    assert [path for when, path in host.asked] == ["/ready"]


def test_models_that_do_not_answer_yet():
    wrong, readiness = look(FakeHost(replies={"/v1/models": [(0, UNREADY)]}))
    assert (wrong, readiness.ready) == (None, False)


@pytest.mark.parametrize(
    "body, served",
    [
        ('{"data": [{"id": "llama"}]}', "llama"),
        ('{"data": [{"id": "a"}, {"id": "b"}]}', "a, b"),
        ('{"data": []}', "no model"),
        ("{}", "no model"),
        ("<html>", "no model"),
    ],
)
def test_another_model(body, served):
    wrong, readiness = look(FakeHost(replies={"/v1/models": [(0, Reply(200, body))]}))
    assert (wrong.code, wrong.where, readiness.ready) == ("wrong_model", "release", False)
    assert wrong.cause == f"the server on port 30000 serves {served}, expected qwen"


def test_the_model_among_others():
    assert look(FakeHost(replies={"/v1/models": [(0, Reply(200, '{"data": [{"id": "base"}, {"id": "qwen"}]}'))]}))[1].ready


@pytest.mark.parametrize(
    "reply, cause, evidence",
    [
        pytest.param(
            Reply(200, '{"text": "", "meta_info": {"completion_tokens": 0}}'),
            "(HTTP 200 )",
            ['{"text": "", "meta_info": {"completion_tokens": 0}}'],
            id="no-token",
        ),
        pytest.param(Reply(200, '{"text": "x"}'), "(HTTP 200 )", ['{"text": "x"}'], id="no-meta"),
        pytest.param(Reply(200, "[]"), "(HTTP 200 )", ["[]"], id="no-object"),
        pytest.param(Reply(200, "<html>"), "(HTTP 200 )", ["<html>"], id="no-json"),
        pytest.param(Reply(500, "x" * 400, "Internal Server Error"), "(HTTP 500 Internal Server Error)", ["x" * 300], id="500"),
        pytest.param(Reply(0, error="timed out"), "(HTTP 0 timed out)", [], id="no-answer"),
    ],
)
def test_a_generation_without_tokens(reply, cause, evidence):
    wrong, readiness = look(FakeHost(replies={"/generate": [(0, reply)]}))
    assert (wrong.code, readiness.ready) == ("generation_failed", False)
    assert wrong.cause == f"the server is healthy but a generation returned no token {cause}"
    assert wrong.evidence == evidence


@pytest.mark.parametrize("reply, told", [(Reply(0, error="timed out"), "a generation: timed out"), (UNREADY, "a generation: HTTP 503")])
def test_a_generation_that_waits_behind_others(reply, told):
    """Of a server that has served, a generation without an answer says only that it is busy."""
    wrong, readiness = look(FakeHost(replies={"/generate": [(0, reply)]}), settled=True)
    assert (wrong, readiness.ready, readiness.unhealthy) == (None, False, told)


def test_without_a_ready_endpoint_health_decides():
    host = FakeHost(replies={"/ready": [(0, Reply(404, "", "Not Found"))], "/health": [(0, UNREADY), (1, Reply(200))]})
    readiness = Readiness(host, EXPECT)
    assert readiness.look(host.pids) is None and not readiness.ready
    host.now = 1.0
    assert readiness.look(host.pids) is None and readiness.ready
    assert [path for when, path in host.asked] == ["/ready", "/health", "/health", "/v1/models", "/generate"]


def test_health_that_refuses_the_key():
    """N04 for an engine without /ready."""
    host = FakeHost(replies={"/ready": [(0, Reply(404))], "/health": [(0, Reply(401))]})
    assert look(host)[0].code == "probe_unauthorized"


@pytest.mark.parametrize(
    "own, leads, ready, asked",
    [
        pytest.param(Reply(200), Reply(200), True, ["/ready", "leader/health"], id="both"),
        pytest.param(Reply(200), UNREADY, False, ["/ready", "leader/health"], id="rank-0-loads"),
        pytest.param(Reply(200), REFUSED, False, ["/ready", "leader/health"], id="rank-0-is-down"),
        pytest.param(UNREADY, Reply(200), False, ["/ready"], id="itself-not-yet"),
    ],
)
def test_a_further_node_is_ready_when_rank_0_is(own, leads, ready, asked):
    """Its own health check is a dummy, and it has no models."""
    host = FakeHost(replies={"/ready": [(0, own)], "/v1/models": [(0, Reply(404))]}, leads=[(0, leads)])
    wrong, readiness = look(host, leader=True)
    assert (wrong, readiness.ready) == (None, ready)
    assert [path for when, path in host.asked] == asked


def test_models_and_health_in_time():
    host = FakeHost(replies={"/v1/models": [(0, UNREADY), (1, MODELS)]})
    readiness = Readiness(host, EXPECT)
    readiness.look(host.pids)
    host.now = 1.0
    assert readiness.look(host.pids) is None and readiness.ready
