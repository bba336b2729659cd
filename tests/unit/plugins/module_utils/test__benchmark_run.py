# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import json
import os
import sys
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _benchmark_run
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import Target
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_run import BenchmarkRun, Job, describe_workload, make_batch, requests_at, sweep
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._workload import shipped, user_prompt

DECODE, IDS, CACHED, SHARED = (shipped(name) for name in ("decode", "random_ids", "short_cached", "shared_prefix"))
JOB = Job(Target("127.0.0.1", 30000, False, "qwen", "/m"), "/e/bin/python", [DECODE], salt="20261130101500")


@pytest.mark.parametrize(
    "changes, workload, expected",
    [
        pytest.param({}, DECODE, "salted", id="default"),
        pytest.param({"flush": True}, DECODE, "flushed", id="flush"),
        pytest.param({"warm": True}, DECODE, "warm", id="warm"),
        pytest.param({"warm": True, "flush": True}, DECODE, "warm", id="warm-wins"),
        pytest.param({"flush": True}, CACHED, "warm", id="a-workload-that-is-warm"),
        pytest.param({}, IDS, "salted", id="ids"),
    ],
)
def test_the_cache_policy(changes, workload, expected):
    job = replace(JOB, **changes)
    assert job.cache(workload) == expected
    assert describe_workload(job, workload)["cache"] == expected


@pytest.mark.parametrize(
    "point, expected",
    [
        pytest.param(Point(), 4, id="its-own"),
        pytest.param(Point(2), 4, id="two-rounds-of-two"),
        pytest.param(Point(16), 32, id="two-rounds"),
        pytest.param(Point(None, 0.1), 4, id="slow"),
        pytest.param(Point(None, 2.51), 51, id="twenty-seconds"),
        pytest.param(Point(64, 1.0), 128, id="both"),
    ],
)
def test_how_many_requests(point, expected):
    assert requests_at(DECODE, point) == expected


POINTS = (Point(), Point(2), Point(4), Point(None, 0.1))
OTHER_RUN = replace(JOB, salt="20261130101501")


def all_prompts(job, workload, points=POINTS, numbers=(1000, 1, 2)):
    return [text for point, number in itertools.product(points, numbers) for text in make_batch(job, workload, number, point).prompts]


@pytest.mark.parametrize("workload", [DECODE, shipped("chat"), shipped("long_context", input_tokens=64), SHARED], ids=lambda workload: workload.name)
def test_no_salted_prompt_comes_twice(workload):
    """B05: not in another repetition, not at another point, not in another run: a prefix cache has none of them."""
    texts = all_prompts(JOB, workload) + all_prompts(OTHER_RUN, workload)
    assert len(set(texts)) == len(texts)
    firsts = {text.splitlines()[0] for text in texts}
    assert len(firsts) == (2 * len(POINTS) * 3 if workload is SHARED else len(texts))


def test_no_salted_token_ids_come_twice():
    """B05"""
    batches = [make_batch(job, IDS, number, point) for job in (JOB, OTHER_RUN) for point in POINTS for number in (1000, 1001, 1, 2)]
    assert len({batch.seed for batch in batches}) == len(batches)
    assert all(0 <= batch.seed < 2**32 and batch.prompts == () and batch.input_tokens == 128 for batch in batches)


def test_a_flushed_cache_is_asked_the_same_in_every_run():
    job = replace(JOB, flush=True, salt="flushed")
    assert make_batch(job, DECODE, 1, Point()) == make_batch(job, DECODE, 1, Point())
    assert [make_batch(job, IDS, number, Point()).seed for number in (1, 2)] == [2, 3]


def test_a_warm_cache_is_asked_the_same_again():
    job = replace(JOB, warm=True)
    assert make_batch(job, DECODE, 0, Point()) == make_batch(job, DECODE, 0, Point(2))
    assert set(make_batch(JOB, CACHED, 0, Point()).prompts) == {CACHED.prompts[0].text}


