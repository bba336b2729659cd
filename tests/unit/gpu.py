# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with GPUs, for tests: real outputs of nvidia-smi, and whole hosts whose commands and files are played."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "gpu"
REPORT = "nvidia-smi -q -x"
LIST = "nvidia-smi -L"
CAPABILITIES = "nvidia-smi --query-gpu=index,uuid,compute_cap --format=csv,noheader,nounits"
NVRM = "journalctl --dmesg --boot --no-pager --output=cat --grep=NVRM"
FABRIC_ACTIVE = "systemctl is-active nvidia-fabricmanager.service"
FABRIC_LOG = "journalctl --unit nvidia-fabricmanager.service --boot --lines=50 --no-pager --output=cat"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
A6000 = {
    "id": "00000000:01:00.0",
    "name": "NVIDIA RTX A6000",
    "uuid": "GPU-00000000-1111-2222-3333-666666666666",
    "minor": "0",
    "total": "49140 MiB",
    "used": "2 MiB",
    "free": "48666 MiB",
    "generation": "1",
    "generation_max": "4",
    "width": "16x",
    "width_max": "16x",
    "limit": "300.00 W",
    "limit_max": "300.00 W",
    "ecc": "Disabled",
    "persistence": "Enabled",
    "mig": "N/A",
    "virtualization": "None",
    "state": "N/A",
    "status": "N/A",
    "processes": "",
}
SECOND = {"id": "00000000:41:00.0", "uuid": "GPU-00000000-1111-2222-3333-777777777777", "minor": "1"}
_GPU = """\
<gpu id="{id}">
<product_name>{name}</product_name><uuid>{uuid}</uuid><minor_number>{minor}</minor_number>
<persistence_mode>{persistence}</persistence_mode><mig_mode><current_mig>{mig}</current_mig></mig_mode>
<gpu_virtualization_mode><virtualization_mode>{virtualization}</virtualization_mode></gpu_virtualization_mode>
<pci><pci_gpu_link_info>
<pcie_gen><max_link_gen>{generation_max}</max_link_gen><current_link_gen>{generation}</current_link_gen></pcie_gen>
<link_widths><max_link_width>{width_max}</max_link_width><current_link_width>{width}</current_link_width></link_widths>
</pci_gpu_link_info></pci>
<fb_memory_usage><total>{total}</total><used>{used}</used><free>{free}</free></fb_memory_usage>
<ecc_mode><current_ecc>{ecc}</current_ecc></ecc_mode>
<gpu_power_readings><current_power_limit>{limit}</current_power_limit><max_power_limit>{limit_max}</max_power_limit></gpu_power_readings>
<fabric><state>{state}</state><status>{status}</status></fabric>
<processes>{processes}</processes>
</gpu>
"""


def case(name):
    """Returns the text of a fixture of shared/cases."""
    return (FIXTURES / "cases" / name).read_text()


def outputs(text):
    """Returns command -> (status, output) of a recorded session: ``$ command`` lines, and ``rc=`` where the exit status was kept."""
    found = {}
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, _newline, output = part.partition("\n")
        status = re.search(r"(?m)^rc=(\d+)\n\Z", output)
        found[command] = (int(status[1]), output[: status.start()]) if status else (0, output)
    return found


def recorded(host, name):
    """Returns what one command printed on one of the real hosts."""
    (found,) = list(outputs((FIXTURES / host / name).read_text()).values())
    return found[1]


def report(*gpus, driver="550.163.01", cuda="12.4"):
    """Returns an XML report; each GPU is an A6000 with changes."""
    entries = "".join(_GPU.format(**{**A6000, **gpu}) for gpu in gpus)
    versions = f"<driver_version>{driver}</driver_version><cuda_version>{cuda}</cuda_version><attached_gpus>{len(gpus)}</attached_gpus>"
    return f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n{versions}\n{entries}</nvidia_smi_log>\n'


def process(pid, name, memory="900 MiB"):
    """Returns a process for a GPU of :func:`report`."""
    return f"<process_info><pid>{pid}</pid><type>C</type><process_name>{name}</process_name><used_memory>{memory}</used_memory></process_info>"


