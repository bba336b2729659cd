# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Names the cause of a failed start from its journal, with the rows of ``_diagnosis_table``: the root, not what follows from it.

Order: a GPU that the kernel lost, a process of the run that it killed for memory, lines that name a cause, GPU errors of a process, the last exception that
is nobody's consequence, time limits and signals, a journal that just ends. Nothing of that: ``unknown``, with the last lines.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_table as table
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_kernel import (
    UNKNOWN_RUN,
    Run,
    gpu_errors,
    is_kernel_line,
    killed_by_kernel,
    own_lines,
)
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Diagnosis, Row, fill, fill_whole
from ansible_collections.llmops.inference.plugins.module_utils._gpu_kernel import explain_xid, is_serious
from ansible_collections.llmops.inference.plugins.module_utils._journal import without_colours
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact

__all__ = ["Diagnosis", "diagnose", "diagnose_hopeless", "diagnose_stall", "remarks"]

_EVIDENCE_LINES, _UNKNOWN_LINES, _LAST_LINES, _FRAMES = 3, 10, 3, 3
_EVIDENCE_LENGTH, _VALUE_LENGTH = 500, 300
_FOLLOWER = 45
_STAMP = re.compile(r"^\s*\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z]+\d+)*\] ?")
_FATAL = re.compile(r"\bfatal error: |^(?:ERROR|FATAL): |\bNCCL WARN ")
_EXCEPTION = re.compile(r"^(?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b(?::\s*(?P<text>.*))?")
_LOGIC = re.compile(r"^(?:ValueError|TypeError|AssertionError|KeyError|AttributeError|NotImplementedError|ImportError|IndexError|NameError)\b")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_CHAIN = re.compile(
    r"(?:The above exception was the direct cause of the following exception|During handling of the above exception, another exception occurred):"
)
_FRAME = re.compile(r'^File "[^"]+", line \d+')
_CODE_INDENT = " " * 4
# Where Python's own modules raise, for example json, says less than who called them.
_STANDARD = re.compile(r'^File "(?:<|[^"]*/lib/python3[\d.]*/(?!(?:site|dist)-packages/))')
# What the parent says of a child that died: names no cause of its own.
_CONSEQUENCE = re.compile(
    r"scheduler died during initialization \(exit code: |Initialization failed\. (?:Please s|S)ee |[Ii]nitialization failed\. See root cause above"
)
# What a rank says when another one is gone: a cause only when there is no other.
_PEER_GONE = re.compile(r"[Cc]onnection (?:was )?(?:closed|reset) by (?:remote )?peer|[Bb]roken pipe|ncclRemoteError|^EOFError|ConnectionResetError|WorkNCCL\(")
_DECISIVE = re.compile(r"\b(?:ERROR|CRITICAL|FATAL|[Ff]ail(?:ed|ure)?|[Ee]rror|[Cc]annot|[Cc]ould not|[Dd]enied|[Rr]efused|[Tt]imed out|[Uu]nable)\b")
_NOISE = re.compile(
    r"Received sigquit|SIGQUIT received|kill_process_tree|Failed with result|Main process exited|Consumed .* CPU time|Deactivated successfully"
    r"|Killing process \d+ |UserWarning: |^warnings\.warn\(|\bserver_args="
)


def diagnose(lines: t.Sequence[str], result: str = "", kernel: t.Sequence[str] = (), run: Run = UNKNOWN_RUN) -> Diagnosis:
    """Returns the cause found in a journal.

    Args:
        lines: the texts of one run, in order; kernel lines may be among them.
        result: systemd's ``Result`` of the unit, for the case that the journal says nothing.
        kernel: what the kernel logged during that run; of processes only those of the run count, of GPUs only those that it uses.
        run: what tells the run's processes and GPUs from others; without it nothing that the kernel killed is certain, and every GPU may be one of its.
    """
    logged = _clean([*kernel, *filter(is_kernel_line, lines)])
    clean = [*own_lines(logged, run), *_clean([line for line in lines if not is_kernel_line(line)])]
    told = [*clean, f"Result={result}"] if result else clean
    finders: tuple[t.Callable[[], Diagnosis | None], ...] = (
        lambda: _gpu_error(clean, run, serious=True),
        lambda: _first(table.KERNEL, killed_by_kernel(logged, run)),
        lambda: _first(table.ROWS, told),
        lambda: _gpu_error(clean, run, serious=False),
        lambda: _exception(clean, _is_own),
        lambda: _suspected(_first(table.KERNEL, killed_by_kernel(logged, run, contained=True))),
        lambda: _late(clean, told),
        lambda: _gpu_error(clean, run, serious=None),
        lambda: _suspected(_first([replace(row, raised=False) for row in table.ROWS if row.raised], told)),
        lambda: _exception(clean, _is_peer_gone),
        lambda: _exception(clean, _is_consequence),
    )
    for find in finders:
        found = find()
        if found:
            return found
    return _unknown(clean, result)


