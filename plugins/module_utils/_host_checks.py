# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What of the host's state keeps a candidate from starting: ports that others hold, files that the service user cannot read.

Asked on every run, never kept: it changes without the inventory.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener, cgroup_pids, find_listeners, unit_of
from ansible_collections.llmops.inference.plugins.module_utils._rules_ports import Port
from ansible_collections.llmops.inference.plugins.module_utils._systemd import Unit

Run = t.Callable[[t.List[str]], t.Tuple[int, str, str]]

# Directories that a sandbox replaces or hides (systemd.exec(5)).
_HIDDEN = {
    "ProtectHome": (("yes", "true", "1", "on", "tmpfs"), ("/home", "/root", "/run/user")),
    "PrivateTmp": (("yes", "true", "1", "on"), ("/tmp", "/var/tmp")),
}
_SHOWN = 3


def judge_ports(
    ports: t.Iterable[Port],
    control_group: str,
    listeners: t.Callable[[int], t.Sequence[Listener]] = find_listeners,
    pids: t.Callable[[str], t.AbstractSet[int]] = cgroup_pids,
    unit: t.Callable[[int], str] = unit_of,
) -> list[Finding]:
    """Returns one error for each port that a process outside the server's own unit listens on.

    A port of the running server counts as free: it is, as soon as that server has stopped.

    Args:
        ports: what the candidate will bind.
        control_group: of the unit that is to be replaced; empty where there is none.
        listeners: who listens on a port.
        pids: processes of a control group.
        unit: the service of a process.
    """
    own = pids(control_group)
    found = []
    for port in ports:
        others = [listener for listener in listeners(port.number) if listener.pid not in own]
        if others:
            text = f"port {port.number} is held by another process ({others[0].named(unit(others[0].pid))})"
            text += f"; this server needs it for {port.purpose}" if port.field != "port" else ""
            hint = "stop that process, or let this server use another port (sglang_server_port)"
            found.append(Finding("port_in_use", "error", text, hint, "bind(2), EADDRINUSE", (port.field,)))
    return found


def hidden_paths(paths: t.Mapping[str, str], unit: Unit) -> list[Finding]:
    """Returns one error for each path that the unit's own sandbox hides from the server (systemd.exec(5)).

    Args:
        paths: what the candidate names, with the field that names it.
        unit: the server's unit.
    """
    directives = dict(unit.get("Service", []))
    found = []
    for path, field in paths.items():
        for directive, (values, folders) in _HIDDEN.items():
            if directives.get(directive, "").lower() in values and any(path == folder or path.startswith(f"{folder}/") for folder in folders):
                text = f"{path} is hidden from the server by {directive}={directives[directive]} of its unit"
                hint = f"move it elsewhere, or set {directive} in sglang_server_unit_options"
                found.append(Finding("path_hidden", "error", text, hint, f"systemd.exec(5), {directive}=", (field,)))
    return found


def judge_readable(paths: t.Mapping[str, str], user: str, run: Run) -> list[Finding]:
    """Returns one error for each path, or file directly in it, that the service user cannot read.

    Args:
        paths: files and directories that the candidate names, with the field that names them.
        user: the service user.
        run: runs a command.
    """
    there = [path for path in paths if Path(path).exists()]
    found = [
        Finding("path_missing", "error", f"{path} does not exist on this host", "correct the path", "open(2), ENOENT", (field,))
        for path, field in paths.items()
        if path not in there
    ]
    if not there:
        return found
    # find asks as the user itself: groups, ACLs and every directory above count.
    command = ["runuser", "-u", user, "--", "env", "LC_ALL=C", "find", "-L", *there, "-maxdepth", "1", "!", "-readable", "-print"]
    _status, output, error = run(command)
    refused = [line.split("'")[1] for line in error.splitlines() if line.endswith(": Permission denied") and line.count("'") >= 2]
    unreadable = list(dict.fromkeys([*output.splitlines(), *refused]))
    if unreadable:
        more = f" and {len(unreadable) - _SHOWN} more" if len(unreadable) > _SHOWN else ""
        text = f"the service user {user} cannot read {', '.join(unreadable[:_SHOWN])}{more}"
        fields = tuple(dict.fromkeys(paths[path] for path in there if any(f"{inner}/".startswith(f"{path.rstrip('/')}/") for inner in unreadable)))
        found.append(Finding("path_unreadable", "error", text, "give it access: every directory above needs x, the files r", "access(2), EACCES", fields))
    elif error.strip():
        found.append(Finding("path_unknown", "warning", f"whether {user} can read {', '.join(there[:_SHOWN])} could not be told: {error.strip()[:200]}"))
    return found
