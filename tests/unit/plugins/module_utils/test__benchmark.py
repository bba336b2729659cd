# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import (
    Batch,
    EngineGenerator,
    Target,
    benchmark_module,
    dataset_lines,
    engine_words,
    has_chat_template,
    parse_run,
)
from ansible_collections.llmops.inference.plugins.module_utils._measure import Point
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "benchmark"
TARGET = Target("0.0.0.0", 30000, False, "qwen", "/models/qwen")
IDS = Batch(4, (), 64, 128, 7)
TEXTS = Batch(2, ("Session 1\n\nCount.", "Zähle."), 0, 512, 8)
ONE = Point(1)
COMMON = {
    "--backend": "sglang",
    "--base-url": "http://127.0.0.1:30000",
    "--model": "/models/qwen",
    "--tokenizer": "/models/qwen",
    "--served-model-name": "qwen",
    "--warmup-requests": "0",
    "--output-file": "/tmp/run.jsonl",
}
OF_IDS = {
    **COMMON,
    "--num-prompts": "4",
    "--seed": "7",
    "--dataset-name": "random-ids",
    "--random-range-ratio": "1",
    "--random-input-len": "64",
    "--random-output-len": "128",
}
OF_TEXTS = {
    **COMMON,
    "--num-prompts": "2",
    "--seed": "8",
    "--dataset-name": "custom",
    "--dataset-path": "/tmp/prompts.jsonl",
    "--sharegpt-output-len": "512",
}
SWITCHES = {"--disable-tqdm", "--output-details"}


def words(batch=IDS, point=ONE, target=TARGET, template=False):
    return engine_words(target, batch, point, dataset="/tmp/prompts.jsonl", output="/tmp/run.jsonl", template=template)


def options(given):
    """Options with their values, and switches."""
    pairs, switches = {}, set()
    for word, after in zip(given, [*given[1:], "--"]):
        if word.startswith("--"):
            pairs.update({} if after.startswith("--") else {word: after})
            switches.update({word} if after.startswith("--") else ())
    return pairs, switches


@pytest.mark.parametrize(
    "given, pairs, switches",
    [
        # As ids: a text of random ids has another number of tokens than asked for (66 to 145 for 64 on 0.5.23).
        pytest.param(words(), {**OF_IDS, "--max-concurrency": "1"}, {*SWITCHES, "--tokenize-prompt"}, id="ids"),
        pytest.param(words(TEXTS, Point(16)), {**OF_TEXTS, "--max-concurrency": "16"}, SWITCHES, id="texts-of-a-base-model"),
        pytest.param(words(TEXTS, template=True), {**OF_TEXTS, "--max-concurrency": "1"}, {*SWITCHES, "--apply-chat-template"}, id="texts"),
        pytest.param(words(point=Point(None, 2.5)), {**OF_IDS, "--request-rate": "2.5"}, {*SWITCHES, "--tokenize-prompt"}, id="rate"),
        pytest.param(words(point=Point(8, 4.0)), {**OF_IDS, "--max-concurrency": "8", "--request-rate": "4"}, {*SWITCHES, "--tokenize-prompt"}, id="both"),
    ],
)
def test_the_words_for_the_engine(given, pairs, switches):
    assert options(given) == (pairs, switches)
    assert len(given) == 2 * len(pairs) + len(switches), "no option twice"


@pytest.mark.parametrize("bind, tls, url", [("::", True, "https://[::1]:1"), ("10.0.0.5", False, "http://10.0.0.5:1"), ("", False, "http://127.0.0.1:1")])
def test_the_server_that_is_measured(bind, tls, url):
    pairs, _switches = options(words(target=Target(bind, 1, tls, "qwen", "/m")))
    assert pairs["--base-url"] == url


@pytest.mark.parametrize(
    "marker, module",
    [
        pytest.param(None, "sglang.benchmark.serving", id="no-marker"),
        pytest.param({"benchmark_module": "sglang.bench_serving"}, "sglang.bench_serving", id="older-engine"),
        pytest.param({}, "sglang.benchmark.serving", id="marker-of-an-older-collection"),
    ],
)
def test_where_the_engine_keeps_its_benchmark(tmp_path, marker, module):
    if marker is not None:
        (tmp_path / "engine.json").write_text(json.dumps(marker))
    assert benchmark_module(str(tmp_path / "bin" / "python")) == module


