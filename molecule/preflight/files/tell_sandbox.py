# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for an engine's interpreter: answers the preflight with what the sandbox leaves to a process."""

from __future__ import annotations

import json
import os
import pwd
import socket
import sys


def can_write(path: str) -> bool:
    try:
        with open(os.path.join(path, "probe"), "w", encoding="utf-8"):
            return True
    except OSError:
        return False


def can_connect() -> bool:
    try:
        socket.create_connection(("127.0.0.1", 30000), timeout=2).close()
    except OSError:
        return False
    return True


request = json.load(sys.stdin)
told = {
    "user": pwd.getpwuid(os.getuid()).pw_name,
    "interfaces": sorted(name for _index, name in socket.if_nameindex()),
    "server": can_connect(),
    "devices": sorted(name for name in os.listdir("/dev") if name.startswith(("nvidia", "fuse", "kvm", "sd", "vd"))),
    "writes": [path for path in ("/etc", "/opt", "/var/cache/sglang-main", "/var/lib/sglang-main", "/tmp", "/srv/models") if can_write(path)],
    "root": os.access("/root", os.R_OK),
    "home": os.environ.get("HOME"),
    "offline": os.environ.get("HF_HUB_OFFLINE"),
    "argvs": request["argvs"],
}
print(json.dumps({"format": 1, "engine": "0", "candidates": [], "unexplained": json.dumps(told, sort_keys=True)}))
