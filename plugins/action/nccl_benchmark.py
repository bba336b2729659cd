# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live progress for M(llmops.inference.nccl_benchmark)."""

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.plugin_utils.follow import FollowedAction


class ActionModule(FollowedAction):
    """Runs the module in the background and shows its steps."""

    module_name = "nccl_benchmark"