@pytest.mark.parametrize(
    "files, expected",
    [
        pytest.param({}, False, id="none"),
        pytest.param({"chat_template.jinja": "{{ x }}"}, True, id="file"),
        pytest.param({"chat_template.json": "{}"}, True, id="json-file"),
        pytest.param({"tokenizer_config.json": '{"chat_template": "{{ x }}"}'}, True, id="in-the-configuration"),
        pytest.param({"tokenizer_config.json": '{"chat_template": null}'}, False, id="base-model"),
        pytest.param({"tokenizer_config.json": "{}"}, False, id="says-nothing"),
    ],
)
def test_chat_templates(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert has_chat_template(str(tmp_path)) is expected


def test_the_custom_dataset():
    lines = [json.loads(line) for line in dataset_lines(TEXTS.prompts).splitlines()]
    assert [line["conversations"][0]["content"] for line in lines] == list(TEXTS.prompts)
    assert all(len(line["conversations"]) == 2 for line in lines), "the engine leaves out what has no answer"
    assert dataset_lines(()) == ""


def result(requests):
    return json.dumps({"duration": 1.0, "output_lens": [1] * requests})


def test_the_last_run_of_a_file_counts():
    assert parse_run(f"{result(9)}\n{result(2)}\n\n", 2)["output_lens"] == [1, 1]


@pytest.mark.parametrize("name, asked", [("0.5.23-custom", 6), ("0.5.23-random-ids", 4)])
def test_a_real_run(name, asked):
    assert parse_run((FIXTURES / f"{name}.jsonl").read_text(), asked)["completed"] == asked


@pytest.mark.parametrize(
    "text, message",
    [
        pytest.param("", "wrote no result", id="empty"),
        pytest.param("\n \n", "wrote no result", id="blank"),
        pytest.param("{}", "sent 0 of 2 requests", id="no-details"),
        pytest.param(result(1), "sent 1 of 2 requests: it leaves out prompts of less than two tokens", id="one-left-out"),
        pytest.param('{"duration": 1.0, "outp', 'wrote a result that cannot be read: {"duration": 1.0, "outp', id="cut"),
    ],
)
def test_no_number_without_a_result(text, message):
    with pytest.raises(BenchmarkError, match=f"^the engine's benchmark {message}"):
        parse_run(text, 2)


class Process:
    """Plays the process of the engine's benchmark."""

    def __init__(self, *results):
        self.results = list(results)
        self.orders = []
        self.datasets = []

    def run(self, order, seconds, tick):
        self.orders.append((order, seconds))
        pairs, _switches = options(order["words"])
        dataset = Path(pairs.get("--dataset-path", "/dev/null"))
        self.datasets.append([json.loads(line)["conversations"][0]["content"] for line in dataset.read_text(encoding="utf-8").splitlines()])
        written = self.results.pop(0)
        if written is not None:
            with open(pairs["--output-file"], "a", encoding="utf-8") as output:
                output.write(written + "\n")
        tick()


@pytest.fixture(name="generator")
def fixture_generator(tmp_path):
    def make(process, batches=lambda number, point: TEXTS):
        return EngineGenerator(process, TARGET, batches, tmp_path, False)

    return make


def test_one_repetition_after_another(generator):
    process, ticks = Process(result(2), result(1)), []
    batches = {1: TEXTS, 2: Batch(1, ("Again",), 0, 512, 9)}
    sender = generator(process, lambda number, point: batches[number])
    found = [sender.run(number, Point(), 77.0, lambda: ticks.append("tick")) for number in (1, 2)]
    assert [len(raw["output_lens"]) for raw in found] == [2, 1]
    assert [(order["run"], seconds) for order, seconds in process.orders] == [(1, 77.0), (2, 77.0)]
    assert process.datasets == [list(TEXTS.prompts), ["Again"]] and ticks == ["tick"] * 2


def test_a_run_without_a_result_does_not_get_the_one_before(generator):
    sender = generator(Process(result(2), None))
    sender.run(1, Point(), 9.0, lambda: None)
    with pytest.raises(BenchmarkError, match="^the engine's benchmark wrote no result$"):
        sender.run(2, Point(), 9.0, lambda: None)


def test_a_run_of_ids(generator):
    process = Process(result(4))
    generator(process, lambda number, point: IDS).run(1, Point(), 9.0, lambda: None)
    assert process.datasets == [[]] and "--dataset-path" not in process.orders[0][0]["words"]
