# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._nccl import propose
from ansible_collections.llmops.inference.plugins.module_utils._topology import nvlinks

ACS = {"known": True, "enabled": ["00:03.1"]}


def host(*links, gpus=2, kind="bare", **changes):
    """A host of GPUs; each link is (kind, p2p, state)."""
    pairs = [{"kind": name, "nvlinks": nvlinks(name), "p2p": p2p, "p2p_state": state} for name, p2p, state in links]
    plain = {"acs": {"known": True, "enabled": []}, "iommu": {"translating": False}, "infiniband": [], "machine": {"kind": kind}}
    return {"gpus": [{}] * gpus, "links": pairs, **plain, **changes}


@pytest.mark.parametrize(
    "facts, name, value, reason",
    [
        (host(gpus=0), None, None, ""),
        (host(gpus=1), None, None, ""),
        (host(("NV18", True, "OK")), None, None, ""),
        (host(("PIX", True, "OK")), None, None, ""),
        (host(("PXB", True, "OK")), None, None, ""),
        (host(("PHB", None, "")), None, None, ""),
        (host(("PHB", True, "OK")), "NCCL_P2P_LEVEL", "PHB", "P2P works across PHB"),
        pytest.param(host(("NODE", True, "OK")), "NCCL_P2P_LEVEL", "PHB", "P2P works across NODE", id="NCCL-knows-no-NODE"),
        (host(("SYS", True, "OK")), "NCCL_P2P_LEVEL", "SYS", "P2P works across SYS"),
        (host(("PIX", True, "OK"), ("SYS", True, "OK"), ("PHB", True, "OK"), gpus=3), "NCCL_P2P_LEVEL", "SYS", "SYS"),
        (host(("NV4", True, "OK"), ("NODE", True, "OK"), ("?", True, "OK"), gpus=3), "NCCL_P2P_LEVEL", "PHB", "NODE"),
        (host(("?", True, "OK")), None, None, ""),
        (host(("PHB", False, "CNS")), "NCCL_P2P_DISABLE", "1", "reports peer-to-peer as CNS for every pair"),
        (host(("PIX", True, "OK"), ("SYS", False, "CNS"), ("SYS", False, "CNS"), gpus=3), None, None, ""),
        pytest.param(host(("PIX", True, "OK"), kind="vm", acs=ACS), "NCCL_P2P_DISABLE", "1", "ACS or a translating IOMMU", id="L19-vm"),
        pytest.param(host(("SYS", True, "OK"), kind="container", iommu={"translating": True}), "NCCL_P2P_DISABLE", "1", "measure", id="L19-container"),
        pytest.param(host(("PHB", True, "OK"), acs=ACS), "NCCL_P2P_LEVEL", "PHB", "measure with and without", id="L19-bare-turns-ACS-off-instead"),
        (host(("NV18", True, "OK"), kind="vm", acs=ACS), None, None, ""),
    ],
)
def test_peer_to_peer(facts, name, value, reason):
    found = propose(facts)
    assert [(entry["name"], entry["value"]) for entry in found] == ([(name, value)] if name else [])
    assert all(reason in entry["reason"] for entry in found)


@pytest.mark.parametrize(
    "interfaces, default, nodes, infiniband, found",
    [
        (["lo", "eth0"], "eth0", 1, [], []),
        (["lo", "eth0"], "eth0", 2, [], [("NCCL_IB_DISABLE", "1")]),
        (["lo", "eth0"], "eth0", 2, ["mlx5_0"], []),
        (["eth1", "eth0", "lo"], "eth0", 2, ["mlx5_0"], [("NCCL_SOCKET_IFNAME", "=eth0")]),
        (["lo", "docker0", "br-12ab", "veth9", "virbr0", "cni0", "tap0", "fwbr100i0", "eth0"], "eth0", 2, ["mlx5_0"], []),
        (["eth1", "eth0"], "", 2, ["mlx5_0"], []),
        ([], "", 2, [], [("NCCL_IB_DISABLE", "1")]),
    ],
)
def test_several_hosts(interfaces, default, nodes, infiniband, found):
    proposals = propose(host(("NV18", True, "OK"), infiniband=infiniband), interfaces, default, nodes)
    assert [(entry["name"], entry["value"]) for entry in proposals] == found
    assert all("eth0, eth1" in entry["reason"] for entry in proposals if entry["name"] == "NCCL_SOCKET_IFNAME")


@pytest.mark.parametrize("kind, nvls, found", [("NV18", True, []), ("NV18", False, [("NCCL_NVLS_ENABLE", "0")]), ("PIX", False, [])])
def test_multicast(kind, nvls, found):
    assert [(entry["name"], entry["value"]) for entry in propose(host((kind, True, "OK")), nvls=nvls)] == found


def test_one_gpu_per_host_and_no_list_of_adapters():
    facts = host(gpus=1)
    del facts["infiniband"]
    assert [entry["name"] for entry in propose(facts, ["eth0"], "eth0", nodes=2)] == ["NCCL_IB_DISABLE"]