def diagnose_hopeless(lines: t.Sequence[str]) -> Diagnosis | None:
    """Returns why a process that still lives will never be ready, if its journal shows it: nothing has to be waited for.

    Args:
        lines: the texts of the run, in order.
    """
    return diagnose(lines) if any(map(table.HOPELESS.search, lines)) else None


def diagnose_stall(lines: t.Sequence[str]) -> Diagnosis | None:
    """Returns why a start that has not failed makes no progress, if its journal shows it.

    Args:
        lines: the texts of the run, in order.
    """
    return _first((*table.STALLS, *table.UNREADY), _clean(lines))


def remarks(lines: t.Sequence[str]) -> list[Diagnosis]:
    """Returns the warnings in a journal that look like causes and are none, with what may be done about them (case L04)."""
    clean = _clean(lines)
    return [found for found in (_apply(row, clean) for row in table.REMARKS) if found]


def _clean(lines: t.Sequence[str]) -> list[str]:
    """Without colours, time stamp and rank, so that the lines of several ranks are the same, and without the source code that a traceback shows.

    Code holds texts of errors that were not raised. An assertion is an exception: it often is all that is said.
    """
    bare = [_STAMP.sub("", without_colours(line)).rstrip() for line in lines]
    return ["" if _is_code(line) and _FRAME.match(before.lstrip()) else line.strip() for before, line in zip(["", *bare], bare)]


def _is_code(line: str) -> bool:
    return line.startswith(_CODE_INDENT) and not line.lstrip().startswith("assert ")


def _first(rows: t.Sequence[Row], lines: t.Sequence[str]) -> Diagnosis | None:
    told = [line for line in lines if not table.HARMLESS.search(line)]
    return next((found for found in (_apply(row, told) for row in rows) if found), None)


def _late(clean: t.Sequence[str], told: t.Sequence[str]) -> Diagnosis | None:
    """A start that systemd ended for its length was slow, or it hung."""
    found = _first(table.LATE, told)
    return (_first(table.STALLS, clean) or found) if found and found.code == "unit_start_timeout" else found


def _suspected(found: Diagnosis | None) -> Diagnosis | None:
    return replace(found, certainty="suspected") if found else None


def _apply(row: Row, lines: t.Sequence[str]) -> Diagnosis | None:
    found = [(i, row.pattern.search(line)) for i, line in enumerate(lines)]
    hits = [(i, hit) for i, hit in found if hit and _in_phase(row, lines, i)]
    deciding = [(i, hit) for i, hit in hits if _counts(row, lines[i])]
    if not deciding or _is_void(row, lines, hits[-1][0]):
        return None
    values = _values(row, lines, *deciding[0])
    if row.check and not row.check(values):
        return None
    return _diagnosis(row, values, _shown([lines[i] for i, hit in hits], _EVIDENCE_LINES))


def _diagnosis(row: Row, values: dict[str, t.Any], evidence: list[str]) -> Diagnosis:
    remedy = fill_whole(row.remedy, values)
    return Diagnosis(row.code, fill(row.cause, values), evidence, fill(row.hint, values), row.where, row.certainty, list(row.implicated), values, remedy)


def _counts(row: Row, line: str) -> bool:
    return not row.raised or bool(_EXCEPTION.match(line) or _FATAL.search(line) or "Main process exited" in line)


def _in_phase(row: Row, lines: t.Sequence[str], index: int) -> bool:
    if row.during is None:
        return True
    begin, end = row.during
    marks = [bool(begin.search(line)) for line in lines[:index] if begin.search(line) or end.search(line)]
    return bool(marks) and marks[-1]


def _is_void(row: Row, lines: t.Sequence[str], last: int) -> bool:
    return bool(
        (row.unless and any(map(row.unless.search, lines)))
        or (row.also and not any(map(row.also.search, lines)))
        or (row.until and any(map(row.until.search, lines[last + 1 :])))
    )


def _values(row: Row, lines: t.Sequence[str], index: int, hit: t.Match[str]) -> dict[str, t.Any]:
    values: dict[str, t.Any] = dict(row.facts)
    for pattern in row.details:
        found = [one for one in map(pattern.search, [*reversed(lines[: index + 1]), *lines[index + 1 :]]) if one]
        values.update(_groups(found[0]) if found else {})
    values.update(_groups(hit))
    if row.collect:
        groups = [_groups(one) for one in map(row.collect.search, lines) if one]
        for name in row.collect.groupindex:
            values[name] = list(dict.fromkeys(group[name] for group in groups if name in group))
    return {**values, **(row.derive(values) if row.derive else {})}


def _groups(found: t.Match[str]) -> dict[str, t.Any]:
    """Named groups by name, the number behind a name dropped."""
    named = ((re.sub(r"_\d+$", "", name), text.strip()) for name, text in found.groupdict().items() if text is not None)
    return {name: table.CONVERT.get(name, _cut_value)(text) for name, text in named}


def _cut_value(text: str) -> str:
    return redact(text)[:_VALUE_LENGTH]


