# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""systemd's own syntax: quoting for units and environment files, reading a unit, and the drop-in that turns one unit into another.

Sources: systemd.syntax(7), systemd.service(5) "Command lines", systemd.unit(5) "Specifiers", systemd.exec(5) "EnvironmentFile=".
"""

from __future__ import annotations

import re
import typing as t

# A reader of a unit's meaning: section -> ordered (key, value) pairs.
Unit = t.Dict[str, t.List[t.Tuple[str, str]]]

_PLAIN_WORD = re.compile(r"^[A-Za-z0-9_./:@=,+^~-]+$")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ENVIRONMENT_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\Z")

# Scalars that refuse an empty assignment (seen with systemd 252), with the manager's default: what a candidate writes into its
# drop-in to take away a directive that the good release has. All other directives are reset by an empty assignment.
_RESET_VALUES = {
    "DevicePolicy": "auto",
    "KillSignal": "SIGTERM",
    "LimitCORE": "infinity",
    "LimitMEMLOCK": "8M",
    "LimitNOFILE": "1024:524288",
    "LimitNPROC": "infinity",
    "LimitSTACK": "8M:infinity",
    "LogRateLimitIntervalSec": "30s",
    "NoNewPrivileges": "no",
    "PrivateTmp": "no",
    "PrivateDevices": "no",
    "PrivateNetwork": "no",
    "ProcSubset": "all",
    "ProtectHome": "no",
    "ProtectProc": "default",
    "ProtectSystem": "no",
    "Restart": "no",
    "RestartSec": "100ms",
    "Slice": "system.slice",
    "StandardError": "inherit",
    "StandardOutput": "journal",
    "StartLimitBurst": "5",
    "StartLimitIntervalSec": "10s",
    "StateDirectoryMode": "0755",
    "TimeoutStartSec": "90s",
    "TimeoutStopSec": "90s",
    "Type": "simple",
    "UMask": "0022",
    **dict.fromkeys(
        (
            "CPUAccounting",
            "DynamicUser",
            "IgnoreSIGPIPE",
            "LockPersonality",
            "MemoryAccounting",
            "MemoryDenyWriteExecute",
            "PrivateIPC",
            "PrivateMounts",
            "PrivateUsers",
            "ProtectClock",
            "ProtectControlGroups",
            "ProtectHostname",
            "ProtectKernelLogs",
            "ProtectKernelModules",
            "ProtectKernelTunables",
            "RemainAfterExit",
            "RemoveIPC",
            "RestrictRealtime",
            "RestrictSUIDSGID",
            "TasksAccounting",
        ),
        "no",
    ),
}
# The empty assignment of this list means "no capability", not "as if never set".
_LIST_DEFAULTS = {"CapabilityBoundingSet": "~"}


class SystemdError(ValueError):
    """A value that cannot be written into a unit or an environment file; the message is for the operator."""


def _refuse_control(value: str, where: str) -> None:
    found = _CONTROL.search(value)
    if found:
        raise SystemdError(f"{where} holds the control character {found.group()!r}; a unit takes one line of text")


def quote_word(word: str) -> str:
    """Returns one word of ``ExecStart=`` so that the service gets exactly this word.

    Specifiers (``%``) and variables (``$``) are doubled, backslashes and quotes escaped, and the whole is quoted unless it is plain.

    Raises:
        SystemdError: a newline, NUL or other control character.
    """
    _refuse_control(word, f"the argument {word!r}")
    if _PLAIN_WORD.match(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def exec_line(argv: t.Sequence[str]) -> str:
    """Returns the value of ``ExecStart=`` for an argument vector.

    Raises:
        SystemdError: no absolute executable, or a word that cannot be written.
    """
    if not argv or not argv[0].startswith("/"):
        raise SystemdError(f"ExecStart needs an absolute executable, got {argv[0] if argv else 'nothing'!r}")
    return " ".join(quote_word(word) for word in argv)


def environment_assignment(name: str, value: str) -> str:
    """Returns one assignment for ``Environment=`` (``%`` is a specifier there, ``$`` is not a variable).

    Raises:
        SystemdError: the name is no variable name, or the value holds a control character.
    """
    _check_name(name)
    _refuse_control(value, f"the environment variable {name}")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("%", "%%")
    return f'"{name}={escaped}"'


def environment_file(variables: t.Mapping[str, str]) -> str:
    """Returns the text of an ``EnvironmentFile=``, sorted by name. Inside double quotes only ``\\``, ``"``, ``$`` and `````` are special.

    Raises:
        SystemdError: see :func:`environment_assignment`.
    """
    lines = []
    for name in sorted(variables):
        _check_name(name)
        _refuse_control(variables[name], f"the environment variable {name}")
        lines.append('{}="{}"\n'.format(name, re.sub(r'([\\"$`])', r"\\\1", variables[name])))
    return "".join(lines)


def _check_name(name: str) -> None:
    if not _ENVIRONMENT_NAME.match(name):
        raise SystemdError(f"{name!r} is no name of an environment variable (letters, digits and _, no digit first)")


def parse_unit(text: str) -> Unit:
    """Reads the directives of a unit file: comments and blank lines dropped, continued lines joined, spaces around ``=`` removed.

    Raises:
        SystemdError: a line that is neither a section, nor an assignment, nor a comment.
    """
    unit: Unit = {}
    section = ""
    lines = iter(text.split("\n"))
    for raw in lines:
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        while line.endswith("\\"):
            line = line[:-1].rstrip() + " " + next(lines, "").strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            unit.setdefault(section, [])
        elif "=" in line and section:
            key, value = line.split("=", 1)
            unit[section].append((key.strip(), value.strip()))
        else:
            raise SystemdError(f"not a unit file: the line {raw!r} is neither a section nor an assignment")
    return unit


def render_dropin(good: Unit, candidate: Unit) -> str:
    """Returns the drop-in that makes the unit ``good`` behave as ``candidate``: every directive reset first, then set.

    ``[Install]`` is left out, since it has no effect in a drop-in; dependencies (``After=``) cannot be taken away by one (systemd.unit(5)).
    """
    lines = ["# A candidate release on trial, written by llmops.inference: gone at the next boot or when the trial ends."]
    for section in ("Unit", "Service"):
        old, new = good.get(section, []), candidate.get(section, [])
        new_keys = {key for key, value in new}
        lines.append(f"[{section}]")
        for key in dict.fromkeys(key for key, value in old + new):
            if key not in new_keys:
                lines.append(f"{key}={_RESET_VALUES.get(key, _LIST_DEFAULTS.get(key, ''))}")
            elif key not in _RESET_VALUES:
                lines.append(f"{key}=")
        lines += [f"{key}={value}" for key, value in new]
    return "\n".join(lines) + "\n"


def meaning(unit: Unit) -> dict[str, list[list[str]]]:
    """Returns what of a unit decides how a service runs, in a form that hashes: sorted by key, order kept among equal keys."""
    return {section: sorted(([key, value] for key, value in pairs), key=lambda pair: pair[0]) for section, pairs in sorted(unit.items()) if pairs}
