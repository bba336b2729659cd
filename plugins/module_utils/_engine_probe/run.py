# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Reads a request, lets the engine resolve each argument vector in a process of its own, and writes one JSON document.

Request: ``{"argvs": [[...]], "hardware": {"gpus": [{"name", "memory_mib", "capability"}], "cuda", "driver"} | null, "packages": [...]}``.
Each candidate of the answer holds ``flags``, ``errors``, ``rejection``, ``changes``, ``effective``, ``environment`` (what the engine set there), ``log``,
``touched``, ``asked``, ``missing`` and ``unexplained``: the reason why the engine's resolution could not be followed, which is never the same as "fine".
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import importlib.metadata
import json
import os
import sys
import time
import traceback
import types
import typing as t

from .command_line import CommandLine, Refused
from .explain import explain, short
from .machine import Absent, CannotKnow, Machine, Touched
from .source import function_at
from .values import plain
from .watch import Logs, Watch

# Imported before a candidate is traced and timed; not every version has all of them.
_PRELOAD = ("sglang.srt.configs.model_config", "sglang.srt.arg_groups.pipeline", "sglang.srt.arg_groups.overrides")
_GRAPHS = "sglang.srt.model_executor.cuda_graph_config"
_TRACEBACK = 2000


def main() -> None:
    """Answers the request on standard input. What the engine prints goes to standard error."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Nothing is kept, so nothing needs collecting: 2 s of 15 (0.5.12, two cores).
    gc.disable()
    started = time.monotonic()
    document: dict[str, t.Any] = {"format": 1, "engine": "", "candidates": [], "unexplained": None}
    try:
        request = json.load(sys.stdin)
        document["engine"] = importlib.metadata.version("sglang")
        engine = Engine(request)
        document["import_seconds"] = round(time.monotonic() - started, 2)
        document["candidates"] = [in_child(functools.partial(engine.resolve, argv)) for argv in request["argvs"]]
    except Exception as error:
        document["unexplained"] = f"{type(error).__name__}: {error}"
        document["traceback"] = traceback.format_exc()[-_TRACEBACK:]
    json.dump(document, answer, default=str)
    answer.flush()
    sys.stderr.flush()
    # The engine's own exit handlers have nothing to do here, and take seconds.
    os._exit(0)


def in_child(work: t.Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
    """Returns what ``work`` returns in a forked process: resolution changes environment and modules, and cannot be run twice on one record."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            text = json.dumps(work(), default=str)
        except BaseException as error:
            # It must not get away: the caller would write its document here as well.
            traceback.print_exc()
            text = json.dumps({"unexplained": f"{type(error).__name__}: {error}"})
        with os.fdopen(writer, "w") as stream:
            stream.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _pid, status = os.waitpid(child, 0)
    if status or not text:
        return {"unexplained": f"the engine ended the process that resolved the flags (status {os.waitstatus_to_exitcode(status)})"}
    return dict(json.loads(text))


