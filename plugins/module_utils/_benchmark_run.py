# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A whole benchmark of one start of a server: every workload at every point, by one load generator. Used by the benchmark's module and by the gate."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _engine_client
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import Batch, EngineGenerator, Target, benchmark_module, has_chat_template
from ansible_collections.llmops.inference.plugins.module_utils._chat_generator import ChatGenerator, needs_chat
from ansible_collections.llmops.inference.plugins.module_utils._client_process import KEY_VARIABLE, ClientProcess, client_environment
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Ask
from ansible_collections.llmops.inference.plugins.module_utils._hardware import GpuSampler
from ansible_collections.llmops.inference.plugins.module_utils._http import Client
from ansible_collections.llmops.inference.plugins.module_utils._load_client import PATH as CHAT_PATH
from ansible_collections.llmops.inference.plugins.module_utils._load_client_files import client_command, write_client
from ansible_collections.llmops.inference.plugins.module_utils._measure import (
    FLUSHED,
    SALTED,
    WARM,
    Generator,
    Manner,
    Measure,
    Point,
    Report,
    failed_point,
)
from ansible_collections.llmops.inference.plugins.module_utils._record_points import FAILED
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._server_load import ServerLoad
from ansible_collections.llmops.inference.plugins.module_utils._workload import NO_TEXT, Prompt, Workload, prompts, requests
from ansible_collections.llmops.inference.plugins.module_utils._workload import WARM as COMES_AGAIN

_START_SECONDS = 180.0
# A sweep ends where this much more in flight does not bring that much more throughput.
_SWEEP_FACTOR, _SWEEP_LIMIT, _SATURATED_PCT = 4, 1024, 10.0
_IN_FLIGHT_ROUNDS, _RATE_SECONDS = 2, 20.0

Points = t.Dict[str, t.List[t.Dict[str, t.Any]]]


class Leg(t.NamedTuple):
    """What is measured in one piece.

    Attributes:
        workload: one of the job.
        point: where; None for the sweep.
    """

    workload: Workload
    point: Point | None

    def __str__(self) -> str:
        return f"{self.workload.name}, {self.point or 'the sweep'}"


@dataclass(frozen=True)
class Job:
    """What is measured, and how.

    Attributes:
        target: the server.
        python: interpreter of the engine.
        workloads: what is asked.
        points: where.
        sweep: whether to measure more and more requests in flight besides, until the throughput no longer grows.
        repetitions: of each point.
        warmup_limit: repetitions before them, at most.
        warm: whether prompts may come from the prefix cache.
        flush: whether the prefix cache may be emptied before each repetition, which takes it from everybody whom the server serves.
        slo: objectives for goodput.
        failed_pct: share of failed requests that is put up with, percent.
        seconds: limit of one repetition.
        seed: of prompts and arrivals.
        salt: makes prompts unlike those of earlier runs.
        api_key: of the server.
        ca_path: CA bundle for https.
        module: Python module of the engine's benchmark; empty for where its marker says it is.
        admin_key: key for flushing, where it is another.
        chat: whether the chat API is asked, as users' programs do, also where the engine's own benchmark could send the workload.
    """

    target: Target
    python: str
    workloads: t.Sequence[Workload]
    points: t.Sequence[Point] = (Point(),)
    sweep: bool = False
    repetitions: int = 5
    warmup_limit: int = 4
    warm: bool = False
    flush: bool = False
    slo: t.Mapping[str, float] = field(default_factory=dict)
    failed_pct: float = 0.0
    seconds: float = 900.0
    seed: int = 1
    salt: str = ""
    api_key: str = ""
    ca_path: str = ""
    module: str = ""
    admin_key: str = ""
    chat: bool = False

    def cache(self, workload: Workload) -> str:
        """The cache policy under which a workload is measured."""
        if self.warm or workload.prefix == COMES_AGAIN:
            return WARM
        return FLUSHED if self.flush else SALTED

    def by_chat(self, workload: Workload) -> bool:
        """Whether a workload is sent by the client for the chat API; token ids at random have no text to chat with."""
        return needs_chat(workload) or (self.chat and workload.prefix != NO_TEXT)


def requests_at(workload: Workload, point: Point) -> int:
    """Returns how many requests one repetition sends: at least what the workload says, two rounds of what is in flight, and twenty seconds of arrivals."""
    in_flight = (point.concurrency or 0) * _IN_FLIGHT_ROUNDS if (point.concurrency or 0) > 1 else 0
    return max(workload.requests, in_flight, math.ceil((point.request_rate or 0.0) * _RATE_SECONDS))


