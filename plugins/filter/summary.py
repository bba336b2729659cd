# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter sglang_summary."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._summary import summarise


def sglang_summary(facts: t.Any) -> list[str]:
    """Returns the summary of a deployment, one line per entry."""
    return summarise(facts)


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"sglang_summary": sglang_summary}
