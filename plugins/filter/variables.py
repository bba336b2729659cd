# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter sglang_unknown_variables."""

from __future__ import annotations

import functools
import typing as t
from pathlib import Path

import yaml
from ansible_collections.llmops.inference.plugins.module_utils._variables import unknown_variables

_ROLES = Path(__file__).resolve().parents[2] / "roles"
# Inputs of the playbooks, which have no argument_specs.
_PLAYBOOK_INPUTS = (
    "sglang_rollout_hosts",
    "sglang_rollout_serial",
    "sglang_rollout_max_fail_percentage",
    "sglang_rollout_canary",
    "sglang_deployed_dir",
    "sglang_rollback_to",
    "sglang_report_records_dir",
    "sglang_report_path",
    "sglang_report_compare",
    "sglang_report_compare_path",
    "sglang_report_plots_enabled",
    "sglang_history_path",
    "sglang_history_authors_enabled",
    "sglang_snapshots_dir",
    "sglang_render_dest",
    "sglang_remove_models_enabled",
    "sglang_remove_engines_enabled",
    "sglang_drift_path",
    "sglang_drift_repair",
    "sglang_drift_fail",
)


@functools.lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    options = {name for path in _ROLES.glob("*/meta/argument_specs.yml") for name in _options(path)}
    return frozenset(options | set(_PLAYBOOK_INPUTS))


def _options(path: Path) -> t.Iterator[str]:
    specs = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["argument_specs"]
    return (name for entry in specs.values() for name in entry.get("options", {}))


def sglang_unknown_variables(names: t.Iterable[str], only_near: bool = False) -> list[str]:
    """Returns one sentence for each variable of the collection's namespaces that no role knows."""
    return unknown_variables(names, _known(), only_near)


class FilterModule:
    """Registers the filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"sglang_unknown_variables": sglang_unknown_variables}
