# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _benchmark_host, _benchmark_run
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.modules import sglang_benchmark
from ansible_collections.llmops.inference.tests.unit.json_schema import problems
from ansible_collections.llmops.inference.tests.unit.machine import UNIT, Machine

SECRET, ADMIN = "s3cret-of-the-server", "s3cret-of-the-admin"
SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "benchmark.schema.json").read_text())
CONTROLLER = {"host": "ct129", "collection": "0.1.0", "inventory": {"commit": None, "dirty": None}, "flags": [], "verdict": {}}
# Stands in for the engine's benchmark: every request is answered, but for those that fail; what it was given is written down.
PLAYED = """
import json, os, sys, time
if __name__ == "__main__":
    words = sys.argv[1:]
    after = lambda option: words[words.index(option) + 1]
    with open("given", "a") as given:
        given.write(json.dumps([words, dict(os.environ)]) + "\\n")
    print("a key in its output:", os.environ["OPENAI_API_KEY"])
    if os.environ.get("PLAYED_END"):
        sys.exit("AuthenticationError: " + os.environ["OPENAI_API_KEY"])
    count, failed = int(after("--num-prompts")), int(os.environ.get("PLAYED_FAILED", "0"))
    tokens = int(after("--sharegpt-output-len"))
    errors = ["HTTP 500 for " + os.environ["OPENAI_API_KEY"]] * failed + [""] * (count - failed)
    result = {"duration": 1.0, "ttfts": [0.1] * count, "itls": [[0.01] * (tokens - 1)] * count, "input_lens": [9] * count}
    result.update(output_lens=[0] * failed + [tokens] * (count - failed), errors=errors)
    with open(after("--output-file"), "a") as output:
        output.write(json.dumps(result) + "\\n")
"""


