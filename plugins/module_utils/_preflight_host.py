# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Brings a preflight together: the model's files, the hardware, the engine's answer (or a kept one), the rules and the host's state."""

from __future__ import annotations

import functools
import json
import typing as t
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _memory_budget, _rules, _rules_memory
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagError, FlagTable
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._host_checks import hidden_paths, judge_ports, judge_readable
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Subject, judge
from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache, digests, key_of
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Command, Probe, ProbeError, probe_sources
from ansible_collections.llmops.inference.plugins.module_utils._rules_gpus import visible_gpus
from ansible_collections.llmops.inference.plugins.module_utils._rules_model import known_architectures
from ansible_collections.llmops.inference.plugins.module_utils._rules_ports import derived_ports
from ansible_collections.llmops.inference.plugins.module_utils._successors import told_elsewhere
from ansible_collections.llmops.inference.plugins.module_utils._systemd import Unit

# A cpu engine has none of these, a cuda engine always has: the engine picks backends by whether they can be imported.
_CUDA_PACKAGES = ("flashinfer",)
_SECRET_WORD = "preflight"
# Flags with a path that must be there. Others name what the engine makes itself (--crash-dump-folder), or no file (--fastapi-root-path, --served-model-name).
_READ = frozenset(
    (
        "chat-template",
        "completion-template",
        "config",
        "debug-tensor-dump-input-file",
        "decrypted-config-file",
        "decrypted-draft-config-file",
        "dllm-algorithm-config",
        "flexkv-config-file",
        "kt-weight-path",
        "lmcache-config-file",
        "lora-paths",
        "model",
        "model-path",
        "pdmux-config-path",
        "quantization-param-path",
        "speculative-draft-model",
        "speculative-draft-model-path",
        "speculative-token-map",
        "ssl-ca-certs",
        "ssl-certfile",
        "ssl-keyfile",
        "tokenizer-path",
    )
)
_HOST_ERRORS = ("OSError", "PermissionError", "FileNotFoundError")


@dataclass(frozen=True)
class Request:
    """What a preflight is asked.

    Attributes:
        probe: how the engine is asked.
        engine: ``name``, ``version`` and ``flavour`` of the engine.
        argv: the server's arguments without secrets.
        secret_flags: names of the flags that the server gets as secrets; their values are never needed.
        model_dir: where the model's files are, when the path in ``argv`` is not on this machine.
        gpu_facts: what ``gpu_facts`` found on the host that is judged; None where it is not known.
        recorded: the facts are of another machine: nothing of this machine's state counts.
        own_unit: the unit that the candidate replaces.
        control_group: of that unit; empty where it does not run.
    """

    probe: Probe
    engine: t.Mapping[str, str]
    argv: t.Sequence[str]
    secret_flags: t.Sequence[str] = ()
    model_dir: str = ""
    gpu_facts: t.Mapping[str, t.Any] | None = None
    recorded: bool = False
    own_unit: str = ""
    control_group: str = ""

    @property
    def words(self) -> list[str]:
        """The argument vector for the probe: the model where it is, a word in the place of each secret."""
        words = list(self.argv)
        if self.model_dir and "--model-path" in words[:-1]:
            words[words.index("--model-path") + 1] = self.model_dir
        for name in self.secret_flags:
            words += [f"--{name.replace('_', '-')}", _SECRET_WORD]
        return words

    def path_after(self, *flags: str) -> Path | None:
        """Returns the directory that a flag of the argument vector names, None where there is none."""
        words = self.words
        for flag in flags:
            if flag in words[:-1]:
                path = Path(words[words.index(flag) + 1])
                return path if path.is_dir() else None
        return None


