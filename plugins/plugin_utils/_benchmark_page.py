# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""One HTML page of all benchmark records: everything is in the file, and the browser is told to load and run nothing else.

Texts of records are data of the page's own script, which makes text nodes of them and never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page_data import page_data
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record, number
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Commits

_FILES = Path(__file__).with_name("_benchmark_page_files")
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_PLACES = re.compile(r"@(DATA|POLICY|SCRIPT|STYLE)@")


def page(
    records_by_host: t.Mapping[str, t.Mapping[str, Record]],
    baselines: t.Mapping[str, t.Mapping[str, t.Any]],
    skipped: t.Sequence[str] = (),
    commits: Commits | None = None,
) -> str:
    """Returns the page. The same records and commits give the same page.

    Args:
        records_by_host: records, by the host that they are of and the name of their file.
        baselines: by host, what its ``baseline.json`` holds.
        skipped: a sentence for each file that is no record.
        commits: what git tells of the commits that the records name; None where it was not asked.
    """
    style, script = (f"\n{(_FILES / name).read_text(encoding='utf-8')}" for name in ("page.css", "page.js"))
    parts = {"DATA": _data(page_data(records_by_host, baselines, skipped, commits=commits)), "POLICY": _policy(style, script), "SCRIPT": script, "STYLE": style}
    # In one pass: a record that holds the name of a place gets nothing put there.
    return _PLACES.sub(lambda found: parts[found[1]], (_FILES / "page.html").read_text(encoding="utf-8"))


def summary(text: str) -> list[str]:
    """Returns one line for each record of a page, and one for the page itself: what a difference of two pages is told by, since they have no lines to compare.

    Args:
        text: a page as :func:`page` returns it; any other text has no records.
    """
    found = _DATA.search(text)
    try:
        records = json.loads(found[1])["records"] if found else []
        lines = [_line(record) for record in records]
    except (KeyError, TypeError, ValueError):
        lines = []
    return [*lines, f"page {hashlib.sha256(text.encode()).hexdigest()[:12]}"] if text else []


def _line(record: t.Mapping[str, t.Any]) -> str:
    main = record["rows"][record["main"]]["ranges"]["output_tok_per_s"] if record["main"] is not None else None
    verdict = record["verdict"]["verdict"] if record["verdict"] else "no record before"
    return ", ".join([record["id"], f"{number(main[0])} tok/s" if main else "no number", record["status"] if record["status"] != "ok" else verdict])


def _data(data: t.Mapping[str, t.Any]) -> str:
    """JSON in which no text can end the script element, or begin a comment or another script in it."""
    text = json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace('},{"acceptance"', '},\n{"acceptance"')


def _policy(style: str, script: str) -> str:
    """The page's own style and script run, by their hashes, and nothing else does."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; base-uri 'none'; form-action 'none'"
