# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The parts of a check's report on hosts that are changed alike, in Markdown; see ``_check_markdown`` for their order."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._outcome import HONOURED, UNKNOWN
from ansible_collections.llmops.inference.plugins.module_utils._preflight_difference import lines
from ansible_collections.llmops.inference.plugins.plugin_utils._check_escape import code, escape, fence, line
from ansible_collections.llmops.inference.plugins.plugin_utils._check_verdict import FAILING

Host = t.Mapping[str, t.Any]
Group = t.Sequence[Host]
Finding = t.Mapping[str, t.Any]

# A reader looks at so many rows of the effective configuration; the others are folded.
SHOWN = 12
_LINES, _NAMES = 120, 4
_NONE = "-"


def names(group: Group) -> str:
    """Returns the hosts of a group, the first few by name."""
    told = ", ".join(code(host["host"], 60) for host in group[:_NAMES])
    return f"{told} and {len(group) - _NAMES} more" if len(group) > _NAMES else told


def table(titles: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> str:
    """Returns a table of cells that are escaped already."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows))


def details(title: str, body: str) -> str:
    """Returns a folded part; the title is HTML and holds nothing of strangers that is not escaped."""
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""


def findings(title: str, rows: t.Sequence[Finding]) -> str:
    """Returns findings as a list: variable, what, what to do, and where that comes from."""
    return _titled(title, [_finding(row) for row in rows])


def other_findings(rows: t.Sequence[Finding], new: t.Sequence[Finding]) -> str:
    """Returns what need not be read, folded."""
    count = sum(1 for row in rows if row in new)
    when = f"{count} of them new by this change" if count else "there before this change"
    return details(f"{len(rows)} more finding{'' if len(rows) == 1 else 's'}, {when}", findings("", rows))


def difference(host: Host) -> str:
    """Returns what is asked for otherwise, as a difference by layer: flags, environment, engine, model."""
    parts = [_flags(host["flags"], layer) for layer in dict.fromkeys(row["layer"] for row in host["flags"])]
    parts.append(_section("server", [(row["name"], row["before"], row["after"]) for row in host["settings"]]))
    parts += [_section("environment", [(row["name"], row["before"], row["after"]) for row in host["environment"]], "=")]
    for name in ("engine", "model"):
        before, after = (host[name]["before"] or {}, host[name]["after"] or {})
        if not after:
            continue
        parts.append(_section(name, [(key, before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]))
    told = [one for part in parts for one in part]
    more = [f"  ... and {len(told) - _LINES} more lines"] if len(told) > _LINES else []
    return fence([*told[:_LINES], *more], "diff") if told else ""


def secrets(host: Host) -> str:
    """Returns what happens to secrets, by their names."""
    return _titled("Secrets:" if host["secrets"] else "", [escape(text) for text in host["secrets"]])


def effective(rows: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Returns what the engine runs with otherwise, as a table."""
    return table(["Effective", "Before", "After"], [[code(row["field"]), _cell(row["before"]), _cell(row["after"])] for row in rows]) if rows else ""


def outcomes(host: Host, told_before: t.Container[str] = ()) -> str:
    """Returns what becomes of the flags that were asked for, but for those that run as asked.

    Args:
        host: that asks.
        told_before: texts that the reader knows already.
    """
    # An engine that refuses tells no outcomes.
    known = [row for row in host["outcomes"] if row["outcome"] != UNKNOWN]
    told = [row for row in known if row["outcome"] != HONOURED and row["why"] not in told_before]
    count = sum(1 for row in known if row["outcome"] == HONOURED and row["changed"])
    parts = [_titled("What becomes of the flags that are asked for:" if told else "", [_outcome(row) for row in told])]
    if count and count == len(host["outcomes"]) and host["verdict"] not in FAILING:
        parts.append("The one changed flag runs as asked." if count == 1 else f"All {count} changed flags run as asked.")
    return "\n\n".join(part for part in parts if part)


def memory(host: Host) -> str:
    """Returns the account of one GPU before and after."""
    account = host["memory"]
    if not account:
        return ""
    tokens = account["kv_tokens"]
    told = [[escape(row["name"]), _gib(row["before"]), _gib(row["after"])] for row in account["rows"]]
    told.append(["tokens of the KV pool", _count(tokens["before"]), _count(tokens["after"])])
    if all(cells[1] == cells[2] for cells in told):
        return f"Memory stays as it is, with {told[-1][2]} tokens in the KV pool."
    return table(["Memory of each GPU, GiB", "Before", "After"], told)


def judged_by(group: Group) -> str:
    """Returns what the change will be judged by when it is deployed, hosts with the same words together."""
    found: dict[str, list[Host]] = {}
    for host in group:
        if host["baseline"]:
            found.setdefault(host["baseline"]["text"], []).append(host)
    if len(found) == 1 and len(group) == len(next(iter(found.values()))):
        return f"Gate: {escape(next(iter(found)), 600)}."
    return _titled("Gate:" if found else "", [f"{names(hosts)}: {escape(text, 600)}" for text, hosts in found.items()])


def upgrade(host: Host) -> str:
    """Returns what the other engine makes of the flags as they are, folded."""
    if not host["upgrade"]:
        return ""
    title, *told = lines(host["upgrade"], "the flags as they are")
    return details(escape(title), fence(line(one, 1000) for one in told) if told else "Nothing else.")


def summary(host: Host) -> str:
    """Returns in a few words what changes."""
    told = [row["name"] for part in ("settings", "environment") for row in host[part]]
    told[:0] = list(dict.fromkeys(row["flag"] for row in host["flags"]))
    moved = [name for name in ("engine", "model") if host[name]["before"] and host[name]["after"] and host[name]["before"] != host[name]["after"]]
    parts = [*moved, *(["secrets"] if host["secrets"] else []), *(code(name, 60) for name in told[:_NAMES])]
    more = [f"{len(told) - _NAMES} more"] if len(told) > _NAMES else []
    return ", ".join([*parts, *more]) or ("the unit" if host["unit"] else _NONE)


def _titled(title: str, entries: t.Sequence[str]) -> str:
    listed = "\n".join(f"- {entry}" for entry in entries)
    return "\n\n".join(part for part in (title, listed) if part) if entries else ""


def _finding(row: Finding) -> str:
    where = f"{', '.join(code(name) for name in row['variables'])}: " if row["variables"] else ""
    parts = [f"{where}{escape(row['text'], 600)}", escape(row["hint"], 600)]
    source = "; ".join(part for part in (row["code"], row["source"]) if part)
    return "<br>".join([*(part for part in parts if part), code(source)])


def _outcome(row: t.Mapping[str, t.Any]) -> str:
    where = f" ({code(row['variable'])})" if row["variable"] else ""
    text = f"{code(row['flag'])}{where} is **{escape(row['outcome'])}**: asked {_cell(row['asked'])}, the engine has {_cell(row['effective'])}"
    why = "; ".join(part for part in (row["why"], row["hint"]) if part)
    parts = [text, escape(why, 600), code(row["source"])]
    return "<br>".join(part for part in parts if part)


def _flags(rows: t.Iterable[t.Mapping[str, t.Any]], layer: str) -> list[str]:
    own = [row for row in rows if row["layer"] == layer]
    variable = own[0]["variable"].partition(".")[0] if own else ""
    return _section(f"{layer}: {variable}" if variable else layer, [(row["flag"], row["before"], row["after"]) for row in own])


def _section(title: str, rows: t.Sequence[tuple[str, t.Any, t.Any]], sign: str = ": ") -> list[str]:
    """Lines of a difference; None is a side that has no such value."""
    told = [f"@@ {line(title)} @@"] if rows else []
    for name, before, after in rows:
        told += [f"{mark} {line(name)}{sign}{_value(value)}" for mark, value in (("-", before), ("+", after)) if value is not None]
    return told


def _value(value: t.Any) -> str:
    """A value as an inventory writes it, on one line: a text that reads as something else stands in quotes."""
    if not isinstance(value, str) or not value.isprintable() or not value:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value, ensure_ascii=False)


def _cell(value: t.Any) -> str:
    return "none" if value is None else code(_value(value), 120)


def _gib(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f}"


def _count(value: int | None) -> str:
    return _NONE if value is None else f"{value:,}"
