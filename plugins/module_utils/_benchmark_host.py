# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Options of a benchmark, what they become, and the benchmark of a server on this host with the conditions of its numbers."""

from __future__ import annotations

import os
import platform
import time
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._benchmark import Target
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_run import BenchmarkRun, Job, Points, describe_workload
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, make_ask
from ansible_collections.llmops.inference.plugins.module_utils._hardware import hardware
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError, run_checked
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point, Report, failed_point
from ansible_collections.llmops.inference.plugins.module_utils._probe import make_expectation, make_host, sentence, unit_name
from ansible_collections.llmops.inference.plugins.module_utils._promise import ask_server_info
from ansible_collections.llmops.inference.plugins.module_utils._record import Subject, describe_model, make_record
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact_data
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.module_utils._repetition import SLO, BenchmarkError, BenchmarkFailed
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES
from ansible_collections.llmops.inference.plugins.module_utils._watch import Host, Watch
from ansible_collections.llmops.inference.plugins.module_utils._workload import Workload, shipped
from ansible_collections.llmops.inference.plugins.module_utils._workload_file import load

JOB: dict[str, t.Any] = {
    "python": {"type": "path", "required": True},
    "benchmark_module": {"type": "str", "default": ""},
    "tokenizer": {"type": "path", "required": True},
    "workloads": {"type": "list", "elements": "str", "default": ["decode"]},
    "dataset": {"type": "str", "default": ""},
    "dataset_name": {"type": "str", "default": "dataset"},
    "client": {"type": "str", "choices": ["auto", "openai"], "default": "auto"},
    "requests": {"type": "int"},
    "input_tokens": {"type": "int", "no_log": False},
    "output_tokens": {"type": "int", "no_log": False},
    "concurrency": {"type": "list", "elements": "int", "default": [1]},
    "request_rates": {"type": "list", "elements": "float", "default": []},
    "sweep": {"type": "bool", "default": False},
    "repetitions": {"type": "int", "default": 5},
    "warmup_repetitions": {"type": "int", "default": 4},
    "starts": {"type": "int", "default": 1},
    "warm": {"type": "bool", "default": False},
    "flush": {"type": "bool", "default": False},
    "slo": {"type": "dict", "default": {}},
    "failed_pct": {"type": "float", "default": 0.0},
    "seed": {"type": "int", "default": 1},
    "repetition_timeout": {"type": "float", "default": 900},
    "admin_api_key": {"type": "str", "default": "", "no_log": True},
}
# Length of an answer of an own file whose lines do not say theirs.
_DATASET_TOKENS = 512
_POSITIVE = ("requests", "input_tokens", "output_tokens", "repetitions", "warmup_repetitions", "starts", "repetition_timeout")

Params = t.Mapping[str, t.Any]
# Which start, and its points by name of the workload.
Start = t.Tuple[t.Dict[str, t.Any], Points]


def make_job(params: Params, server: Params) -> Job:
    """Returns the benchmark that a module's options ask for.

    Args:
        params: options of :data:`JOB`.
        server: options of :data:`_probe.ARGUMENTS`.

    Raises:
        BenchmarkError: an option has no meaning; the message names it and its value.
        WorkloadError: there is no such workload.
    """
    wrong = [f"{name}: {params[name]!r} must be more than 0" for name in _POSITIVE if params[name] is not None and not params[name] > 0]
    wrong += [f"{name}: {value!r} must be more than 0" for name in ("concurrency", "request_rates") for value in params[name] if not value > 0]
    wrong += [f"seed: {params['seed']} must not be less than 0"] if params["seed"] < 0 else []
    wrong += [f"slo.{name}: there is {', '.join(SLO)}" for name in params["slo"] if name not in SLO]
    wrong += [f"slo.{name}: {limit!r} must be a number of milliseconds" for name, limit in params["slo"].items() if not _is_positive(limit)]
    wrong += ["workloads: names none, and there is no dataset"] if not (params["workloads"] or params["dataset"]) else []
    wrong += ["concurrency: names none, and neither do request_rates"] if not (params["concurrency"] or params["request_rates"] or params["sweep"]) else []
    if wrong:
        raise BenchmarkError("; ".join(wrong))
    points = [] if params["sweep"] else [Point(number) for number in params["concurrency"]]
    points += [Point(None, rate) for rate in params["request_rates"]]
    return Job(
        target=Target(server["host"], server["port"], server["tls"], server["model_name"], params["tokenizer"]),
        python=params["python"],
        workloads=[*(make_workload(name, params) for name in params["workloads"]), *make_dataset(params)],
        points=points,
        sweep=params["sweep"],
        repetitions=params["repetitions"],
        warmup_limit=params["warmup_repetitions"],
        warm=params["warm"],
        flush=params["flush"],
        slo={name: float(limit) for name, limit in params["slo"].items()},
        failed_pct=params["failed_pct"],
        seconds=params["repetition_timeout"],
        seed=params["seed"],
        salt=time.strftime("%Y%m%d%H%M%S") if not params["flush"] else "flushed",
        api_key=server["api_key"],
        ca_path=server["ca_path"] or "",
        module=params["benchmark_module"],
        admin_key=params["admin_api_key"],
        chat=params["client"] == "openai",
    )


