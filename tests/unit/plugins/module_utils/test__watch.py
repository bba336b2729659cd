# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._watch import Expectation, UnitState, Watch

RUNNING = UnitState("active", "running", "success", 900, "run-1", 0, "/system.slice/sglang-main.service", 5000.0)
REFUSED = Reply(0, error="[Errno 111] Connection refused")
MODELS = Reply(200, json.dumps({"data": [{"id": "qwen"}]}))
TOKENS = Reply(200, json.dumps({"text": " four", "meta_info": {"completion_tokens": 4}}))
UNREADY = Reply(503, "", "Service Unavailable")
EXPECT = Expectation(30000, "qwen", timeout=60.0, stall_timeout=20.0)


@dataclass
class FakeHost:
    """A host whose every answer is a timeline: (seconds since the watch began, value); the clock moves by sleeping and by slow requests."""

    states: list = field(default_factory=lambda: [(0, RUNNING)])
    lines: list = field(default_factory=list)
    listening: list = field(default_factory=lambda: [(0, [Listener(901, "sglang::serve")])])
    replies: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)
    pids: frozenset = frozenset({900, 901})
    now: float = 0.0
    asked: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    invocations: list = field(default_factory=list)

    def at(self, timeline):
        return [value for since, value in timeline if since <= self.now][-1]

    def unit_state(self):
        return self.at(self.states)

    def journal(self, invocation, cursor):
        self.invocations.append(invocation)
        seen = int(cursor or 0)
        due = [(seconds, text) for seconds, text in self.lines if seconds <= self.now]
        return [Line(5000.0 + seconds, text) for seconds, text in due[seen:]], str(len(due))

    def listeners(self):
        return self.at(self.listening)

    def unit_pids(self, control_group):
        assert control_group == RUNNING.control_group
        return set(self.pids)

    def request(self, path, body=None, timeout=5.0):
        self.now += self.seconds.get(path, 0)
        self.asked.append((round(self.now, 2), path))
        self.bodies.append(body)
        defaults = {"/ready": Reply(200), "/v1/models": MODELS, "/generate": TOKENS}
        return self.at(self.replies.get(path, [(0, defaults.get(path, REFUSED))]))

    def monotonic(self):
        return 100.0 + self.now

    def wall_clock(self):
        return 5000.0 + self.now

    def sleep(self, seconds):
        self.now += seconds


def watch(host, expect=EXPECT):
    return Watch(host, expect).run()


def test_ready_at_once():
    host = FakeHost()
    outcome = watch(host)
    assert outcome.ready
    assert outcome.diagnosis is None
    assert (outcome.elapsed, outcome.invocation) == (0.0, "run-1")
    assert host.asked == [(0, "/ready"), (0, "/v1/models"), (0, "/generate")]
    assert host.bodies[2]["sampling_params"]["max_new_tokens"] > 0


def test_a_whole_start():
    host = FakeHost(
        listening=[(0, []), (8, [Listener(901, "sglang::serve")])],
        replies={"/ready": [(0, UNREADY), (10, Reply(200))]},
        lines=[
            (1, "server_args=ServerArgs(model_path='/m')"),
            (2, "Load weight begin. avail mem=139.13 GB"),
            (5, "Load weight end. elapsed=3.00 s, type=X, avail mem=1.00 GB, mem usage=15.28 GB."),
            (7, "max_total_num_tokens=803502, chunked_prefill_size=8192, max_running_requests=4096, context_len=40960, available_gpu_mem=10.99 GB"),
            (8, "INFO:     Uvicorn running on http://127.0.0.1:30000"),
            (10, "The server is fired up and ready to roll!"),
        ],
    )
    seen = []
    outcome = Watch(host, EXPECT, lambda phase, seconds: seen.append((phase, seconds))).run()
    assert outcome.ready
    assert outcome.elapsed == 10.0
    assert [(entry["phase"], entry["seconds"]) for entry in outcome.phases] == [
        ("process", 1.0),
        ("arguments", 1.0),
        ("weights", 3.0),
        ("kv_cache", 2.0),
        ("http", 1.0),
        ("warm_up", 2.0),
        ("ready", 0.0),
    ]
    assert outcome.vitals["kv_cache_tokens"] == 803502
    assert outcome.journal_tail == [text for seconds, text in host.lines]
    assert host.asked[0] == (8, "/ready"), "nothing is asked before something listens"
    assert list(dict.fromkeys(phase for phase, seconds in seen)) == ["process", "arguments", "weights", "kv_cache", "http", "warm_up", "ready"]
    assert ("weights", 2.5) in seen


