# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _preflight_host as preflight_host
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Subject
from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache
from ansible_collections.llmops.inference.plugins.module_utils._preflight_host import (
    Preflight,
    Request,
    asked_by_table,
    read_config,
    read_paths,
    sibling_tables,
    weights_bytes,
)
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import answer

CASES = ("F05", "F08", "F12")
CONFIG = {"architectures": ["Qwen3ForCausalLM"], "num_attention_heads": 40, "num_key_value_heads": 8}
A6000 = {
    "name": "NVIDIA RTX A6000",
    "uuid": "GPU-0",
    "compute_capability": "8.6",
    "memory_total_mib": 49140,
    "memory_free_mib": 48680,
    "mig": False,
    "mig_devices": [],
    "processes": [],
}
PORT = {"flag": "--port", "fields": ["port"], "asked": {"port": 30001}, "deprecated": None, "successor": None}
FACTS = {"gpus": [A6000, {**A6000, "uuid": "GPU-1", "name": "Other"}], "driver": {"version": "580.95.05", "cuda": "13.0"}}


class Bench:
    """A preflight on a scratch machine; the engine is played.

    Attributes:
        answer: what the probe says of the candidate.
        asked: the requests that reached it.
        commands: other commands that were run.
    """

    def __init__(self, path):
        self.path = path
        self.model = path / "model"
        self.model.mkdir()
        (self.model / "config.json").write_text(json.dumps(CONFIG))
        (path / "engines" / "own" / "bin").mkdir(parents=True)
        python = path / "engines" / "own" / "bin" / "python"
        python.touch()
        engine = {"name": "own", "version": "0.5.23", "flavour": "cuda", "cuda": "12.9"}
        self.request = Request(Probe(str(python), {"A": "1"}), engine, ["--model-path", str(self.model), "--tp-size", "2"])
        self.answer = {**answer("0.5.23", "plain"), "effective": {}, "changes": [], "flags": [PORT]}
        self.unexplained = None
        self.asked, self.environments, self.commands = [], [], []
        self.sources = {}

    def run_probe(self, command, text, environment):
        self.asked.append(json.loads(text))
        self.environments.append(environment)
        return 0, json.dumps({"candidates": [copy.deepcopy(self.answer)], "unexplained": self.unexplained}), ""

    def run_command(self, command):
        self.commands.append(command)
        return 0, "", ""

    def preflight(self, **changes):
        cache = Cache(self.path / "cache")
        return Preflight(replace(self.request, **changes), Subject({"version": "0.5.23"}, self.sources), cache, self.run_probe, self.run_command)

    def result(self, **changes):
        return self.preflight(**changes).result()

    def cached(self, **changes):
        preflight = self.preflight(**changes)
        preflight.result()
        return preflight.cached

    def codes(self, **changes):
        return [row["code"] for row in self.result(**changes)["findings"]]


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch):
    monkeypatch.setattr(preflight_host, "judge_ports", lambda ports, group: [])
    return Bench(tmp_path)


def test_what_the_probe_is_asked(bench):
    bench.result(gpu_facts=FACTS)
    assert bench.asked == [
        {
            "argvs": [["--model-path", str(bench.model), "--tp-size", "2"]],
            "hardware": {
                "gpus": [
                    {"name": "NVIDIA RTX A6000", "memory_mib": 49140, "capability": [8, 6]},
                    {"name": "Other", "memory_mib": 49140, "capability": [8, 6]},
                ],
                "cuda": "12.9",
                "driver": "580.95.05",
            },
            "packages": [],
        }
    ]


@pytest.mark.parametrize("flavour, packages", [("cpu", ["flashinfer"]), ("cuda", [])])
def test_only_a_cpu_engine_needs_stand_ins_for_packages(bench, flavour, packages):
    """A cuda engine without flashinfer runs without it: that is the answer."""
    bench.result(gpu_facts=FACTS, engine={"version": "0.5.23", "flavour": flavour})
    assert bench.asked[0]["packages"] == packages


@pytest.mark.parametrize("facts", [None, {"gpus": []}, {"gpus": [{**A6000, "compute_capability": ""}]}, {}], ids=["none", "no-gpu", "unknown-gpu", "empty"])
def test_an_engine_without_hardware_is_asked_as_it_is(bench, facts):
    result = bench.result(gpu_facts=facts)
    assert (bench.asked[0]["hardware"], bench.asked[0]["packages"]) == (None, [])
    assert result["hardware"] == {"gpus": [], "cuda": "", "driver": "", "recorded": False}