def _is_positive(value: t.Any) -> bool:
    try:
        return float(value) > 0 and not isinstance(value, bool)
    except (TypeError, ValueError):
        return False


def make_workload(name: str, params: Params) -> Workload:
    """Returns a shipped workload in the size that is asked for; a length of the prompts where the workload has one to choose.

    Raises:
        WorkloadError: there is no such workload.
    """
    changes = {key: params[key] for key in ("requests", "output_tokens") if params[key] is not None}
    sized = params["input_tokens"] is not None and shipped(name).input_tokens is not None
    return shipped(name, input_tokens=params["input_tokens"] if sized else None, **changes)


def make_dataset(params: Params) -> list[Workload]:
    """Returns the workload of the operator's own file, where there is one.

    Raises:
        WorkloadError: it cannot be used; the message names the line.
    """
    if not params["dataset"]:
        return []
    tokens = params["output_tokens"] or _DATASET_TOKENS
    return [load(params["dataset"], params["dataset_name"], output_tokens=tokens, requests=params["requests"])]


class HostBenchmark:
    """The benchmark of one server on this host.

    Args:
        module: of Ansible, for its commands and its temporary directory.
        instance: name of the server.
        store: releases of the instance.
        params: options of :data:`JOB`.
        server: options of :data:`_probe.ARGUMENTS`.
        report: progress.
    """

    def __init__(self, module: t.Any, instance: str, store: Store, params: Params, server: Params, *, report: Report) -> None:
        self._module = module
        self._instance = instance
        self._store = store
        self._params = params
        self._server = server
        self._report = report
        self._job = make_job(params, server)
        self._runs = 0
        self._ask = make_ask(module)
        self._host: Host = make_host(module.run_command, {**server, "instance": instance})

    def run(self, release: str, goes_on: bool = True) -> list[dict[str, t.Any]]:
        """Returns one record per workload.

        Args:
            release: id of the release that runs.
            goes_on: whether what is left of the points is measured after one that failed, where the server still serves.

        Raises:
            BenchmarkFailed: a part failed; it has the records.
            BenchmarkError: nothing was measured.
        """
        facts = self._facts()
        subject, benchmark = self._subject(release, facts), self._benchmark(bool(facts["gpus"]))
        starts: list[Start] = [self._measured(benchmark, goes_on)]
        while len(starts) < self._params["starts"] and not benchmark.failures:
            try:
                self._restart(unit_name(self._instance), len(starts) + 1)
                starts.append(self._measured(benchmark, goes_on))
            except (BenchmarkError, HostError) as error:
                benchmark.failures.append(str(error))
                starts.append(_unmeasured(benchmark, str(error)))
        return self._records(subject, starts, benchmark, "server")

    def _measured(self, benchmark: BenchmarkRun, goes_on: bool) -> Start:
        """Measures the run that there is.

        Raises:
            BenchmarkError: it does not run, or nothing could be measured.
        """
        began = self._began()

        def is_the_same() -> bool:
            # What systemd started again is another start.
            state = self._host.unit_state()
            return goes_on and state.alive and state.invocation == began["invocation"]

        return began, benchmark.start(is_the_same)

    def subject(self, release: str) -> dict[str, t.Any]:
        """Returns what is measured, for a load generator on another host; see :meth:`load`.

        Args:
            release: id of the release that runs.

        Raises:
            BenchmarkError: the server does not run.
        """
        # The engine tells its keys, and this passes through the controller.
        subject: dict[str, t.Any] = redact_data(self._subject(release, self._facts())._asdict(), self._secrets)
        return {**subject, "start": self._began()}

    def load(self, subject: t.Mapping[str, t.Any], where: str) -> list[dict[str, t.Any]]:
        """Returns one record per workload, of a server that runs elsewhere: the network to it is part of the numbers, and its GPUs are not seen.

        Args:
            subject: what :meth:`subject` returned on the server's host.
            where: name of this host, for the record.

        Raises:
            BenchmarkFailed: a part failed; it has the records.
            BenchmarkError: nothing was measured, or several starts are asked for.
        """
        if self._params["starts"] > 1:
            raise BenchmarkError(f"starts: {self._params['starts']}: a server is restarted only where it is measured on its own host")
        benchmark = self._benchmark(False)
        start = subject["start"]
        described = Subject(**{name: value for name, value in subject.items() if name != "start"})
        return self._records(described, [(start, benchmark.start())], benchmark, where)

    @property
    def _secrets(self) -> list[str]:
        return [secret for secret in (self._server["api_key"], self._params["admin_api_key"]) if secret]

    def _facts(self) -> dict[str, t.Any]:
        machine = (platform.machine(), os.cpu_count() or 1, platform.release())
        return hardware(self._ask, Files.here(), unit_name(self._instance), machine)

    def _benchmark(self, gpus: bool) -> BenchmarkRun:
        folder = Path(self._module.tmpdir) / "benchmark"
        folder.mkdir(exist_ok=True)
        job = self._job
        self._runs += 1
        if self._runs > 1 and not job.flush:
            # A gate that measures again asks the same start, whose cache has seen the prompts.
            job = replace(job, salt=f"{job.salt}/{self._runs}")
        return BenchmarkRun(job, folder, self._ask, gpus, self._report)

    def _began(self) -> dict[str, t.Any]:
        """Which run of the unit is measured.

        Raises:
            BenchmarkError: it does not run.
        """
        state = self._host.unit_state()
        if not state.alive:
            raise BenchmarkError(f"{unit_name(self._instance)} does not run: there is nothing to measure")
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(state.started)) if state.started else None
        return {"invocation": state.invocation, "started_at": began}

    def _records(self, subject: Subject, starts: t.Sequence[Start], benchmark: BenchmarkRun, where: str) -> list[dict[str, t.Any]]:
        """One record for each workload of which something was tried.

        Raises:
            BenchmarkFailed: a part failed.
        """
        done = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        records = [
            make_record(
                subject,
                describe_workload(self._job, workload),
                [{**began, "points": found[workload.name]} for began, found in starts if workload.name in found],
                client={**benchmark.client(workload), "where": where},
                measured_at=done,
                secrets=self._secrets,
            )
            for workload in self._job.workloads
            if any(workload.name in found for _began, found in starts)
        ]
        if benchmark.failures:
            raise BenchmarkFailed("; ".join(benchmark.failures), records)
        return records

    def _restart(self, unit: str, number: int) -> None:
        """Starts the server anew; one start says little about the next.

        Raises:
            BenchmarkError: it does not come back.
        """
        self._report(f"restarting the server (start {number} of {self._params['starts']})")
        run_checked(self._module.run_command, ["systemctl", "restart", unit])

        def report(phase: str, seconds: float, detail: str) -> None:
            self._report(f"start {number} of {self._params['starts']}: {TITLES.get(phase, phase)}", seconds, detail)

        outcome = Watch(self._host, make_expectation(self._server), report, fresh=True).run()
        if not outcome.ready:
            raise BenchmarkError(f"the server did not come back for start {number}: {sentence(outcome, (self._server['api_key'],))}")

    def _subject(self, release: str, facts: t.Mapping[str, t.Any]) -> Subject:
        store = self._store
        document = store.read(release, "release")
        model = describe_model(self._server["model_name"], str(document.get("model", {}).get("revision", "")), Path(self._params["tokenizer"]))
        return Subject(
            self._instance,
            document,
            store.read(release, "preflight"),
            store.read(release, "vitals").get("vitals", {}),
            ask_server_info(self._host.request),
            model,
            facts,
        )


def _unmeasured(benchmark: BenchmarkRun, reason: str) -> Start:
    """A start that did not come, or could not be measured: each of its points failed."""
    found: Points = {}
    for leg in benchmark.legs():
        found.setdefault(leg.workload.name, []).append(failed_point(leg.point or Point(), reason))
    return {"invocation": "", "started_at": None}, found
