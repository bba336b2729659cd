# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The preflight's judgement of one candidate: what the engine said, what our rules say, and where in the inventory it comes from.

The result is one JSON document (``docs/preflight.schema.json``). Its findings have stable codes; an ``error`` rejects the candidate.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass, field, replace

from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._outcome import (
    ADJUSTED,
    NOT_HONOURED,
    TRANSLATED,
    Disabled,
    Outcome,
    disabled,
    implicated,
    outcomes,
    shown,
)

FORMAT = 1
SEVERITIES = {"ignore": "note", "warn": "warning", "fail": "error"}
_PARSE_CODES = {
    "unknown": "flag_unknown",
    "abbreviation": "flag_abbreviated",
    "ambiguous": "flag_ambiguous",
    "invalid": "value_invalid",
    "unexpected": "word_unexpected",
}
PARSER_SOURCE = "the engine's own argument parser"


@dataclass(frozen=True)
class Policy:
    """What the operator wants to be stopped by: ``ignore``, ``warn`` or ``fail``."""

    not_honoured: str = "fail"
    silently_disabled: str = "warn"


@dataclass(frozen=True)
class Subject:
    """What is judged.

    Attributes:
        engine: ``version`` and ``name`` of the engine that was asked.
        sources: engine's field -> inventory variable that set it.
        hardware: what the engine was told it runs on.
        policy: see :class:`Policy`.
    """

    engine: t.Mapping[str, str] = field(default_factory=dict)
    sources: t.Mapping[str, str] = field(default_factory=dict)
    hardware: t.Mapping[str, t.Any] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    def variables(self, fields: t.Iterable[str]) -> list[str]:
        """Returns the inventory variables behind fields, each once; a rule may know a field by the name that the inventory writes."""
        names = list(fields)
        found = [self.sources[name] for name in names if name in self.sources]
        written = {variable.rpartition(".")[2]: variable for variable in self.sources.values() if "." in variable}
        return list(dict.fromkeys(found or [written[name] for name in names if name in written]))


def judge(answer: t.Mapping[str, t.Any], findings: t.Sequence[Finding], subject: Subject, memory: t.Any = None) -> dict[str, t.Any]:
    """Returns the result for one candidate.

    Args:
        answer: the candidate as the probe returned it, or ``{"unexplained": reason}``.
        findings: what the rules beyond the engine found.
        subject: what is judged.
        memory: the memory budget, or None where it could not be told.
    """
    answer = {"flags": [], "errors": [], "changes": [], "effective": {}, "rejection": None, "unexplained": None, "environment": {}, **answer}
    reasons = {name: finding for finding in findings if finding.severity == "ignored" for name in finding.fields}
    results = [_with_reason(result, reasons) for result in outcomes(answer)]
    off = disabled(answer, results)
    told = [
        *_parse_findings(answer["errors"]),
        *_rejection_findings(answer),
        *_unexplained_findings(answer),
        *_outcome_findings(results, reasons, subject.policy),
        *_disabled_findings(off, subject.policy),
        *(finding for finding in findings if finding.severity != "ignored"),
    ]
    rows = [_finding_row(finding, subject) for finding in told]
    return {
        "format": FORMAT,
        "verdict": _verdict(rows),
        "explained": not answer["unexplained"],
        "engine": dict(subject.engine),
        "hardware": dict(subject.hardware),
        "findings": rows,
        "flags": [_flag_row(result, subject) for result in results],
        "changes": list(answer["changes"]),
        "effective": dict(answer["effective"]),
        "environment": dict(answer["environment"]),
        "memory": memory,
        "probe": {name: answer.get(name, empty) for name, empty in (("touched", []), ("asked", {}), ("missing", []))},
    }