@pytest.mark.parametrize("named, seen", [("1", ["Other"]), ("GPU-0", ["NVIDIA RTX A6000"]), ("1,0", ["Other", "NVIDIA RTX A6000"])])
def test_the_hardware_is_what_the_server_will_see(bench, named, seen):
    """F12"""
    probe = replace(bench.request.probe, environment={"CUDA_VISIBLE_DEVICES": named})
    result = bench.result(gpu_facts=FACTS, probe=probe)
    assert [gpu["name"] for gpu in bench.asked[0]["hardware"]["gpus"]] == seen
    assert [gpu["name"] for gpu in result["hardware"]["gpus"]] == seen


@pytest.mark.parametrize(
    "engine, driver, cuda",
    [({"cuda": "12.9"}, {"cuda": "13.0"}, "12.9"), ({}, {"cuda": "13.0"}, "13.0"), ({"cuda": ""}, {"cuda": "13.0"}, "13.0"), ({}, {}, "")],
)
def test_which_cuda_is_described(bench, engine, driver, cuda):
    bench.result(gpu_facts={**FACTS, "driver": driver}, engine=engine)
    assert bench.asked[0]["hardware"]["cuda"] == cuda


def test_secrets_are_not_needed(bench):
    """U09: a word stands in the place of each."""
    argv = [*bench.request.argv]
    bench.result(secret_flags=["api_key", "ssl_keyfile_password"])
    assert bench.asked[0]["argvs"] == [[*argv, "--api-key", "preflight", "--ssl-keyfile-password", "preflight"]]
    assert bench.request.argv == argv


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--model-path", "/there", "--x"], ["--model-path", "/here", "--x"]),
        (["--x", "--model-path"], ["--x", "--model-path"]),
        (["--x"], ["--x"]),
    ],
    ids=["elsewhere", "no-value", "none"],
)
def test_the_model_where_it_is(bench, argv, words):
    assert replace(bench.request, argv=argv, model_dir="/here").words == words
    assert replace(bench.request, argv=argv).words == argv


@pytest.mark.parametrize("flag, there", [("--model-path", True), ("--model", True), ("--other", False)])
def test_path_after(bench, flag, there):
    request = replace(bench.request, argv=[flag, str(bench.model)])
    assert request.path_after("--model-path", "--model") == (bench.model if there else None)
    assert replace(request, argv=[flag, "org/model"]).path_after("--model-path", "--model") is None
    assert replace(request, argv=[flag]).path_after("--model-path", "--model") is None


def test_an_unchanged_candidate_is_not_asked_again(bench):
    first, preflight = bench.result(gpu_facts=FACTS), bench.preflight(gpu_facts=FACTS)
    assert not bench.preflight(gpu_facts=FACTS).cached
    assert (preflight.result(), preflight.cached, len(bench.asked)) == (first, True, 1)


OTHER = {
    "argument": lambda bench: {"argv": [*bench.request.argv, "--x"]},
    "secret-flag": lambda bench: {"secret_flags": ["api_key"]},
    "environment": lambda bench: {"probe": replace(bench.request.probe, environment={"A": "2"})},
    "engine": lambda bench: {"engine": {**bench.request.engine, "name": "other"}},
    "gpus": lambda bench: {"gpu_facts": {**FACTS, "gpus": FACTS["gpus"][:1]}},
    "memory-of-a-gpu": lambda bench: {"gpu_facts": {**FACTS, "gpus": [{**gpu, "memory_total_mib": 24000} for gpu in FACTS["gpus"]]}},
    "driver": lambda bench: {"gpu_facts": {**FACTS, "driver": {"version": "1"}}},
    "no-gpus": lambda bench: {"gpu_facts": None},
    "config": lambda bench: (bench.model / "config.json").write_text("{}") and {},
    "new-file-of-the-model": lambda bench: (bench.model / "tokenizer_config.json").write_text("{}") and {},
}
SAME = {
    "timeout": lambda bench: {"probe": replace(bench.request.probe, timeout=1.0)},
    "own-unit": lambda bench: {"own_unit": "sglang-main.service", "control_group": "/x"},
    "recorded": lambda bench: {"recorded": True},
    "free-memory": lambda bench: {"gpu_facts": {**FACTS, "gpus": [{**gpu, "memory_free_mib": 1} for gpu in FACTS["gpus"]]}},
    "uuid": lambda bench: {"gpu_facts": {**FACTS, "gpus": [{**gpu, "uuid": "x"} for gpu in FACTS["gpus"]]}},
    "weights": lambda bench: (bench.model / "a.safetensors").write_text("x") and {},
}


