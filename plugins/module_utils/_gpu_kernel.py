# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the kernel says of GPUs and their links: driver module, Xid errors, PCIe bridges with ACS, device nodes, the kind of machine."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import Diagnosis

_MODULE = re.compile(r"NVRM version: NVIDIA UNIX (?P<open>Open )?.*?Kernel Module.*?\s(?P<version>\d+\.\d+(?:\.\d+)?)\b")
_XID = re.compile(r"NVRM: Xid \(PCI:(?P<pci>[0-9a-fA-F:.]+)[^)]*\): (?P<xid>\d+)(?:, (?P<text>.*))?")
_OFF_BUS = re.compile(r"NVRM: (?:GPU|The NVIDIA GPU) (?P<pci>[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d).*fallen off the bus")
# The driver breaks one sentence over several lines.
_CONTINUED = re.compile(r"\n[^\n]*?NVRM:\s+(?=\(PCI ID|fallen off|installed in|bus and)")
# Follows whatever killed the process: the channel's preemptive removal (NVIDIA, XID Errors).
_FOLLOWER = 45
# NVIDIA, XID Errors: what the number means and what to do, in our words; the ones that operators of LLM servers meet.
_XIDS = {
    13: (
        "an illegal memory access or instruction in a kernel",
        "a fault of the process more often than of the GPU: update the engine, then test the GPU's memory",
    ),
    31: ("a memory page fault of a process, or a faulty GPU", "update the engine; if it comes back on one GPU only, test that GPU"),
    43: ("a process was stopped by the GPU", "look at the process' own log"),
    48: ("an uncorrectable double-bit memory error", "reset or replace the GPU; look at `nvidia-smi -q -d ECC,ROW_REMAPPER`"),
    61: ("an internal micro-controller error", "reboot; update the driver"),
    62: ("an internal micro-controller halt", "reboot; update the driver"),
    63: ("a memory row was remapped", "reboot when convenient; look at `nvidia-smi -q -d ROW_REMAPPER`"),
    64: ("a memory row could not be remapped", "replace the GPU"),
    74: ("an NVLink error", "look at `nvidia-smi nvlink -e`; check bridges and the fabric manager"),
    79: ("the GPU has fallen off the bus", "hardware, power or PCIe: power the host off and on (a warm reboot may not do), check seating and power"),
    94: ("a contained memory error", "restart the process; the GPU goes on"),
    95: ("an uncontained memory error", "reset the GPU"),
    119: ("the GPU's system processor did not answer in time", "update the driver; until then reset the GPU on the host"),
    120: ("the GPU's system processor failed", "update the driver; until then reset the GPU on the host"),
}


# After one of these the GPU, not only one process, is in doubt.
_SERIOUS = (48, 61, 62, 64, 79, 95, 119, 120)


def parse_module(text: str) -> tuple[str, bool]:
    """Returns (version, open) of the loaded kernel module from ``/proc/driver/nvidia/version``; an empty version where none is loaded."""
    found = _MODULE.search(text)
    return (found["version"], bool(found["open"])) if found else ("", False)


def find_xids(lines: t.Sequence[str]) -> list[dict[str, t.Any]]:
    """Returns the root of each GPU's errors in the kernel log: its first serious Xid, else its first; a GPU off the bus without a number counts (case L14).

    A process that crashed long ago does not hide that the GPU was lost since.

    Args:
        lines: the kernel log, in order.
    """
    roots: dict[str, dict[str, t.Any]] = {}
    for line in _CONTINUED.sub(" ", "\n".join(lines)).splitlines():
        found = _XID.search(line)
        number = int(found["xid"]) if found else None
        found = found or _OFF_BUS.search(line)
        if not found:
            continue
        root = roots.get(_slot(found["pci"]))
        if root is None or _weight(number) > _weight(root["xid"]):
            others = [] if root is None else [root["xid"], *root["followers"]]
            roots[_slot(found["pci"])] = {"pci": found["pci"], "xid": number, "followers": others, "line": line.strip()}
        elif number is not None:
            root["followers"].append(number)
    return list(roots.values())


def _weight(number: int | None) -> int:
    """What may be the root: a follower least, a GPU in doubt most."""
    return 0 if number == _FOLLOWER else 2 if number is None or number in _SERIOUS else 1