def _shown(lines: t.Sequence[str], count: int) -> list[str]:
    """Different lines, secrets masked before a cut can hide them from the masking, and cut."""
    return list(dict.fromkeys(redact(line.strip())[:_EVIDENCE_LENGTH] for line in lines))[:count]


def _gpu_error(lines: t.Sequence[str], run: Run, serious: bool | None) -> Diagnosis | None:
    """The root of the first GPU's errors; a follower alone (number 45 is logged whenever a process is killed) only for ``None``."""
    roots = gpu_errors(lines, run)
    wanted = [root for root in roots if is_serious(root) or (not serious and (serious is None or root["xid"] != _FOLLOWER))]
    if not wanted:
        return None
    root = wanted[0]
    values = {"xid": root["xid"], "pci": root["pci"], "followers": root["followers"]}
    certainty = "certain" if root["certain"] else "suspected"
    return replace(explain_xid(root), where=HOST, certainty=certainty, implicated=["CUDA_VISIBLE_DEVICES"], captured=values)


def _is_consequence(line: str) -> bool:
    return bool(_CONSEQUENCE.search(line))


def _is_peer_gone(line: str) -> bool:
    return bool(_PEER_GONE.search(line)) and not _is_consequence(line)


def _is_own(line: str) -> bool:
    return not _is_consequence(line) and not _PEER_GONE.search(line)


def _exception(lines: t.Sequence[str], kind: t.Callable[[str], bool]) -> Diagnosis | None:
    """The last exception of a kind."""
    told = [i for i, line in enumerate(lines) if _EXCEPTION.match(line) and kind(line)]
    if not told:
        return None
    chain = _chain(lines, told[-1])
    known = next((found for found in (_known_exception(lines, index) for index in (told[-1], *chain)) if found), None)
    if known:
        return known
    last, evidence = lines[told[-1]], _traceback(lines, told[-1])
    shown = evidence[-1]
    earlier = [line for line in _decisive(lines[: told[-1]]) if _DECISIVE.search(line)]
    evidence = [*earlier[len(evidence) - _UNKNOWN_LINES :], *evidence]
    hint = "the lines before it in the journal show where"
    return Diagnosis("exception", f"the engine stopped with {shown}", evidence, hint, RELEASE if _LOGIC.match(last) else "", "suspected")


def _known_exception(lines: t.Sequence[str], index: int) -> Diagnosis | None:
    frames = "\n".join(_frames(lines, index))
    for row in table.EXCEPTIONS:
        hit = row.pattern.search(lines[index])
        values = _values(row, lines, index, hit) if hit else {}
        if hit and not _is_void(row, lines, index) and (not row.frames or row.frames.search(frames)) and (not row.check or row.check(values)):
            return _diagnosis(row, values, _traceback(lines, index))
    return None


def _traceback(lines: t.Sequence[str], index: int) -> list[str]:
    """What is shown of an exception: its last frames and itself."""
    return [*_shown(_frames(lines, index)[-_FRAMES:], _FRAMES), *_shown([lines[index]], 1)]


def _chain(lines: t.Sequence[str], index: int) -> list[int]:
    """The exceptions that led to one, root first."""
    begins = [i for i in range(index) if _TRACEBACK.search(lines[i])]
    above = [i for i in range(begins[-1] if begins else 0) if lines[i]]
    if not above or not _CHAIN.match(lines[above[-1]]):
        return []
    cause = next((i for i in reversed(above[:-1]) if _EXCEPTION.match(lines[i])), None)
    return [] if cause is None else [*_chain(lines, cause), cause]


def _frames(lines: t.Sequence[str], index: int) -> list[str]:
    """The frames of the traceback that ends with a line, without Python's own at its end; several ranks tell the same ones."""
    begins = [i for i in range(index) if _TRACEBACK.search(lines[i])]
    frames = list(dict.fromkeys(line for line in lines[begins[-1] : index] if _FRAME.match(line))) if begins else []
    own = [i for i, frame in enumerate(frames) if not _STANDARD.match(frame)]
    return frames[: own[-1] + 1] if own else frames


def _unknown(lines: t.Sequence[str], result: str) -> Diagnosis:
    cause = f"the server stopped and its journal names no cause{f' (systemd: {result})' if result else ''}"
    return Diagnosis("unknown", cause, _decisive(lines), "read the whole journal of the unit", "", "unknown")


def _decisive(lines: t.Sequence[str]) -> list[str]:
    """Ten different lines in their order: the last three, before them those that tell of something that failed, and the last others."""
    told = [line for line in dict.fromkeys(reversed(lines)) if line and not _NOISE.search(line)]
    last, rest = told[:_LAST_LINES], told[_LAST_LINES:]
    failed = [line for line in rest if _DECISIVE.search(line) and not table.HARMLESS.search(line) and not _FRAME.match(line)]
    wanted = {*last, *[*failed, *(line for line in rest if line not in failed)][: _UNKNOWN_LINES - len(last)]}
    return _shown([line for line in reversed(told) if line in wanted], _UNKNOWN_LINES)
