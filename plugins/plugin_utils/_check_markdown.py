# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A check as Markdown, made for a comment on a proposed change: the verdict first, one table, then each change once, details folded.

What does not fit into a comment is left out from the least important on, and that is said.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.plugin_utils import _check_parts as parts
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_verdict as verdict
from ansible_collections.llmops.inference.plugins.plugin_utils._check_escape import code, escape, fence
from ansible_collections.llmops.inference.plugins.plugin_utils._check_groups import groups

# By this first line a later check finds the comment that it replaces.
MARKER = "<!-- llmops.inference check -->"
# Of 65,536 characters that a comment may have, in bytes.
LIMIT = 60_000
_ROWS, _TOLD_NAMES, _FOOT = 40, 5, 2500
_CHANGES = {verdict.CHANGED: "restart", verdict.NEW: "new", verdict.REMOVED: "leaves the inventory", verdict.NOT_RENDERED: "-"}

Document = t.Mapping[str, t.Any]
Group = t.Sequence[t.Mapping[str, t.Any]]


@dataclass(frozen=True)
class _Block:
    """A part of the report.

    Attributes:
        text: Markdown.
        weight: the heaviest is left out first; 0 never.
        name: for the sentence that says so.
    """

    text: str
    weight: int
    name: str


def check_markdown(document: Document, limit: int = LIMIT) -> str:
    """Returns the report.

    Args:
        document: see ``_check_document``.
        limit: bytes that it may have.
    """
    found = groups(document["hosts"])
    rows = _ROWS
    head = _head(document, found, rows)
    while rows > 1 and _size(head) > limit // 2:
        rows //= 2
        head = _head(document, found, rows)
    blocks = [_Block(head, 0, ""), *(block for group in found for block in _group(group)), _Block(_foot(document), 0, "")]
    return _fitting([block for block in blocks if block.text], limit - _FOOT)


def _size(text: str) -> int:
    return len(text.encode())


def _fitting(blocks: list[_Block], limit: int) -> str:
    """The blocks that fit, and a sentence about the others."""
    left_out: list[str] = []
    size = sum(_size(block.text) + 2 for block in blocks)
    kept = set(range(len(blocks)))
    for place in sorted(kept, key=lambda place: (blocks[place].weight, place), reverse=True):
        if size <= limit or not blocks[place].weight:
            break
        size -= _size(blocks[place].text) + 2
        kept.remove(place)
        left_out[:0] = [blocks[place].name] if blocks[place].name else []
    blocks = [blocks[place] for place in sorted(kept)]
    if left_out:
        more = f" and {len(left_out) - _TOLD_NAMES} more" if len(left_out) > _TOLD_NAMES else ""
        told = f"Left out, for a comment has a limit: {'; '.join(left_out[:_TOLD_NAMES])}{more}. The whole report is in check.json."
        blocks.insert(-1, _Block(told, 0, ""))
    return "\n\n".join(block.text for block in blocks) + "\n"


def _head(document: Document, found: t.Sequence[Group], most: int) -> str:
    hosts = document["hosts"]
    title = f"### {verdict.headline(hosts)}"
    rows = [[parts.names(group), _change(group[0]), _verdict_cell(group[0]["verdict"]), _what(group[0])] for group in found[:most]]
    if len(found) > most:
        rows.append([f"and {sum(map(len, found[most:]))} more", "", "", "see check.json"])
    told_remarks = [escape(text) for text in document["remarks"][:most]]
    told_remarks += [f"and {len(document['remarks']) - most} more remarks in check.json"] if len(document["remarks"]) > most else []
    remarks = "\n".join(f"- {text}" for text in told_remarks)
    told = [MARKER, title, parts.table(["Servers", "Change", "Verdict", "What"], rows) if rows else "", remarks]
    return "\n\n".join(part for part in told if part).replace("\n\n", "\n", 1)


def _change(host: t.Mapping[str, t.Any]) -> str:
    return "no restart" if host["change"] == verdict.CHANGED and not host["restarts"] else _CHANGES[host["change"]]


