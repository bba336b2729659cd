# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Who runs Ansible, where and when."""

from __future__ import annotations

import getpass
import os
import socket
import time


def asker() -> str:
    """Who runs this: user and controller."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def utc_now() -> str:
    """The time as records have it, ``2026-11-30T10:15:00Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
