# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._nvidia_smi import Matrix
from ansible_collections.llmops.inference.plugins.module_utils._topology import describe, make_links, nvlinks, remarks

NOTHING = Matrix(0, {})


def gpu(index=0, name="NVIDIA RTX A6000", **changes):
    pcie = {"generation": 1, "generation_max": 4, "width": 16, "width_max": 16, **changes.pop("pcie", {})}
    plain = {"mig": False, "mig_devices": [], "power_limit_w": 300.0, "power_limit_max_w": 300.0, "persistence": True}
    return {"index": index, "name": name, "pcie": pcie, **plain, **changes}


def link(kind, p2p=None, state="", gpus=(0, 1)):
    return {"gpus": list(gpus), "kind": kind, "nvlinks": nvlinks(kind), "pcie": "", "p2p": p2p, "p2p_state": state}


@pytest.mark.parametrize("kind, count", [("NV12", 12), ("NV1", 1), ("SYS", 0), ("", 0), ("NV", 0), ("NV12x", 0), ("OK", 0)])
def test_nvlinks(kind, count):
    assert nvlinks(kind) == count


@pytest.mark.parametrize(
    "kind, pcie, read, write, found",
    [
        ("NV18", "PHB", "OK", "OK", {"nvlinks": 18, "pcie": "PHB", "p2p": True, "p2p_state": "OK"}),
        ("NV4", None, "OK", "OK", {"nvlinks": 4, "pcie": "", "p2p": True, "p2p_state": "OK"}),
        ("PHB", None, "CNS", "CNS", {"nvlinks": 0, "pcie": "PHB", "p2p": False, "p2p_state": "CNS"}),
        ("PIX", "PIX", "OK", "NS", {"nvlinks": 0, "pcie": "PIX", "p2p": False, "p2p_state": "NS"}),
        ("SYS", "SYS", None, None, {"nvlinks": 0, "pcie": "SYS", "p2p": None, "p2p_state": ""}),
        ("SYS", "SYS", None, "OK", {"nvlinks": 0, "pcie": "SYS", "p2p": True, "p2p_state": "OK"}),
    ],
)
def test_make_links_of_a_pair(kind, pcie, read, write, found):
    tables = [NOTHING if value is None else Matrix(2, {(0, 1): value}) for value in (pcie, read, write)]
    assert make_links(Matrix(2, {(0, 1): kind}), *tables) == [{"gpus": [0, 1], "kind": kind, **found}]


def test_make_links_in_order():
    found = make_links(Matrix(3, {(1, 2): "SYS", (0, 2): "PIX", (0, 1): "NV4"}), NOTHING, NOTHING, NOTHING)
    assert [entry["gpus"] for entry in found] == [[0, 1], [0, 2], [1, 2]]
    assert make_links(NOTHING, NOTHING, NOTHING, NOTHING) == []


ISLANDS = [link("NV8", True, "OK"), link("SYS", False, "CNS", (0, 2)), link("SYS", False, "CNS", (1, 2))]


@pytest.mark.parametrize(
    "gpus, links, text",
    [
        ([], [], "no GPU"),
        ([gpu()], [], "1x RTX A6000, PCIe 4.0 x16"),
        ([gpu(), gpu(1)], [link("PHB", True, "OK")], "2x RTX A6000, PCIe 4.0 x16, through the host bridge, no NVLink, P2P works"),
        ([gpu(), gpu(1)], [link("NV4", True, "OK")], "2x RTX A6000, PCIe 4.0 x16, joined by 4 NVLinks, P2P works"),
        ([gpu(), gpu(1)], [link("PIX")], "2x RTX A6000, PCIe 4.0 x16, through one PCIe bridge, no NVLink"),
        (
            [gpu(), gpu(1)],
            [link("PHB", False, "CNS")],
            "2x RTX A6000, PCIe 4.0 x16, through the host bridge, no NVLink, P2P is off because the chipset does not support it",
        ),
        ([gpu(), gpu(1)], [link("NEW", False, "XYZ")], "2x RTX A6000, PCIe 4.0 x16, NEW, no NVLink, P2P is off because the driver says XYZ"),
        (
            [gpu(), gpu(1), gpu(2, "NVIDIA L4", pcie={"width_max": 8})],
            ISLANDS,
            (
                "2x RTX A6000 and 1x L4, PCIe 4.0 x8 and PCIe 4.0 x16, joined by 8 NVLinks (1 of 3 pairs), "
                "through the interconnect between NUMA nodes (2 of 3 pairs), "
                "P2P is off between GPU 0 and GPU 2, GPU 1 and GPU 2 because the chipset does not support it"
            ),
        ),
        ([gpu(pcie={"generation_max": None})], [], "1x RTX A6000"),
        ([gpu(), gpu(1)], [], "2x RTX A6000, PCIe 4.0 x16"),
    ],
)
def test_describe(gpus, links, text):
    assert describe(gpus, links) == text