def test_the_size_of_a_batch():
    batch = make_batch(JOB, replace(DECODE, output_tokens=99), 1, Point(8))
    assert (batch.size, len(batch.prompts), batch.output_tokens) == (16, 16, 99)


class Server:
    """Throughput by requests in flight."""

    def __init__(self, *speeds):
        self.speeds = list(speeds)
        self.asked = []

    def measure(self, point):
        self.asked.append(point.concurrency)
        speed = self.speeds[min(len(self.asked), len(self.speeds)) - 1]
        summary = {"output_tok_per_s": {"median": speed}} if speed else {}
        return {"concurrency": point.concurrency, "status": "failed" if speed == "fails" else "ok", "remarks": ["x"], "summary": summary}


@pytest.mark.parametrize(
    "speeds, asked, remark",
    [
        pytest.param([100, 350, 1000, 1050], [1, 4, 16, 64], "saturated: 64 in flight bring less than 10 % more than 16", id="saturated"),
        pytest.param([100, 80], [1, 4], "saturated: 4 in flight bring less than 10 % more than 1", id="worse"),
        pytest.param([100, 111, 111], [1, 4, 16], "saturated: 16 in flight bring less than 10 % more than 4", id="just-enough"),
        pytest.param([1, 2, 4, 8, 16, 32, 64], [1, 4, 16, 64, 256, 1024], "", id="never"),
        pytest.param([100, "fails", 900], [1, 4], "", id="B04-failed"),
        pytest.param([None], [1], "without a speed there is no telling whether more in flight bring more", id="no-number"),
    ],
)
def test_a_sweep_ends_at_saturation(speeds, asked, remark):
    server = Server(*speeds)
    found = sweep(server.measure)
    assert server.asked == asked == [point["concurrency"] for point in found]
    assert found[-1]["remarks"] == ["x", *([remark] if remark else [])]
    assert all(point["remarks"] == ["x"] for point in found[:-1])


def test_the_record_of_a_workload():
    found = describe_workload(replace(JOB, slo={"ttft_ms": 500.0}, seed=7), CACHED)
    assert found == {
        "name": "short_cached",
        "hash": CACHED.hash,
        "label": "flattering: short prompts from a warm cache",
        "requests": 4,
        "input_tokens": None,
        "output_tokens": 512,
        "cache": "warm",
        "seed": 7,
        "slo": {"ttft_ms": 500.0},
    }


# Stands in for the engine's benchmark: answers at once, and notes what it was given.
PLAYED = """
import json, os, sys
if __name__ != "__main__" and "PLAYED_ONCE" in os.environ and os.path.exists("ended"):
    sys.exit("it starts once only")
if __name__ == "__main__":
    words = sys.argv[1:]
    after = lambda option: words[words.index(option) + 1]
    count = int(after("--num-prompts"))
    tokens = int(after("--sharegpt-output-len" if "custom" in words else "--random-output-len"))
    with open("given", "a") as given:
        given.write(json.dumps({"words": words, "environment": dict(os.environ)}) + "\\n")
    error = os.environ.get("PLAYED_ERROR", "")
    if "--max-concurrency" in words and after("--max-concurrency") == os.environ.get("PLAYED_AT", "1"):
        if os.environ.get("PLAYED_END"):
            open("ended", "a").close()
            sys.exit(os.environ["PLAYED_END"])
    elif "PLAYED_AT" in os.environ:
        error = ""
    with open(after("--output-file"), "a") as output:
        output.write(json.dumps({"duration": 0.5, "ttfts": [0.1] * count, "itls": [[0.01] * (tokens - 1)] * count, "input_lens": [9] * count,
            "output_lens": [tokens] * count, "errors": [error] * count}) + "\\n")
"""
SECRET, ADMIN = "s3cret-of-the-server", "s3cret-of-the-admin"