DEATHS = [
    pytest.param(replace(RUNNING, invocation="run-2", main_pid=950), id="another-invocation"),
    pytest.param(replace(RUNNING, restarts=1), id="a-restart"),
    pytest.param(replace(RUNNING, active="activating", sub="auto-restart", main_pid=0, result="exit-code"), id="main-process-gone"),
    pytest.param(replace(RUNNING, active="failed", sub="failed", main_pid=0, result="exit-code"), id="N01-failed"),
    pytest.param(replace(RUNNING, active="inactive", sub="dead", main_pid=0), id="stopped"),
    pytest.param(replace(RUNNING, active="deactivating", sub="stop-sigterm"), id="stopping"),
]


@pytest.mark.parametrize("dead", DEATHS)
def test_the_first_death_ends_the_watch(dead):
    host = FakeHost(
        states=[(0, RUNNING), (3, dead)],
        replies={"/ready": [(0, UNREADY)]},
        lines=[(1, "server_args=x"), (3, "ValueError: context too long"), (3.4, "Received sigquit from a child process."), (9, "server_args=y")],
    )
    outcome = watch(host)
    assert not outcome.ready
    assert (outcome.diagnosis.code, outcome.diagnosis.evidence) == ("exception", ["ValueError: context too long"])
    assert outcome.elapsed == 3.5
    assert outcome.journal_tail[-1] == "Received sigquit from a child process.", "lines that come late are waited for"
    assert set(host.invocations) == {"run-1"}, "only the journal of the run that died"


@pytest.mark.parametrize("dead", DEATHS)
def test_a_death_while_it_proves_itself_is_no_success(dead):
    host = FakeHost(states=[(0, RUNNING), (0.1, dead)], lines=[(0.1, "ValueError: too late")], seconds={"/generate": 0.2})
    outcome = watch(host)
    assert (outcome.ready, outcome.diagnosis.evidence) == (False, ["ValueError: too late"])
    assert host.asked[-1] == (0.2, "/generate")


def test_a_silent_death_names_the_result():
    host = FakeHost(states=[(0, replace(RUNNING, active="failed", main_pid=0, result="oom-kill"))])
    outcome = watch(host)
    assert (outcome.diagnosis.code, outcome.diagnosis.evidence) == ("oom_killer", ["Result=oom-kill"])


def test_a_unit_that_never_ran():
    host = FakeHost(states=[(0, UnitState())])
    outcome = watch(host)
    assert (outcome.ready, outcome.diagnosis.code) == (False, "unknown")
    assert host.asked == []


@pytest.mark.parametrize(
    "listeners, pid",
    [
        pytest.param([Listener(455, "python3 -m http.server")], 455, id="N08-another-process"),
        pytest.param([Listener(901, "sglang"), Listener(455, "python3 -m http.server")], 455, id="N08-beside-the-own"),
        pytest.param([Listener(0, "a process outside this namespace")], 0, id="N08-cannot-be-seen"),
    ],
)
def test_a_foreign_listener(listeners, pid):
    host = FakeHost(states=[(0, replace(RUNNING, active="activating"))], listening=[(0, listeners)])
    outcome = watch(host)
    assert not outcome.ready
    assert outcome.diagnosis.code == "foreign_listener"
    assert f"port 30000 is answered by another process (pid {pid}: " in outcome.diagnosis.cause
    assert host.asked == [], "it is not even asked"


def test_a_listener_of_the_unit_is_its_own():
    """N08"""
    assert watch(FakeHost(listening=[(0, [Listener(900, "a"), Listener(901, "b")])])).ready


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("path, where", [("/ready", "the health check"), ("/v1/models", "/v1/models"), ("/generate", "/generate")])
def test_a_refused_probe_fails_fast(path, where, status):
    """N04"""
    host = FakeHost(replies={path: [(0, Reply(status, "", "Unauthorized"))]})
    outcome = watch(host)
    assert outcome.elapsed == 0.0
    assert outcome.diagnosis.code == "probe_unauthorized"
    assert outcome.diagnosis.cause == f"the server refused the probe of {where} with HTTP {status}: the API key sent is not the server's"
    assert outcome.diagnosis.hint == "set sglang_server_api_key to the key the server runs with"


@pytest.mark.parametrize(
    "unready", [UNREADY, REFUSED, Reply(0, error="timed out"), Reply(500, "", "Internal Server Error")], ids=["503", "refused", "slow", "500"]
)
def test_unready_keeps_waiting(unready):
    """N01"""
    host = FakeHost(replies={"/ready": [(0, unready), (5, Reply(200))]})
    outcome = watch(host)
    assert outcome.ready
    assert outcome.elapsed == 5.0
    assert [path for when, path in host.asked] == ["/ready"] * 21 + ["/v1/models", "/generate"]


def test_a_list_of_models_is_not_ready():
    """N01: /v1/models answers long before the warm-up ends."""
    host = FakeHost(replies={"/ready": [(0, UNREADY)]}, lines=[(n, "line") for n in range(100)])
    outcome = watch(host)
    assert (outcome.ready, outcome.diagnosis.code, outcome.elapsed) == (False, "start_timeout", 60.0)
    assert {path for when, path in host.asked} == {"/ready"}