def _verdict_cell(name: str) -> str:
    return f"**{name}**" if name in verdict.FAILING else name


def _what(host: t.Mapping[str, t.Any]) -> str:
    return escape(host["sentence"], 200) if host["sentence"] else parts.summary(host)


def _group(group: Group) -> list[_Block]:
    """The blocks of hosts that are changed alike."""
    host, name = group[0], parts.names(group[:1])
    remarks = _Block("\n".join(f"- {escape(text)}" for text in host["remarks"]), 5, f"remarks about {name}")
    if host["change"] == verdict.REMOVED:
        return [_Block(f"#### {parts.names(group)}: leaves the inventory", 2, ""), remarks]
    new, before = host["findings"]["new"], host["findings"]["before"]
    errors = [row for row in (*new, *before) if row["severity"] == "error"]
    looked = [row for row in new if row["severity"] == "warning"]
    told = [row for row in (*new, *before) if row not in errors and row not in looked]
    fails = host["verdict"] in verdict.FAILING
    beyond = host["effective"][parts.SHOWN :]
    unit = fence(host["unit"].split("\n"), "diff") if host["unit"] else ""
    alone = "" if len(group) == 1 else "; check.json has those of the others"
    return [
        _Block(f"#### {parts.names(group)}: {host['verdict']}", 2, ""),
        _Block(_problems(host), 2, f"why there is no release of {name}"),
        _Block(parts.findings("Why:", errors), 2, f"why {name} is rejected"),
        _Block(parts.difference(host), 3, f"what {name} asks for otherwise"),
        _Block(parts.secrets(host), 3, f"secrets of {name}"),
        _Block(parts.outcomes(host, [row["text"] for row in errors]), 4, f"what becomes of the flags of {name}"),
        _Block(parts.effective(host["effective"][: parts.SHOWN]), 5, f"the effective configuration of {name}"),
        _Block("" if fails and not _memory_changes(host) else parts.memory(host), 5, f"the memory of {name}"),
        _Block(parts.findings("New by this change, and worth a look:", looked), 5, f"warnings about {name}"),
        _Block("" if fails else parts.judged_by(group), 5, f"the baseline of {name}"),
        remarks,
        _Block(parts.details(f"{len(beyond)} more changes of the effective configuration", parts.effective(beyond)), 7, f"more effective changes of {name}"),
        _Block(parts.upgrade(host), 6, f"the other engine of {name}"),
        _Block(parts.other_findings(told, new), 8, f"other findings about {name}"),
        _Block(parts.details(f"Unit of {escape(host['host'], 60)}{alone}", unit), 9, f"the unit of {name}"),
    ]


def _memory_changes(host: t.Mapping[str, t.Any]) -> bool:
    return any(row["before"] != row["after"] for row in (host["memory"] or {}).get("rows", ()))


def _problems(host: t.Mapping[str, t.Any]) -> str:
    told = host["problems"] or ([host["sentence"]] if host["verdict"] == verdict.UNJUDGED else [])
    return "\n".join(f"- {escape(text, 600)}" for text in told)


def _foot(document: Document) -> str:
    base, head, asked = document["base"], document["head"], document["preflights"]
    commits = [code(str(commit)[:12]) if commit else "no commit" for commit in (base["commit"], head["commit"])]
    dirty = ", with changes that are not committed" if head["dirty"] else ""
    unchanged = "1 server does not change" if document["unchanged"] == 1 else f"{document['unchanged']} servers do not change"
    known = f", {asked['cached']} of them answered from the cache" if asked["cached"] else ""
    questions = f"{asked['distinct']} question{'' if asked['distinct'] == 1 else 's'} to engines{known}"
    told = [f"From {code(base['ref'], 100)} ({commits[0]}) to {commits[1]}{dirty}", *([unchanged] if document["unchanged"] else [])]
    return ". ".join([*told, *([questions] if asked["distinct"] else [])]) + "."
