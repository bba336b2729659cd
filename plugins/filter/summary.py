# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters sglang_summary, sglang_status and sglang_upgrade."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import _preflight_difference
from ansible_collections.llmops.inference.plugins.module_utils._summary import status, summarise


def sglang_summary(facts: t.Any) -> list[str]:
    """Returns the summary of a deployment, one line per entry."""
    return summarise(facts)


def sglang_status(server: t.Any, host: str) -> list[str]:
    """Returns what a server is, one line per entry."""
    return status(server, host)


def sglang_upgrade(current: t.Any, other: t.Any, host: str) -> list[str]:
    """Returns what the same flags come to on another engine, one line per entry."""
    return _preflight_difference.lines(_preflight_difference.compare(current, other), host)


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"sglang_status": sglang_status, "sglang_summary": sglang_summary, "sglang_upgrade": sglang_upgrade}
