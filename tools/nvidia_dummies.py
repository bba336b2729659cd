#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds Debian packages with the names, versions and dependencies of NVIDIA's, and next to nothing in them.

Usage: nvidia_dummies.py TABLE TARGET_DIRECTORY
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

UNIT = """\
[Unit]
Description=Stand-in of {name}.service

[Service]
Type=simple
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
"""
# "$2" is the version configured before, empty on a first installation.
# As the real ones, they install also where the daemon finds no GPU.
POSTINST = """\
#!/bin/sh
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ "$1" = configure ] && [ -n "$2" ]; then
  systemctl try-restart {name}.service || echo "{name} did not start"
elif [ "$1" = configure ] && {start}; then
  systemctl enable --now {name}.service || echo "{name} did not start"
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now {name}.service
fi
"""


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def build(name: str, version: str, source: str | None, package: dict[str, Any], target: Path) -> None:
    """One package; every text of the table may name its version and its branch."""
    branch = re.match(r"\d*", version)[0]  # type: ignore[index]

    def fill(text: str) -> str:
        return text.replace("{version}", version).replace("{branch}", branch)

    name = fill(name)
    fields = {
        "Package": name,
        "Version": version,
        "Architecture": "amd64",
        "Maintainer": "The tests of llmops.inference <root@localhost>",
        "Section": "non-free/misc",
        "Priority": "optional",
        "Description": f"stand-in of {name}\n For tests: it has the name and the version, not the content.",
        **({"Source": source} if source else {}),
        **{key: fill(value) for key, value in package.items() if key[0].isupper()},
    }
    files = {fill(path): fill(text) for path, text in package.get("files", {}).items()}
    files[f"/usr/share/doc/{name}/README"] = f"Stand-in of {name} {version}.\n"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        write(tree / "DEBIAN/control", "".join(f"{key}: {value}\n" for key, value in fields.items()))
        if service := package.get("service"):
            files[f"/lib/systemd/system/{service}.service"] = UNIT.format(name=service)
            write(tree / "DEBIAN/postinst", POSTINST.format(name=service, start=str(package.get("start", False)).lower()), 0o755)
            write(tree / "DEBIAN/prerm", PRERM.format(name=service), 0o755)
        if conffiles := [path for path in files if path.startswith("/etc/")]:
            write(tree / "DEBIAN/conffiles", "".join(f"{path}\n" for path in conffiles))
        for path, text in files.items():
            write(tree / path.lstrip("/"), text)
        deb = target / f"{name}_{version.rpartition(':')[2]}_amd64.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", "-z1", tree, deb], check=True, stdout=subprocess.DEVNULL)
    print(deb.name, flush=True)


def main() -> None:
    target = Path(sys.argv[2])
    for group in yaml.safe_load(Path(sys.argv[1]).read_text()):
        for version in group["versions"]:
            for name, package in group["packages"].items():
                build(name, version, group.get("source"), package, target)


if __name__ == "__main__":
    main()
