# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters sglang_summary, sglang_status, sglang_upgrade, sglang_failure and sglang_releases."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import _failure_report, _preflight_difference
from ansible_collections.llmops.inference.plugins.module_utils._summary import status, summarise
from ansible_collections.llmops.inference.plugins.plugin_utils._record_entry import numbers


def _speed(benchmark: t.Mapping[str, t.Any]) -> list[str]:
    """What is kept with the release on the host."""
    return [numbers(record) for record in benchmark.get("records") or []]


def sglang_summary(facts: t.Any) -> list[str]:
    """Returns the summary of a deployment, one line per entry."""
    kept = facts["kept"]
    speed = [entry["text"] for entry in kept] or _speed(facts["release"]["benchmark"])
    return summarise({**facts, "speed": speed, "records": [f"{facts['records_dir']}/{entry['path']}" for entry in kept]})


def sglang_status(server: t.Any, host: str) -> list[str]:
    """Returns what a server is, one line per entry."""
    return status({**server, "speed": _speed(server["benchmark"])}, host)


def sglang_upgrade(current: t.Any, other: t.Any, host: str) -> list[str]:
    """Returns what the same flags come to on another engine, one line per entry."""
    return _preflight_difference.lines(_preflight_difference.compare(current, other), host)


def sglang_failure(result: t.Any, host: str) -> list[str]:
    """Returns why a release failed and what serves now, one line per entry."""
    return _failure_report.report(result, host)


def sglang_releases(result: t.Any, host: str) -> list[str]:
    """Returns what a host has to go back to, one line per entry."""
    return _failure_report.releases(result, host)


class FilterModule:
    """Registers the filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "sglang_failure": sglang_failure,
            "sglang_releases": sglang_releases,
            "sglang_status": sglang_status,
            "sglang_summary": sglang_summary,
            "sglang_upgrade": sglang_upgrade,
        }