@pytest.mark.parametrize("name", [*OTHER, *SAME])
def test_what_the_key_depends_on(bench, name):
    bench.result(gpu_facts=FACTS)
    assert bench.cached(**{"gpu_facts": FACTS, **{**OTHER, **SAME}[name](bench)}) is (name in SAME)


def test_the_key_follows_the_interpreter_and_the_probe(bench, monkeypatch):
    bench.result()
    python = bench.path / "engines" / "own" / "bin" / "python3"
    python.touch()
    assert not bench.cached(probe=replace(bench.request.probe, python=str(python)))
    assert bench.cached()
    monkeypatch.setattr(preflight_host, "probe_sources", lambda: {"run": "other"})
    assert not bench.cached()


@pytest.mark.parametrize(
    "change, kept",
    [
        ({}, True),
        ({"errors": [{"code": "invalid", "flag": "--x", "message": "m", "nearest": []}]}, True),
        ({"rejection": {"type": "ValueError", "message": "m", "because": [], "at": None, "function": None}}, True),
        ({"rejection": {"type": "OSError", "message": "m", "because": [], "at": None, "function": None}}, False),
        ({"rejection": {"type": "PermissionError", "message": "m", "because": [], "at": None, "function": None}}, False),
        ({"rejection": {"type": "FileNotFoundError", "message": "m", "because": [], "at": None, "function": None}}, False),
        ({"unexplained": "ImportError: x"}, False),
    ],
    ids=["resolved", "refused-words", "refused", "host-error", "permission", "missing-file", "unexplained"],
)
def test_what_is_kept(bench, change, kept):
    bench.answer.update(change)
    bench.result()
    assert bench.cached() is kept


def test_no_answer_at_all_is_not_kept(bench):
    bench.unexplained = "ImportError: no torch"
    result = bench.result()
    assert (result["verdict"], result["explained"]) == ("warned", False)
    assert "ImportError: no torch" in result["findings"][0]["text"]
    assert not bench.cached()


def test_a_missing_interpreter_is_unexplained(bench):
    Path(bench.request.probe.python).unlink()
    result = bench.result(argv=["--model-path", "org/model"])
    assert (result["verdict"], result["explained"], bench.asked) == ("warned", False, [])
    assert "is not on this host" in result["findings"][0]["text"]


def test_the_rules_see_the_model_and_the_flags(bench):
    """F08"""
    flag = {"flag": "--tp-size", "fields": ["tp_size"], "asked": {"tp_size": 3}, "deprecated": None, "successor": None}
    bench.answer.update(flags=[flag], effective={"tp_size": 3})
    bench.sources = {"tp_size": "sglang_server_flags.tp"}
    (row,) = [row for row in bench.result()["findings"] if row["code"] == "heads"]
    assert row["severity"] == "error" and row["variables"] == ["sglang_server_flags.tp"]
    (bench.model / "config.json").write_text(json.dumps({**CONFIG, "num_attention_heads": 48}))
    assert "heads" not in bench.codes()


@pytest.mark.parametrize("flavour, facts, found", [("cuda", {"gpus": []}, True), ("cpu", {"gpus": []}, True), ("cuda", None, False), ("cpu", None, False)])
def test_gpus_that_are_not_there(bench, flavour, facts, found):
    assert ("no_gpu" in bench.codes(engine={"version": "0.5.23", "flavour": flavour}, gpu_facts=facts)) is found


OLDER = {"format": 1, "engine": "0.5.16", "flags": [{"options": ["--old"], "successor": "--new=1"}]}


def install(bench, name, text):
    (bench.path / "engines" / name).mkdir(exist_ok=True)
    (bench.path / "engines" / name / "flags.json").write_text(text)


