# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What nvidia-smi prints, as data: the XML report, CSV queries, the list of devices, the topology matrices, and its failures."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from xml.etree import ElementTree

# Up to the end where it was cut off.
_REPORT = re.compile(r"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?(?P<report><nvidia_smi_log>.*?(?:</nvidia_smi_log>|\Z))", re.DOTALL)
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_NOT_THERE = ("", "N/A", "Not Supported", "None", "Requested functionality has been deprecated")


class SmiError(RuntimeError):
    """nvidia-smi gave no answer; ``code`` names the cause, the message is for the operator.

    Args:
        code: stable name of the cause.
        cause: one sentence.
        hint: what to do.
        evidence: what it printed.
    """

    def __init__(self, code: str, cause: str, hint: str, evidence: str) -> None:
        super().__init__(cause)
        self.code = code
        self.hint = hint
        self.evidence = evidence


def _number(text: str | None) -> float | None:
    """First number of a value with its unit (``143771 MiB``, ``16x``), or None where the GPU has no such value."""
    found = re.match(r"-?\d+(?:\.\d+)?", (text or "").strip())
    return float(found[0]) if found else None


def _whole(text: str | None) -> int | None:
    value = _number(text)
    return None if value is None else int(value)


def _known(text: str) -> str:
    """A value, or an empty text where the GPU does not have or does not tell it: ``N/A``, ``[Not Supported]``, ``[GPU is lost]``."""
    value = text.strip()
    return "" if value in _NOT_THERE or re.fullmatch(r"\[.*\]", value) else value


def _switch(text: str | None) -> bool | None:
    return {"Enabled": True, "Disabled": False}.get((text or "").strip())


def pci_address(text: str) -> str:
    """Returns a PCI address as the kernel writes it: four digits of domain or as many as it needs, lower case (``0000:41:00.0``)."""
    domain, _colon, rest = text.strip().lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}"


@dataclass(frozen=True)
class Report:
    """What ``nvidia-smi -q -x`` says.

    Attributes:
        driver: version of the driver.
        cuda: newest CUDA version that this driver supports, empty where it is not said.
        gpus: one mapping per GPU.
    """

    driver: str
    cuda: str
    gpus: list[dict[str, t.Any]] = field(default_factory=list)


def beside_report(text: str) -> str:
    """Returns what was printed before and after the XML report."""
    return _REPORT.sub("", text).strip()


def parse_report(text: str, module_version: str = "") -> Report:
    """Reads the XML report.

    Args:
        text: what was printed.
        module_version: version of the loaded kernel module, where one is loaded.

    Raises:
        SmiError: nvidia-smi printed an error instead, or the report is damaged.
    """
    report = _REPORT.search(text)
    if report is None:
        raise explain_failure(text, module_version)
    try:
        root = ElementTree.fromstring(report["report"])
    except ElementTree.ParseError as error:
        raise SmiError("nvidia_smi_unreadable", f"nvidia-smi's XML report cannot be read: {error}", "run `nvidia-smi -q -x` on the host", text[:400]) from error
    # Drivers from 610 name the kernel's and the user-mode driver apart.
    versions = {child.tag: (child.text or "").strip() for child in root if child.tag.endswith("version")}
    driver = next((versions[name] for name in ("driver_version", "kmd_version") if versions.get(name)), "")
    cuda = next((versions[name] for name in ("cuda_version", "cuda_umd_version") if versions.get(name)), "")
    return Report(driver, _known(cuda), [_gpu(entry) for entry in root.findall("gpu")])


