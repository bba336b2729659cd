# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""NCCL settings that a host's links suggest, each with its reason. Nothing is set here: the operator puts them into the inventory.

Source: NVIDIA, NCCL User Guide: Environment Variables, Troubleshooting.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._topology import LEVELS

# Interfaces that no other host is reached by.
_LOCAL = re.compile(r"^(?:lo|docker|veth|virbr|br-|cni|flannel|cali|podman|vmnet|tun|tap|fwbr|fwpr|fwln)")


def propose(
    facts: t.Mapping[str, t.Any], interfaces: t.Sequence[str] = (), default_interface: str = "", nodes: int = 1, nvls: bool = True
) -> list[dict[str, str]]:
    """Returns proposals: name, value and reason.

    Args:
        facts: what gpu_facts found.
        interfaces: the host's network interfaces.
        default_interface: the one of the default route.
        nodes: how many hosts one server spans.
        nvls: whether NVLink multicast (NVLink SHARP) may be used.
    """
    gpus, links = facts["gpus"], facts["links"]
    found: list[dict[str, str]] = []
    if len(gpus) > 1:
        found += _peer_to_peer(facts, links)
    if nodes > 1:
        found += _network(interfaces, default_interface, facts.get("infiniband", []))
    if not nvls and any(link["nvlinks"] for link in links):
        found.append(_proposal("NCCL_NVLS_ENABLE", "0", "NVLink multicast was asked to stay off"))
    return found


def _proposal(name: str, value: str, reason: str) -> dict[str, str]:
    return {"name": name, "value": value, "reason": reason}


def _peer_to_peer(facts: t.Mapping[str, t.Any], links: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, str]]:
    refused = [link for link in links if link["p2p"] is False]
    if refused and len(refused) == len(links):
        return [_proposal("NCCL_P2P_DISABLE", "1", f"the driver reports peer-to-peer as {refused[0]['p2p_state']} for every pair: NCCL need not try")]
    plain = [link for link in links if not link["nvlinks"] and link["p2p"]]
    if not plain:
        return []
    if (facts["acs"]["enabled"] or facts["iommu"]["translating"]) and facts["machine"]["kind"] != "bare":
        reason = "P2P over PCIe is reported as working, but ACS or a translating IOMMU lies between the GPUs: measure with and without before you keep it"
        return [_proposal("NCCL_P2P_DISABLE", "1", reason)]
    widest = max((str(link["kind"]) for link in plain), key=lambda kind: LEVELS.index(kind) if kind in LEVELS else -1)
    if widest in ("PHB", "NODE", "SYS"):
        reason = f"P2P works across {widest}; by itself NCCL goes no farther than PXB (SYS on AMD with two GPUs): measure with and without"
        # NCCL has no level NODE, and ignores what it does not know: its PHB is the whole NUMA node.
        return [_proposal("NCCL_P2P_LEVEL", "PHB" if widest == "NODE" else widest, reason)]
    return []


def _network(interfaces: t.Sequence[str], default_interface: str, infiniband: t.Sequence[str]) -> list[dict[str, str]]:
    found = []
    real = [name for name in interfaces if not _LOCAL.match(name)]
    if len(real) > 1 and default_interface:
        reason = f"several interfaces ({', '.join(sorted(real))}): NCCL might choose one that the other hosts cannot reach"
        found.append(_proposal("NCCL_SOCKET_IFNAME", f"={default_interface}", reason))
    if not infiniband:
        found.append(_proposal("NCCL_IB_DISABLE", "1", "there is no InfiniBand or RoCE adapter: NCCL need not look for one"))
    return found
