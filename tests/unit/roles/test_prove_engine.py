# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagTable

SCRIPT = Path(__file__).resolve().parents[3] / "roles" / "sglang_engine" / "files" / "prove_engine.py"


@pytest.fixture(name="script")
def fixture_script(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("prove_engine", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def json_list_type(text):
    return json.loads(text)


def add_arguments(parser):
    """A small parser with every kind of action that the engine's has."""
    parser.add_argument("--model-path", "--model", type=str, required=True)
    parser.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--enable-metrics", action="store_true")
    parser.add_argument("--dllm-fdfo", action=argparse.BooleanOptionalAction)
    parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
    parser.add_argument("--load-format", choices=["auto", "dummy"], default="auto")
    parser.add_argument("--json-model-override-args", type=str, default="{}")
    parser.add_argument("--forward-hooks", type=json_list_type)
    parser.add_argument("--hooks", type=json.loads)
    parser.add_argument("--limit-mm", help="A dictionary in JSON string format to limit.")
    parser.add_argument("--lora", nargs="*", help="A dictionary in JSON string format, or a path.")
    parser.add_argument("--no-cache", action="store_true")
    parser.add_argument("--level", type=int, help="A dictionary in JSON string format maps it.")
    parser.add_argument("--mode", choices={"c", "a", "b"})
    parser.add_argument("--reorder", nargs="?", const="x")
    parser.add_argument("--old", action="store_true", help="Deprecated. Use --new instead. And more.")
    parser.add_argument("positional", nargs="?")


DESCRIPTIONS = {
    "model_path": {"options": ["--model-path", "--model"], "kind": "value", "type": "str"},
    "tp_size": {"options": ["--tp-size", "--tensor-parallel-size"], "kind": "value", "type": "int"},
    "enable_metrics": {"options": ["--enable-metrics"], "kind": "switch"},
    "dllm_fdfo": {"options": ["--dllm-fdfo", "--no-dllm-fdfo"], "kind": "pair"},
    "cuda_graph_bs": {"options": ["--cuda-graph-bs"], "kind": "value", "nargs": "+", "type": "int"},
    "load_format": {"options": ["--load-format"], "kind": "value", "choices": ["auto", "dummy"]},
    "json_model_override_args": {"options": ["--json-model-override-args"], "kind": "value", "type": "str", "json": "object"},
    "forward_hooks": {"options": ["--forward-hooks"], "kind": "value", "type": "json_list_type", "json": "any"},
    "hooks": {"options": ["--hooks"], "kind": "value", "type": "loads", "json": "any"},
    "limit_mm": {"options": ["--limit-mm"], "kind": "value", "json": "object"},
    "lora": {"options": ["--lora"], "kind": "value", "nargs": "*"},
    "no_cache": {"options": ["--no-cache"], "kind": "switch"},
    "level": {"options": ["--level"], "kind": "value", "type": "int"},
    "mode": {"options": ["--mode"], "kind": "value", "choices": ["a", "b", "c"]},
    "reorder": {"options": ["--reorder"], "kind": "value", "nargs": "?"},
    "old": {"options": ["--old"], "kind": "switch", "deprecated": "Deprecated. Use --new instead"},
}


@pytest.mark.parametrize("dest", DESCRIPTIONS)
def test_describe(script, dest):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    (action,) = [action for action in parser._actions if action.dest == dest]
    assert script.describe(action) == {"dest": dest, **DESCRIPTIONS[dest]}


class DeprecatedStoreTrueAction(argparse._StoreTrueAction):
    """An engine's action that knows what to write instead."""

    def __init__(self, *args, new_flag=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.new_flag = new_flag


@pytest.mark.parametrize(
    "more, told",
    [
        pytest.param({}, {}, id="no-help"),
        pytest.param({"help": "Sets the size."}, {}, id="plain"),
        pytest.param({"help": "Deprecated."}, {"deprecated": "Deprecated"}, id="one-word"),
        pytest.param({"help": "(Deprecated, use --new) Old selector"}, {"deprecated": "(Deprecated, use --new) Old selector"}, id="in-brackets"),
        pytest.param({"help": "Deprecated: it is on. Use --new to skip. More."}, {"deprecated": "Deprecated: it is on. Use --new to skip"}, id="and-use"),
        pytest.param({"help": "This is deprecated. The rest is plain."}, {"deprecated": "This is deprecated"}, id="one-sentence"),
        pytest.param({"help": "[DEPRECATED]\n  many\n  spaces."}, {"deprecated": "[DEPRECATED] many spaces"}, id="spaces"),
        pytest.param({"help": f"{'word ' * 14}deprecated."}, {}, id="only-mentions-it-far-behind"),
        pytest.param({"help": "Undeprecated."}, {}, id="another-word"),
        pytest.param({"action": DeprecatedStoreTrueAction}, {"deprecated": "deprecated"}, id="by-its-class"),
        pytest.param({"action": DeprecatedStoreTrueAction, "new_flag": "--new=x"}, {"deprecated": "deprecated", "successor": "--new=x"}, id="F05-successor"),
        pytest.param(
            {"action": DeprecatedStoreTrueAction, "new_flag": "--new", "help": "Deprecated. Use --new."},
            {"deprecated": "Deprecated. Use --new", "successor": "--new"},
            id="F05-both",
        ),
    ],
)
def test_deprecation(script, more, told):
    action = argparse.ArgumentParser().add_argument("--old", **more)
    assert script.deprecation(action) == told
    assert told.items() <= script.describe(action).items() and ("deprecated" in script.describe(action)) is bool(told)


@pytest.fixture(name="engine")
def fixture_engine(script, monkeypatch):
    """An engine without anything but its parser; returns the names of the modules that were imported to prove it."""
    imported = []
    arguments = ModuleType("sglang.srt.server_args")
    arguments.ServerArgs = SimpleNamespace(add_cli_args=add_arguments)
    torch = ModuleType("torch")
    torch.__version__, torch.version = "2.13.0+cpu", SimpleNamespace(cuda=None)
    for name, module in {"sglang": ModuleType("sglang"), "sglang.srt": ModuleType("sglang.srt"), arguments.__name__: arguments, "torch": torch}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(script.importlib.metadata, "version", {"sglang": "0.5.23", "transformers": "5.1"}.__getitem__)
    monkeypatch.setattr(script.importlib, "import_module", imported.append)
    monkeypatch.setattr(script, "benchmark_module", lambda: "sglang.bench_serving")
    return imported


def test_the_exported_table_is_one_that_the_filters_read(script, engine):
    document = json.loads(json.dumps(script.export_flags()))
    assert [entry["dest"] for entry in document["flags"]] == list(DESCRIPTIONS), "options only, in the parser's order"
    table = FlagTable(document)
    assert table.engine == "0.5.23"
    assert table.parse(["--tp-size", "2", "--cuda-graph-bs", "1", "2", "--no-dllm-fdfo"]) == {"tp_size": 2, "cuda_graph_bs": [1, 2], "dllm_fdfo": False}


@pytest.mark.parametrize("cuda, architectures", [(None, []), ("13.0", ["sm_80", "sm_90", "compute_120"])], ids=["cpu", "cuda"])
def test_the_proof(script, engine, monkeypatch, tmp_path, capsys, cuda, architectures):
    torch = sys.modules["torch"]
    torch.version.cuda = cuda
    if cuda:
        # Not torch.cuda.get_arch_list(): it is empty where no GPU is to be seen, and a proof sees none.
        torch._C = SimpleNamespace(_cuda_getArchFlags=lambda: " ".join(architectures))
    monkeypatch.setattr(sys, "argv", ["prove_engine.py", str(tmp_path / "flags.json")])
    script.main()
    proof = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {**proof, "python_version": ""} == {
        "version": "0.5.23",
        "torch": "2.13.0+cpu",
        "cuda": cuda,
        "architectures": architectures,
        "transformers": "5.1",
        "python_version": "",
        "flags": len(DESCRIPTIONS),
        "benchmark_module": "sglang.bench_serving",
    }
    assert engine == ["sglang.srt.entrypoints.http_server", "sglang.srt.managers.scheduler", "sglang.bench_serving"], "proven by importing the server"
    assert json.loads((tmp_path / "flags.json").read_text()) == script.export_flags()


@pytest.mark.parametrize(
    "there, module",
    [
        ({"sglang.benchmark", "sglang.benchmark.serving"}, "sglang.benchmark.serving"),
        ({"sglang.benchmark"}, "sglang.bench_serving"),
        (set(), "sglang.bench_serving"),
    ],
    ids=["new", "other-package", "old"],
)
def test_where_the_engine_keeps_its_benchmark(script, monkeypatch, there, module):
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: name in there or None)
    assert script.benchmark_module() == module
