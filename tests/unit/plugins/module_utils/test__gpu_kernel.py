# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gpu_kernel import (
    explain_fabric,
    explain_nodes,
    explain_xid,
    find_xids,
    is_serious,
    kind_of_machine,
    missing_nodes,
    parse_acs,
    parse_module,
)
from ansible_collections.llmops.inference.tests.unit.gpu import case, outputs, recorded

OFF_BUS = case("l14d_off_bus_no_xid.log")


def xid(number, pci="0000:41:00", text="pid=7, name=python3"):
    return f"NVRM: Xid (PCI:{pci}): {number}, {text}"


@pytest.mark.parametrize(
    "text, version, is_open",
    [
        (recorded("gpu-x2", "versions.txt"), "580.159.04", True),
        pytest.param(outputs(case("l12_nvml_mismatch.txt"))["cat /proc/driver/nvidia/version"][1], "580.173.02", False, id="L12"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  590.44.01  Release Build  (dvs-builder@U22)\r\n", "590.44.01", True),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.178  Tue Jan  6 08:38:17 UTC 2026\n", "580.178", False),
        ("GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n", "", False),
        ("", "", False),
    ],
)
def test_parse_module(text, version, is_open):
    assert parse_module(text) == (version, is_open)


@pytest.mark.parametrize(
    "text, pci, number, followers, serious, code, hint",
    [
        pytest.param(case("l14a_xid79.log"), "0000:41:00", 79, [], True, "xid", "power the host off and on (a warm reboot may not do)", id="L14-79"),
        pytest.param(case("l14b_xid31_exit0.log"), "0000:01:00", 31, [], False, "xid", "test that GPU", id="L14-31"),
        pytest.param(case("l14c_xid119_then_45.log"), "0000:c1:00", 119, [45, 45], True, "xid", "reset the GPU on the host", id="L14-119-then-45"),
        pytest.param(OFF_BUS, "0000:b3:00.0", None, [], True, "gpu_off_bus", "power the host off and on", id="L14-no-number"),
        pytest.param(OFF_BUS.replace("kernel: ", ""), "0000:b3:00.0", None, [], True, "gpu_off_bus", "check seating", id="L14-no-number-message-only"),
        pytest.param("\n".join([xid(45), xid(119), xid(45)]), "0000:41:00", 119, [45, 45], True, "xid", "reset the GPU", id="45-is-no-root"),
        pytest.param("\n".join([xid(45), xid(45)]), "0000:41:00", 45, [45], False, "xid", "look the number up", id="only-45"),
        pytest.param("\n".join([xid(31), xid(45), xid(79)]), "0000:41:00", 79, [31, 45], True, "xid", "power the host", id="a-crash-does-not-hide-a-lost-gpu"),
        pytest.param(
            xid(13) + "\nNVRM: GPU 0000:41:00.0: GPU has fallen off the bus.",
            "0000:41:00.0",
            None,
            [13],
            True,
            "gpu_off_bus",
            "power",
            id="nor-one-without-number",
        ),
        pytest.param("\n".join([xid(48), xid(79)]), "0000:41:00", 48, [79], True, "xid", "ROW_REMAPPER", id="the-first-serious-one-is-the-root"),
        pytest.param("\n".join([xid(13), xid(31)]), "0000:41:00", 13, [31], False, "xid", "fault of the process", id="the-first-of-two-crashes"),
        pytest.param(xid(31, "0000:01:00 GPU-I:05"), "0000:01:00", 31, [], False, "xid", "update", id="mig-device"),
        pytest.param("NVRM: Xid (PCI:0000:01:00): 8", "0000:01:00", 8, [], False, "xid", "look the number up there", id="unknown-number"),
    ],
)
def test_one_gpu_with_errors(text, pci, number, followers, serious, code, hint):
    (found,) = find_xids(text.splitlines())
    diagnosis = explain_xid(found)
    assert (found["pci"], found["xid"], found["followers"]) == (pci, number, followers)
    assert is_serious(found) is serious
    assert (diagnosis.code, diagnosis.evidence) == (code, [found["line"]])
    assert diagnosis.cause.startswith(f"GPU {pci}: " + (f"Xid {number}: " if number is not None else "")) and hint in diagnosis.hint


def test_every_gpu_has_its_own_root():
    lines = [xid(31, "0000:01:00"), xid(79, "0000:41:00"), xid(45, "0000:01:00"), xid(31, "0000:C1:00"), xid(43, "0000:c1:00")]
    assert [(found["pci"], found["xid"], found["followers"]) for found in find_xids(lines)] == [
        ("0000:01:00", 31, [45]),
        ("0000:41:00", 79, []),
        ("0000:C1:00", 31, [43]),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04",
        "NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x62:0x40:2477)",
        "NVRM: GPU at PCI:0000:41:00: GPU-00000000-1111-2222-3333-444444444444",
        "Xid (PCI:0000:41:00): 79, said by something else",
    ],
)
def test_no_errors(text):
    assert find_xids(text.splitlines()) == []


