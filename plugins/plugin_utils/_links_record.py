# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What was last measured of a host's links, in brief, for the records of its benchmarks. The playbook links writes it beside them."""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._allreduce import FORMAT, KIND

# Within one host, and between hosts.
FILES = ("links.json", "links-nodes.json")
_MODES = ("eager", "graph", "engine")
_UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


class LinksError(ValueError):
    """A record of links that cannot be read; the message is for the operator."""


def is_links(document: t.Any) -> bool:
    """Whether a document is a record of links; the first ones do not say their kind."""
    return isinstance(document, dict) and document.get("kind", KIND) == KIND and {"messages", "ranks", "measured_at"} <= document.keys()


def last_links(folder: Path) -> dict[str, t.Any] | None:
    """Returns the newest measurement of a host in brief: what goes into ``hardware.links_measured`` of a benchmark's record; None without one.

    Args:
        folder: of the host's records.

    Raises:
        LinksError: one is damaged.
        OSError: one cannot be read.
    """
    found = [brief(_read(folder / name)) for name in FILES if (folder / name).is_file()]
    return max(found, key=lambda links: str(links["measured_at"]), default=None)


def brief(record: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns a record of links in brief: of each message the fastest way of calling.

    Args:
        record: what ``nccl_benchmark`` returns.
    """
    messages = [_fastest(row) for row in record["messages"] if any(mode in row for mode in _MODES)]
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:12]
    found = {"measured_at": record["measured_at"], "backend": record["backend"], "ranks": record["ranks"], "transports": list(record["transports"])}
    return {**found, "messages": messages, "digest": digest, "text": _text(found, messages)}


def _read(path: Path) -> dict[str, t.Any]:
    try:
        document: dict[str, t.Any] = json.loads(path.read_bytes())
    except (RecursionError, ValueError) as error:
        raise LinksError(f"{path} is damaged: {error}; restore it from git, or measure the links again") from None
    if not is_links(document):
        raise LinksError(f"{path} is no record of links: write them with the playbook links")
    if document.get("format") != FORMAT:
        raise LinksError(f"{path} has format {document.get('format')!r}, this collection reads records of links of format {FORMAT}: measure the links again")
    wrong = [name for name, kind in (("messages", list), ("transports", list), ("backend", str), ("ranks", int)) if not isinstance(document.get(name), kind)]
    if wrong or not all(_is_message(row) for row in document["messages"]):
        raise LinksError(f"{path} is damaged: {', '.join(wrong) or 'messages'} cannot be read; restore it from git, or measure the links again")
    return document


def _is_message(row: t.Any) -> bool:
    modes = [row[mode] for mode in _MODES if mode in row] if isinstance(row, dict) else [None]
    numbers = [mode.get(key) if isinstance(mode, dict) else None for mode in modes for key in ("median_us", "bus_gb_per_s")]
    return all(isinstance(number, (int, float)) for number in numbers) and isinstance(row.get("bytes"), int)


def _fastest(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    mode = min((mode for mode in _MODES if mode in row), key=lambda mode: float(row[mode]["median_us"]))
    return {"bytes": row["bytes"], "mode": mode, **{name: row[mode][name] for name in ("median_us", "bus_gb_per_s")}}


def _text(found: t.Mapping[str, t.Any], messages: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """The smallest and the largest message: "2 ranks (nccl via P2P/CUMEM), 10 KiB in 4.1 us, 80 MiB at 276.2 GB/s, measured 2026-11-29T22:32:45Z"."""
    via = f" via {', '.join(found['transports'])}" if found["transports"] else ""
    parts = [f"{found['ranks']} ranks ({found['backend']}{via})"]
    if messages:
        small, large = (choose(messages, key=lambda row: int(row["bytes"])) for choose in (min, max))
        parts += [f"{_length(small['bytes'])} in {small['median_us']:.1f} us", f"{_length(large['bytes'])} at {large['bus_gb_per_s']:.1f} GB/s"]
    return ", ".join([*parts, f"measured {found['measured_at']}"])


def _length(count: int) -> str:
    factor, unit = next((factor, unit) for factor, unit in _UNITS if count >= factor or factor == 1)
    return f"{count / factor:.4g} {unit}"