def _slot(pci: str) -> str:
    """Xid lines leave the function out, others do not."""
    return pci.lower().partition(".")[0]


def is_serious(found: t.Mapping[str, t.Any]) -> bool:
    """Returns whether an entry of :func:`find_xids` puts the GPU in doubt; the others tell of a process that failed."""
    return _weight(found["xid"]) == _weight(None)


def explain_xid(found: t.Mapping[str, t.Any]) -> Diagnosis:
    """Returns what one entry of :func:`find_xids` means."""
    if found["xid"] is None or found["xid"] == 79:
        meaning, hint = _XIDS[79]
        code = "gpu_off_bus" if found["xid"] is None else "xid"
    else:
        code = "xid"
        meaning, hint = _XIDS.get(found["xid"], ("an error that NVIDIA's list of Xid errors explains", "look the number up there; update the driver"))
    number = f"Xid {found['xid']}: " if found["xid"] is not None else ""
    return Diagnosis(code, f"GPU {found['pci']}: {number}{meaning}", [found["line"]], hint)


def parse_acs(text: str) -> dict[str, bool]:
    """Returns PCIe bridge -> whether Access Control Services redirect peer-to-peer traffic there, from ``lspci -vv``.

    Source: the NCCL guide, Troubleshooting, PCI Access Control Services: ``SrcValid+`` in ``ACSCtl`` means that ACS might be enabled.
    """
    found, device = {}, ""
    for line in text.splitlines():
        head = re.match(r"(?P<address>(?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d) ", line)
        if head:
            device = head["address"]
        control = re.match(r"\s+ACSCtl:\s*(?P<flags>.*)", line)
        if control and device:
            found[device] = "SrcValid+" in control["flags"]
    return found


def missing_nodes(present: t.Collection[str], minors: t.Sequence[int]) -> list[str]:
    """Returns the device nodes that CUDA needs and that are not there. Without ``nvidia-uvm`` nvidia-smi works and CUDA does not (case I04).

    Args:
        present: paths below ``/dev`` that begin with ``nvidia``.
        minors: minor number of each GPU.
    """
    needed = ["/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{minor}" for minor in minors)]
    return [node for node in needed if node not in present]


def explain_nodes(missing: t.Sequence[str], machine: str) -> Diagnosis:
    """Returns what missing device nodes mean.

    Args:
        missing: as :func:`missing_nodes` returns them.
        machine: ``lxc``, another container, a virtual machine's name, or ``none``.
    """
    uvm = "/dev/nvidia-uvm" in missing
    code = "nvidia_uvm_missing" if uvm else "device_nodes_missing"
    what = "nvidia-smi works but CUDA cannot" if uvm else "CUDA cannot use every GPU"
    inside = machine not in ("none", "") and machine in CONTAINERS
    hint = (
        "on the container's host: `modprobe nvidia-uvm`, pass the nodes on and allow their present major numbers (they change with kernel and driver)"
        if inside
        else "load the module and make its node: `nvidia-modprobe -u -c 0`"
    )
    return Diagnosis(code, f"{', '.join(missing)} missing: {what}", [f"present: no {node}" for node in missing], hint)


CONTAINERS = ("lxc", "lxc-libvirt", "docker", "podman", "systemd-nspawn", "openvz", "container-other", "wsl", "proot", "pouch", "rkt")


def kind_of_machine(virtualization: str) -> str:
    """Returns ``container``, ``vm`` or ``bare`` for what ``systemd-detect-virt`` says."""
    if virtualization in CONTAINERS:
        return "container"
    return "bare" if virtualization in ("none", "") else "vm"


def explain_fabric(lines: t.Sequence[str], driver: str) -> Diagnosis | None:
    """Returns the fabric manager's complaint about its version, if its log has one.

    Args:
        lines: its journal.
        driver: version of the loaded driver.
    """
    for line in lines:
        found = re.search(r"driver interface version (?P<manager>[\d.]+\d) do(?:es)?n't match with driver version (?P<driver>[\d.]+\d)", line)
        if found:
            cause = f"the fabric manager is of version {found['manager']}, the driver of {found['driver'] or driver}"
            return Diagnosis("fabricmanager_version_mismatch", cause, [line.strip()], f"install the fabric manager of exactly {found['driver'] or driver}")
    return None