def facts(*gpus, kind="bare", **changes):
    plain = {
        "links": [],
        "machine": {"kind": kind},
        "acs": {"enabled": []},
        "iommu": {"translating": False},
        "xids": [],
        "fabric_manager": {"needed": False, "active": False, "ready": False},
    }
    return {"gpus": list(gpus), **plain, **changes}


XID31 = {"pci": "0000:01:00", "xid": 31, "followers": [], "line": "x"}
XID79 = {"pci": "0000:01:00", "xid": 79, "followers": [], "line": "x"}
ACS = {"enabled": ["00:03.1", "20:01.1"]}


@pytest.mark.parametrize(
    "of, found",
    [
        (facts(), []),
        (facts(gpu(), gpu(1)), []),
        (facts(gpu(pcie={"width": 8})), ["GPU 0 runs at x8 of x16: look at its slot"]),
        (facts(gpu(pcie={"width": None, "width_max": None})), []),
        (facts(gpu(mig=True, mig_devices=[{}, {}])), ["GPU 0 is split by MIG into 2 devices"]),
        (facts(gpu(1, power_limit_w=200.0)), ["GPU 1 is limited to 200 W of 300 W"]),
        (facts(gpu(power_limit_w=250.0)), []),
        (facts(gpu(power_limit_w=None), gpu(1, power_limit_max_w=None)), []),
        (facts(gpu(), gpu(1, "NVIDIA L4")), ["the GPUs are of different kinds"]),
        (facts(gpu(), gpu(1, persistence=False)), ["persistence is off"]),
        (facts(gpu(persistence=False), kind="vm"), []),
        pytest.param(facts(gpu(persistence=None)), [], id="what-the-driver-does-not-tell-is-not-off"),
        pytest.param(facts(gpu(), gpu(1), acs=ACS), ["ACS redirects peer-to-peer traffic at 00:03.1, 20:01.1"], id="L19-acs"),
        pytest.param(facts(gpu(), acs=ACS, iommu={"translating": True}), [], id="L19-one-gpu-has-no-peer"),
        pytest.param(facts(gpu(), gpu(1), iommu={"translating": True}), ["the IOMMU translates"], id="L19-iommu"),
        pytest.param(facts(gpu(), gpu(1), iommu={"translating": True}, kind="vm"), [], id="L19-iommu-of-a-virtual-machine"),
        pytest.param(facts(gpu(), xids=[XID31]), ["GPU 0000:01:00: Xid 31: a memory page fault of a process, or a faulty GPU, since boot"], id="L14-31"),
        pytest.param(facts(gpu(), xids=[XID79]), [], id="L14-79-is-a-problem-not-a-remark"),
        (
            facts(gpu(), fabric_manager={"needed": True, "active": False, "ready": False}),
            ["the GPUs are joined by NVSwitch and the fabric manager does not run"],
        ),
        (facts(gpu(), fabric_manager={"needed": True, "active": True, "ready": True}), []),
    ],
)
def test_remarks(of, found):
    told = remarks(of)
    assert len(told) == len(found) and all(text.startswith(start) for text, start in zip(told, found)), told
