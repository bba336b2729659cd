# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tiny engine of two styles, written to a folder and asked in a process of its own, through the same start as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe, write_probe

HARDWARE = {"gpus": [{"name": "NVIDIA H200", "memory_mib": 143771, "capability": [9, 0]}] * 2, "cuda": "13.0", "driver": "580.95.05"}

TORCH = """
import types

version = types.SimpleNamespace(cuda=None)


def compile(*args, **kwargs):
    raise RuntimeError("the probe compiles nothing")


class cuda:
    is_available = staticmethod(lambda: False)
    device_count = current_device = staticmethod(lambda: 0)
    get_device_capability = get_device_name = staticmethod(lambda device=None: None)
    get_device_properties = mem_get_info = _lazy_init = staticmethod(lambda device=None: None)
"""

COMMON = """
def get_nvgpu_memory_capacity():
    raise RuntimeError("nvidia-smi is not there")


def get_nvidia_driver_version():
    raise RuntimeError("nvidia-smi is not there")
"""

GRAPHS = """
import dataclasses


@dataclasses.dataclass
class PhaseConfig:
    backend: str = "full"
    max_bs: int = None


@dataclasses.dataclass
class GraphConfig:
    prefill: PhaseConfig = dataclasses.field(default_factory=PhaseConfig)
    decode: PhaseConfig = dataclasses.field(default_factory=PhaseConfig)
"""

# Up to 0.5.16: a dataclass that assigns.
ASSIGNS = """
import argparse
import dataclasses
import logging
import os
import signal
import sys

import torch
from sglang.srt.model_executor.cuda_graph_config import GraphConfig, PhaseConfig
from sglang.srt.utils import common

logger = logging.getLogger(__name__)
{top}

def megabytes(text):
    if text == "odd":
        raise RuntimeError("an odd size")
    if not text.endswith("M"):
        raise argparse.ArgumentTypeError("give M")
    return int(text[:-1])


class DeprecatedStoreConstAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, const_value=None, nargs=0, **kwargs):
        self.new_flag, self.const_value = new_flag, const_value
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        print(f"{{option_string}} is deprecated", file=sys.stdout, flush=True)
        setattr(namespace, self.dest, self.const_value)


@dataclasses.dataclass
class ServerArgs:
    model_path: str = None
    tp_size: int = 1
    page_size: int = None
    backend: str = None
    overlap: bool = False
    limit: int = 0
    _private: int = 0
    _resolved: bool = False
    graphs: GraphConfig = None

    def __post_init__(self):
        # No real engine leaves all values as they are.
        self._resolved = True
{body}
{methods}
    def check_server_args(self):
        {check}

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
        parser.add_argument("--page-size", type=int)
        parser.add_argument("--backend", choices=["triton", "flashinfer"])
        parser.add_argument("--overlap", action="store_true")
        parser.add_argument("--limit", type=megabytes)
        parser.add_argument("--old-limit", action=DeprecatedStoreConstAction, dest="limit", new_flag="--limit=7M", const_value=7)


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang")
    ServerArgs.add_cli_args(parser)
    args = parser.parse_args(argv)
    return ServerArgs(**{{name: value for name, value in vars(args).items() if value is not None}})
"""

# From 0.5.17 on: passes declare, resolve_once runs them, and the record itself is left alone.
DECLARES = """
import argparse
import dataclasses

from sglang.srt.model_executor.cuda_graph_config import GraphConfig


@dataclasses.dataclass
class ServerArgs:
    model_path: str = None
    tp_size: int = 1
    page_size: int = None
    backend: str = None
    overlap: bool = False
    _hidden: int = 0
    _resolved: bool = False
    graphs: GraphConfig = None

    def resolve_once(self):
        from sglang.srt.arg_groups.pipeline import run_resolution_pipeline

        run_resolution_pipeline(self)

    def resolved_dict(self):
        answer = {{field.name: getattr(self, field.name) for field in dataclasses.fields(self)}}
        for _source, declared in self._resolved_overrides:
            answer.update(declared)
        return answer

    def check_server_args(self):
        pass

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", required=True)
        parser.add_argument("--tp-size", type=int, default=1)
        parser.add_argument("--page-size", type=int)
        parser.add_argument("--backend")


def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang")
    ServerArgs.add_cli_args(parser)
    return ServerArgs(**vars(parser.parse_args(argv)))
"""

