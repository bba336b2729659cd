# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._patience import STALL_SECONDS, Activity
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._watch import UnitState, Watch
from ansible_collections.llmops.inference.tests.unit.timeline import REFUSED, RUNNING, UNREADY, FakeHost

EXPECT = Expectation(30000, "qwen", timeout=60.0, stalls=dict.fromkeys(STALL_SECONDS, 20.0))


def watch(host, expect=EXPECT, fresh=False):
    return Watch(host, expect, fresh=fresh).run()


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
    outcome = Watch(host, EXPECT, lambda phase, seconds, detail: seen.append((phase, seconds))).run()
    assert outcome.ready
    assert outcome.elapsed == 10.0, "looked at every quarter of a second once something listens"
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
    assert host.asked[0] == (8.25, "/ready"), "nothing is asked before something listens"
    assert list(dict.fromkeys(phase for phase, seconds in seen)) == ["process", "arguments", "weights", "kv_cache", "http", "warm_up", "ready"]
    assert any(phase == "weights" and seconds > 2 for phase, seconds in seen)


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


def test_timeout_names_the_phase_and_the_last_lines():
    host = FakeHost(listening=[(0, [])], lines=[(1, "Load weight begin. avail mem=1 GB"), *((n, f"shard {n}") for n in range(2, 70))])
    outcome = watch(host)
    assert outcome.diagnosis.code == "start_timeout"
    assert outcome.diagnosis.cause == "not ready within 60 s, while loading weights"
    assert outcome.diagnosis.evidence == ["shard 58", "shard 59", "shard 60"]
    assert outcome.elapsed == 60.0


def test_a_stall_is_measured_from_the_last_line():
    host = FakeHost(listening=[(0, [])], lines=[(1, "server_args=x"), (15, "Load weight begin. avail mem=1 GB")])
    outcome = watch(host)
    assert outcome.diagnosis.code == "start_timeout"
    assert outcome.diagnosis.cause == "no progress in journal, disk or GPU for 20 s, while loading weights"
    assert outcome.diagnosis.hint == "raise sglang_server_stall_timeouts.weights if it is just slow"
    assert outcome.diagnosis.evidence == ["server_args=x", "Load weight begin. avail mem=1 GB"]
    assert 35.0 <= outcome.elapsed <= 36.0


def test_a_hang_of_the_ranks_is_no_slow_start():
    """L19"""
    nccl = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"
    host = FakeHost(listening=[(0, [])], lines=[(1, "Init torch distributed begin."), (2, nccl), (3, "h:1:2 [0] NCCL INFO ncclCommInitRank - Init COMPLETE")])
    outcome = watch(host)
    assert (outcome.diagnosis.code, outcome.diagnosis.certainty) == ("nccl_hang_p2p_suspected", "suspected")
    assert outcome.diagnosis.cause.startswith(
        "no progress in journal, disk or GPU for 20 s, while initialising distributed communication: it hangs after NCCL was"
    )


BIND = "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"


@pytest.mark.parametrize(("fresh", "code", "seconds"), [(True, "port_in_use", 9.0), (False, "start_timeout", 60.0)], ids=["a-start", "a-look"])
def test_an_engine_that_could_not_bind_is_not_waited_for(fresh, code, seconds):
    """N08: its process lives on for two minutes. A look at a server that runs says nothing of what its start once logged."""
    lines = [(1, "Load weight begin. avail mem=1 GB"), (9, BIND), *((n, f"shard {n}") for n in range(10, 70))]
    outcome = watch(FakeHost(listening=[(0, [])], lines=lines), fresh=fresh)
    assert (outcome.ready, outcome.diagnosis.code) == (False, code)
    assert abs(outcome.elapsed - seconds) <= 1.0


def test_a_quiet_server_that_is_ready_does_not_stall():
    host = FakeHost(replies={"/ready": [(0, UNREADY), (19.75, Reply(200))]})
    assert watch(host).ready


def test_it_looks_once_whatever_the_timeout():
    assert watch(FakeHost(), replace(EXPECT, timeout=0.0)).ready
    outcome = watch(FakeHost(replies={"/ready": [(0, UNREADY)]}), replace(EXPECT, timeout=0.0))
    assert (outcome.diagnosis.cause, outcome.elapsed) == ("not ready within 0 s, while starting the process (health: HTTP 503)", 0.0)


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


MIB = 1 << 20
PROGRESS = [
    pytest.param([(second, Activity(read_bytes=second * MIB)) for second in range(0, 50, 5)], id="disk"),
    pytest.param([(second, Activity(resident_bytes=second * 8 * MIB)) for second in range(0, 50, 5)], id="memory"),
    pytest.param([(second, Activity(gpu_bytes=second * 1024 * MIB)) for second in range(0, 50, 5)], id="gpu"),
    pytest.param([(second, Activity(compilers=("cicc",), compiler_ticks=second)) for second in range(0, 50, 5)], id="compiler"),
]