@pytest.mark.parametrize(
    "text, bridges",
    [
        pytest.param(case("l19_lspci_acsctl.txt"), {"00:03.1": True, "20:01.1": True, "20:03.1": False}, id="L19"),
        pytest.param(case("l19_lspci_acsctl.txt").replace("\n", "\r\n"), {"00:03.1": True, "20:01.1": True, "20:03.1": False}, id="L19-other-line-ends"),
        ("0000:00:01.0 PCI bridge: x\n\tCapabilities: [100]\n\t\tACSCtl:\tSrcValid- \n", {"0000:00:01.0": False}),
        pytest.param(
            "0000:00:01.0 PCI bridge: x\n10000:80:01.0 PCI bridge: x\n\t\tACSCtl:\tSrcValid+ TransBlk-\n", {"10000:80:01.0": True}, id="behind-VMD-five-digits"
        ),
        ("00:01.0 PCI bridge: x\n\tCapabilities: <access denied>\n", {}),
        ("\t\tACSCtl:\tSrcValid+\n", {}),
        ("", {}),
    ],
)
def test_parse_acs(text, bridges):
    assert parse_acs(text) == bridges


@pytest.mark.parametrize(
    "present, minors, missing",
    [
        (["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-caps"], [0], []),
        pytest.param(["/dev/nvidia0", "/dev/nvidiactl"], [0], ["/dev/nvidia-uvm"], id="I04"),
        (["/dev/nvidia0", "/dev/nvidia10", "/dev/nvidiactl", "/dev/nvidia-uvm"], [0, 1, 10], ["/dev/nvidia1"]),
        ([], [0], ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"]),
    ],
)
def test_missing_nodes(present, minors, missing):
    assert missing_nodes(present, minors) == missing


@pytest.mark.parametrize(
    "missing, machine, code, cause, hint",
    [
        pytest.param(
            ["/dev/nvidia-uvm"], "lxc", "nvidia_uvm_missing", "/dev/nvidia-uvm missing: nvidia-smi works but CUDA cannot", "on the container's host", id="I04"
        ),
        (["/dev/nvidia-uvm"], "none", "nvidia_uvm_missing", "CUDA cannot", "nvidia-modprobe -u"),
        (["/dev/nvidia-uvm"], "kvm", "nvidia_uvm_missing", "CUDA cannot", "nvidia-modprobe -u"),
        (["/dev/nvidia-uvm"], "", "nvidia_uvm_missing", "CUDA cannot", "nvidia-modprobe -u"),
        (["/dev/nvidiactl", "/dev/nvidia1"], "docker", "device_nodes_missing", "/dev/nvidiactl, /dev/nvidia1 missing: CUDA cannot use every GPU", "host"),
    ],
)
def test_explain_nodes(missing, machine, code, cause, hint):
    found = explain_nodes(missing, machine)
    assert (found.code, len(found.evidence)) == (code, len(missing))
    assert cause in found.cause and hint in found.hint


@pytest.mark.parametrize(
    "virtualization, kind",
    [
        ("none", "bare"),
        ("", "bare"),
        ("kvm", "vm"),
        ("vmware", "vm"),
        ("microsoft", "vm"),
        ("lxc", "container"),
        ("docker", "container"),
        ("podman", "container"),
    ],
)
def test_kind_of_machine(virtualization, kind):
    assert kind_of_machine(virtualization) == kind


@pytest.mark.parametrize(
    "text, cause",
    [
        pytest.param(case("l11d_fabricmanager_mismatch.log"), "the fabric manager is of version 550.90.07, the driver of 550.107.02", id="L11d"),
        pytest.param(
            case("l11d_fabricmanager_mismatch.log").replace("don't", "doesn't"),
            "the fabric manager is of version 550.90.07, the driver of 550.107.02",
            id="L11d-in-other-words",
        ),
        (
            "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version 550.120. Please",
            "of version 550.127.05, the driver of 550.120",
        ),
    ],
)
def test_a_fabric_manager_of_another_version(text, cause):
    found = explain_fabric(text.splitlines(), "550.107.02")
    assert found.code == "fabricmanager_version_mismatch" and cause in found.cause
    assert found.hint.startswith("install the fabric manager of exactly 550.1") and "don't match" in found.evidence[0].replace("doesn't", "don't")


@pytest.mark.parametrize("text", ["", "Connected to 1 node.\nSuccessfully configured all the available NVSwitches to route GPU NVLink traffic."])
def test_a_fabric_manager_without_complaint(text):
    assert explain_fabric(text.splitlines(), "550.107.02") is None
