#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unpacks single collections out of the `ansible` package.

Usage: unpack_collections.py WHEEL_DIRECTORY TARGET NAMESPACE.NAME...
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def unpack(wheel: Path, target: Path, collections: list[str]) -> None:
    """Extracts the collections; the manifest of each is written last, so that an interrupted run is seen."""
    prefixes = tuple(f"ansible_collections/{name.replace('.', '/')}/" for name in collections)
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(prefixes)]
        for name in sorted(members, key=lambda member: member.endswith("/MANIFEST.json")):
            archive.extract(name, target)


def main() -> None:
    (wheel,) = Path(sys.argv[1]).glob("ansible-*.whl")
    unpack(wheel, Path(sys.argv[2]), sys.argv[3:])


if __name__ == "__main__":
    main()
