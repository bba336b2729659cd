# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _allreduce_worker as worker

WIDTHS = {"bfloat16": 2, "float16": 2, "float32": 4}


class Tensor:
    """What of a tensor the worker uses, with a list of numbers inside."""

    def __init__(self, values, dtype="int64"):
        self.values = list(values)
        self.dtype = dtype

    def _each(self, function):
        return Tensor([function(value) for value in self.values], self.dtype)

    def __mod__(self, number):
        return self._each(lambda value: value % number)

    def __add__(self, number):
        return self._each(lambda value: value + number)

    def __mul__(self, number):
        return self._each(lambda value: value * number)

    def __ne__(self, other):
        return Tensor([one != two for one, two in zip(self.values, other.values)], "bool")

    __hash__ = None

    def to(self, dtype):
        return Tensor(self.values, dtype)

    def clone(self):
        return Tensor(self.values, self.dtype)

    def sum(self):
        return Tensor([sum(self.values)])

    def reshape(self, count):
        assert count == len(self.values)
        return self

    def item(self):
        (value,) = self.values
        return value

    def element_size(self):
        return WIDTHS[self.dtype]


class Torch:
    """A torch of one rank among several: what it cannot know of the others, it computes; everything is noted.

    Args:
        rank: this rank.
        world: how many there are.
        broken: messages arrive wrong.
    """

    __version__ = "2.9.1"
    bfloat16, float16, float32, int64 = "bfloat16", "float16", "float32", "int64"

    def __init__(self, rank=0, world=2, broken=False):
        self.rank, self.world, self.broken = rank, world, broken
        self.said = []
        self.reasons = [""] * world
        self.version = SimpleNamespace(cuda="13.0")
        self.nccl = SimpleNamespace(version=lambda: (2, 28, 9))
        self.cuda = SimpleNamespace(
            Event=self.event,
            synchronize=lambda: self.said.append("synchronize"),
            CUDAGraph=self.new_graph,
            graph=self.record,
            set_device=lambda index: self.said.append(f"device {index}"),
            nccl=self.nccl,
        )
        self.distributed = SimpleNamespace(
            all_reduce=self.all_reduce,
            barrier=lambda group=None: self.said.append("barrier"),
            init_process_group=lambda backend: self.said.append(f"init {backend}"),
            new_group=lambda backend: f"a {backend} group",
            get_rank=lambda group: self.rank,
            get_world_size=lambda group: self.world,
            all_gather_object=self.all_gather,
        )

    device = staticmethod(lambda name: f"device {name}")
    empty = staticmethod(lambda count, dtype: Tensor([0] * count, dtype))
    arange = staticmethod(lambda count, device: Tensor(range(count)))
    zeros_like = staticmethod(lambda tensor: Tensor([0] * len(tensor.values), tensor.dtype))

    def all_reduce(self, message):
        self.said.append("all_reduce")
        if message.dtype == "int64":
            message.values = [value * self.world for value in message.values]
            return
        total = sum(1 + rank % 2 for rank in range(self.world))
        message.values = [value // (1 + self.rank % 2) * total + self.broken for value in message.values]

    def all_gather(self, into, reason, group):
        assert group == "a gloo group"
        into[:] = self.reasons
        into[self.rank] = reason

    def event(self, enable_timing):
        assert enable_timing
        event = SimpleNamespace(record=lambda: self.said.append("event"))
        event.elapsed_time = lambda end: 0.5
        return event

    def new_graph(self):
        return SimpleNamespace(replay=lambda: self.said.append("replay"))

    @contextlib.contextmanager
    def record(self, graph, capture_error_mode):
        assert capture_error_mode == "thread_local", "another thread of NCCL may call CUDA meanwhile"
        self.said.append("record")
        yield
        self.said.append("recorded")


@pytest.fixture(name="ranked")
def fixture_ranked(monkeypatch):
    def make(rank=0, world=2, **options):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        return Torch(rank, world, **options)

    return make


@pytest.mark.parametrize("dtype, exact", [("bfloat16", 256), ("float16", 2048), ("float32", 2**24)])
@pytest.mark.parametrize("world", [1, 2, 3, 8, 16, 64])
def test_messages_are_exact_in_every_dtype(dtype, exact, world):
    messages = [worker.make_message(Torch, 4096, dtype, device="cpu", rank=rank, world=world) for rank in range(world)]
    expected = messages[0][1].values
    assert len(expected) * WIDTHS[dtype] == 4096 and {given.dtype for given, _expected in messages} == {dtype}
    assert [sum(values) for values in zip(*(given.values for given, _expected in messages))] == expected
    assert all(wanted.values == expected for _given, wanted in messages) and min(expected) > 0 and max(expected) <= exact
    assert len(set(expected)) > 1, "a mistake that moves elements is seen"
    assert world == 1 or messages[0][0].values != messages[1][0].values, "a rank that is counted twice is seen"


def test_time_on_a_cpu(monkeypatch):
    clock = iter([10.0, 10.003])
    monkeypatch.setattr(worker.time, "perf_counter", lambda: next(clock))
    calls = []
    assert worker.Timer(Torch(), "cpu").microseconds(lambda: calls.append(1), 3) == pytest.approx(1000.0)
    assert len(calls) == 3


def test_time_on_a_gpu():
    torch = Torch()
    assert worker.Timer(torch, "cuda:0").microseconds(lambda: torch.said.append("call"), 2) == pytest.approx(250.0)
    assert torch.said == ["event", "call", "call", "event", "synchronize"]


ORDER = {"backend": "gloo", "dtype": "bfloat16", "sizes": [64, 2 << 20], "mode": "eager", "warmup": 2, "repeats": 20, "samples": 3}


@pytest.mark.parametrize("rank, world", [(0, 1), (0, 2), (1, 2), (2, 4)])
def test_measure(ranked, rank, world):
    torch = ranked(rank, world)
    found = worker.measure(torch, {**ORDER, "sizes": [64, 128]}, "cpu", worker.Library(torch))
    assert found["wrong"] == {"64": 0, "128": 0}
    assert {size: len(samples) for size, samples in found["samples"].items()} == {"64": 3, "128": 3}
    # per message: the check and its count of mistakes, the warm-up, and 3 samples of 20 calls, each after a barrier
    assert torch.said == 2 * (["all_reduce"] * 4 + 3 * (["barrier"] + ["all_reduce"] * 20))


def test_long_messages_are_sent_less_often(ranked):
    torch = ranked()
    worker.measure(torch, {**ORDER, "sizes": [2 << 20], "samples": 1}, "cpu", worker.Library(torch))
    assert torch.said == ["all_reduce"] * 4 + ["barrier"] + ["all_reduce"] * 2
    torch.said.clear()
    worker.measure(torch, {**ORDER, "sizes": [2 << 20], "samples": 1, "repeats": 1}, "cpu", worker.Library(torch))
    assert torch.said[-2:] == ["barrier", "all_reduce"], "but once"


def test_wrong_values_are_counted_over_all_ranks(ranked):
    torch = ranked(broken=True)
    assert worker.measure(torch, {**ORDER, "sizes": [64]}, "cpu", worker.Library(torch))["wrong"] == {"64": 64}, "32 elements on each of 2 ranks"


def test_a_graph_holds_all_calls(ranked):
    torch = ranked()
    found = worker.measure(torch, {**ORDER, "sizes": [64], "mode": "graph", "repeats": 4, "samples": 1, "warmup": 1}, "cuda:0", worker.Library(torch))
    assert found["samples"] == {"64": [pytest.approx(500.0 / 4)]}, "the time of one replay over its calls"
    capture = ["all_reduce"] * 3 + ["synchronize", "record"] + ["all_reduce"] * 4 + ["recorded"]
    assert torch.said == ["all_reduce"] * 2 + capture + ["replay", "barrier", "event", "replay", "event", "synchronize"]


def test_messages_that_a_way_does_not_take_are_left_out(ranked):
    torch = ranked()
    way = worker.Library(torch)
    way.takes = lambda message: len(message.values) == 32
    assert list(worker.measure(torch, {**ORDER, "sizes": [64, 128]}, "cpu", way)["samples"]) == ["64"]


class Engine:
    """The engine's modules, as far as the worker knows them."""

    def __init__(self, monkeypatch, available=True, disabled="", error=""):
        self.error, self.disabled = error, disabled
        self.made = []
        monkeypatch.delenv("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", raising=False)
        self.parallel = SimpleNamespace()
        found = {
            "sglang.srt.distributed.parallel_state": self.parallel,
            "sglang.srt.distributed.device_communicators.custom_all_reduce": SimpleNamespace(
                ops=SimpleNamespace(IS_CUSTOM_AR_AVAILABLE=available), CustomAllreduce=self.make
            ),
        }
        monkeypatch.setattr(worker.importlib, "import_module", found.__getitem__)

    def make(self, group, device):
        if self.error:
            raise RuntimeError(self.error)
        if self.disabled:
            logging.getLogger("sglang.srt.distributed").warning(self.disabled)
        self.made.append((group, device))
        self.parallel.get_world_group().barrier()
        return SimpleNamespace(
            disabled=bool(self.disabled),
            should_custom_ar=lambda message: len(message.values) < 100,
            custom_all_reduce=lambda message: Tensor([value // 1 * 3 for value in message.values], message.dtype),
            capture=contextlib.nullcontext,
        )


def test_the_engines_own(ranked, monkeypatch):
    engine = Engine(monkeypatch)
    torch = ranked()
    way = worker.Engine(torch, "cuda:0")
    monkeypatch.setenv("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", os.environ["SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2"])
    assert engine.made == [("a gloo group", "device cuda:0")] and os.environ["SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2"] == "0"
    assert engine.parallel.get_world_group().local_rank == 0 and torch.said == ["barrier"]
    found = worker.measure(torch, {**ORDER, "sizes": [64, 1024], "mode": "engine", "samples": 1}, "cuda:0", way)
    assert (list(found["samples"]), found["wrong"]) == (["64"], {"64": 0})
    assert logging.getLogger("sglang").handlers == []


@pytest.mark.parametrize(
    "options, others, reason",
    [
        ({"available": False}, ["", ""], "rank 0: its kernels are not there"),
        ({"error": "no IPC"}, ["", ""], "rank 0: RuntimeError: no IPC"),
        ({"disabled": "needs P2P. To silence this warning, say so."}, ["", ""], "rank 0: needs P2P."),
        ({}, ["", "its kernels are not there"], "rank 1: its kernels are not there"),
    ],
)
def test_the_engines_own_is_not_there(ranked, monkeypatch, options, others, reason):
    Engine(monkeypatch, **options)
    torch = ranked()
    torch.reasons = others
    monkeypatch.setenv("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", "1")
    with pytest.raises(worker.Unavailable) as why:
        worker.Engine(torch, "cuda:0")
    assert str(why.value) == reason and logging.getLogger("sglang").handlers == []


def test_the_engine_is_not_installed(ranked, monkeypatch):
    monkeypatch.setenv("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", "1")
    monkeypatch.setattr(worker.importlib, "import_module", lambda name: {}[name])
    with pytest.raises(worker.Unavailable, match="^rank 0: KeyError: 'sglang.srt.distributed.parallel_state'$"):
        worker.Engine(ranked(), "cuda:0")


class Ended(Exception):
    """os._exit was called."""


@pytest.fixture(name="run")
def fixture_run(ranked, monkeypatch, capsys):
    def run(order, rank=0):
        torch = ranked(rank)

        def end(status):
            raise Ended(status)

        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setattr(worker.sys, "argv", ["worker", json.dumps({**ORDER, "sizes": [64], **order})])
        monkeypatch.setattr(worker.os, "_exit", end)
        with pytest.raises(Ended) as ended:
            worker.main()
        assert ended.value.args == (0,) and torch.said[-1] == "barrier", "no rank leaves before the others are done"
        return torch, capsys.readouterr().out

    return run


def test_a_rank_on_a_cpu(run):
    torch, output = run({})
    answer = json.loads(output)
    assert (set(answer), torch.said[0]) == ({"torch", "cuda", "samples", "wrong"}, "init gloo")
    assert (answer["torch"], answer["cuda"], answer["wrong"]) == ("2.9.1", "13.0", {"64": 0})


def test_a_rank_on_a_gpu(run):
    torch, output = run({"backend": "nccl", "mode": "graph"})
    assert json.loads(output)["nccl"] == "2.28.9" and torch.said[:2] == ["device 0", "init nccl"]


def test_only_the_first_rank_answers(run):
    _torch, output = run({}, rank=1)
    assert output == ""


def test_a_way_that_is_not_there_is_an_answer(run, monkeypatch):
    Engine(monkeypatch, available=False)
    monkeypatch.setenv("SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2", "1")
    _torch, output = run({"backend": "nccl", "mode": "engine"})
    assert json.loads(output) == {"torch": "2.9.1", "cuda": "13.0", "nccl": "2.28.9", "unavailable": "rank 0: its kernels are not there"}
