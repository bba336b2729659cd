# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Finds the benchmark records below a directory. What is none is left out with the reason; only what says that it is of another kind, in silence."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _baseline
from ansible_collections.llmops.inference.plugins.module_utils._record import KIND
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import problem
from ansible_collections.llmops.inference.plugins.plugin_utils._links_record import is_links


@dataclass
class Found:
    """What lies below a directory.

    Attributes:
        records: by the host that they are of and the name of their file.
        baselines: by host, the content of its ``baseline.json``.
        skipped: a sentence for each file that was left out.
    """

    records: dict[str, dict[str, dict[str, t.Any]]] = field(default_factory=dict)
    baselines: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(map(len, self.records.values()))


def read_records(directory: Path) -> Found:
    """Returns all records and baselines below a directory, hidden ones aside; a host's directory has its name."""
    found = Found()
    for path in sorted(directory.rglob("*.json")):
        place = path.relative_to(directory)
        if any(part.startswith(".") for part in place.parts):
            continue
        try:
            reason = _take(path, found)
        except (OSError, ValueError) as error:
            reason = str(error)
        if reason:
            found.skipped.append(f"{place}: {reason}")
    return found


def _take(path: Path, found: Found) -> str:
    """Takes one file; returns why not.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged: not UTF-8, not JSON, or a baseline that is none.
    """
    text = path.read_text(encoding="utf-8")
    if path.name == _baseline.FILE:
        found.baselines[path.parent.name] = _baseline.parse(text)
        return ""
    try:
        document = json.loads(text)
    except RecursionError:
        return "it is nested too deep for a record"
    if is_links(document) or (isinstance(document, dict) and isinstance(document.get("kind"), str) and document["kind"] != KIND):
        return ""
    reason = problem(document)
    if reason:
        return reason
    records = found.records.setdefault(document["host"], {})
    if path.name in records:
        return f"{document['host']} has another record of that name"
    records[path.name] = document
    return ""