def _gpu(entry: ElementTree.Element) -> dict[str, t.Any]:
    def text(*paths: str) -> str:
        return next(filter(None, (_known(entry.findtext(path, "")) for path in paths)), "")

    link = "pci/pci_gpu_link_info/"
    return {
        "name": text("product_name"),
        "uuid": text("uuid"),
        "pci": pci_address(entry.get("id", "")),
        "minor": _whole(text("minor_number")),
        "memory_total_mib": _whole(text("fb_memory_usage/total")),
        "memory_used_mib": _whole(text("fb_memory_usage/used")),
        "memory_free_mib": _whole(text("fb_memory_usage/free")),
        "pcie": {
            "generation": _whole(text(link + "pcie_gen/current_link_gen")),
            "generation_max": _whole(text(link + "pcie_gen/max_link_gen")),
            "width": _whole(text(link + "link_widths/current_link_width")),
            "width_max": _whole(text(link + "link_widths/max_link_width")),
        },
        "power_limit_w": _number(text("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit")),
        "power_limit_max_w": _number(text("gpu_power_readings/max_power_limit", "power_readings/max_power_limit")),
        "ecc": _switch(text("ecc_mode/current_ecc")),
        "persistence": _switch(text("persistence_mode")),
        "mig": _switch(text("mig_mode/current_mig")) or False,
        "virtualization": text("gpu_virtualization_mode/virtualization_mode"),
        "fabric": {"state": text("fabric/state"), "status": text("fabric/status")},
        "processes": [
            {"pid": _whole(process.findtext("pid")), "name": process.findtext("process_name", ""), "memory_mib": _whole(process.findtext("used_memory"))}
            for process in entry.findall("processes/process_info")
        ],
    }


def parse_query(text: str, fields: t.Sequence[str]) -> list[dict[str, str]]:
    """Reads a ``--format=csv,noheader,nounits`` query; a value that the GPU does not have is an empty text.

    Args:
        text: what was printed.
        fields: the queried fields, in order.
    """
    rows = []
    for line in text.splitlines():
        values = [_known(value) for value in line.split(", ")]
        if len(values) == len(fields):
            rows.append(dict(zip(fields, values)))
    return rows


def parse_list(text: str) -> list[dict[str, t.Any]]:
    """Reads ``nvidia-smi -L``: one entry per GPU with its MIG devices below it (a MIG device is no GPU: case T05)."""
    gpus: list[dict[str, t.Any]] = []
    for line in text.splitlines():
        gpu = re.match(r"GPU (\d+): (.+) \(UUID: (GPU-\S+)\)", line)
        device = re.match(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-\S+)\)", line)
        if gpu:
            gpus.append({"index": int(gpu[1]), "name": gpu[2], "uuid": gpu[3], "mig_devices": []})
        elif device and gpus:
            gpus[-1]["mig_devices"].append({"profile": device[1], "uuid": device[3]})
    return gpus


def parse_banner(text: str) -> tuple[str, str]:
    """Returns (driver, CUDA) from the banner, with the names before and from driver 610 (case T03). Only where no query answers."""
    driver = re.search(r"\b(?:Driver|KMD) Version:\s*(\d+(?:\.\d+)+)", text)
    cuda = re.search(r"\bCUDA (?:UMD )?Version:\s*(\d+(?:\.\d+)+)", text)
    return driver[1] if driver else "", cuda[1] if cuda else ""


@dataclass(frozen=True)
class Matrix:
    """A matrix of ``nvidia-smi topo``.

    Attributes:
        gpus: how many GPUs it has.
        links: (smaller index, larger index) -> NV12, PIX, PXB, PHB, NODE, SYS, or a state of peer-to-peer.
        nics: names of the network adapters, in the matrix' order.
        cpus: index -> list of CPUs near that GPU.
        numa: index -> NUMA node, where there is one.
    """

    gpus: int
    links: dict[tuple[int, int], str]
    nics: list[str] = field(default_factory=list)
    cpus: dict[int, str] = field(default_factory=dict)
    numa: dict[int, int] = field(default_factory=dict)