def matrix(kinds, affinity="\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"):
    """Returns a matrix of nvidia-smi topo from its rows of cells."""
    names = [f"GPU{index}" for index in range(len(kinds))]
    rows = [f"{name}\t" + "\t".join(cells) + ("\t0-15\t0\t\tN/A" if affinity else "\t") for name, cells in zip(names, kinds)]
    return "\t\x1b[4m" + "\t".join(names) + affinity + "\x1b[0m\n" + "\n".join(rows) + "\n\nLegend:\n\n  X    = Self\n"


class Host:
    """A host whose commands answer from a table, and whose files lie below a scratch directory.

    Args:
        root: the directory.
    """

    def __init__(self, root):
        self.root = root
        self.answers = {NVRM: (1, ""), "systemd-detect-virt": (1, "none\n")}

    def says(self, command, output, status=0):
        self.answers[command] = (status, output)
        return self

    def has(self, path, text=""):
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return self

    def has_device(self, address, pci_class="0x030200", **files):
        for name, text in {"vendor": "0x10de", "class": pci_class, **files}.items():
            self.has(f"/sys/bus/pci/devices/{address}/{name}", text + "\n")
        return self

    def has_behind(self, address, *bridges):
        """Puts a device where sysfs has it, below its root port and switches, with a link in its old place."""
        link = self.root / "sys/bus/pci/devices" / address
        place = self.root.joinpath("sys/devices", f"pci{bridges[0].rpartition(':')[0]}", *bridges, address)
        place.parent.mkdir(parents=True, exist_ok=True)
        link.rename(place)
        link.symlink_to(os.path.relpath(place, link.parent))
        return self

    def has_driver(self, version, *minors):
        text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Jan  6 08:38:17 UTC 2026\nGCC version:  gcc version 12.2.0\n"
        self.has("/proc/driver/nvidia/version", text)
        for name in ("ctl", "-uvm", *minors):
            self.has(f"/dev/nvidia{name}")
        return self

    def ask(self, *words):
        return self.answers.get(" ".join(words))

    def facts(self):
        return GpuHost(self.ask, Files(str(self.root))).collect()


def real(root, name):
    """Returns one of the real hosts: a virtual machine with one or two H200."""
    host = Host(root).says("systemd-detect-virt", "kvm\n")
    for command, file in (
        (REPORT, "qx.xml"),
        (LIST, "smi-L.txt"),
        ("nvidia-smi", "smi.txt"),
        ("nvidia-smi topo -m", "topo-m.txt"),
        ("nvidia-smi topo -mp", "topo-mp.txt"),
        ("nvidia-smi topo -p2p r", "topo-p2p-r.txt"),
        ("nvidia-smi topo -p2p w", "topo-p2p-w.txt"),
    ):
        host.says(command, recorded(name, file))
    rows = [line.split(", ") for line in recorded(name, "query-nounits.csv").splitlines()]
    host.says(CAPABILITIES, "".join(f"{row[0]}, {row[2]}, {row[6]}\n" for row in rows))
    host.has("/proc/driver/nvidia/version", recorded(name, "versions.txt").partition("0000:")[0])
    for line in recorded(name, "proc-pci.txt").splitlines():
        found = re.match(r"/sys/bus/pci/devices/(\S+) class=(\S+) .*numa=(\S+) cpus=(\S+)", line)
        host.has_device(found[1], found[2], numa_node=found[3], local_cpulist=found[4])
    for node in ("ctl", "-uvm", *range(len(rows))):
        host.has(f"/dev/nvidia{node}")
    return host


def two_a6000(root, second=None, **first):
    """Returns a bare host with two A6000 behind the host bridge, on which everything works."""
    gpus = ({**first}, {**SECOND, **(second or {})})
    host = Host(root).says(REPORT, report(*gpus)).says(CAPABILITIES, f"0, {A6000['uuid']}, 8.6\n1, {SECOND['uuid']}, 8.6\n")
    for words in ("-m", "-mp"):
        host.says(f"nvidia-smi topo {words}", matrix([[" X ", "PHB"], ["PHB", " X "]]))
    for words in ("r", "w"):
        host.says(f"nvidia-smi topo -p2p {words}", matrix([["X", "OK"], ["OK", "X"]], affinity="\t"))
    for address in ("0000:01:00.0", "0000:41:00.0"):
        host.has_device(address, "0x030000", numa_node="0", local_cpulist="0-15")
    return host.has_driver("550.163.01", 0, 1)