def test_models_that_do_not_answer_yet_are_waited_for():
    host = FakeHost(replies={"/v1/models": [(0, UNREADY), (1, MODELS)]})
    outcome = watch(host)
    assert (outcome.ready, outcome.elapsed) == (True, 1.0)


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
    host = FakeHost(replies={"/v1/models": [(0, Reply(200, body))]})
    outcome = watch(host)
    assert (outcome.ready, outcome.diagnosis.code) == (False, "wrong_model")
    assert outcome.diagnosis.cause == f"the server on port 30000 serves {served}, expected qwen"


def test_the_model_among_others():
    host = FakeHost(replies={"/v1/models": [(0, Reply(200, '{"data": [{"id": "base"}, {"id": "qwen"}]}'))]})
    assert watch(host).ready


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
    outcome = watch(FakeHost(replies={"/generate": [(0, reply)]}))
    assert (outcome.ready, outcome.diagnosis.code) == (False, "generation_failed")
    assert outcome.diagnosis.cause == f"the server is healthy but a generation returned no token {cause}"
    assert outcome.diagnosis.evidence == evidence


def test_timeout_names_the_phase_and_the_last_lines():
    host = FakeHost(listening=[(0, [])], lines=[(1, "Load weight begin. avail mem=1 GB"), *((n, f"shard {n}") for n in range(2, 70))])
    outcome = watch(host)
    assert outcome.diagnosis.code == "start_timeout"
    assert outcome.diagnosis.cause == "not ready within 60 s, while loading weights"
    assert outcome.diagnosis.evidence == ["shard 58", "shard 59", "shard 60"]
    assert outcome.elapsed == 60.0


def test_a_stall_is_measured_from_the_last_line():
    host = FakeHost(listening=[(0, [])], lines=[(1, "server_args=x"), (15, "Init parallel begin.")])
    outcome = watch(host)
    assert outcome.diagnosis.code == "start_timeout"
    assert outcome.diagnosis.cause == "no new line in the journal for 20 s, while initialising distributed communication"
    assert outcome.diagnosis.evidence == ["server_args=x", "Init parallel begin."]
    assert outcome.elapsed == 35.0


def test_a_hang_of_the_ranks_is_no_slow_start():
    """L19"""
    nccl = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    host = FakeHost(listening=[(0, [])], lines=[(1, "Init torch distributed begin."), (2, nccl), (3, "h:1:2 [0] NCCL INFO ncclCommInitRank - Init COMPLETE")])
    outcome = watch(host)
    assert (outcome.diagnosis.code, outcome.diagnosis.certainty) == ("nccl_hang_p2p_suspected", "suspected")
    assert outcome.diagnosis.cause.startswith("no new line in the journal for 20 s, while initialising distributed communication: it hangs after NCCL was")


def test_a_quiet_server_that_is_ready_does_not_stall():
    host = FakeHost(replies={"/ready": [(0, UNREADY), (19.75, Reply(200))]})
    assert watch(host).ready


def test_it_looks_once_whatever_the_timeout():
    assert watch(FakeHost(), replace(EXPECT, timeout=0.0)).ready
    outcome = watch(FakeHost(replies={"/ready": [(0, UNREADY)]}), replace(EXPECT, timeout=0.0))
    assert (outcome.diagnosis.cause, outcome.elapsed) == ("not ready within 0 s, while starting the process", 0.0)


def test_without_a_ready_endpoint_health_decides():
    missing = Reply(404, "", "Not Found")
    host = FakeHost(replies={"/ready": [(0, missing)], "/health": [(0, UNREADY), (1, Reply(200))]})
    outcome = watch(host)
    assert (outcome.ready, outcome.elapsed) == (True, 1.0)
    assert [path for when, path in host.asked] == ["/ready", *["/health"] * 5, "/v1/models", "/generate"]


def test_health_that_refuses_the_key():
    """N04 for an engine without /ready."""
    host = FakeHost(replies={"/ready": [(0, Reply(404))], "/health": [(0, Reply(401))]})
    assert watch(host).diagnosis.code == "probe_unauthorized"


def test_a_long_journal_is_kept_short():
    host = FakeHost(listening=[(0, [])], lines=[(0, f"line {n}") for n in range(5000)])
    outcome = watch(host)
    assert outcome.journal_tail == [f"line {n}" for n in range(4960, 5000)]


@pytest.mark.parametrize(
    "state, alive",
    [
        (RUNNING, True),
        (replace(RUNNING, active="activating"), True),
        (replace(RUNNING, active="reloading"), True),
        (replace(RUNNING, active="activating", main_pid=0), False),
        (replace(RUNNING, active="failed", main_pid=0), False),
        (UnitState(), False),
    ],
)
def test_alive(state, alive):
    assert state.alive is alive