def _verdict(rows: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    severities = {row["severity"] for row in rows}
    return "rejected" if "error" in severities else "warned" if "warning" in severities else "passed"


def _with_reason(result: Outcome, reasons: t.Mapping[str, Finding]) -> Outcome:
    return replace(result, outcome=NOT_HONOURED) if reasons.keys() & {result.field, *result.fields} else result


def _parse_findings(errors: t.Iterable[t.Mapping[str, t.Any]]) -> list[Finding]:
    found = []
    for error in errors:
        near = error["nearest"]
        hint = "; ".join(part for part in (error.get("elsewhere", ""), f"nearest: {', '.join(near)}" if near else "") if part)
        code = _PARSE_CODES[error["code"]]
        fields = (*error.get("fields", ()), _field_of(error["flag"]))
        found.append(Finding(code, "error", f"{error['flag']} {error['message']}", hint, PARSER_SOURCE, tuple(dict.fromkeys(fields))))
    return found


def _field_of(flag: str) -> str:
    return flag.lstrip("-").split("=", maxsplit=1)[0].replace("-", "_")


def _rejection_findings(answer: t.Mapping[str, t.Any]) -> list[Finding]:
    rejection = answer["rejection"]
    if not rejection:
        return []
    tests = [guard["test"] for guard in rejection["because"][:2]]
    fields = tuple(name for flag in implicated(tests, rejection["message"], answer["flags"]) for name in flag["fields"])
    because = because_of(rejection["because"])
    return [Finding("engine_rejects", "error", f'the engine refuses: "{rejection["message"]}"', because, source_of(rejection), fields)]


def _unexplained_findings(answer: t.Mapping[str, t.Any]) -> list[Finding]:
    if not answer["unexplained"]:
        return []
    text = f"what the engine makes of these flags could not be told: {answer['unexplained']}"
    what = "only the words and the rules of this collection were checked" if answer["flags"] else "only the rules of this collection were checked"
    return [Finding("unexplained", "warning", text, what)]


def _outcome_findings(results: t.Iterable[Outcome], reasons: t.Mapping[str, Finding], policy: Policy) -> list[Finding]:
    found = []
    for result in results:
        names = (result.field, *result.fields)
        reason = next((reasons[name] for name in names if name in reasons), None)
        if result.outcome == NOT_HONOURED and reason:
            found.append(Finding(reason.code, SEVERITIES[policy.not_honoured], reason.text, reason.hint, reason.source, tuple(result.fields)))
        elif result.outcome == NOT_HONOURED:
            text = f"{result.flag} will not take effect"
            text += f": asked {shown(result.asked)}, the engine makes it {shown(result.effective)}" if result.field else ""
            found.append(_explained("not_honoured", SEVERITIES[policy.not_honoured], text, result))
        elif result.outcome == ADJUSTED:
            text = f"{result.flag} becomes {shown(result.effective)}, asked {shown(result.asked)}"
            found.append(_explained("adjusted", "warning", text, result))
        elif result.outcome == TRANSLATED:
            found.append(_translated(result))
    return list(dict.fromkeys(found))


def _explained(code: str, severity: str, text: str, result: Outcome) -> Finding:
    if not result.changes:
        hint = result.deprecated or ("the engine does not say where" if result.field else "the engine stores nothing for it")
        return Finding(code, severity, text, hint, PARSER_SOURCE, tuple(result.fields))
    last = result.changes[-1]
    return Finding(code, severity, text, why(last), source_of(last), tuple(result.fields))


def _translated(result: Outcome) -> Finding:
    if result.successor or result.deprecated:
        text = f"{result.flag} is an old spelling that still works{f': {result.deprecated}' if result.deprecated else ''}"
        hint = f"write {result.successor}" if result.successor else ""
        return Finding("translated", "note", text, hint, PARSER_SOURCE, tuple(result.fields))
    return Finding(
        "translated", "note", f"{result.flag} {shown(result.asked)} is {shown(result.effective)}", "", source_of(result.changes[-1]), tuple(result.fields)
    )


def _disabled_findings(off: t.Iterable[Disabled], policy: Policy) -> list[Finding]:
    found = []
    for item in off:
        change = item.change
        text = f"{change['field']}: {shown(change['before'])} becomes {shown(change['after'])}"
        if item.asked:
            text += f", which follows from {', '.join(item.asked)}"
        if item.logged:
            code, severity, said = "disabled", "note", "and the engine will log it"
        elif any(flag.startswith("--disable-") for flag in item.asked):
            code, severity, said = "disabled_by_flag", "note", "as asked"
        else:
            code, severity = "silently_disabled", SEVERITIES[policy.silently_disabled]
            said = "a default optimisation is switched off and the engine logs nothing of it"
        found.append(Finding(code, severity, f"{text}: {said}", why(change), source_of(change)))
    return found


def why(change: t.Mapping[str, t.Any]) -> str:
    """Returns the condition of a change, with the comment beside it and what the engine logs."""
    parts = [because_of(change["because"]) or (f"by `{change['statement']}`" if change["statement"] else "")]
    if change["comment"]:
        parts.append(f"# {change['comment']}")
    if change["logged"]:
        parts.append(f'it logs "{change["logged"][0]}"')
    if change["also"]:
        parts.append(f"set again at {', '.join(place.rsplit('/', maxsplit=1)[-1] for place in change['also'])}")
    return "; ".join(part for part in parts if part)


def because_of(guards: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Returns the innermost two conditions in words."""
    tests = [guard["test"] if guard["was"] else f"not ({guard['test']})" for guard in guards[:2]]
    return f"because {' and '.join(f'`{test}`' for test in tests)}" if tests else ""


def source_of(change: t.Mapping[str, t.Any]) -> str:
    """Returns function, file and line of a change or a rejection."""
    return f"{change['function']}, {change['at']}" if change["at"] else ""


def _finding_row(finding: Finding, subject: Subject) -> dict[str, t.Any]:
    return {**asdict(finding), "fields": list(finding.fields), "variables": subject.variables(finding.fields)}


def _flag_row(result: Outcome, subject: Subject) -> dict[str, t.Any]:
    variables = subject.variables((result.field, *result.fields))
    return {
        "flag": result.flag,
        "variable": variables[0] if variables else "",
        "field": result.field,
        "asked": result.asked,
        "effective": result.effective,
        "outcome": result.outcome,
        "deprecated": result.deprecated,
        "successor": result.successor,
    }
