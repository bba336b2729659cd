# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live progress for M(llmops.inference.sglang_release)."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils.follow import FollowedAction


class ActionModule(FollowedAction):
    """Looks first, which takes a moment and is all there is to do for an unchanged release; runs in the background otherwise."""

    module_name = "sglang_release"

    def _answer(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        if self._task.check_mode or self._task.args.get("state") == "absent":
            return self._call(task_vars)
        looked = self._call(task_vars, quick=True)
        return self._run_followed(task_vars) if looked.get("action") == "pending" else looked
