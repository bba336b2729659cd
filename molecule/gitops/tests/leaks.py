# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds planted secrets in what a run leaves behind, however they are written there."""

from __future__ import annotations

import base64
import re
import subprocess
import typing as t
from pathlib import Path

# Shorter pieces stand in texts by chance.
_PIECE = re.compile("[A-Za-z0-9]{8}")
_AROUND = 60


class Artefact(t.NamedTuple):
    """Something that somebody may read: where, and what it says."""

    place: str
    data: bytes


class Leak(t.NamedTuple):
    """A secret in an artefact, with what stands around it."""

    place: str
    secret: str
    around: bytes


def pieces(secret: str) -> list[bytes]:
    """Returns pieces of a secret that are letters and digits: these stay as they are in quotes and escapes of any kind, and show a part of it."""
    found = [piece.encode() for piece in _PIECE.findall(secret)]
    assert found, f"a secret that is planted needs a piece like {_PIECE.pattern} to look for"
    return found


def forms(secret: str) -> set[bytes]:
    """Returns what to look for: the pieces of a secret in plain text, base64 and hexadecimal digits."""
    found: set[bytes] = set()
    for piece in pieces(secret):
        found |= {piece, piece.hex().encode(), piece.hex().upper().encode()}
        for before in range(3):
            text = base64.b64encode(bytes(before) + piece).rstrip(b"=")
            # Characters at both ends are also made of what stands beside the piece.
            inner = text[before + bool(before) : len(text) - bool((before + len(piece)) % 3)]
            found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


def find(artefacts: t.Iterable[Artefact], secrets: t.Mapping[str, str]) -> list[Leak]:
    """Returns where secrets show, each of them once in an artefact."""
    wanted = {name: forms(secret) for name, secret in secrets.items()}
    found = []
    for place, data in artefacts:
        for name, looked_for in wanted.items():
            at = next((at for at in map(data.find, looked_for) if at >= 0), -1)
            if at >= 0:
                found.append(Leak(place, name, data[max(0, at - _AROUND) : at + _AROUND]))
    return found


def below(name: str, folder: Path) -> t.Iterator[Artefact]:
    """Files below a folder with their paths, which are read as well; objects of git are compressed, see :func:`committed`."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git/objects" not in str(path):
            yield Artefact(f"{name}:{path.relative_to(folder)}", str(path).encode() + b"\n" + path.read_bytes())


def committed(name: str, repository: Path) -> Artefact:
    """All that a repository has, of all branches and of none: every version of every file, and every message."""
    command = ["git", "-C", str(repository), "cat-file", "--batch-all-objects", "--batch"]
    return Artefact(f"{name}:objects", subprocess.run(command, check=True, capture_output=True).stdout)
