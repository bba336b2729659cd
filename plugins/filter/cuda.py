# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of the role cuda, and the proposal of NCCL settings."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.llmops.inference.plugins.module_utils import _cuda_plan as plans
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import describe
from ansible_collections.llmops.inference.plugins.module_utils._nccl import propose

# Inventories write a branch without quotes, and values of the command line are text: argument specifications let both pass.
_SWITCHES = ("open_module", "persistence", "dcgm")


def cuda_plan(facts: t.Mapping[str, t.Any], wish: t.Mapping[str, t.Any], system: t.Mapping[str, t.Any], packages: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns what the role has to do on a host."""
    installed = {name: _version(entries[-1]) for name, entries in packages.items()}
    values: dict[str, t.Any] = {name: boolean(value) if name in _SWITCHES else str(value) for name, value in wish.items()}
    return asdict(plans.make_plan(plans.Wish(**values), plans.System(**system), facts, installed))


def _version(entry: t.Mapping[str, t.Any]) -> str:
    """Of several installed versions of one package (kernels have them) the last is the newest."""
    return f"{entry['version']}-{entry['release']}" if entry.get("release") else str(entry["version"])


def cuda_running_refusal(plan: t.Mapping[str, t.Any], units: str, allowed: bool) -> str:
    """Returns why the driver must not change now."""
    return plans.running_refusal(plans.Plan(**plan), [line.split()[0] for line in units.splitlines() if line.strip()], boolean(allowed))


def cuda_choice(plan: t.Mapping[str, t.Any], madison: str, held: str = "", only: str = "") -> dict[str, t.Any]:
    """Returns which versions to take of those that a repository has."""
    whole = plans.Plan(**plan)
    versions, refusals = plans.choose_versions(whole, plans.parse_madison(madison, only), held.split())
    return {"versions": versions, "driver": versions.get(whole.lead, ""), "refusals": refusals}


def cuda_preferences(versions: t.Mapping[str, str], driver: str) -> str:
    """Returns apt's preferences for a driver and other packages."""
    return plans.apt_preferences(driver, versions)


def cuda_package_failure(output: str) -> str:
    """Returns what apt's errors mean, as text; the errors themselves where no rule fits."""
    causes = [found.sentence for found in plans.explain_apt(output)]
    return "; ".join(causes) or " ".join(output.split())[-400:]


def cuda_module_failure(modprobe: str, answers: t.Sequence[str]) -> str:
    """Returns why the kernel module cannot be loaded; the answers are those of DKMS, of the firmware, and the running kernel's release."""
    dkms, secure_boot, kernel = answers
    return plans.explain_module(modprobe, dkms, secure_boot, kernel.strip()).sentence


def nccl_proposal(
    facts: t.Mapping[str, t.Any], interfaces: t.Sequence[str] = (), default_interface: str = "", nodes: int = 1, nvls: bool = True
) -> list[dict[str, str]]:
    """Returns NCCL settings that a host's links suggest, each with its reason."""
    return propose(facts, interfaces, default_interface, nodes, nvls)


def nccl_summary(record: t.Mapping[str, t.Any], host: str, proposals: t.Sequence[t.Mapping[str, str]] = ()) -> list[str]:
    """Returns a measurement of links for a person."""
    return describe(record, host, proposals)


class FilterModule:
    """Registers the filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "cuda_plan": cuda_plan,
            "cuda_running_refusal": cuda_running_refusal,
            "cuda_choice": cuda_choice,
            "cuda_preferences": cuda_preferences,
            "cuda_package_failure": cuda_package_failure,
            "cuda_module_failure": cuda_module_failure,
            "nccl_proposal": nccl_proposal,
            "nccl_summary": nccl_summary,
        }