OVERRIDES = """
class ResolvedView:
    def __init__(self, args):
        self._args = args

    def __getattr__(self, name):
        for _source, declared in reversed(self._args._resolved_overrides):
            if name in declared:
                return declared[name]
        return getattr(self._args, name)


def run_post_process_pass(args, fn):
    declared = fn(ResolvedView(args))
    if declared:
        declare_resolution(args, fn.__qualname__, **declared)


def declare_resolution(args, source, **fields):
    args._resolved_overrides.append((source, dict(fields)))


def run_hook(hook, args):
    hook(args)


def materialize_declarations(args):
    for _source, declared in args._resolved_overrides:
        for name, value in declared.items():
            setattr(args, name, value)
"""

PIPELINE = """
from sglang.srt.arg_groups.overrides import ResolvedView, declare_resolution, materialize_declarations, run_hook, run_post_process_pass
from sglang.srt.arg_groups.passes import *


def run_resolution_pipeline(args):
    args._resolved_overrides = list(getattr(args, "_resolved_overrides", ()))
    args._resolved = True
{body}
"""


def _block(text, depth):
    return textwrap.indent(textwrap.dedent(text).strip("\n") or "pass", " " * depth)


class Engine:
    """An installed engine.

    Args:
        folder: where to write.
        files: texts by path below the environment's packages.
    """

    def __init__(self, folder, files):
        self.site = folder / "site-packages"
        self.scratch = folder / "probe"
        self.files = {"torch.py": TORCH, "sglang-9.9.9.dist-info/METADATA": "Metadata-Version: 2.1\nName: sglang\nVersion: 9.9.9\n", **files}
        for name, text in self.files.items():
            path = self.site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.scratch.mkdir()
        write_probe(self.scratch)

    def start(self, text, environment=None):
        """The finished process that was given ``text``."""
        command = Probe(sys.executable).command(self.scratch)
        variables = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        return subprocess.run(command, input=text, env=variables, capture_output=True, text=True, check=True, timeout=60)

    def document(self, *argvs, hardware="described", packages=()):
        """The whole answer."""
        hardware = HARDWARE if hardware == "described" else hardware
        request = {"argvs": argvs, "hardware": hardware, "packages": packages}
        return json.loads(self.start(json.dumps(request)).stdout)

    def resolve(self, *words, **options):
        """What the engine makes of one candidate, with a model."""
        document = self.document(["--model-path", "m", *words], **options)
        assert document["unexplained"] is None, document["traceback"]
        (candidate,) = document["candidates"]
        return candidate

    def at(self, text):
        """Where in the engine a text stands."""
        (found,) = [f"{name}:{number}" for name, whole in self.files.items() for number, line in enumerate(whole.splitlines(), start=1) if text in line]
        return found


def package(*modules):
    """The files of the engine's package: the modules, and what makes packages of their folders."""
    folders = {"sglang"}
    for module in modules:
        parts = module.split("/")[:-1]
        folders |= {"/".join(parts[: number + 1]) for number in range(len(parts))}
    return {f"{folder}/__init__.py": "" for folder in sorted(folders)}


def assigning(folder, body="", methods="", check="pass", top="", **files):
    """An engine that assigns in ``__post_init__``, whose body is given."""
    files = {
        "sglang/srt/utils/common.py": COMMON,
        "sglang/srt/model_executor/cuda_graph_config.py": GRAPHS,
        "sglang/srt/server_args.py": ASSIGNS.format(body=_block(body, 8), methods=_block(methods, 4) if methods else "", check=check, top=textwrap.dedent(top)),
        **files,
    }
    return Engine(folder, {**package(*files), **files})


def declaring(folder, body="", passes="", **files):
    """An engine whose pipeline, whose body is given, runs passes."""
    files = {
        "sglang/srt/utils/common.py": COMMON,
        "sglang/srt/model_executor/cuda_graph_config.py": GRAPHS,
        "sglang/srt/arg_groups/overrides.py": OVERRIDES,
        "sglang/srt/arg_groups/passes.py": textwrap.dedent(passes),
        "sglang/srt/arg_groups/pipeline.py": PIPELINE.format(body=_block(body, 4)),
        "sglang/srt/server_args.py": DECLARES.format(),
        **files,
    }
    return Engine(folder, {**package(*files), **files})