class Bench:
    """The module on a host with one good release, a played server and a played engine."""

    def __init__(self, path, run_module):
        self.path = path
        self.run_module = run_module
        self.machine = Machine.below(path)
        (self.machine.places.etc / UNIT).write_text("[Service]\nExecStart=/bin/sglang --word\n")
        self.machine.run(["systemctl", "daemon-reload"])
        self.machine.run(["systemctl", "restart", UNIT])
        self.machine.commands.clear()
        self.machine.replies["/server_info"] = Reply(200, json.dumps({"version": "0.5.23", "attention_backend": "fa3", "api_key": SECRET}))
        self.store = Store(path / "store" / "main")
        self.store.prepare()
        engine = {"name": "0.5.23-cpu-b1018104-py311-x86_64"}
        self.release = Candidate("[Service]\nType=exec\n", ("--model-path", "/m"), {"HF_TOKEN": "hf_0123456789"}, engine, {"revision": "9d2f"}, ("api_key",))
        self.store.stage(self.release)
        self.store.mark_good(self.release.id)
        (path / "played.py").write_text(PLAYED)

    def run(self, check_mode=False, **args):
        options = {"instance": "main", "python": sys.executable, "benchmark_module": "played", "port": 30000, "model_name": "qwen", "tokenizer": str(self.path)}
        options.update(api_key=SECRET, admin_api_key=ADMIN, store=str(self.store.path.parent), repetitions=2, requests=2, output_tokens=8)
        given = {name: value for name, value in {**options, **args}.items() if value is not None}
        return self.run_module(sglang_benchmark, given, command=lambda words, **_options: self.machine.run(words), check_mode=check_mode)

    @property
    def given(self):
        return [json.loads(line) for line in (self.path / "benchmark" / "given").read_text().splitlines()]


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch, run_module):
    bench = Bench(tmp_path, run_module)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LLMOPS_INFERENCE_ROOT", str(tmp_path))
    monkeypatch.setattr(sglang_benchmark, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    monkeypatch.setattr(_benchmark_host, "make_host", lambda run, params: bench.machine)
    monkeypatch.setattr(_benchmark_host, "make_ask", lambda module: lambda *words: None)
    monkeypatch.setattr(_benchmark_run, "Client", lambda *words: bench.machine)
    return bench


def test_a_measurement(bench, documented, tmp_path):
    ran = bench.run(slo={"ttft_ms": 500})
    assert (ran.status, ran.result.get("msg"), ran.result["changed"], ran.keys) == (0, None, True, documented(sglang_benchmark))
    (record,) = ran.result["records"]
    assert problems({**record, **CONTROLLER}, SCHEMA) == []
    (point,) = record["starts"][0]["points"]
    assert (point["summary"]["output_tok_per_s"]["median"], point["repetitions"][0]["goodput_per_s"], point["warmup"]["stable"]) == (16.0, 2.0, True)
    assert (record["release"]["id"], record["client"]["module"], record["workload"]["slo"]) == (bench.release.id, "played", {"ttft_ms": 500.0})
    assert list((tmp_path / "progress").iterdir()) == [], "nothing to follow is left"


def test_the_result_is_kept_with_the_release(bench):
    ran = bench.run()
    assert bench.store.read(bench.release.id, "benchmark") == {"format": 2, "records": ran.result["records"]}


def test_several_workloads(bench):
    ran = bench.run(workloads=["decode", "chat"], concurrency=[1, 2])
    assert [record["workload"]["name"] for record in ran.result["records"]] == ["decode", "chat"]
    assert [point["concurrency"] for point in ran.result["records"][1]["starts"][0]["points"]] == [1, 2]


def test_secrets_are_nowhere(bench):
    """U09: command lines are visible to everybody on the host, results and what is stored to many."""
    ran = bench.run()
    stored = (bench.store.directory(bench.release.id) / "benchmark.json").read_text()
    commands = json.dumps([words for words, _environment in bench.given])
    for secret in (SECRET, ADMIN, "hf_0123456789"):
        assert secret not in ran.output and secret not in stored and secret not in commands
    assert {environment["OPENAI_API_KEY"] for _words, environment in bench.given} == {SECRET}


def test_the_environment_of_the_benchmark(bench, monkeypatch):
    """N03: no proxy; nothing of it touches a hub or a GPU."""
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.10:3128")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    bench.run(tls=True, ca_path="/ca.pem")
    for words, environment in bench.given:
        assert not [name for name in environment if name.lower().endswith("_proxy")]
        assert (environment["HF_HUB_OFFLINE"], environment["CUDA_VISIBLE_DEVICES"], environment["SSL_CERT_FILE"]) == ("1", "", "/ca.pem")
        assert "https://127.0.0.1:30000" in words


def test_check_mode_measures_nothing(bench, documented):
    ran = bench.run(check_mode=True)
    assert (ran.status, ran.result["changed"], ran.result["records"], ran.keys) == (0, False, [], documented(sglang_benchmark))
    assert not (bench.path / "benchmark").exists() and bench.store.read(bench.release.id, "benchmark") == {}


def test_several_starts(bench):
    ran = bench.run(starts=2, repetitions=1)
    (record,) = ran.result["records"]
    assert [start["invocation"] for start in record["starts"]] == ["run-1", "run-2"]
    assert bench.machine.called("restart") == 1


def fails(bench, monkeypatch, how):
    """Breaks something; returns the options to run with."""
    if how in ("PLAYED_END", "PLAYED_FAILED"):
        monkeypatch.setenv(how, "1")
    if how == "no release":
        (bench.store.path / "good").unlink()
    if how == "damaged":
        (bench.store.directory(bench.release.id) / "vitals.json").write_text("{")
    if how == "dies":
        bench.machine.dies["--word"] = [f"RuntimeError: bad {SECRET}"]
    return {
        "dies": {"starts": 2},
        "python": {"python": "/nowhere/python"},
        "workload": {"workloads": ["decoed"]},
        "option": {"repetitions": 0},
        "stall": {"starts": 2, "stall_timeouts": {"weight": 5}},
    }.get(how, {})


@pytest.mark.parametrize(
    "how, message",
    [
        pytest.param("no release", "no release of main is known to be good: deploy it first", id="no-release"),
        pytest.param("damaged", "vitals.json is damaged", id="damaged-store"),
        pytest.param("python", "No such file or directory: '/nowhere/python'", id="no-engine"),
        pytest.param("workload", "there is no workload 'decoed': did you mean decode?", id="unknown-workload"),
        pytest.param("option", "repetitions: 0 must be more than 0", id="option"),
        pytest.param("stall", "stall_timeouts.weight: a start has no such phase; did you mean weights?", id="stall"),
    ],
)
def test_failures_have_the_same_keys(bench, documented, monkeypatch, tmp_path, how, message):
    ran = bench.run(**fails(bench, monkeypatch, how))
    assert (ran.status, ran.failed, ran.keys) == (1, True, documented(sglang_benchmark))
    assert message in ran.result["msg"] and ran.result["records"] == []
    assert SECRET not in ran.output and ADMIN not in ran.output
    assert not (tmp_path / "progress").exists() or list((tmp_path / "progress").iterdir()) == []
    assert bench.store.read(bench.release.id, "benchmark") == {}


@pytest.mark.parametrize(
    "how, message, statuses",
    [
        pytest.param("PLAYED_FAILED", "decode, concurrency 1: 1 of 2 requests failed: HTTP 500 for ******** (warming up)", ["failed"], id="B04-one-failed"),
        pytest.param("PLAYED_END", "decode, concurrency 1: the load generator ended with status 1: ", ["failed"], id="the-engine-gives-up"),
        pytest.param("dies", "the server did not come back for start 2: the engine stopped with RuntimeError: bad ********", ["ok", "failed"], id="restart"),
    ],
)
def test_what_was_measured_before_a_failure_comes_back(bench, documented, monkeypatch, tmp_path, how, message, statuses):
    """The number that is kept with the release stays the last whole one."""
    ran = bench.run(**fails(bench, monkeypatch, how))
    assert (ran.status, ran.failed, ran.keys) == (1, True, documented(sglang_benchmark)) and ran.result["msg"].startswith(message)
    (record,) = ran.result["records"]
    assert problems({**record, **CONTROLLER}, SCHEMA) == []
    assert [point["status"] for start in record["starts"] for point in start["points"]] == statuses
    assert SECRET not in ran.output and ADMIN not in ran.output
    assert list((tmp_path / "progress").iterdir()) == [] and bench.store.read(bench.release.id, "benchmark") == {}


@pytest.mark.parametrize("missing", ["instance", "python", "tokenizer", "port", "model_name"])
def test_required_options(bench, missing):
    ran = bench.run(**{missing: None})
    assert ran.failed and ran.result["msg"] == f"missing required arguments: {missing}"


def test_a_load_generator_on_another_host(bench, documented):
    """Two calls: what is measured, on the server's host; then the measurement, from elsewhere."""
    told = bench.run(part="subject")
    assert (told.status, told.result["changed"], told.result["records"], told.keys) == (0, False, [], documented(sglang_benchmark))
    assert SECRET not in told.output and ADMIN not in told.output
    ran = bench.run(part="load", subject=told.result["subject"], where="controller")
    assert (ran.status, ran.result["changed"], ran.result["records"][0]["client"]["where"]) == (0, False, "controller")
    assert bench.store.read(bench.release.id, "benchmark") == {}, "that is another number than the host's own"
