# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _benchmark_host, _benchmark_run
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import Target
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_host import JOB, HostBenchmark, make_job, make_workload
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point, failed_point
from ansible_collections.llmops.inference.plugins.module_utils._probe import ARGUMENTS
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError, BenchmarkFailed
from ansible_collections.llmops.inference.plugins.module_utils._workload import WorkloadError, shipped
from ansible_collections.llmops.inference.plugins.modules import sglang_benchmark
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point
from ansible_collections.llmops.inference.tests.unit.machine import UNIT, Machine

SECRET, ADMIN = "s3cret-of-the-server", "s3cret-of-the-admin"
DEFAULTS = {name: option.get("default") for name, option in {**JOB, **ARGUMENTS}.items()}
SERVER = {"port": 30000, "model_name": "qwen", "api_key": SECRET, "timeout": 60.0}
WHOLE = {**DEFAULTS, **SERVER, "python": "/e/bin/python", "tokenizer": "/m"}


def job(**params):
    return make_job({**WHOLE, **params}, WHOLE)


def test_the_job_of_the_defaults():
    found = job()
    assert found.target == Target("127.0.0.1", 30000, False, "qwen", "/m")
    assert (found.points, found.sweep, found.repetitions, found.warmup_limit, found.seconds) == ([Point(1)], False, 5, 4, 900)
    assert (found.api_key, found.admin_key, found.ca_path, found.module) == (SECRET, "", "", "")
    assert list(found.workloads) == [shipped("decode")]


@pytest.mark.parametrize(
    "params, points",
    [
        pytest.param({"concurrency": [1, 4]}, [Point(1), Point(4)], id="concurrency"),
        pytest.param({"request_rates": [0.5]}, [Point(1), Point(None, 0.5)], id="rates-besides"),
        pytest.param({"concurrency": [], "request_rates": [0.5, 2.0]}, [Point(None, 0.5), Point(None, 2.0)], id="rates-only"),
        pytest.param({"sweep": True, "concurrency": [2]}, [], id="sweep"),
        pytest.param({"sweep": True, "request_rates": [0.5]}, [Point(None, 0.5)], id="sweep-and-rates"),
    ],
)
def test_the_points(params, points):
    assert list(job(**params).points) == points


def test_a_salt_differs_between_runs_unless_the_cache_is_flushed():
    assert len(job().salt) == 14 and job().salt.isdigit()
    assert job(flush=True).salt == "flushed"


@pytest.mark.parametrize(
    "params, message",
    [
        pytest.param({"repetitions": 0}, "repetitions: 0 must be more than 0", id="repetitions"),
        pytest.param({"requests": -1, "starts": 0}, "requests: -1 must be more than 0; starts: 0 must be more than 0", id="several"),
        pytest.param({"repetition_timeout": 0.0}, "repetition_timeout: 0.0 must be more than 0", id="timeout"),
        pytest.param({"concurrency": [1, 0]}, "concurrency: 0 must be more than 0", id="concurrency"),
        pytest.param({"request_rates": [-2.5]}, "request_rates: -2.5 must be more than 0", id="rate"),
        pytest.param({"seed": -1}, "seed: -1 must not be less than 0", id="seed"),
        pytest.param({"slo": {"ttft": 5}}, "slo.ttft: there is ttft_ms, tpot_ms, e2e_ms", id="unknown-objective"),
        pytest.param({"slo": {"ttft_ms": "fast"}}, "slo.ttft_ms: 'fast' must be a number of milliseconds", id="objective-in-words"),
        pytest.param({"slo": {"ttft_ms": None}}, "slo.ttft_ms: None must be a number of milliseconds", id="objective-without-value"),
        pytest.param({"slo": {"tpot_ms": True}}, "slo.tpot_ms: True must be a number of milliseconds", id="objective-switch"),
        pytest.param({"workloads": []}, "workloads: names none, and there is no dataset", id="no-workload"),
        pytest.param({"concurrency": []}, "concurrency: names none, and neither do request_rates", id="no-point"),
    ],
)
def test_options_without_a_meaning(params, message):
    with pytest.raises(BenchmarkError) as raised:
        job(**params)
    assert str(raised.value) == message


def test_objectives_are_numbers():
    assert job(slo={"ttft_ms": "500", "e2e_ms": 3}).slo == {"ttft_ms": 500.0, "e2e_ms": 3.0}


