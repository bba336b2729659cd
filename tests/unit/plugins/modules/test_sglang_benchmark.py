# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._release import Store
from ansible_collections.llmops.inference.plugins.modules import sglang_benchmark

SECRET = "s3cret-of-the-server"
RESULT = (Path(__file__).resolve().parents[2] / "fixtures" / "benchmark" / "0.5.23.jsonl").read_text()


class Bench:
    """The module with the engine's benchmark played."""

    def __init__(self, path, run_module):
        self.store = Store(path / "store" / "main")
        self.status, self.output, self.error, self.written = 0, "", "", RESULT
        self.run_module = run_module
        self.commands = []

    def run(self, check_mode=False, **args):
        options = {"instance": "main", "python": "/e/bin/python", "port": 30000, "model_name": "qwen", "tokenizer": "/m", "requests": 2}
        options.update(api_key=SECRET, store=str(self.store.path.parent))
        return self.run_module(sglang_benchmark, {**options, **args}, command=self.command, check_mode=check_mode)

    def command(self, words, **options):
        self.commands.append((words, options, dict(os.environ)))
        if self.written is not None:
            Path(words[words.index("--output-file") + 1]).write_text(self.written)
        return self.status, self.output, self.error


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch, run_module):
    monkeypatch.setattr(sglang_benchmark, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    return Bench(tmp_path, run_module)


def test_a_measurement(bench, documented):
    ran = bench.run()
    assert (ran.status, ran.result["changed"], ran.keys) == (0, False, documented(sglang_benchmark))
    assert (ran.result["benchmark"]["output_tok_per_s"], ran.result["benchmark"]["failed"]) == (242.49, 0)
    assert ran.result["benchmark"]["measured_at"].endswith("Z")
    assert not bench.store.path.exists()


def test_the_key_goes_by_environment(bench):
    """U09: command lines are visible to everybody on the host."""
    ran = bench.run()
    ((words, options, environment),) = bench.commands
    assert SECRET not in " ".join(words) and SECRET not in ran.output
    assert options["environ_update"]["OPENAI_API_KEY"] == SECRET
    assert words[:3] == ["timeout", "900", "/e/bin/python"]


def test_the_environment_of_the_benchmark(bench, monkeypatch):
    """N03: no proxy; nothing of it touches a hub or a GPU."""
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.10:3128")
    bench.run(tls=True, ca_path="/ca.pem")
    ((words, options, environment),) = bench.commands
    assert not {name for name in {**environment, **options["environ_update"]} if name.lower().endswith("_proxy")} - {"no_proxy", "NO_PROXY"}
    assert options["environ_update"] | {"HOME": ""} == {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HOME": "",
        "OPENAI_API_KEY": SECRET,
        "SSL_CERT_FILE": "/ca.pem",
    }
    assert "https://127.0.0.1:30000" in words


@pytest.mark.parametrize(
    "marker, args, module",
    [
        pytest.param(None, {}, "sglang.benchmark.serving", id="no-marker"),
        pytest.param({"benchmark_module": "sglang.bench_serving"}, {}, "sglang.bench_serving", id="older-engine"),
        pytest.param({}, {}, "sglang.benchmark.serving", id="marker-of-an-older-collection"),
        pytest.param({"benchmark_module": "sglang.bench_serving"}, {"benchmark_module": "other"}, "other", id="asked-for"),
    ],
)
def test_where_the_engine_keeps_its_benchmark(bench, tmp_path, marker, args, module):
    if marker is not None:
        (tmp_path / "engine.json").write_text(json.dumps(marker))
    bench.run(python=str(tmp_path / "bin" / "python"), **args)
    ((words, options, environment),) = bench.commands
    assert words[2:5] == [str(tmp_path / "bin" / "python"), "-m", module]


@pytest.mark.parametrize("ca_path", [None, "/ca.pem"])
def test_a_private_ca_is_named_only_when_there_is_one(bench, ca_path):
    bench.run(**({"ca_path": ca_path} if ca_path else {}))
    assert bench.commands[0][1]["environ_update"].get("SSL_CERT_FILE") == ca_path


@pytest.mark.parametrize(
    "args, name", [({}, "single_stream_512"), ({"output_tokens": 128}, "custom"), ({"concurrency": 8}, "custom")], ids=["default", "short", "many"]
)
def test_the_profile_is_in_the_result(bench, args, name):
    profile = bench.run(**args).result["benchmark"]["profile"]
    assert profile == {"name": name, "requests": 2, "concurrency": 1, "input_tokens": 128, "output_tokens": 512, "warmup_requests": 2, "seed": 1, **args}


def test_check_mode_measures_nothing(bench, documented):
    ran = bench.run(check_mode=True, release="abc")
    assert (ran.result["changed"], ran.result["benchmark"], ran.keys) == (False, {}, documented(sglang_benchmark))
    assert bench.commands == []


def test_the_result_is_kept_with_the_release(bench):
    (bench.store.releases / "abc").mkdir(parents=True)
    ran = bench.run(release="abc")
    assert ran.result["changed"] is True
    assert bench.store.read("abc", "benchmark") == ran.result["benchmark"]


FAILURES = [
    pytest.param(
        {"status": 1, "error": f"a\nb\nc\nAuthenticationError: {SECRET}\n"},
        "the engine's benchmark failed: b / c / AuthenticationError: ********",
        id="U09-key",
    ),
    pytest.param({"status": 1, "output": "No module named sglang\n"}, "the engine's benchmark failed: No module named sglang", id="standard-output"),
    pytest.param({"status": 124}, "the engine's benchmark took longer than 900 s", id="timeout"),
    pytest.param({"written": ""}, "the engine's benchmark wrote no result", id="empty"),
    pytest.param({"written": None}, "[Errno 2] No such file or directory", id="no-file"),
    pytest.param({"written": json.dumps({"completed": 0})}, "no request of the benchmark succeeded", id="none-succeeded"),
    pytest.param({"written": json.dumps({**json.loads(RESULT), "completed": 1})}, "1 of 2 requests failed", id="one-failed"),
]


@pytest.mark.parametrize("played, message", FAILURES)
def test_failures_have_the_same_keys(bench, documented, tmp_path, played, message):
    vars(bench).update(played)
    ran = bench.run()
    assert (ran.status, ran.failed, ran.keys) == (1, True, documented(sglang_benchmark))
    assert ran.result["msg"].startswith(message) and ran.result["benchmark"] == {}
    assert SECRET not in ran.output
    assert list((tmp_path / "progress").iterdir()) == []


def test_a_release_that_is_not_there(bench, documented):
    ran = bench.run(release="abc")
    assert (ran.failed, ran.keys) == (True, documented(sglang_benchmark))
    assert "No such file or directory" in ran.result["msg"]
