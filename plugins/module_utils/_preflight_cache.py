# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Answers of the probe, kept by content: an unchanged candidate costs no import of the engine.

The key holds everything that the answer depends on: the probe's own source, engine, arguments, environment, described hardware and the model's small
files. What belongs to the host's state (free ports, free memory, readable files) is never kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import typing as t
from pathlib import Path

_KEEP = 32
_SMALL = 4 * 1024 * 1024


def key_of(parts: t.Mapping[str, t.Any]) -> str:
    """Returns the key of JSON-like parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def digests(words: t.Iterable[str]) -> dict[str, str]:
    """Returns what stands in the files that an argument vector names: each file, and the JSON files of each directory.

    Small files count by content, others by size and time of change.
    """
    found: dict[str, str] = {}
    for word in words:
        path = Path(word.partition("=")[2] if word.startswith("--") else word)
        if not path.is_absolute():
            continue
        if path.is_dir():
            found.update((str(inner), _digest(inner)) for inner in sorted(path.iterdir()) if inner.suffix in (".json", ".jinja", ".py"))
        elif path.is_file():
            found[str(path)] = _digest(path)
    return found


def _digest(path: Path) -> str:
    try:
        stat = path.stat()
        if stat.st_size > _SMALL:
            return f"{stat.st_size} {stat.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return type(error).__name__


class Cache:
    """Answers on disk, readable by their owner only.

    Args:
        folder: where they are; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> dict[str, t.Any] | None:
        """Returns the answer of a key, None where there is none (or what is there cannot be read)."""
        if self._folder is None:
            return None
        path = self._folder / f"{key}.json"
        try:
            answer = json.loads(path.read_text())
            os.utime(path)
        except (OSError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    def put(self, key: str, answer: t.Mapping[str, t.Any]) -> None:
        """Keeps an answer, and the newest few others."""
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{key}.json"
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.touch(mode=0o600)
        scratch.write_text(json.dumps(answer))
        scratch.rename(path)
        for old in sorted(self._folder.glob("*.json"), key=lambda entry: entry.stat().st_mtime, reverse=True)[_KEEP:]:
            old.unlink()