@dataclass
class Preflight:
    """Judges one candidate.

    Args:
        request: what is asked.
        subject: how the result is to be written.
        cache: kept answers.
        run_probe: runs a command with input and environment.
        run: runs a command.
    """

    request: Request
    subject: Subject
    cache: Cache
    run_probe: Command
    run: t.Callable[[t.List[str]], t.Tuple[int, str, str]]
    cached: bool = field(default=False, init=False)

    def result(self) -> dict[str, t.Any]:
        """Returns the preflight's document."""
        answer = self._answer()
        candidate = self._candidate(answer)
        findings = list(_rules.judge(candidate, known_architectures(models_folder(self.request.probe.python)), bool(answer.get("unexplained"))))
        # Refused flags have no effective values, and the budget is made of those.
        told = not answer.get("errors") and not answer.get("rejection")
        memory, found = self._memory(candidate) if told and self.request.gpu_facts is not None else (None, [])
        findings += found
        if not self.request.recorded:
            findings += self._host_findings(candidate)
        subject = Subject(self.subject.engine, self.subject.sources, self._described(), self.subject.policy)
        return judge(answer, list(dict.fromkeys(findings)), subject, memory)

    def _answer(self) -> dict[str, t.Any]:
        answer = self._kept_or_asked()
        # Not part of what is kept: other engines come and go.
        for row in answer.get("errors", []):
            if row["code"] == "unknown":
                row["elsewhere"] = told_elsewhere(row["flag"].lstrip("-"), sibling_tables(self.request.probe.python))
        return answer

    def _kept_or_asked(self) -> dict[str, t.Any]:
        request = self.request
        hardware = self._hardware
        # A cuda engine has what it has.
        packages = _CUDA_PACKAGES if hardware and request.engine.get("flavour") != "cuda" else ()
        asked = {"argvs": [request.words], "hardware": hardware, "packages": packages}
        key = key_of(
            {
                "probe": probe_sources(),
                "engine": [request.probe.python, request.engine],
                "request": asked,
                "environment": dict(request.probe.environment),
                "files": digests(request.words),
            }
        )
        kept = self.cache.get(key)
        if kept is not None:
            self.cached = True
            return kept
        try:
            document = request.probe.ask(self.run_probe, asked)
        except ProbeError as error:
            return {"unexplained": str(error)}
        if document["unexplained"]:
            return {"unexplained": document["unexplained"]}
        answer = dict(document["candidates"][0])
        if not answer.get("unexplained") and (answer["rejection"] or {}).get("type") not in _HOST_ERRORS:
            self.cache.put(key, answer)
        return answer

    @functools.cached_property
    def _hardware(self) -> dict[str, t.Any] | None:
        """The GPUs as the probe pretends them: what the server will see, with the CUDA version of the engine."""
        facts = self.request.gpu_facts
        devices = visible_gpus(Candidate(gpus=facts.get("gpus", []), environment=self.request.probe.environment)) if facts else []
        if not facts or not devices or not all(device.compute_capability for device in devices):
            return None
        gpus = [
            {
                "name": device.name,
                "memory_mib": device.memory_total_mib or 0,
                "capability": [int(part) for part in device.compute_capability.split(".")],
            }
            for device in devices
        ]
        driver = facts.get("driver", {})
        return {"gpus": gpus, "cuda": self.request.engine.get("cuda") or driver.get("cuda") or "", "driver": driver.get("version") or ""}

    def _described(self) -> dict[str, t.Any]:
        return {**(self._hardware or {"gpus": [], "cuda": "", "driver": ""}), "recorded": self.request.recorded}

    def _candidate(self, answer: t.Mapping[str, t.Any]) -> Candidate:
        asked = {name: value for flag in answer.get("flags", []) for value in flag["asked"].values() for name in flag["fields"]}
        asked = asked or asked_by_table(self.request.probe.python, self.request.words)
        model = self.request.path_after("--model-path", "--model")
        cuda = self.request.engine.get("flavour") == "cuda" or bool(self.request.gpu_facts)
        return Candidate(
            engine=self.request.engine.get("version", ""),
            asked=asked,
            effective=answer.get("effective", {}),
            config=read_config(model),
            weights_bytes=weights_bytes(model),
            gpus=(self.request.gpu_facts or {}).get("gpus") if cuda else None,
            environment=self.request.probe.environment,
        )

    def _draft(self) -> _memory_budget.Draft | None:
        path = self.request.path_after("--speculative-draft-model-path", "--speculative-draft-model")
        return _memory_budget.Draft(read_config(path), weights_bytes(path)) if path else None

    def _memory(self, candidate: Candidate) -> tuple[dict[str, t.Any] | None, list[Finding]]:
        """The account as the result shows it, and what it says about the candidate."""
        own_unit, draft = self.request.own_unit, self._draft()
        account = _memory_budget.budget(candidate, own_unit, draft)
        shown = {**asdict(account), "rows": [asdict(row) for row in account.rows], "verdict": account.verdict} if account else None
        return shown, _rules_memory.judge_memory(candidate, own_unit, draft)

    def _host_findings(self, candidate: Candidate) -> list[Finding]:
        # Without any word about them its ports are not known, and the default ones may be another server's.
        findings = judge_ports(derived_ports(candidate), self.request.control_group) if candidate.asked else []
        unit: Unit | None = self.request.probe.unit
        if unit is not None:
            paths = read_paths(self.request.words)
            findings += hidden_paths(paths, unit)
            user = dict(unit.get("Service", [])).get("User", "root")
            findings += judge_readable(paths, user, self.run)
        return findings


def read_paths(words: t.Sequence[str]) -> dict[str, str]:
    """Returns the absolute paths that an argument vector gives the engine to read, with the field that each belongs to."""
    flag, paths = "", {}
    for word in words:
        value = word
        if word.startswith("--"):
            flag, _equals, value = word.partition("=")
        if value.startswith("/") and flag[2:] in _READ:
            paths[value] = flag[2:].replace("-", "_")
    return paths


def asked_by_table(python: str, words: t.Sequence[str]) -> dict[str, t.Any]:
    """Returns what was asked by the parser table beside the engine, for rules about an engine that gives no answer."""
    try:
        return FlagTable(_read_json(Path(python).parent.parent / "flags.json")).parse(words)
    except (FlagError, KeyError, TypeError):
        return {}


def models_folder(python: str) -> str:
    """Returns where an engine keeps its models; a folder that is not there knows none."""
    return next((str(path) for path in sorted(Path(python).parent.parent.glob("lib/python3*/site-packages/sglang/srt/models"))), "")


def sibling_tables(python: str) -> list[dict[str, t.Any]]:
    """Returns the parser tables of the engines that are installed beside this one."""
    engine = Path(python).parent.parent
    tables = []
    for path in sorted(engine.parent.glob("*/flags.json")):
        table = _read_json(path) if path.parent != engine else {}
        if table.get("format") == 1:
            tables.append(table)
    return tables


def read_config(model: Path | None) -> dict[str, t.Any]:
    """Returns a model's ``config.json``, empty where there is none that can be read: the engine says what is wrong with it."""
    return _read_json(model / "config.json") if model else {}


def _read_json(path: Path) -> dict[str, t.Any]:
    """The JSON object in a file; empty where there is none that can be read."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def weights_bytes(model: Path | None) -> int | None:
    """Returns the bytes of a model's weights: by the safetensors index, else by the files; None where there are none."""
    if model is None:
        return None
    index = model / "model.safetensors.index.json"
    try:
        if index.is_file():
            return int(json.loads(index.read_text())["metadata"]["total_size"])
        return sum(path.stat().st_size for path in model.glob("*.safetensors")) or None
    except (OSError, ValueError, KeyError, TypeError):
        return None
