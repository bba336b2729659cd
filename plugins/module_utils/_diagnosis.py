# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Names the cause of a failed start from its journal: a code, one sentence, the deciding line and what to do.

Rules stand in order of how surely they name a cause; the first that matches anywhere in the journal wins.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Diagnosis:
    """Why a start failed.

    Attributes:
        code: stable name of the cause.
        cause: one sentence for a person.
        evidence: the deciding lines, as logged.
        hint: what to do.
    """

    code: str
    cause: str
    evidence: list[str] = field(default_factory=list)
    hint: str = ""

    @property
    def sentence(self) -> str:
        """The cause and what to do."""
        return f"{self.cause}: {self.hint}"


@dataclass(frozen=True)
class _Rule:
    code: str
    pattern: t.Pattern[str]
    cause: str
    hint: str


def _rule(code: str, pattern: str, cause: str, hint: str) -> _Rule:
    return _Rule(code, re.compile(pattern), cause, hint)


_RULES = (
    _rule(
        "port_in_use", r"\[Errno 98\].*address already in use", "another process holds the server's port", "stop that process or set another sglang_server_port"
    ),
    _rule(
        "unknown_argument",
        r"error: unrecognized arguments: (?P<detail>.*)",
        "this engine does not know the arguments {detail}",
        "take them out of the inventory or install the engine that has them",
    ),
    _rule(
        "bad_argument", r"error: (?P<detail>(?:argument|ambiguous option).*)", "the engine refused an argument: {detail}", "correct the flag in the inventory"
    ),
    _rule(
        "encoder_urls",
        r"requires at least one encoder urls",
        "language_only needs encoder_urls: it belongs to encoder disaggregation",
        "take language_only away; to skip the vision part of a model use language_model_only where the engine has it",
    ),
    _rule(
        "kv_cache_memory",
        r"leave no GPU memory for the KV cache|Not enough memory\. Please try to increase --mem-fraction-static",
        "the weights leave no memory for the KV cache",
        "raise mem_fraction_static, use more GPUs, or a smaller or quantised model",
    ),
    _rule(
        "graph_memory",
        r"Capture cuda graph failed|(?:capture|graph).*CUDA out of memory",
        "memory ran out while CUDA graphs were captured",
        "lower mem_fraction_static or the largest captured batch size",
    ),
    _rule("gpu_memory", r"torch\.OutOfMemoryError|CUDA out of memory", "GPU memory ran out", "lower mem_fraction_static, free the GPU, or use more GPUs"),
    _rule(
        "driver_too_old",
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient",
        "the NVIDIA driver is older than the engine's CUDA needs",
        "install a newer driver or an engine built for this one",
    ),
    _rule(
        "no_accelerator",
        r"No accelerator \(",
        "the engine finds no GPU",
        "install the driver and give the service access to the device nodes, or use the cpu flavour",
    ),
    _rule(
        "cache_not_writable",
        r"PermissionError.*Permission denied: '(?P<detail>[^']*cache[^']*)'",
        "the service may not write its cache at {detail}",
        "set HOME and the cache variables to a directory of the service user",
    ),
    _rule(
        "cache_read_only",
        r"\[Errno 30\] Read-only file system: '(?P<detail>[^']*)'",
        "the service's sandbox makes {detail} read-only",
        "point the cache variables into CacheDirectory, or add the path to ReadWritePaths",
    ),
    _rule("mdwe", r"could not create a primitive", "generated code could not be made executable", "MemoryDenyWriteExecute must stay off for this server"),
    _rule("no_temporary_directory", r"No usable temporary directory", "the service finds no writable temporary directory", "keep PrivateTmp on or set TMPDIR"),
    _rule(
        "proxy_intercepts_localhost",
        r"https?://(?P<detail>\S+:\d+) \"GET https?://(?:0\.0\.0\.0|127\.0\.0\.1|localhost)",
        "the server's own warm-up request went through the proxy {detail}",
        "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy of the unit",
    ),
    _rule(
        "model_missing",
        r"Repo id must be in the form .*: '(?P<detail>[^']*)'|(?:No such file or directory|does not appear to have a file).*(?:config\.json|tokenizer)",
        "the model path does not hold a model ({detail})",
        "correct sglang_model_path or download the model",
    ),
    _rule("disk_full", r"No space left on device", "the disk is full", "free space on the file system named in the log"),
    _rule(
        "killed",
        r"status=9/KILL|exit code:? -9|Killed process \d+",
        "the server was killed from outside: most often the kernel's OOM killer",
        "look at the kernel log; give the host more memory or lower the server's",
    ),
    _rule("start_limit_hit", r"Start request repeated too quickly", "systemd gave up after repeated crashes", "mend the first failure, then reset-failed"),
)
_EXCEPTION = re.compile(r"^(?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?::\s*(?P<text>.*))?")
# What the parent says of a child that died: names no cause of its own.
_CONSEQUENCE = re.compile(r"scheduler died during initialization \(exit code: -9\)|Initialization failed\. Please see the error messages above")
_NOISE = re.compile(r"Received sigquit|kill_process_tree|Failed with result|Main process exited|Consumed .* CPU time")


def diagnose(lines: t.Sequence[str], result: str = "") -> Diagnosis:
    """Returns the cause found in a journal.

    Args:
        lines: the texts of one run, in order.
        result: systemd's ``Result`` of the unit, for the case that the journal says nothing.
    """
    for rule in _RULES[:-2]:
        hits = [(line, found) for line, found in ((line, rule.pattern.search(line)) for line in lines) if found]
        if hits:
            return _from_rule(rule, hits)
    exceptions = [line for line in lines if _EXCEPTION.match(line.strip()) and not _CONSEQUENCE.search(line)]
    if exceptions:
        last = exceptions[-1].strip()
        return Diagnosis("exception", f"the engine stopped with {last}", [last], "the lines before it in the journal show where")
    for rule in _RULES[-2:]:
        hits = [(line, found) for line, found in ((line, rule.pattern.search(line)) for line in lines) if found]
        if hits:
            return _from_rule(rule, hits)
    tail = [line for line in lines if not _NOISE.search(line)][-5:]
    return Diagnosis(
        "unknown", f"the server stopped and its journal names no cause{f' (systemd: {result})' if result else ''}", tail, "read the whole journal of the unit"
    )


def _from_rule(rule: _Rule, hits: t.Sequence[tuple[str, t.Match[str]]]) -> Diagnosis:
    detail = (hits[0][1].groupdict().get("detail") or "").strip()
    cause = rule.cause.format(detail=detail).replace(" ()", "")
    return Diagnosis(rule.code, cause, [line.strip()[:500] for line, found in hits[:3]], rule.hint)