@pytest.mark.parametrize("does", PROGRESS)
def test_a_silent_phase_that_works_is_not_stuck(does):
    host = FakeHost(listening=[(0, [])], lines=[(1, "Load weight begin. avail mem=1 GB")], does=does)
    outcome = watch(host)
    assert outcome.diagnosis.cause == "not ready within 60 s, while loading weights", "work ends at 45 s, and 20 s more are patience"


def test_a_phase_has_its_own_limit():
    host = FakeHost(listening=[(0, [])], lines=[(1, "Load weight begin. avail mem=1 GB")])
    outcome = watch(host, replace(EXPECT, stalls={**EXPECT.stalls, "weights": 5.0}))
    assert outcome.diagnosis.cause == "no progress in journal, disk or GPU for 5 s, while loading weights"


def test_what_compiles_is_told():
    does = [(0, Activity()), (10, Activity(compilers=("cicc", "ninja"), compiler_ticks=5))]
    host = FakeHost(listening=[(0, [])], lines=[(1, "Load weight end. elapsed=3.00 s, type=X, avail mem=1.00 GB, mem usage=15.28 GB.")], does=does)
    seen = []
    Watch(host, replace(EXPECT, new_engine=True), lambda phase, seconds, detail: seen.append((phase, detail))).run()
    assert ("kv_cache", "first start of this engine here, kernels may be compiled for minutes") in seen
    assert ("kv_cache", "compiling kernels (cicc, ninja)") in seen


def test_the_kernel_log_of_the_run_is_read():
    """L15: the journal of the unit says nothing of an out-of-memory kill."""
    killed = "Out of memory: Killed process 901 (sglang::schedul) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:1 pgtables:1kB oom_score_adj:0"
    dead = replace(RUNNING, active="failed", main_pid=0, result="exit-code")
    host = FakeHost(states=[(0, RUNNING), (3, dead)], replies={"/ready": [(0, UNREADY)]}, lines=[(1, "server_args=x")], kernel=[(2, killed)])
    outcome = watch(host)
    assert (outcome.diagnosis.code, outcome.diagnosis.where, outcome.diagnosis.certainty) == ("oom_killer", "host", "certain")
    assert host.kernel_since == [RUNNING.started]


WORK = "Decode batch, #running-req: 64, #token: 9000, token usage: 0.97, gen throughput (token/s): 4773.1, #queue-req: 900"


@pytest.mark.parametrize(
    "settled, lines, ready",
    [
        pytest.param(True, [(0, WORK)], True, id="it-works-off-a-queue"),
        pytest.param(True, [(-200, WORK)], False, id="it-does-nothing"),
        pytest.param(True, [(0, "The server is fired up and ready to roll!")], False, id="it-never-worked"),
        pytest.param(False, [(0, WORK)], False, id="it-has-not-served-yet"),
    ],
)
def test_a_503_under_load_is_no_failure(settled, lines, ready):
    host = FakeHost(replies={"/ready": [(0, UNREADY)]}, lines=lines)
    outcome = watch(host, replace(EXPECT, timeout=0.0, settled=settled))
    assert outcome.ready is ready
    assert outcome.remarks == (["it is busy (HTTP 503) and works off requests: left alone"] if ready else [])
    assert ready or outcome.diagnosis.cause.endswith("(health: HTTP 503)")


def test_a_warning_that_looks_like_a_cause_is_told():
    """L04"""
    warning = "Custom allreduce is disabled due to an unsupported world size: 3. Supported world sizes: [2, 4, 6, 8]."
    host = FakeHost(lines=[(0, warning)])
    outcome = watch(host)
    assert outcome.ready and isinstance(outcome.remarks, list)


@pytest.mark.parametrize("fresh", [True, False])
def test_the_whole_journal_of_a_start_is_read(fresh):
    host = FakeHost()
    Watch(host, EXPECT, fresh=fresh).run()
    assert host.whole is fresh


def test_a_clock_that_jumps_back_does_no_harm():
    host = FakeHost(replies={"/ready": [(0, UNREADY), (5, Reply(200))]}, lines=[(1, "server_args=x")])
    wall = host.wall_clock
    host.wall_clock = lambda: wall() - (3600 if host.now > 2 else 0)
    outcome = watch(host)
    assert outcome.ready and outcome.elapsed == 5.0
    assert all(entry["seconds"] >= 0 for entry in outcome.phases)