def test_a_flag_that_another_engine_knows(bench):
    """F05: also when that engine is installed after the answer was kept."""
    bench.answer["errors"] = [{"code": code, "flag": "--old", "message": "m", "nearest": []} for code in ("unknown", "invalid")]
    assert [row["hint"] for row in bench.result()["findings"][:2]] == ["", ""]
    install(bench, "older", json.dumps(OLDER))
    assert bench.cached()
    assert [row["hint"] for row in bench.result()["findings"][:2]] == ["SGLang 0.5.16 has it as an old spelling of --new=1", ""]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 2}'])
def test_a_broken_table_of_another_engine_is_left_out(bench, text):
    install(bench, "own", json.dumps({**OLDER, "engine": "own"}))
    install(bench, "broken", text)
    install(bench, "older", json.dumps(OLDER))
    assert sibling_tables(bench.request.probe.python) == [OLDER]


def test_the_machines_state_is_asked_every_time(bench, monkeypatch):
    """N08"""
    seen = []
    held = [preflight_host.Finding("port_in_use", "error", "held", fields=("port",))]
    monkeypatch.setattr(preflight_host, "judge_ports", lambda ports, group: seen.append((ports[0].number, group)) or held)
    for _time in range(2):
        assert "port_in_use" in bench.codes(control_group="/system.slice/x")
    assert seen == [(30001, "/system.slice/x")] * 2 and len(bench.asked) == 1


def test_what_two_checks_find_is_told_once(bench, monkeypatch):
    held = preflight_host.Finding("port_in_use", "error", "held")
    monkeypatch.setattr(preflight_host, "judge_ports", lambda ports, group: [held, held])
    assert bench.codes().count("port_in_use") == 1


def test_ports_that_are_not_known_are_not_asked_for(bench, monkeypatch):
    """Without an answer of the engine: the default port may be another server's."""
    monkeypatch.setattr(preflight_host, "judge_ports", lambda ports, group: pytest.fail("asked for ports"))
    bench.unexplained = "x"
    assert bench.codes()[0] == "unexplained"


def test_recorded_facts_leave_this_machine_alone(bench, monkeypatch):
    monkeypatch.setattr(preflight_host, "judge_ports", lambda ports, group: pytest.fail("asked for ports"))
    unit = {"Service": [("PrivateTmp", "yes"), ("User", "sglang")]}
    result = bench.result(recorded=True, gpu_facts=FACTS, probe=replace(bench.request.probe, unit=None), argv=["--model-path", "/tmp/gone"])
    assert not [row for row in result["findings"] if row["code"].startswith(("path_", "port_in_use"))]
    assert result["hardware"]["recorded"] is True and bench.commands == []
    assert unit["Service"]


@pytest.mark.parametrize("user, named", [([("User", "sglang")], "sglang"), ([], "root")], ids=["user", "root"])
def test_files_are_asked_for_as_the_service_user(bench, user, named):
    probe = replace(bench.request.probe, unit={"Service": user}, folder=str(bench.path / "run"))
    bench.sources = {"chat_template": "sglang_server_flags.chat_template"}
    argv = ["--model-path", str(bench.model), f"--chat-template={bench.path}/gone", "--fastapi-root-path", "/sglang", "--served-model-name", "/m"]
    result = bench.result(probe=probe, argv=argv)
    assert bench.commands[0][:3] == ["runuser", "-u", named] and str(bench.model) in bench.commands[0]
    missing = [(row["text"], row["variables"]) for row in result["findings"] if row["code"] == "path_missing"]
    assert missing == [(f"{bench.path}/gone does not exist on this host", ["sglang_server_flags.chat_template"])]


def test_what_the_sandbox_hides(bench):
    probe = replace(bench.request.probe, unit={"Service": [("PrivateTmp", "yes")]}, folder=str(bench.path / "run"))
    bench.sources = {"model_path": "sglang_model_path"}
    (row,) = [row for row in bench.result(probe=probe, argv=["--model-path", "/tmp/x"])["findings"] if row["code"] == "path_hidden"]
    assert row["variables"] == ["sglang_model_path"]
    assert "path_hidden" not in bench.codes(argv=["--model-path", "/tmp/x"]), "without a unit there is no sandbox"


