# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Directives that an operator adds to a server's unit, checked for what is known to break a GPU server (U06)."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError

# A backslash at the end would make the next directive part of this one.
_NOT_ONE_LINE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|\\\s*$")
_OWNED = {
    "ExecStart": "the flags",
    "EnvironmentFile": "sglang_server_env",
    "Environment": "sglang_server_env",
    "User": "sglang_server_user",
    "Group": "sglang_server_group",
    "LoadCredential": "sglang_server_secret_flags",
    "LimitMEMLOCK": "sglang_server_limit_memlock",
    "LimitNOFILE": "sglang_server_limit_nofile",
    "TimeoutStopSec": "sglang_server_stop_timeout_seconds",
    "RestartSec": "sglang_server_restart_delay_seconds",
    "StartLimitBurst": "sglang_server_start_limit_burst",
    "StartLimitIntervalSec": "sglang_server_start_limit_interval_seconds",
    "TimeoutStartSec": "sglang_server_start_timeout_seconds",
}


def _on(value: t.Any) -> bool:
    return value is True or str(value).lower() in ("yes", "true", "on", "1")


def _words(value: t.Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, (list, tuple)) else str(value).split()


def _broken(key: str, value: t.Any, options: t.Mapping[str, t.Any], needs_gpu: bool) -> str:
    """Returns why a directive breaks a server, or an empty string."""
    if key == "MemoryDenyWriteExecute" and _on(value):
        return "kernels compiled at run time need memory that is writable and executable"
    if key == "PrivateDevices" and _on(value) and needs_gpu:
        return "it hides /dev/nvidia*"
    if key == "DevicePolicy" and value in ("closed", "strict") and needs_gpu and not options.get("DeviceAllow"):
        return "without DeviceAllow the GPU's device nodes are not allowed"
    if key == "RestrictAddressFamilies":
        missing = [family for family in ("AF_UNIX", "AF_NETLINK") if family not in _words(value)]
        return f"the server needs {' and '.join(missing)} (sockets between its processes, NCCL's look at the interfaces)" if missing else ""
    if key == "IPAddressDeny" and "any" in _words(value) and "localhost" not in _words(options.get("IPAddressAllow", "")):
        return "without IPAddressAllow=localhost it blocks the health checks"
    return ""


def render_options(options: t.Mapping[str, t.Any], needs_gpu: bool) -> list[str]:
    """Returns ``Key=Value`` lines for the [Service] section; a list becomes one line per item, a bool yes or no.

    Args:
        options: directive to value.
        needs_gpu: whether the server uses a GPU.

    Raises:
        SystemdError: a directive that the role sets itself, one that breaks the server, or a value that is no single line.
    """
    lines = []
    for key, value in options.items():
        if key in _OWNED:
            raise SystemdError(f"sglang_server_unit_options.{key}: set {_OWNED[key]} instead")
        why = _broken(key, value, options, needs_gpu)
        if why:
            raise SystemdError(f"sglang_server_unit_options.{key}: {value!r} breaks the server: {why}")
        for item in value if isinstance(value, (list, tuple)) else [value]:
            text = ("no", "yes")[item] if isinstance(item, bool) else str(item)
            if _NOT_ONE_LINE.search(text) or not isinstance(item, (str, int, float)) or not key.isalnum():
                raise SystemdError(f"sglang_server_unit_options.{key}: {item!r} is no directive of one line")
            lines.append(f"{key}={text}")
    return lines