def test_a_workload_that_there_is_not():
    with pytest.raises(WorkloadError, match="^there is no workload 'decoed': did you mean decode"):
        job(workloads=["decoed"])


@pytest.mark.parametrize(
    "name, params, expected",
    [
        pytest.param("decode", {}, (4, None, 512), id="its-own"),
        pytest.param("decode", {"requests": 9, "output_tokens": 64}, (9, None, 64), id="asked-for"),
        pytest.param("decode", {"input_tokens": 99}, (4, None, 512), id="prompts-have-their-length"),
        pytest.param("random_ids", {"input_tokens": 99}, (5, 99, 512), id="ids"),
        pytest.param("long_context", {"input_tokens": 1000}, (4, 1000, 64), id="documents"),
    ],
)
def test_the_size_of_a_workload(name, params, expected):
    found = make_workload(name, {**WHOLE, **params})
    assert (found.requests, found.input_tokens, found.output_tokens) == expected


def test_the_module_documents_the_defaults():
    """Options stand in JOB, and with their defaults in the module's documentation."""
    yaml = pytest.importorskip("yaml")
    documented = yaml.safe_load(sglang_benchmark.DOCUMENTATION)["options"]
    assert {name: documented[name].get("default") for name in JOB} == {name: option.get("default") for name, option in JOB.items()}


class Played:
    """Stands in for the run of one start."""

    def __init__(self, bench, given, *others):
        self.bench, self.job = bench, given
        self.failures = []
        bench.salts.append(given.salt)
        bench.others = others

    @staticmethod
    def client(_workload):
        return {"name": "engine", "module": "sglang.benchmark.serving", "api": "/generate"}

    def legs(self):
        return [_benchmark_run.Leg(workload, point) for workload in self.job.workloads for point in self.job.points]

    def start(self, goes_on=lambda: True):
        if self.bench.trouble:
            raise BenchmarkError(self.bench.trouble)
        self.bench.measured += 1
        found = {workload.name: [point([90.0 + self.bench.measured] * 3)] for workload in self.job.workloads}
        if self.bench.measured == self.bench.fails_at:
            self.bench.died()
            self.bench.went_on = goes_on()
            self.failures.append("decode, concurrency 4: 1 of 4 requests failed")
            found = {"decode": [*found["decode"], failed_point(Point(4), f"1 of 4 requests failed: HTTP 500 {SECRET}")]}
        return found


class Bench:
    """A host with one good release that runs, and a benchmark that is played."""

    def __init__(self, path):
        self.machine = Machine.below(path)
        (self.machine.places.etc / UNIT).write_text("[Service]\nExecStart=/bin/sglang --word\n")
        self.machine.run(["systemctl", "daemon-reload"])
        self.machine.run(["systemctl", "restart", UNIT])
        self.machine.commands.clear()
        self.machine.replies["/server_info"] = Reply(200, json.dumps({"version": "0.5.23", "attention_backend": "fa3", "api_key": SECRET, "random_seed": 3}))
        self.store = Store(path / "store" / "main")
        self.store.prepare()
        argv = ("--model-path", "/m", "--api-key", SECRET)
        engine, model = {"name": "0.5.23-cpu-b1018104-py311-x86_64"}, {"path": "/m", "revision": "9d2f1e0c"}
        self.release = Candidate("[Service]\nType=exec\n", argv, {"HF_TOKEN": "hf_0123456789"}, engine, model)
        self.store.stage(self.release)
        self.store.write(self.release.id, "vitals", {"seconds": 51.3, "vitals": {"kv_cache_tokens": 242880}})
        self.tmpdir = str(path / "tmp")
        (path / "tmp").mkdir()
        self.reports = []
        self.trouble = ""
        self.measured = 0
        self.salts = []
        self.others = ()
        self.fails_at = 0
        self.died = lambda: None
        self.went_on = None

    # -- AnsibleModule -----------------------------------------------------------------------------------------------------------

    def get_bin_path(self, name):
        return None

    def run_command(self, command, **options):
        return self.machine.run(command)

    def make(self, **params):
        whole = {**WHOLE, "tokenizer": str(self.store.path), "slo": {}, **params}
        return HostBenchmark(self, "main", self.store, whole, whole, report=lambda *words: self.reports.append(words))

    def run(self, **params):
        return self.make(**params).run(self.release.id)


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch):
    bench = Bench(tmp_path)
    monkeypatch.setenv("LLMOPS_INFERENCE_ROOT", str(tmp_path))
    monkeypatch.setattr(_benchmark_host, "make_host", lambda run, params: bench.machine)
    monkeypatch.setattr(_benchmark_host, "BenchmarkRun", functools.partial(Played, bench))
    return bench


