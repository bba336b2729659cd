# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""One rank of the all-reduce measurement. Runs as a script in an engine's interpreter; rank 0 prints one line of JSON.

Usage: RANK= LOCAL_RANK= WORLD_SIZE= MASTER_ADDR= MASTER_PORT= python _allreduce_worker.py JSON
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import sys
import time
import types
import typing as t


class Timer:
    """Times calls on a device.

    Args:
        torch: the library.
        device: where the message lies.
    """

    def __init__(self, torch: t.Any, device: str) -> None:
        self._torch = torch
        self._cuda = device != "cpu"

    def microseconds(self, call: t.Callable[[], t.Any], repeats: int) -> float:
        """Returns the mean of ``repeats`` calls; on a GPU measured by its own events."""
        if not self._cuda:
            begun = time.perf_counter()
            for _repeat in range(repeats):
                call()
            return (time.perf_counter() - begun) / repeats * 1e6
        begin, end = self._torch.cuda.Event(enable_timing=True), self._torch.cuda.Event(enable_timing=True)
        begin.record()
        for _repeat in range(repeats):
            call()
        end.record()
        self._torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) / repeats * 1e3


class Unavailable(RuntimeError):
    """This way of calling is not there; the message is the reason."""


def make_message(torch: t.Any, size: int, dtype: t.Any, *, device: str, rank: int, world: int) -> tuple[t.Any, t.Any]:
    """Returns (what this rank gives, what all of them must get): small whole numbers, exact in every dtype."""
    count = size // torch.empty(0, dtype=dtype).element_size()
    total = sum(1 + other % 2 for other in range(world))
    base = torch.arange(count, device=device) % max(1, 256 // total) + 1
    return (base * (1 + rank % 2)).to(dtype), (base * total).to(dtype)


class Library:
    """All-reduce in place, as torch.distributed does it.

    Args:
        torch: the library.
    """

    def __init__(self, torch: t.Any) -> None:
        self._torch = torch

    def takes(self, message: t.Any) -> bool:
        """Returns whether it is meant for this message."""
        return message is not None

    def call(self, message: t.Any) -> t.Any:
        """Returns the sum over all ranks."""
        self._torch.distributed.all_reduce(message)
        return message

    def recording(self) -> t.ContextManager[t.Any]:
        """Returns what has to surround the capture of a graph."""
        return contextlib.nullcontext()


class Engine(Library):
    """The engine's own all-reduce of one kernel (its first version, without NVLink multicast), which it uses for small messages in graphs.

    Args:
        torch: the library.
        device: of this rank, already the current one.

    Raises:
        Unavailable: it cannot be used here; every rank raises.
    """

    def __init__(self, torch: t.Any, device: str) -> None:
        super().__init__(torch)
        # A second lock: the class of the first version is named below.
        os.environ["SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2"] = "0"
        self._group = torch.distributed.new_group(backend="gloo")
        warnings: list[str] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("sglang").addHandler(handler)
        try:
            self._communicator = self._make(torch.device(device), warnings)
        finally:
            logging.getLogger("sglang").removeHandler(handler)

    def _make(self, device: t.Any, warnings: list[str]) -> t.Any:
        try:
            parallel = importlib.import_module("sglang.srt.distributed.parallel_state")
            engine = importlib.import_module("sglang.srt.distributed.device_communicators.custom_all_reduce")
            reason = "" if engine.ops.IS_CUSTOM_AR_AVAILABLE else "its kernels are not there"
        except Exception as error:  # pylint: disable=broad-except
            # Whatever the engine's imports raise is the reason: what cannot be used is no failure of the measurement.
            reason = f"{type(error).__name__}: {error}"
        self._agree(reason)
        # Its test of peer-to-peer asks the engine's world group for these two.
        world = types.SimpleNamespace(local_rank=self._torch.distributed.get_rank(self._group), barrier=self._barrier)
        setattr(parallel, "get_world_group", lambda: world)  # noqa: B010
        communicator = None
        try:
            communicator = engine.CustomAllreduce(group=self._group, device=device)
            reason = (warnings[-1:] or ["the engine disabled it"])[0].split(" To silence")[0] if communicator.disabled else ""
        except Exception as error:  # pylint: disable=broad-except
            reason = f"{type(error).__name__}: {error}"
        self._agree(reason)
        return communicator

    def _barrier(self) -> None:
        self._torch.distributed.barrier(self._group)

    def _agree(self, reason: str) -> None:
        """One rank that cannot means that none does."""
        reasons = [""] * self._torch.distributed.get_world_size(self._group)
        self._torch.distributed.all_gather_object(reasons, reason, group=self._group)
        for rank, why in enumerate(reasons):
            if why:
                raise Unavailable(f"rank {rank}: {why}")

    def takes(self, message: t.Any) -> bool:
        return bool(self._communicator.should_custom_ar(message))

    def call(self, message: t.Any) -> t.Any:
        return self._communicator.custom_all_reduce(message)

    def recording(self) -> t.ContextManager[t.Any]:
        return t.cast("t.ContextManager[t.Any]", self._communicator.capture())


def measure(torch: t.Any, order: t.Mapping[str, t.Any], device: str, way: Library) -> dict[str, t.Any]:
    """Measures every message in one mode: each is checked, then timed."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dtype = getattr(torch, order["dtype"])
    timer = Timer(torch, device)
    samples: dict[str, list[float]] = {}
    wrong: dict[str, int] = {}
    for size in order["sizes"]:
        given, expected = make_message(torch, size, dtype, device=device, rank=rank, world=world)
        if not way.takes(given):
            continue
        mistakes = (way.call(given.clone()) != expected).sum().to(torch.int64).reshape(1)
        torch.distributed.all_reduce(mistakes)
        wrong[str(size)] = int(mistakes.item())
        # Zeros stay zeros however often they are summed.
        message = torch.zeros_like(given)
        repeats = order["repeats"] if size <= 1 << 20 else max(1, order["repeats"] // 10)
        graph = order["mode"] != "eager"
        step = capture(torch, way, message, repeats) if graph else functools.partial(way.call, message)
        for _round in range(order["warmup"]):
            step()
        found = []
        for _sample in range(order["samples"]):
            torch.distributed.barrier()
            found.append(timer.microseconds(step, 1 if graph else repeats) / (repeats if graph else 1))
        samples[str(size)] = found
    return {"samples": samples, "wrong": wrong}


def capture(torch: t.Any, way: Library, message: t.Any, repeats: int) -> t.Callable[[], t.Any]:
    """Returns the replay of a CUDA graph that holds ``repeats`` calls, as a captured decode step does."""
    for _warmup in range(3):
        way.call(message)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with way.recording(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _repeat in range(repeats):
            way.call(message)
    return t.cast("t.Callable[[], t.Any]", graph.replay)


def main() -> None:
    import torch

    order = json.loads(sys.argv[1])
    device = "cpu"
    if order["backend"] == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.distributed.init_process_group(order["backend"])
    answer: dict[str, t.Any] = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
    if device != "cpu":
        answer["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    try:
        way = Engine(torch, device) if order["mode"] == "engine" else Library(torch)
        answer.update(measure(torch, order, device, way))
    except Unavailable as reason:
        answer["unavailable"] = str(reason)
    if os.environ["RANK"] == "0":
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    torch.distributed.barrier()
    sys.stdout.flush()
    # A communicator that captured graphs can hang when it is taken down; the process ends anyway.
    os._exit(0)


if __name__ == "__main__":
    main()