class Engine:
    """The installed engine, imported on pretended hardware.

    Args:
        request: the request; ``hardware`` null imports it on this machine as it is.
    """

    def __init__(self, request: t.Mapping[str, t.Any]) -> None:
        hardware = request.get("hardware")
        self._touched = Touched()
        self.machine = Machine(**hardware) if hardware else Machine([], "", "")
        torch: t.Any = importlib.import_module("torch")
        # Nothing is compiled in a probe, and its import takes seconds (deep_gemm decorates with it as soon as there is CUDA).
        torch.compile = lambda model=None, **options: model if model is not None else (lambda function: function)
        if hardware:
            self.machine.pretend_torch(torch)
            sys.meta_path.append(Absent(request.get("packages", ())))
        common = importlib.import_module("sglang.srt.utils.common")
        if hardware:
            self.machine.pretend_engine(common)
        self._module = importlib.import_module("sglang.srt.server_args")
        for name in _PRELOAD:
            _import_if_there(name)
        graphs = _import_if_there(_GRAPHS)
        phase = getattr(graphs, "PhaseConfig", None)
        self._records = [phase] if phase else []

    def resolve(self, argv: t.Sequence[str]) -> dict[str, t.Any]:
        """Returns what the engine makes of ``argv``. Changes the process: call it once."""
        line = CommandLine(self._module.ServerArgs.add_cli_args, argv)
        answer: dict[str, t.Any] = {
            "flags": line.flags,
            "errors": line.errors,
            "rejection": None,
            "changes": [],
            "effective": {},
            "environment": {},
            "unexplained": None,
        }
        if not line.errors:
            self._follow(argv, answer)
        # Import and resolution together: what was really used of the machine, and what was asked of the pretended one.
        answer["touched"], answer["asked"], answer["missing"] = self._touched.events, dict(self.machine.asked), self.machine.missing
        return answer

    def _follow(self, argv: t.Sequence[str], answer: dict[str, t.Any]) -> None:
        watch, logs = Watch(), Logs()
        watch.install(self._module.ServerArgs, self._records)
        environment = dict(os.environ)
        record, failure = self._run(argv, watch)
        unexplained = _why_unexplained(failure, watch)
        if unexplained:
            answer["unexplained"] = unexplained
        elif failure is not None:
            answer["rejection"] = _rejection(failure)
        answer["changes"] = [explain(change, logs.records) for change in watch.changes if not change.field.startswith("_")]
        if failure is None and not unexplained:
            answer["effective"] = _effective(record, watch)
        answer["environment"] = {key: value for key, value in os.environ.items() if environment.get(key) != value}
        answer["log"] = [f"{entry.level} {short(entry.place.path)}:{entry.place.line} {entry.message[:_TRACEBACK]}" for entry in logs.records]

    def _run(self, argv: t.Sequence[str], watch: Watch) -> tuple[t.Any, BaseException | None]:
        argparse.ArgumentParser.error = _refuse  # type: ignore[method-assign, assignment]
        sys.settrace(watch.trace)
        try:
            record = self._module.prepare_server_args(list(argv))
            if hasattr(record, "resolve_once"):
                record.resolve_once()
            sys.settrace(None)
            record.check_server_args()
        except (Exception, SystemExit) as failure:
            return None, failure
        finally:
            sys.settrace(None)
        return record, None


def _why_unexplained(failure: BaseException | None, watch: Watch) -> str:
    """Says why what happened tells nothing about the flags; empty where it does. An engine that the probe does not understand must never look fine."""
    if failure is None:
        return "" if watch.changes else "no value changed while the flags were resolved: this engine does it in a way that the probe does not know"
    text = f"{type(failure).__name__}: {failure}"
    if isinstance(failure, (ImportError, NotImplementedError, CannotKnow)):
        return text
    # Raised by the probe's own call, or over a name that stands in for a missing package: no judgement of the engine's.
    return "" if _engine_frames(failure) and "'_Name'" not in text else text


def _engine_frames(failure: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(failure.__traceback__) if "/sglang/" in frame.filename]


def _refuse(_parser: argparse.ArgumentParser, message: str) -> t.NoReturn:
    raise Refused(message)


def _import_if_there(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _effective(record: t.Any, watch: Watch) -> dict[str, t.Any]:
    fields = {name: plain(value) for name, value in watch.now.items() if not name.startswith("_")}
    if hasattr(record, "resolved_dict"):
        fields.update((name, value) for name, value in plain(record.resolved_dict()).items() if not name.startswith("_"))
        return fields
    return {name: plain(getattr(record, name)) for name in fields}


def _rejection(failure: BaseException) -> dict[str, t.Any]:
    last = _engine_frames(failure)[-1]
    answer: dict[str, t.Any] = {"type": type(failure).__name__, "message": str(failure), "at": None, "function": None, "because": [], "comment": None}
    line = last.lineno or 0
    answer["at"], answer["function"] = f"{short(last.filename)}:{line}", last.name
    try:
        source = function_at(last.filename, line)
    except (OSError, SyntaxError):
        return answer
    guards = source.guards(line)
    answer["because"] = [guard.to_json() for guard in guards]
    answer["comment"] = guards[0].comment if guards else None
    answer["statement"] = source.code(source.statement(line))
    return answer
