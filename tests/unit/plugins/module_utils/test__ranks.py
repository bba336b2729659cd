# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real processes in the place of ranks: small scripts, run by this interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _ranks
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import AllreduceError, Ranks
from ansible_collections.llmops.inference.plugins.module_utils._ranks import RankRunner

ORDER = {"mode": "eager", "sizes": [1024]}
TWO = Ranks("gloo", 2, port=29500)
# What every rank begins with.
HEAD = "import json, os, subprocess, sys, time\nrank = int(os.environ['RANK'])\norder = json.loads(sys.argv[1])\n"
# Notes a process, in one step: whoever sees the file can read it.
HEAD += "def note(pid):\n    name = f'{order[\"pids\"]}/{rank}'\n    open(name + '.new', 'w').write(str(pid))\n    os.rename(name + '.new', name)\n"
# A child that outlives its rank unless somebody ends it.
CHILD = "note(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)\n"
INITIALISED = "open(os.environ['NCCL_DEBUG_FILE'].replace('%p', str(os.getpid())), 'w').write('NCCL INFO ncclCommInitRank Init COMPLETE\\n"
INITIALISED += "h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\\n')\n"


def is_running(pid):
    """A zombie that its reaper has not seen yet runs no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Bench:
    """Runs ranks that do what a script says."""

    def __init__(self, path):
        self.path = path
        self.pids = path / "pids"
        self.pids.mkdir()
        (path / "folder").mkdir()

    def run(self, script, ranks=TWO, environment=None, timeout=20.0, python=sys.executable, **order):
        worker = self.path / "worker.py"
        worker.write_text(HEAD + script)
        runner = RankRunner(python, worker, self.path / "folder", environment or {}, timeout)
        return runner.run(ranks, {**ORDER, "pids": str(self.pids), **order})

    def fails(self, script, **options):
        with pytest.raises(AllreduceError) as error:
            self.run(script, **options)
        return str(error.value)

    def noted(self):
        """Rank -> the process that it noted."""
        return {int(path.name): int(path.read_text()) for path in self.pids.iterdir() if path.name.isdigit()}

    def survivors(self):
        """Children that still run a moment later."""
        pids = self.noted().values()
        assert len(pids) == 2
        deadline = time.monotonic() + 5
        while any(map(is_running, pids)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return [pid for pid in pids if is_running(pid)]


@pytest.fixture(name="bench")
def fixture_bench(tmp_path):
    return Bench(tmp_path)


def test_rank_0_answers(bench):
    answer, debug = bench.run("print('noise')\nif rank == 0:\n    print('{\"old\": 1}')\n    print(json.dumps({'rank': rank, **order}))\nprint('more noise')")
    assert answer == {"rank": 0, **ORDER, "pids": str(bench.pids)}, "the last line of JSON"
    assert debug == {"version": "", "transports": [], "initialised": False}


def test_hosts_without_rank_0_answer_nothing(bench):
    answer, debug = bench.run("print(json.dumps({'rank': rank}))\n" + INITIALISED, ranks=Ranks("gloo", 2, nodes=2, node=1))
    assert answer == {} and debug == {"version": "", "transports": ["P2P/CUMEM"], "initialised": True}


def test_every_way_of_calling_has_its_own_folder(bench):
    for mode in ("eager", "graph"):
        assert bench.run("print(json.dumps(order['mode']) if rank else json.dumps(order))", mode=mode)[0]["mode"] == mode
    assert sorted(path.name for path in (bench.path / "folder" / "graph").iterdir()) == ["err.0", "err.1", "out.0", "out.1"]


PRINT = "if rank == order['of']:\n    print(json.dumps(dict(os.environ)))\n    print(json.dumps(dict(os.environ)), file=sys.stderr)\n"


def environment_of(bench, rank, monkeypatch, **options):
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy", "no_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.10:3128")
    bench.run(PRINT + "if rank == 0:\n    print('{}')\n", of=rank, **options)
    return json.loads((bench.path / "folder" / "eager" / f"err.{rank}").read_text())


OPERATORS = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/nowhere/nccl.%p", "RANK": "7", "CUDA_VISIBLE_DEVICES": "5"}


def test_the_environment_of_a_rank(bench, monkeypatch):
    """N03: no proxy stands between ranks."""
    monkeypatch.setenv("KEPT", "yes")
    found = environment_of(bench, 1, monkeypatch, environment=OPERATORS)
    folder = str(bench.path / "folder" / "eager")
    assert not [name for name in found if name.lower().endswith("_proxy")]
    assert (found["KEPT"], found["NCCL_P2P_DISABLE"]) == ("yes", "1"), "the operator's wins over ours"
    assert found["NCCL_DEBUG"] == "INFO", "but not over the log that is read"
    assert (found["RANK"], found["LOCAL_RANK"], found["WORLD_SIZE"], found["CUDA_VISIBLE_DEVICES"]) == ("1", "1", "2", ""), "but not over who it is"
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("127.0.0.1", "29500")
    assert {found[name] for name in ("HOME", "SGLANG_CACHE_DIR", "XDG_CACHE_HOME")} == {folder}, "nothing is left behind"
    assert found["NCCL_DEBUG_FILE"].startswith(folder) and found["PYTHONDONTWRITEBYTECODE"] == "1"


def test_proxies_that_the_operator_sets_are_the_operators(bench, monkeypatch):
    assert environment_of(bench, 0, monkeypatch, environment={"http_proxy": "http://192.0.2.20:3128"})["http_proxy"] == "http://192.0.2.20:3128"


@pytest.mark.parametrize("name", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_memory_without_handles_is_not_for_a_measurement(bench, monkeypatch, name):
    monkeypatch.setenv(name, "expandable_segments:True")
    assert name not in environment_of(bench, 0, monkeypatch, environment={name: "expandable_segments:True"})


FAILURES = [
    pytest.param("sys.exit('RuntimeError: the reason')", "a rank failed: RuntimeError: the reason", id="both"),
    pytest.param("print('said on stdout')\nsys.exit(3)", "a rank failed: said on stdout", id="standard-output"),
    pytest.param("sys.exit(1)", "a rank failed: it printed nothing", id="silent"),
    pytest.param("os.kill(os.getpid(), 9)", "a rank failed: it printed nothing", id="killed"),
    pytest.param("import torch_that_is_not_there", "the interpreter has no torch_that_is_not_there: give the python of an engine's", id="no-torch"),
    pytest.param("if rank == 0:\n    sys.exit('first')\ntime.sleep(60)", "a rank failed: first", id="rank-0-alone"),
    pytest.param("if rank == 1:\n    sys.exit('second')\ntime.sleep(60)", "a rank failed: second", id="rank-1-alone"),
    pytest.param("if rank == 1:\n    print('{}')\n    sys.exit('late')\nprint('{}')", "a rank failed: {} / late", id="after-rank-0-answered"),
    pytest.param("sys.stderr.buffer.write(b'\\xff\\xfe no text')\nsys.exit(1)", "a rank failed: \ufffd\ufffd no text", id="no-text"),
    pytest.param("pass", "rank 0 ended without a result", id="no-result"),
    pytest.param("print('[1]')", "rank 0 ended without a result", id="no-object"),
    pytest.param("print('{\"half')", 'rank 0 ended with a result that is none: {"half', id="half-a-result"),
]


@pytest.mark.parametrize("script, message", FAILURES)
def test_a_rank_that_fails(bench, script, message):
    begun = time.monotonic()
    assert bench.fails(script).startswith(message)
    assert time.monotonic() - begun < 15, "nobody waits for the others"


def test_the_first_failure_is_the_cause(bench, monkeypatch):
    """Rank 0 fails in the moment that rank 1 is gone: what it says is a consequence."""
    ends = {rank: bench.path / f"end-{rank}" for rank in (0, 1)}
    order = [1, 0]

    def sleep(_seconds):
        time.sleep(0.01)
        if order and len(bench.noted()) == 2:
            rank = order.pop(0)
            ends[rank].touch()
            while is_running(bench.noted()[rank]):
                time.sleep(0.001)

    monkeypatch.setattr(_ranks, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    script = f"note(os.getpid())\nwhile not os.path.exists({str(bench.path)!r} + f'/end-{{rank}}'):\n    time.sleep(0.001)\n"
    assert bench.fails(script + "sys.exit('the cause' if rank else 'Connection closed by peer')") == "a rank failed: the cause"


def test_failures_at_once_are_told_together(bench):
    """Which was the first cannot be seen."""
    script = "sys.exit(\"ModuleNotFoundError: No module named 'torch'\" if rank else 'Connection closed by peer')"
    assert bench.fails(script).startswith("the interpreter has no torch")


@pytest.mark.parametrize(
    "script, message",
    [
        pytest.param("time.sleep(60)", "no answer within 1 s: NCCL was not initialised; the ranks may not reach each other", id="no-nccl"),
        pytest.param(INITIALISED + "time.sleep(60)", "no answer within 1 s although NCCL was initialised (P2P/CUMEM): peer-to-peer is suspected", id="L19"),
        pytest.param("if rank:\n    time.sleep(60)\nprint('{}')", "no answer within 1 s", id="one-of-two"),
        pytest.param("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)", "no answer within 1 s", id="deaf"),
    ],
)
def test_ranks_that_hang(bench, script, message):
    begun = time.monotonic()
    assert bench.fails(script, timeout=1.0).startswith(message)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "script, timeout",
    [
        pytest.param("time.sleep(60)", 1.0, id="hang"),
        pytest.param("sys.exit(1)", 20.0, id="fail"),
        pytest.param("if rank == 1:\n    time.sleep(0.5)\n    sys.exit(1)\n", 20.0, id="one-fails-after-the-other-ended"),
        pytest.param("print('{}')", 20.0, id="end-well"),
    ],
)
def test_no_child_of_a_rank_survives(bench, script, timeout):
    """A process that holds GPU memory would stand in the way of the next server."""
    with contextlib.suppress(AllreduceError):
        bench.run(CHILD + script, timeout=timeout)
    assert bench.survivors() == []


def test_an_interpreter_that_is_not_there(bench):
    with pytest.raises(FileNotFoundError):
        bench.run("pass", python=str(bench.path / "python"))


def test_ranks_that_were_started_end_when_the_next_cannot_be(bench, monkeypatch):
    started, popen = [], subprocess.Popen

    def start(*words, **options):
        if started:
            raise OSError("Resource temporarily unavailable")
        started.append(popen(*words, **options))
        return started[0]

    monkeypatch.setattr(_ranks.subprocess, "Popen", start)
    with pytest.raises(OSError, match="Resource temporarily"):
        bench.run("time.sleep(60)")
    assert not is_running(started[0].pid)


def test_a_rank_that_cannot_be_killed_is_left(bench, monkeypatch):
    """A process in the driver's hands ignores even SIGKILL."""
    waits, killed = [], []

    def wait(seconds):
        waits.append(seconds)
        raise subprocess.TimeoutExpired("rank", seconds)

    monkeypatch.setattr(_ranks.os, "killpg", lambda *words: killed.append(words))
    _ranks._end([SimpleNamespace(pid=7, wait=wait), SimpleNamespace(pid=8, wait=wait)])
    assert killed == [(7, signal.SIGKILL), (8, signal.SIGKILL)] and len(waits) == 2 and max(waits) <= 10


def test_an_interrupt_ends_the_ranks(bench, monkeypatch):
    def interrupt(_seconds):
        deadline = time.monotonic() + 10
        while len(bench.noted()) < 2 and time.monotonic() < deadline:
            os.sched_yield()
        raise KeyboardInterrupt

    monkeypatch.setattr(_ranks, "time", SimpleNamespace(sleep=interrupt, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        bench.run(CHILD + "time.sleep(60)")
    assert bench.survivors() == []
