# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Hosts that a change does the same to: twenty servers of one group are one row of a report, not twenty."""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils._check_verdict import VERDICTS

Host = t.Mapping[str, t.Any]
# What differs from host to host and is no other change: its name, and what has it inside.
_OWN = ("host", "release", "unit", "baseline")


def groups(hosts: t.Iterable[Host]) -> list[list[Host]]:
    """Returns the hosts by what the change does to them, the worst verdict first, then by name."""
    found: dict[str, list[Host]] = {}
    for host in hosts:
        alike = {**{name: value for name, value in host.items() if name not in _OWN}, "unit": bool(host["unit"])}
        # A sentence may name its own host.
        own = rf"(?<![\w.-]){re.escape(host['host'])}(?![\w-])"
        found.setdefault(re.sub(own, "*", json.dumps(alike, sort_keys=True)), []).append(host)
    return sorted(found.values(), key=lambda group: (VERDICTS.index(group[0]["verdict"]), group[0]["host"]))