class Asked:
    """The HTTP client, played: an idle server whose keys belong where the engine takes them."""

    seen = []
    serves = True

    def __init__(self, url, api_key="", ca_path=None):
        self.key, self.ca_path = api_key, ca_path

    def request(self, path, body=None, timeout=5.0):
        self.seen.append((path, self.key, self.ca_path))
        if path == "/v1/loads":
            return Reply(200, json.dumps({"loads": [{"num_running_reqs": 0, "num_waiting_reqs": 0}]}))
        return Reply(200) if path == "/flush_cache" or (path == "/health_generate" and self.serves) else Reply(404)


@pytest.fixture(name="run")
def fixture_run(tmp_path, monkeypatch):
    """Runs a job with a played engine; what it was given is in the file ``given``."""
    (tmp_path / "played.py").write_text(PLAYED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(Asked, "seen", [])
    monkeypatch.setattr(Asked, "serves", True)
    monkeypatch.setattr(_benchmark_run, "Client", Asked)
    reports = []

    def start(**changes):
        job = replace(JOB, **{"python": sys.executable, "module": "played", "repetitions": 2, "warmup_limit": 2, "seconds": 30.0, **changes})
        benchmark = BenchmarkRun(job, tmp_path, lambda *words: None, False, lambda *words: reports.append(words[0]))
        return benchmark, benchmark.start, reports

    return start


def given(path):
    return [json.loads(line) for line in (path / "given").read_text().splitlines()]


def test_all_workloads_at_all_points_by_one_load_generator(run, tmp_path):
    benchmark, start, reports = run(workloads=[replace(DECODE, output_tokens=8), replace(IDS, output_tokens=8)], points=[Point(1), Point(None, 0.1)])
    found = start()
    assert {name: [point["concurrency"] for point in points] for name, points in found.items()} == {"decode": [1, None], "random_ids": [1, None]}
    assert [point["summary"]["output_tok_per_s"]["median"] for point in found["decode"]] == [64.0, 64.0]
    assert len(given(tmp_path)) == 2 * 2 * 4
    assert reports[0] == "starting the load generator" and reports[1] == "decode, concurrency 1: warming up (1 of at most 2)"
    assert benchmark.client(DECODE) == {"name": "engine", "module": "played", "api": "/generate"}


def test_a_sweep_besides_rates(run):
    _benchmark, start, _reports = run(workloads=[replace(IDS, output_tokens=4)], points=[Point(None, 0.1)], sweep=True, repetitions=1)
    points = start()["random_ids"]
    # It answers any number of requests in the same time.
    assert [point["concurrency"] for point in points[:3]] == [1, 4, 16] and points[-1]["request_rate"] == 0.1


def test_secrets_go_by_environment_and_nothing_by_proxy(run, tmp_path, monkeypatch):
    """U09: command lines are visible to everybody on the host. N03: no proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.10:3128")
    _benchmark, start, _reports = run(api_key=SECRET, admin_key=ADMIN, ca_path="/ca.pem", flush=True, points=[Point()])
    start()
    for run_given in given(tmp_path):
        assert SECRET not in " ".join(run_given["words"]) and ADMIN not in json.dumps(run_given)
        environment = run_given["environment"]
        assert (environment["OPENAI_API_KEY"], environment["SSL_CERT_FILE"], environment["HOME"]) == (SECRET, "/ca.pem", str(tmp_path))
        assert not [name for name in environment if name.lower().endswith("_proxy")]
    assert {key for path, key, _ca in Asked.seen if path == "/flush_cache"} == {ADMIN}
    assert {key for path, key, _ca in Asked.seen if path != "/flush_cache"} == {SECRET}
    assert {ca_path for _path, _key, ca_path in Asked.seen} == {"/ca.pem"}


def test_one_key_for_all(run):
    _benchmark, start, _reports = run(api_key=SECRET, flush=True)
    start()
    assert {(key, ca_path) for _path, key, ca_path in Asked.seen} == {(SECRET, None)}


def test_a_chat_template_is_used_where_there_is_one(run, tmp_path):
    (tmp_path / "chat_template.jinja").write_text("{{ x }}")
    _benchmark, start, _reports = run(target=replace(JOB.target, tokenizer=str(tmp_path)))
    start()
    assert all("--apply-chat-template" in run_given["words"] for run_given in given(tmp_path))


def outcomes(points):
    return [(point["concurrency"], point["status"]) for point in points]


THREE = [Point(1), Point(4), Point(16)]
SHORT = [replace(DECODE, output_tokens=8)]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        pytest.param("", "8 of 8 requests failed: HTTP 503", id="requests"),
        pytest.param("no more", "the load generator ended with status 1: no more", id="the-load-generator"),
    ],
)
def test_a_point_that_failed_is_one_of_several(run, monkeypatch, end, reason):
    """B04: what was measured is kept, and a server that still serves is asked for the rest."""
    for name, value in (("AT", "4"), ("ERROR", "HTTP 503"), ("END", end)):
        monkeypatch.setenv(f"PLAYED_{name}", value)
    benchmark, start, reports = run(workloads=[*SHORT, replace(IDS, output_tokens=8)], points=THREE)
    found = start()
    assert {name: outcomes(points) for name, points in found.items()} == dict.fromkeys(("decode", "random_ids"), [(1, "ok"), (4, "failed"), (16, "ok")])
    assert benchmark.failures == [f"{name}, concurrency 4: {reason} (warming up)" for name in ("decode", "random_ids")]
    assert found["decode"][1]["remarks"][-1] == f"{reason} (warming up)"
    assert reports.count("starting the load generator") == 3, "what failed may have left it in any state"


def test_a_server_that_serves_no_more_is_not_asked_for_the_rest(run, monkeypatch):
    monkeypatch.setenv("PLAYED_AT", "4")
    monkeypatch.setenv("PLAYED_ERROR", "ClientConnectorError")
    monkeypatch.setattr(Asked, "serves", False)
    benchmark, start, _reports = run(workloads=[*SHORT, replace(IDS, output_tokens=8)], points=THREE[:2] + [Point(None, 0.1)])
    found = start()
    assert {name: outcomes(points) for name, points in found.items()} == {"decode": [(1, "ok"), (4, "failed")]}
    left = "decode, 0.1 requests/s; random_ids, concurrency 1; random_ids, concurrency 4; random_ids, 0.1 requests/s"
    assert found["decode"][1]["remarks"][0] == f"not tried after it: {left}" and len(benchmark.failures) == 1


def test_where_nobody_wants_the_rest(run, monkeypatch):
    monkeypatch.setenv("PLAYED_ERROR", "HTTP 503")
    benchmark, _start, _reports = run(workloads=SHORT, points=THREE)
    found = benchmark.start(lambda: False)
    assert outcomes(found["decode"]) == [(1, "failed")]
    assert found["decode"][0]["remarks"][0] == "not tried after it: decode, concurrency 4; decode, concurrency 16"


def test_a_sweep_ends_at_a_point_that_failed(run, monkeypatch):
    monkeypatch.setenv("PLAYED_AT", "4")
    monkeypatch.setenv("PLAYED_ERROR", "HTTP 503")
    benchmark, start, _reports = run(workloads=SHORT, points=[Point(None, 0.1)], sweep=True)
    points = start()["decode"]
    assert outcomes(points) == [(1, "ok"), (4, "failed"), (None, "ok")] and points[2]["request_rate"] == 0.1
    assert benchmark.failures == ["decode, concurrency 4: 8 of 8 requests failed: HTTP 503 (warming up)"]


def test_a_load_generator_that_starts_once_only(run, monkeypatch):
    for name, value in (("AT", "4"), ("END", "no more"), ("ONCE", "1")):
        monkeypatch.setenv(f"PLAYED_{name}", value)
    benchmark, start, _reports = run(workloads=SHORT, points=THREE)
    points = start()["decode"]
    assert outcomes(points) == [(1, "ok"), (4, "failed"), (16, "failed")]
    assert benchmark.failures[1] == "decode, concurrency 16: the load generator ended with status 1: it starts once only"


def test_an_engine_without_its_benchmark(run):
    _benchmark, start, _reports = run(module="not_there")
    with pytest.raises(BenchmarkError, match="^the load generator ended with status 1: .*No module named 'not_there'$"):
        start()


def test_the_module_is_found_in_the_marker(tmp_path):
    (tmp_path / "engine.json").write_text('{"benchmark_module": "sglang.bench_serving"}')
    job = replace(JOB, python=os.fspath(tmp_path / "bin" / "python"))
    assert BenchmarkRun(job, tmp_path, lambda *words: None, False, lambda *words: None).client(DECODE)["module"] == "sglang.bench_serving"


# The client for the chat API, played: it answers at once and writes down what it was given.
CHAT = """
import json, os, sys
given = open("given_chat", "a")
given.write(json.dumps({"plan": json.load(open(sys.argv[1])), "key": os.environ["OPENAI_API_KEY"]}) + "\\n")
print(json.dumps({"event": "ready"}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    requests = [json.loads(request) for request in open(order["requests"])]
    given.write(json.dumps({**order, "requests": requests}) + "\\n")
    given.flush()
    count = len(requests)
    lens = [request["output_tokens"] for request in requests]
    found = {"duration": 1.0, "input_lens": [9] * count, "output_lens": lens, "ttfts": [0.1] * count, "errors": [""] * count}
    found["itls"] = [[0.01] * (n - 1) for n in lens]
    json.dump(found, open(order["output"], "w"))
    print(json.dumps({"event": "done", "run": order["run"]}), flush=True)
"""


@pytest.fixture(name="chat")
def fixture_chat(run, tmp_path, monkeypatch):
    (tmp_path / "chat.py").write_text(CHAT)
    monkeypatch.setattr(_benchmark_run, "client_command", lambda python, folder, plan: [python, str(folder / "chat.py"), str(plan)])

    def start(**changes):
        benchmark, start, _reports = run(**changes)
        return benchmark, start(), [json.loads(line) for line in (tmp_path / "given_chat").read_text().splitlines()]

    return start


def test_what_the_engine_cannot_send_goes_to_the_chat_api(chat, tmp_path):
    """Both in one run, each by its own load generator; the record names which one counted."""
    own = replace(DECODE, name="mine", requests=2, prompts=(user_prompt("Hello", 8), user_prompt("Bye", 16)))
    benchmark, found, (first, *runs) = chat(workloads=[own, replace(DECODE, output_tokens=8)], points=[Point(1)], api_key=SECRET)
    assert set(found) == {"mine", "decode"} and len(given(tmp_path)) == 4
    assert first["plan"]["base_url"] == JOB.target.url and first["key"] == SECRET and SECRET not in json.dumps(first["plan"])
    assert [sorted(request["output_tokens"] for request in order["requests"]) for order in runs] == [[8, 16]] * 4
    assert found["mine"][0]["repetitions"][0]["output_tokens"] == 24
    assert benchmark.client(own) == {"name": "openai", "module": "", "api": "/v1/chat/completions"}
    assert benchmark.client(DECODE)["name"] == "engine"
    assert describe_workload(replace(JOB, workloads=[own]), own)["output_tokens"] is None


def test_the_chat_api_when_it_is_asked_for(chat):
    benchmark, found, _given = chat(workloads=[replace(DECODE, output_tokens=8)], points=[Point(1)], chat=True)
    assert found["decode"][0]["summary"]["output_tok_per_s"]["median"] == 32.0
    assert benchmark.client(DECODE)["api"] == "/v1/chat/completions" and benchmark.client(IDS)["name"] == "engine", "token ids are no text"


def test_prompts_of_the_chat_api_are_salted_as_well(chat):
    _benchmark, _found, (_plan, *runs) = chat(workloads=[replace(DECODE, requests=1, output_tokens=8)], points=[Point(1)], chat=True, salt="a")
    texts = [order["requests"][0]["messages"][0]["content"] for order in runs]
    assert len({text.splitlines()[0] for text in texts}) == len(texts) == 4