def _salt(job: Job, workload: Workload, point: Point) -> str:
    """Salted, no prompt comes again at another point or in another run."""
    return f"{job.salt}/{point}" if job.cache(workload) == SALTED else job.salt


def make_batch(job: Job, workload: Workload, number: int, point: Point) -> Batch:
    """Returns what the engine's benchmark sends in one repetition. Salted texts differ by their first line, token ids by their seed.

    Args:
        job: see :class:`Job`.
        workload: one of it.
        number: of the repetition.
        point: where it is measured.
    """
    count, seed = requests_at(workload, point), job.seed + number
    salt = _salt(job, workload, point)
    if workload.prefix == NO_TEXT:
        if job.cache(workload) == SALTED:
            # numpy takes seeds of 32 bits.
            seed = int(hashlib.sha256(f"{salt}/{seed}".encode()).hexdigest()[:8], 16)
        return Batch(count, (), workload.input_tokens or 0, workload.output_tokens, seed)
    texts = prompts(workload, repetition=number, seed=job.seed, salt=salt, count=count)
    return Batch(count, texts, 0, workload.output_tokens, seed)


def make_requests(job: Job, workload: Workload, number: int, point: Point) -> tuple[list[Prompt], int]:
    """Returns what the client for the chat API sends in one repetition, and the seed of the arrivals; see :func:`make_batch`."""
    found = requests(workload, repetition=number, seed=job.seed, salt=_salt(job, workload, point), count=requests_at(workload, point))
    return found, job.seed + number


