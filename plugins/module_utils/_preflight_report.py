# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The preflight's result on one screen: what fails, what is not honoured, what changed and why, and the memory budget."""

from __future__ import annotations

import re
import textwrap
import typing as t

_WIDTH = 150
_TITLES = (
    ("error", "FAILS"),
    ("warning", "DESERVES A LOOK"),
    ("note", "WORTH KNOWING"),
)
_VERDICTS = {"passed": "passed", "warned": "passed with warnings", "rejected": "rejected"}
# What the engine chose where nothing was asked, and what people ask about first. Only for display: all of it is in the result.
_CHOSEN = re.compile(
    r"^(attention_backend|chunked_prefill_size|kv_cache_dtype|max_running_requests|mem_fraction_static|page_size|sampling_backend|speculative_algorithm"
    r"|cuda_graph_max_bs|cuda_graph_config\.\w+\.(backend|max_bs))$"
)


def report(result: t.Mapping[str, t.Any], cached: bool = False) -> list[str]:
    """Returns the report, one line per entry.

    Args:
        result: as :func:`_preflight.judge` returns it.
        cached: whether the engine's answer was known already.
    """
    lines = [_headline(result, cached)]
    for severity, title in _TITLES:
        found = [row for row in result["findings"] if row["severity"] == severity]
        if found:
            lines.append(f"  {title}")
            lines += [line for row in found for line in _finding(row)]
    chosen = _chosen(result)
    if chosen:
        lines += _wrapped(f"the engine chose: {', '.join(chosen)}", "  ", "    ")
    return lines + _memory(result["memory"])


def _headline(result: t.Mapping[str, t.Any], cached: bool) -> str:
    hardware = result["hardware"]
    names = [gpu["name"] for gpu in hardware.get("gpus") or []]
    where = " + ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names)) or "the CPU"
    of = " by recorded facts" if hardware.get("recorded") else ""
    counts: dict[str, int] = {}
    for flag in result["flags"]:
        counts[flag["outcome"]] = counts.get(flag["outcome"], 0) + 1
    flags = ", ".join(f"{count} {outcome if outcome != 'unknown' else 'not told'}" for outcome, count in counts.items())
    known = "; unchanged, answered from the cache" if cached else ""
    return f"preflight {_VERDICTS[result['verdict']]}: SGLang {result['engine'].get('version', '')} on {where}{of}; flags: {flags or 'none'}{known}"


def _finding(row: t.Mapping[str, t.Any]) -> list[str]:
    lines = _wrapped(_located(row), "    ", "      ")
    if row["hint"]:
        lines += _wrapped(row["hint"], "      ", "      ")
    if row["source"] and row["severity"] != "note":
        lines += _wrapped(f"[{row['code']}; {row['source']}]", "      ", "      ")
    return lines


def _chosen(result: t.Mapping[str, t.Any]) -> list[str]:
    asked = {flag["field"] for flag in result["flags"]}
    last = {change["field"]: change["after"] for change in result["changes"] if change["before"] is None and change["field"] not in asked}
    return [f"{field} {value}" for field, value in last.items() if _CHOSEN.match(field) and value is not None]


def _memory(memory: t.Any) -> list[str]:
    if not memory:
        return []
    lines = ["  MEMORY of each GPU, GiB (the engine's log calls it GB)"]
    for row in memory["rows"]:
        lines += _wrapped(f"{row['name']:<24} {row['gb']:>7.2f}  {row['how']}", "    ", " " * 38)
    return lines


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def sentence(result: t.Mapping[str, t.Any]) -> str:
    """Returns what rejects a candidate, for a failure message: each error with its variable, and what to do."""
    return " ".join(f"{on_one_line(row)}." for row in result["findings"] if row["severity"] == "error")


def on_one_line(row: t.Mapping[str, t.Any]) -> str:
    """Returns a finding with its variables and what to do."""
    return f"{_located(row)} ({row['hint']})" if row["hint"] else _located(row)


def _located(row: t.Mapping[str, t.Any]) -> str:
    where = f"{', '.join(row['variables'])}: " if row["variables"] else ""
    return f"{where}{row['text']}"