@pytest.mark.parametrize(
    "words, paths",
    [
        (["--model-path", "/m", "--tokenizer-path=/t"], {"/m": "model_path", "/t": "tokenizer_path"}),
        (["--model", "/m", "--speculative-draft-model", "/d"], {"/m": "model", "/d": "speculative_draft_model"}),
        (["--model-path", "org/model", "--chat-template", "chatml"], {}),
        (["--lora-paths", "/a", "a=/b", "/c"], {"/a": "lora_paths", "/c": "lora_paths"}),
        (["--crash-dump-folder", "/new", "--file-storage-path=/new", "--fastapi-root-path", "/sglang", "--download-dir", "/new"], {}),
        (["--served-model-name", "/m", "--export-metrics-to-file-dir", "/new"], {}),
        (["--ssl-certfile", "/c", "--ssl-keyfile", "/k", "--ssl-ca-certs", "/a"], {"/c": "ssl_certfile", "/k": "ssl_keyfile", "/a": "ssl_ca_certs"}),
        (["--model-path", "/m", "--enable-metrics", "/stray"], {"/m": "model_path"}),
        (["/stray"], {}),
    ],
)
def test_read_paths(words, paths):
    assert read_paths(words) == paths and list(read_paths(words)) == list(paths)


def test_one_path_of_two_flags_is_asked_for_once():
    assert list(read_paths(["--model-path", "/m", "--tokenizer-path", "/m"])) == ["/m"]


TABLE = {
    "format": 1,
    "engine": "0.5.23",
    "flags": [
        {"options": ["--tp-size", "--tensor-parallel-size"], "dest": "tp_size", "kind": "value", "type": "int"},
        {"options": ["--model-path", "--model"], "dest": "model_path", "kind": "value", "type": "str"},
        {"options": ["--enable-metrics"], "dest": "enable_metrics", "kind": "switch"},
        {"options": ["--port"], "dest": "port", "kind": "value", "type": "int"},
    ],
}
WORDS = ["--model", "/m", "--tensor-parallel-size=3", "--enable-metrics"]


@pytest.mark.parametrize(
    "table, words, asked",
    [
        pytest.param(json.dumps(TABLE), WORDS, {"model_path": "/m", "tp_size": 3, "enable_metrics": True}, id="table"),
        pytest.param(json.dumps(TABLE), [], {}, id="nothing-asked"),
        pytest.param(None, WORDS, {}, id="no-table"),
        pytest.param("{", WORDS, {}, id="no-json"),
        pytest.param("[]", WORDS, {}, id="no-object"),
        pytest.param("{}", WORDS, {}, id="no-format"),
        pytest.param(json.dumps({**TABLE, "format": 2}), WORDS, {}, id="another-format"),
        pytest.param('{"format": 1}', WORDS, {}, id="no-engine"),
        pytest.param('{"format": 1, "engine": "1"}', WORDS, {}, id="no-flags"),
        pytest.param('{"format": 1, "engine": "1", "flags": null}', WORDS, {}, id="flags-are-none"),
        pytest.param('{"format": 1, "engine": "1", "flags": ["--tp-size"]}', WORDS, {}, id="flags-are-words"),
        pytest.param('{"format": 1, "engine": "1", "flags": [{"options": ["--x"]}]}', WORDS, {}, id="half-a-flag"),
        pytest.param(json.dumps(TABLE), [*WORDS, "--zzz"], {}, id="F05-unknown-flag"),
        pytest.param(json.dumps(TABLE), ["--tp", "3"], {}, id="F05-abbreviation"),
        pytest.param(json.dumps(TABLE), ["--tp-size", "two"], {}, id="wrong-type"),
        pytest.param(json.dumps(TABLE), ["--tp-size"], {}, id="no-value"),
        pytest.param(json.dumps(TABLE), ["--enable-metrics", "yes"], {}, id="stray-word"),
    ],
)
def test_asked_by_table(bench, table, words, asked):
    if table is not None:
        install(bench, "own", table)
    assert asked_by_table(bench.request.probe.python, words) == asked