def test_one_record_per_workload(bench):
    records = bench.run(workloads=["decode", "random_ids"], output_tokens=64)
    assert [record["workload"]["name"] for record in records] == ["decode", "random_ids"]
    record = records[0]
    assert (record["release"]["id"], record["instance"], record["workload"]["output_tokens"]) == (bench.release.id, "main", 64)
    assert [start["invocation"] for start in record["starts"]] == ["run-1"] and record["starts"][0]["started_at"] == "1970-01-01T01:23:20Z"
    assert record["client"] == {"name": "engine", "module": "sglang.benchmark.serving", "version": "0.5.23", "where": "server", "api": "/generate"}
    assert (record["model"]["revision"], record["vitals"], record["effective"]) == ("9d2f1e0c", {"kv_cache_tokens": 242880}, {"attention_backend": "fa3"})
    assert (record["hardware"]["gpus"], record["measured_at"][-1]) == ([], "Z")
    assert bench.machine.called("restart") == 0, "the running server is measured as it is"


def test_secrets_are_nowhere(bench):
    """U09"""
    text = json.dumps(bench.run(admin_api_key=ADMIN))
    assert not [secret for secret in (SECRET, ADMIN, "hf_0123456789") if secret in text]


def test_the_load_from_another_host(bench):
    """The server's host says what is measured; the network is part of the number, and the record names where it came from."""
    subject = json.loads(json.dumps(bench.make().subject(bench.release.id)))
    assert SECRET not in json.dumps(subject), "the engine tells its keys"
    (record,) = bench.make().load(subject, "controller")
    assert record["client"]["where"] == "controller" and record["release"]["id"] == bench.release.id
    assert record["starts"][0]["invocation"] == subject["start"]["invocation"]
    assert bench.run()[0]["client"]["where"] == "server"


def test_a_server_is_not_restarted_from_another_host(bench):
    subject = bench.make().subject(bench.release.id)
    with pytest.raises(BenchmarkError, match="^starts: 3: a server is restarted only where it is measured on its own host"):
        bench.make(starts=3).load(subject, "controller")


@pytest.mark.parametrize(("flush", "different"), [(False, 2), (True, 1)], ids=["salted", "flushed"])
def test_prompts_of_a_second_measurement_of_one_start_are_not_in_its_cache(bench, flush, different):
    """As the gate asks for one where a loss is not shown; a cache that is emptied may see the same prompts."""
    benchmark = bench.make(flush=flush)
    benchmark.run(bench.release.id)
    benchmark.run(bench.release.id)
    assert len(set(bench.salts)) == different


def test_several_starts(bench):
    (record,) = bench.run(starts=3)
    assert [start["invocation"] for start in record["starts"]] == ["run-1", "run-2", "run-3"]
    assert [start["points"][0]["summary"]["output_tok_per_s"]["median"] for start in record["starts"]] == [91.0, 92.0, 93.0]
    assert bench.machine.called("restart") == 2
    steps = [words[0] for words in bench.reports]
    assert steps[0] == "restarting the server (start 2 of 3)" and "start 3 of 3: starting the HTTP server" in steps


def statuses(record):
    return [[(point["concurrency"], point["status"]) for point in start["points"]] for start in record["starts"]]


def test_a_restart_that_fails(bench):
    """U09: what the engine printed is shown, its keys are not. The start before it is kept."""
    bench.machine.dies["--word"] = [f"RuntimeError: bad {SECRET}"]
    with pytest.raises(BenchmarkFailed) as raised:
        bench.run(starts=3, concurrency=[1, 4])
    reason = "the server did not come back for start 2: the engine stopped with RuntimeError: bad ********"
    assert str(raised.value).startswith(reason)
    (record,) = raised.value.records
    assert statuses(record) == [[(1, "ok")], [(1, "failed"), (4, "failed")]] and bench.measured == 1
    assert (record["starts"][1]["invocation"], record["starts"][1]["started_at"]) == ("", None)
    assert record["starts"][1]["points"][0]["remarks"][0].startswith(reason) and SECRET not in json.dumps(record)


