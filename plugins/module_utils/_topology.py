# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""GPUs and the links between them, and both in words for a person."""

from __future__ import annotations

import re
import typing as t
from collections import Counter

from ansible_collections.llmops.inference.plugins.module_utils._gpu_kernel import explain_xid, is_serious
from ansible_collections.llmops.inference.plugins.module_utils._nvidia_smi import Matrix

# nvidia-smi topo, legend: nearest first.
LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_LEVEL_WORDS = {
    "PIX": "through one PCIe bridge",
    "PXB": "through several PCIe bridges",
    "PHB": "through the host bridge",
    "NODE": "through two host bridges of one NUMA node",
    "SYS": "through the interconnect between NUMA nodes",
}
# nvidia-smi topo -p2p, legend.
_P2P_WORDS = {
    "CNS": "the chipset does not support it",
    "GNS": "these GPUs do not support it",
    "TNS": "the topology does not support it",
    "DR": "it is disabled by a registry key of the driver",
    "NS": "it is not supported",
    "U": "the driver does not know",
}


def nvlinks(kind: str) -> int:
    """Returns how many NVLinks a pair's link has: 12 for ``NV12``."""
    found = re.fullmatch(r"NV(\d+)", kind)
    return int(found[1]) if found else 0


def make_links(matrix: Matrix, pcie: Matrix, read: Matrix, write: Matrix) -> list[dict[str, t.Any]]:
    """Returns one entry per pair of GPUs.

    Args:
        matrix: ``topo -m``.
        pcie: ``topo -mp``, which shows the PCIe path of pairs that have NVLink; may be empty.
        read: ``topo -p2p r``.
        write: ``topo -p2p w``.
    """
    links = []
    for pair, kind in sorted(matrix.links.items()):
        states = [table.links.get(pair, "") for table in (read, write)]
        bad = next((state for state in states if state not in ("OK", "")), "")
        known = any(states)
        links.append(
            {
                "gpus": list(pair),
                "kind": kind,
                "nvlinks": nvlinks(kind),
                "pcie": pcie.links.get(pair, "" if nvlinks(kind) else kind),
                "p2p": None if not known else not bad,
                "p2p_state": bad or ("OK" if known else ""),
            }
        )
    return links


def _names(gpus: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    counts = Counter(str(gpu["name"]) for gpu in gpus)
    return " and ".join(f"{count}x {name.replace('NVIDIA ', '', 1)}" for name, count in counts.items())


def _pcie(gpus: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    links = sorted({(gpu["pcie"]["generation_max"], gpu["pcie"]["width_max"]) for gpu in gpus if gpu["pcie"]["generation_max"] and gpu["pcie"]["width_max"]})
    return " and ".join(f"PCIe {generation}.0 x{width}" for generation, width in links)


def _between(links: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    if not links:
        return []
    kinds = Counter(str(link["kind"]) for link in links)
    words = [f"joined by {nvlinks(kind)} NVLink{'s' if nvlinks(kind) > 1 else ''}" if nvlinks(kind) else _LEVEL_WORDS.get(kind, kind) for kind in kinds]
    if len(kinds) > 1:
        words = [f"{text} ({count} of {len(links)} pairs)" for text, count in zip(words, kinds.values())]
    return words if any(link["nvlinks"] for link in links) else [*words, "no NVLink"]


def _peer_to_peer(links: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    bad = [link for link in links if link["p2p"] is False]
    if not links or all(link["p2p"] is None for link in links):
        return []
    if not bad:
        return ["P2P works"]
    state = str(bad[0]["p2p_state"])
    where = "" if len(bad) == len(links) else " between " + ", ".join(f"GPU {link['gpus'][0]} and GPU {link['gpus'][1]}" for link in bad)
    return [f"P2P is off{where} because {_P2P_WORDS.get(state, f'the driver says {state}')}"]


def describe(gpus: t.Sequence[t.Mapping[str, t.Any]], links: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Returns the GPUs of a host and their links in one sentence.

    Args:
        gpus: name, pcie (generation, generation_max, width, width_max) and mig of each.
        links: as :func:`make_links` returns them.
    """
    if not gpus:
        return "no GPU"
    parts = [_names(gpus), *filter(None, [_pcie(gpus)]), *_between(links), *_peer_to_peer(links)]
    return ", ".join(parts)


def remarks(facts: t.Mapping[str, t.Any]) -> list[str]:
    """Returns what of a host's GPUs deserves a look, one sentence each.

    Args:
        facts: gpus, links, iommu, acs, fabric_manager, machine.
    """
    found = []
    for gpu in facts["gpus"]:
        pcie = gpu["pcie"]
        if pcie["width"] and pcie["width_max"] and pcie["width"] < pcie["width_max"]:
            found.append(f"GPU {gpu['index']} runs at x{pcie['width']} of x{pcie['width_max']}: look at its slot, riser and the board's bifurcation settings")
        if gpu["mig"]:
            count = len(gpu["mig_devices"])
            what = (
                f"is split by MIG into {count} device{'s' if count > 1 else ''}: a server uses one of them by its UUID"
                if count
                else "has MIG on and no device made of it: no server can use it"
            )
            found.append(f"GPU {gpu['index']} {what}")
        if gpu["power_limit_w"] and gpu["power_limit_max_w"] and gpu["power_limit_w"] < 0.8 * gpu["power_limit_max_w"]:
            found.append(f"GPU {gpu['index']} is limited to {gpu['power_limit_w']:.0f} W of {gpu['power_limit_max_w']:.0f} W")
    names = {gpu["name"] for gpu in facts["gpus"]}
    if len(names) > 1:
        found.append("the GPUs are of different kinds: tensor parallel runs at the pace of the slowest and with the memory of the smallest")
    if facts["gpus"] and facts["machine"]["kind"] == "bare" and any(gpu["persistence"] is False for gpu in facts["gpus"]):
        found.append("persistence is off: the driver unloads the GPU's state when its last process ends, and the next start takes longer")
    if len(facts["gpus"]) > 1 and facts["acs"]["enabled"]:
        bridges = ", ".join(facts["acs"]["enabled"])
        found.append(
            f"ACS redirects peer-to-peer traffic at {bridges}: P2P is slower than it could be, or hangs; on a bare host turn it off in the firmware, "
            "under virtual machines it has to stay"
        )
    if len(facts["gpus"]) > 1 and facts["iommu"]["translating"] and facts["machine"]["kind"] == "bare":
        found.append("the IOMMU translates: P2P between GPUs can be slow or hang; on a host without virtual machines boot with iommu=pt, or turn it off")
    for xid in facts["xids"]:
        if not is_serious(xid):
            found.append(f"{explain_xid(xid).cause}, since boot")
    manager = facts["fabric_manager"]
    if manager["needed"] and not manager["active"] and not manager["ready"]:
        found.append("the GPUs are joined by NVSwitch and the fabric manager does not run: CUDA answers with error 802")
    return found