def parse_matrix(text: str) -> Matrix:
    """Reads ``topo -m`` or ``topo -p2p``: colours, network adapters, affinity columns and the legend are told from GPUs (case T01)."""
    lines = [_ANSI.sub("", line).rstrip("\r\n") for line in text.splitlines()]
    at = next((number for number, line in enumerate(lines) if re.match(r"\s*GPU0\b", line)), None)
    if at is None:
        return Matrix(0, {})
    header = [cell.strip() for cell in lines[at].split("\t") if cell.strip()]
    # Of old drivers a network adapter stands in the header by its own name.
    columns = [cell for cell in header if not re.search(r"Affinity|NUMA ID", cell)]
    links, cpus, numa = {}, {}, {}
    for line in lines[at + 1 :]:
        row = re.match(r"\s*GPU(\d+)\t", line)
        if not row:
            continue
        cells = [cell.strip() for cell in line.strip().split("\t")][1:]
        here = int(row[1])
        for column, value in zip(columns, cells):
            there = re.fullmatch(r"GPU(\d+)", column)
            if there and int(there[1]) > here:
                links[here, int(there[1])] = value
        near, node = [*cells[len(columns) :], "", ""][:2]
        if near and "CPU Affinity" in header:
            cpus[here] = near
        if node.isdigit() and "NUMA Affinity" in header:
            numa[here] = int(node)
    nics = [column for column in columns if not re.fullmatch(r"GPU\d+", column)]
    legend = dict(re.findall(r"^\s*(NIC\d+): (\S+)\s*$", "\n".join(lines), re.MULTILINE))
    return Matrix(len(columns) - len(nics), links, [legend.get(column, column) for column in nics], cpus, numa)


_FAILURES = (
    (
        "driver_library_mismatch",
        r"Driver/library version mismatch",
        "the driver's library and the loaded kernel module are of different versions{versions}",
        "reboot, or reload the kernel module with no GPU process running; in a container install the userspace of the host's version; hold the packages",
    ),
    (
        "driver_not_loaded",
        r"couldn't communicate with the NVIDIA driver|Driver Not Loaded",
        "the NVIDIA kernel module is not loaded",
        "look whether it was built for the running kernel (`dkms status`) and whether Secure Boot refused it (`mokutil --sb-state`, kernel log)",
    ),
    (
        "gpu_off_bus",
        r"Unable to determine the device handle for gpu|GPU is lost|fallen off the bus",
        "a GPU does not answer any more: it has fallen off the bus",
        "power the host off and on (a warm reboot may not bring it back), check seating, power and the PCIe link",
    ),
    (
        "nvml_denied",
        r"Insufficient Permissions|Failed to initialize NVML: Unknown Error|Failed to initialize NVML: No Permission",
        "access to the GPU's device nodes is refused",
        "in a container: give the device nodes and a cgroup rule with their present major number again; a reload of systemd on the host can take them away",
    ),
    (
        "gpu_absent",
        r"No devices were found",
        "the driver is loaded and drives no GPU",
        "look for the GPU in the kernel log (Xid, probe failed) and on the PCIe bus",
    ),
    (
        "library_missing",
        r"couldn't find libnvidia-ml|NVML Shared Library Not Found",
        "nvidia-smi is here, the driver's library libnvidia-ml is not",
        "install the userspace packages of the driver",
    ),
)


def explain_failure(output: str, module_version: str = "") -> SmiError:
    """Returns why nvidia-smi failed.

    Args:
        output: what it printed.
        module_version: version of the loaded kernel module, where one is loaded.
    """
    for code, pattern, cause, hint in _FAILURES:
        if re.search(pattern, output, re.IGNORECASE):
            library = re.search(r"NVML library version:\s*(\d+(?:\.\d+)+)", output)
            pair = f": library {library[1]}, module {module_version}" if library and module_version else ""
            return SmiError(code, cause.format(versions=pair), hint, output.strip()[:400])
    return SmiError("nvidia_smi_failed", "nvidia-smi failed: " + " ".join(output.split())[:200], "run nvidia-smi on the host", output.strip()[:400])