def test_a_restart_that_systemd_refuses(bench):
    bench.machine.refuses["--word"] = "Job for sglang-main.service failed."
    with pytest.raises(BenchmarkFailed, match="^systemctl restart sglang-main.service failed with status 1: Job for") as raised:
        bench.run(starts=2)
    assert statuses(raised.value.records[0]) == [[(1, "ok")], [(1, "failed")]]


def test_a_point_that_failed(bench):
    """What was measured comes back, with the reason; a workload of which nothing was tried has no record, and the server is not started once more."""
    bench.fails_at = 2
    with pytest.raises(BenchmarkFailed, match="^decode, concurrency 4: 1 of 4 requests failed$") as raised:
        bench.run(starts=3, workloads=["decode", "chat"])
    decode, chat = raised.value.records
    assert (statuses(decode), statuses(chat)) == ([[(1, "ok")], [(1, "ok"), (4, "failed")]], [[(1, "ok")]])
    assert bench.machine.called("restart") == 1 and SECRET not in json.dumps(raised.value.records)
    bench.fails_at = 3
    with pytest.raises(BenchmarkFailed) as raised:
        bench.run(workloads=["decode", "chat"])
    assert [record["workload"]["name"] for record in raised.value.records] == ["decode"]


@pytest.mark.parametrize(
    ("goes_on", "died", "expected"),
    [
        pytest.param(True, False, True, id="the-server-runs"),
        pytest.param(False, False, False, id="nobody-wants-the-rest"),
        pytest.param(True, True, False, id="systemd-started-it-again"),
    ],
)
def test_whether_the_rest_is_worth_measuring(bench, goes_on, died, expected):
    """What runs after a crash is another start: its numbers are not of this one."""
    bench.fails_at = 1
    bench.died = lambda: died and bench.machine.run(["systemctl", "restart", UNIT])
    with pytest.raises(BenchmarkFailed):
        bench.make().run(bench.release.id, goes_on=goes_on)
    assert bench.went_on is expected


def test_a_point_that_failed_from_another_host(bench):
    subject = json.loads(json.dumps(bench.make().subject(bench.release.id)))
    bench.fails_at = 1
    with pytest.raises(BenchmarkFailed) as raised:
        bench.make().load(subject, "controller")
    assert raised.value.records[0]["client"]["where"] == "controller"


def test_a_server_that_does_not_run(bench):
    bench.machine.state = replace(bench.machine.state, active="inactive", main_pid=0)
    with pytest.raises(BenchmarkError, match="^sglang-main.service does not run: there is nothing to measure$"):
        bench.run()
    assert bench.measured == 0


def test_a_benchmark_that_fails(bench):
    """B04"""
    bench.trouble = "7 of 10 requests failed"
    with pytest.raises(BenchmarkError, match="^7 of 10 requests failed$"):
        bench.run()


def test_what_the_load_generator_gets(bench):
    bench.run()
    folder, _ask, gpus, _report = bench.others
    assert (str(folder), folder.is_dir(), gpus) == (f"{bench.tmpdir}/benchmark", True, False)


def test_an_own_file_is_a_workload_besides():
    """Its lines may say their own length; then the client for the chat API sends them."""
    lines = '{"prompt": "Hello", "output_tokens": 8}\n{"messages": [{"role": "user", "content": "Bye"}]}\n'
    made = make_job({**WHOLE, "workloads": [], "dataset": lines, "dataset_name": "mine.jsonl", "output_tokens": 64}, WHOLE)
    (workload,) = made.workloads
    assert (workload.name, workload.requests, workload.output_tokens, made.by_chat(workload)) == ("mine", 2, 64, True)


def test_an_own_file_with_a_mistake_is_named_with_its_line():
    with pytest.raises(WorkloadError, match="^mine.jsonl, line 2: promt: there is no such key, did you mean prompt"):
        make_job({**WHOLE, "dataset": '{"prompt": "Hello"}\n{"promt": "Bye"}', "dataset_name": "mine.jsonl"}, WHOLE)