def sweep(measure: t.Callable[[Point], dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Measures more and more requests in flight until the throughput no longer grows.

    Args:
        measure: returns the entry of one point.
    """
    found: list[dict[str, t.Any]] = []
    concurrency, best = 1, 0.0
    while concurrency <= _SWEEP_LIMIT:
        found.append(measure(Point(concurrency)))
        if found[-1]["status"] == FAILED:
            break
        now = found[-1]["summary"].get("output_tok_per_s", {}).get("median")
        if not now:
            found[-1]["remarks"].append("without a speed there is no telling whether more in flight bring more")
            break
        if now < best * (1 + _SATURATED_PCT / 100):
            found[-1]["remarks"].append(f"saturated: {concurrency} in flight bring less than {_SATURATED_PCT:g} % more than {concurrency // _SWEEP_FACTOR}")
            break
        concurrency, best = concurrency * _SWEEP_FACTOR, now
    return found


class BenchmarkRun:
    """Runs the job.

    Args:
        job: see :class:`Job`.
        folder: for the load generator; must exist.
        ask: runs a command of the host whose GPUs work.
        gpus: whether there are some.
        report: progress.

    Attributes:
        failures: a sentence for each point that failed, which names it.
    """

    def __init__(self, job: Job, folder: Path, ask: Ask, gpus: bool, report: Report) -> None:
        self._job = job
        self._folder = folder
        self._sampler = GpuSampler(ask, gpus)
        self._report = report
        self._module = job.module or benchmark_module(job.python)
        self.failures: list[str] = []

    def client(self, workload: Workload) -> dict[str, str]:
        """The record's ``client``, as far as this side knows it."""
        if self._job.by_chat(workload):
            return {"name": "openai", "module": "", "api": CHAT_PATH}
        return {"name": "engine", "module": self._module, "api": "/generate"}

    def legs(self) -> list[Leg]:
        """Returns all that is measured on a start, in the order of the workloads."""
        points = [None, *self._job.points] if self._job.sweep else list(self._job.points)
        return [Leg(workload, point) for workload in self._job.workloads for point in points]

    def start(self, goes_on: t.Callable[[], bool] = lambda: True) -> Points:
        """Returns the points of one start of the server, by name of the workload. See ``failures`` for what of it failed.

        A point that failed is one of them. It ends a sweep, and what comes after it is measured only where the server still serves.

        Args:
            goes_on: asked after a failed point, whether there is a reason to measure the others.

        Raises:
            BenchmarkError: there is nothing at all: the load generator does not start.
        """
        found: Points = {}
        legs = sorted(self.legs(), key=lambda leg: self._job.by_chat(leg.workload))
        while legs:
            try:
                legs, failed = self._by_one_client(legs, found)
            except BenchmarkError as error:
                if not found:
                    raise
                failed = self._failed(legs[0].workload, failed_point(legs[0].point or Point(), str(error)))
                found.setdefault(legs[0].workload.name, []).append(failed)
                legs = legs[1:]
            if failed and legs and not (goes_on() and self._server().serves()):
                failed["remarks"].insert(0, f"not tried after it: {'; '.join(map(str, legs))}")
                break
        return found

    def _by_one_client(self, legs: list[Leg], found: Points) -> tuple[list[Leg], dict[str, t.Any] | None]:
        """Measures until something fails, for that may leave a load generator in any state, or needs the other client; returns what is left and what failed.

        Raises:
            BenchmarkError: the load generator does not start.
        """
        chat = self._job.by_chat(legs[0].workload)
        self._report("starting the load generator")
        with self._process(chat) as process:
            process.expect("ready", _START_SECONDS)
            for place, leg in enumerate(legs):
                if self._job.by_chat(leg.workload) is not chat:
                    return legs[place:], None
                points = self._leg(process, leg)
                found.setdefault(leg.workload.name, []).extend(points)
                if points[-1]["status"] == FAILED:
                    return legs[place + 1 :], self._failed(leg.workload, points[-1])
        return [], None

    def _failed(self, workload: Workload, entry: dict[str, t.Any]) -> dict[str, t.Any]:
        """Notes a point that failed, by the last of its remarks, and returns it."""
        self.failures.append(f"{workload.name}, {Point(entry['concurrency'], entry['request_rate'])}: {entry['remarks'][-1]}")
        return entry

    def _process(self, chat: bool) -> ClientProcess:
        job, folder = self._job, self._folder
        environment = client_environment(os.environ, str(folder), job.api_key, job.ca_path)
        if chat:
            write_client(folder)
            plan = folder / "plan.json"
            server = {"base_url": job.target.url, "model": job.target.model_name, "api_key_variable": KEY_VARIABLE, "ca_path": job.ca_path or None}
            plan.write_text(json.dumps({**server, "timeout_s": job.seconds}))
            return ClientProcess(client_command(job.python, folder, plan), environment, folder)
        script = folder / "engine_client.py"
        script.write_text(inspect.getsource(_engine_client))
        return ClientProcess([job.python, "-s", str(script), self._module], environment, folder)

    def _generator(self, process: ClientProcess, workload: Workload) -> Generator:
        job = self._job
        if job.by_chat(workload):
            return ChatGenerator(process, lambda number, point: make_requests(job, workload, number, point), workload.output_tokens, self._folder)
        template = has_chat_template(job.target.tokenizer)
        return EngineGenerator(process, job.target, lambda number, point: make_batch(job, workload, number, point), self._folder, template)

    def _server(self) -> ServerLoad:
        job = self._job
        client, admin = (Client(job.target.url, key, job.ca_path or None) for key in (job.api_key, job.admin_key or job.api_key))
        return ServerLoad(client.request, flush=admin.request)

    def _leg(self, process: ClientProcess, leg: Leg) -> list[dict[str, t.Any]]:
        job, workload = self._job, leg.workload
        manner = Manner(
            workload.name,
            answer_tokens(workload),
            repetitions=job.repetitions,
            warmup_limit=job.warmup_limit,
            cache=job.cache(workload),
            slo=job.slo,
            failed_pct=job.failed_pct,
            seconds=job.seconds,
        )
        measure = Measure(self._generator(process, workload), self._server(), self._sampler, manner, report=self._report)
        return [measure.point(leg.point)] if leg.point else sweep(measure.point)


def answer_tokens(workload: Workload) -> int | None:
    """Returns the length that every answer has; None where requests have their own."""
    return None if any(prompt.output_tokens for prompt in workload.prompts) else workload.output_tokens


def describe_workload(job: Job, workload: Workload) -> dict[str, t.Any]:
    """Returns the record's ``workload``.

    Args:
        job: see :class:`Job`.
        workload: one of it.
    """
    return {
        "name": workload.name,
        "hash": workload.hash,
        "label": workload.label,
        "requests": workload.requests,
        "input_tokens": workload.input_tokens,
        "output_tokens": answer_tokens(workload),
        "cache": job.cache(workload),
        "seed": job.seed,
        "slo": dict(job.slo),
    }