@pytest.mark.parametrize("table, found", [(True, True), (False, False)], ids=["table", "no-table"])
def test_an_engine_that_gives_no_answer_is_judged_by_its_table(bench, monkeypatch, table, found):
    """F08: the rules and the ports go by what the words say."""
    ports = []
    monkeypatch.setattr(preflight_host, "judge_ports", lambda derived, group: ports.extend(port.number for port in derived) or [])
    if table:
        install(bench, "own", json.dumps(TABLE))
    bench.unexplained = "ImportError: no torch"
    bench.sources = {"tp_size": "sglang_server_flags.tp"}
    result = bench.result(argv=["--model-path", str(bench.model), "--tensor-parallel-size", "3", "--port", "30007"])
    assert (result["explained"], result["flags"]) == (False, [])
    assert [row["variables"] for row in result["findings"] if row["code"] == "heads"] == ([["sglang_server_flags.tp"]] if found else [])
    assert (result["verdict"], ports[:1]) == (("rejected", [30007]) if found else ("warned", []))


def test_the_engines_own_words_come_before_its_table(bench):
    install(bench, "own", json.dumps(TABLE))
    bench.answer.update(flags=[{**PORT, "flag": "--tp-size", "fields": ["tp_size"], "asked": {"tp_size": 8}}], effective={"tp_size": 8})
    assert "heads" not in bench.codes(argv=["--model-path", str(bench.model), "--tp-size", "3"])


@pytest.mark.parametrize("text, config", [('{"a": 1}', {"a": 1}), ("", {}), ("{", {}), ("[]", {}), ("null", {}), (None, {})])
def test_read_config(tmp_path, text, config):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    assert read_config(tmp_path) == config
    assert read_config(None) == {}


@pytest.mark.parametrize(
    "index, size",
    [
        (None, 30),
        ('{"metadata": {"total_size": 1000}}', 1000),
        ('{"metadata": {"total_size": "1000"}}', 1000),
        ('{"metadata": {}}', None),
        ('{"metadata": null}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_weights_bytes(tmp_path, index, size):
    (tmp_path / "a.safetensors").write_bytes(b"x" * 10)
    (tmp_path / "b.safetensors").write_bytes(b"x" * 20)
    (tmp_path / "b.bin").write_bytes(b"x" * 40)
    if index is not None:
        (tmp_path / "model.safetensors.index.json").write_text(index)
    assert weights_bytes(tmp_path) == size


def test_no_weights(tmp_path):
    assert weights_bytes(None) is None
    assert weights_bytes(tmp_path) is None


def test_where_models_are_kept(bench):
    assert preflight_host.models_folder(bench.request.probe.python) == ""
    folder = bench.path / "engines" / "own" / "lib" / "python3.12" / "site-packages" / "sglang" / "srt" / "models"
    folder.mkdir(parents=True)
    assert preflight_host.models_folder(bench.request.probe.python) == str(folder)


@pytest.mark.parametrize("facts, told", [(None, False), (FACTS, True)])
def test_memory_is_told_where_the_gpus_are_known(bench, facts, told):
    config = json.loads((Path(__file__).parents[2] / "fixtures" / "memory" / "qwen3-8b.json").read_text())
    (bench.model / "config.json").write_text(json.dumps(config))
    (bench.model / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 16381470720}}')
    bench.answer["effective"] = {"tp_size": 1, "mem_fraction_static": 0.88, "kv_cache_dtype": "auto", "page_size": 1, "dtype": "auto"}
    result = bench.result(gpu_facts=facts)
    memory = result["memory"]
    assert ("memory_budget" in [row["code"] for row in result["findings"]]) is told
    assert (memory is not None) is told
    if told:
        assert {"rows", "verdict"} <= set(memory) and json.loads(json.dumps(memory)) == memory
        assert {"name", "gb", "how"} <= set(memory["rows"][0])


def test_a_mig_device_has_its_own_memory_and_not_that_of_its_gpu(bench):
    """F12: the whole GPU was taken for the account of a server that sees a part of one."""
    config = json.loads((Path(__file__).parents[2] / "fixtures" / "memory" / "qwen3-8b.json").read_text())
    (bench.model / "config.json").write_text(json.dumps(config))
    bench.answer["effective"] = {"tp_size": 1, "mem_fraction_static": 0.88, "kv_cache_dtype": "auto", "page_size": 1, "dtype": "auto"}
    device = {"profile": "3g.20gb", "uuid": "MIG-aaaaaaaa-0000-5000-8000-000000000001"}
    result = bench.result(gpu_facts={**FACTS, "gpus": [{**A6000, "mig": True, "mig_devices": [device]}]})
    assert result["memory"]["free_gb"] == 20.0
