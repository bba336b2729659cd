#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside an engine: proves that it imports, exports its parser as flags.json, prints what it is as one line of JSON.

Usage: prove_engine.py FLAGS_JSON
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import re
import sys


def json_shape(action: argparse.Action, type_name: str | None) -> str | None:
    """What JSON a flag takes: by its converter, by its default, or by what its help says."""
    if type_name in ("loads", "json_list_type"):
        return "any"
    if isinstance(action.default, str) and action.default.startswith("{"):
        return "object"
    if type_name in (None, "str") and re.match(r"A dictionary in JSON string format(?!,)", action.help or ""):
        return "object"
    return None


def describe(action: argparse.Action) -> dict:
    """One entry of flags.json."""
    type_name = getattr(action.type, "__name__", None)
    if any(option.startswith("--no-") for option in action.option_strings) and len(action.option_strings) > 1:
        kind = "pair"
    else:
        kind = "switch" if action.nargs == 0 else "value"
    entry = {"options": list(action.option_strings), "dest": action.dest, "kind": kind}
    if kind == "value":
        choices = sorted(action.choices) if isinstance(action.choices, (set, frozenset)) else action.choices and list(action.choices)
        optional = {"nargs": action.nargs, "type": type_name, "choices": choices, "json": json_shape(action, type_name)}
        entry.update({key: value for key, value in optional.items() if value is not None})
    entry.update(deprecation(action))
    return entry


def deprecation(action: argparse.Action) -> dict:
    """What the engine says of an old spelling: in its help, or by the class of the action; and what it wants instead."""
    told = re.search(r"[^.]*\bdeprecat[^.]*(?:\.[^.]*\b(?:use|instead)\b[^.]*)?", action.help or "", re.IGNORECASE)
    if not told or action.help.lstrip("([").lower().find("deprecat") > 60:
        told = None
    if told is None and "Deprecated" not in type(action).__name__:
        return {}
    text = " ".join(told.group(0).split()) if told else "deprecated"
    return {"deprecated": text, **({"successor": action.new_flag} if getattr(action, "new_flag", None) else {})}


def export_flags() -> dict:
    """The engine's whole parser table."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(add_help=False)
    ServerArgs.add_cli_args(parser)
    flags = [describe(action) for action in parser._actions if action.option_strings]
    return {"format": 1, "engine": importlib.metadata.version("sglang"), "flags": flags}


def benchmark_module() -> str:
    """Where this engine keeps its serving benchmark."""
    found = importlib.util.find_spec("sglang.benchmark")
    return "sglang.benchmark.serving" if found and importlib.util.find_spec("sglang.benchmark.serving") else "sglang.bench_serving"


def main() -> None:
    import torch

    flags = export_flags()
    benchmark = benchmark_module()
    for name in ("sglang.srt.entrypoints.http_server", "sglang.srt.managers.scheduler", benchmark):
        importlib.import_module(name)
    with open(sys.argv[1], "w", encoding="utf-8") as stream:
        json.dump(flags, stream, indent=0, sort_keys=True)
    proof = {
        "version": flags["engine"],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "architectures": torch._C._cuda_getArchFlags().split() if torch.version.cuda else [],
        "transformers": importlib.metadata.version("transformers"),
        "python_version": platform.python_version(),
        "flags": len(flags["flags"]),
        "benchmark_module": benchmark,
    }
    print(json.dumps(proof))


if __name__ == "__main__":
    main()
