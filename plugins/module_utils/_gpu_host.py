# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Collects what a host says of its GPUs into one document: commands and files come in through two small interfaces."""

from __future__ import annotations

import os
import re
import typing as t
from dataclasses import asdict
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _gpu_kernel as kernel
from ansible_collections.llmops.inference.plugins.module_utils import _nvidia_smi as smi
from ansible_collections.llmops.inference.plugins.module_utils import _topology as topology
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers, supported_cuda
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._proc import unit_in

# (words) -> (status, output), or None where the host has no such command
Ask = t.Callable[..., t.Optional[t.Tuple[int, str]]]

_VENDOR = "0x10de"
_GPU_CLASSES = ("0x0300", "0x0302")
_SWITCH_CLASS = "0x0680"
_QUERY = ("index", "uuid", "compute_cap")
# nvidia-smi's own status for a corrupt infoROM: a warning, with a whole report.
_WARNED = 14
_NVRM = ("journalctl", "--dmesg", "--boot", "--no-pager", "--output=cat", "--grep=NVRM")
# What timeout exits with when it had to end the command.
_TIMED_OUT = 124
_FABRIC_UNIT = "nvidia-fabricmanager.service"
_FABRIC_LOG = ("journalctl", "--unit", _FABRIC_UNIT, "--boot", "--lines=50", "--no-pager", "--output=cat")


class Files:
    """Files of a host, read below a root directory.

    Args:
        root: ``/``, or a directory that holds a copy.
    """

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)

    @classmethod
    def here(cls) -> Files:
        """This host's files, or those below LLMOPS_INFERENCE_ROOT."""
        return cls(os.environ.get("LLMOPS_INFERENCE_ROOT", "/"))

    def read(self, path: str) -> str:
        """Returns a file's text without surrounding white space, empty where there is none or it cannot be read."""
        try:
            return (self._root / path.lstrip("/")).read_text(errors="replace").strip()
        except OSError:
            return ""

    def resolve(self, path: str) -> str:
        """Returns where a link leads, as seen from the host."""
        return "/" + os.path.relpath(os.path.realpath(self._root / path.lstrip("/")), os.path.realpath(self._root))

    def find(self, pattern: str) -> list[str]:
        """Returns the paths that match a pattern, as seen from the host."""
        return sorted("/" + str(path.relative_to(self._root)) for path in self._root.glob(pattern.lstrip("/")))


def make_ask(module: t.Any) -> Ask:
    """Returns how commands are run for a module: one that the host lacks is a finding, no error; a driver that hangs does not hang the play."""

    def ask(*words: str) -> tuple[int, str] | None:
        path, timeout = module.get_bin_path(words[0]), module.get_bin_path("timeout")
        if path is None or timeout is None:
            return None
        status, output, error = module.run_command([timeout, "60", path, *words[1:]], environ_update={"LC_ALL": "C"})
        if status == _TIMED_OUT:
            error += f"{words[0]} gave no answer within 60 s"
        return status, output if status == 0 else output + error

    return ask


def running_servers(ask: Ask) -> list[str]:
    """Returns the running units of this collection's servers."""
    answer = ask("systemctl", "list-units", "--plain", "--no-legend", "--state=active,activating,reloading", "sglang-*.service")
    return [line.split()[0] for line in answer[1].splitlines() if line.strip()] if answer and answer[0] == 0 else []


class GpuHost:
    """One look at a host.

    Args:
        ask: runs a command.
        files: reads files.
    """

    def __init__(self, ask: Ask, files: Files) -> None:
        self._ask = ask
        self._files = files
        self._problems: list[Diagnosis] = []
        self._warnings: list[str] = []

    def collect(self) -> dict[str, t.Any]:
        """Returns the document that the module gpu_facts describes."""
        module_version, module_open = kernel.parse_module(self._files.read("/proc/driver/nvidia/version"))
        devices = self._pci_devices(_GPU_CLASSES)
        report = self._report(module_version, bool(devices))
        gpus = self._gpus(report)
        machine = self._machine()
        nodes = self._files.find("/dev/nvidia*")
        missing = kernel.missing_nodes(nodes, [gpu["minor"] for gpu in gpus if gpu["minor"] is not None]) if gpus else []
        if missing:
            self._problems.append(kernel.explain_nodes(missing, machine["virtualization"]))
        driver = report.driver or module_version
        matrix = smi.parse_matrix(self._smi("topo", "-m") if gpus else "")
        xids = kernel.find_xids(self._lines(*_NVRM))
        self._problems += [kernel.explain_xid(found) for found in xids if kernel.is_serious(found)]
        facts: dict[str, t.Any] = {
            "gpus": gpus,
            "links": self._links(matrix, len(gpus)),
            "machine": machine,
            "driver": {
                "version": driver,
                "cuda": report.cuda or supported_cuda(driver),
                "module": module_version,
                "module_open": module_open,
                "nouveau": bool(self._files.find("/sys/module/nouveau")),
                "library": self._library(),
                "compatibility": self._compatibility(),
            },
            "devices": {"present": nodes, "missing": missing},
            "pci": devices,
            "nics": matrix.nics,
            "infiniband": [Path(path).name for path in self._files.find("/sys/class/infiniband/*")],
            "iommu": self._iommu([gpu["pci"] for gpu in gpus]),
            "acs": self._acs([gpu["pci"] for gpu in gpus]),
            "fabric_manager": self._fabric(driver, gpus),
            "xids": xids,
        }
        return self._conclude(facts)

    def _conclude(self, facts: dict[str, t.Any]) -> dict[str, t.Any]:
        broken = bool(self._problems)
        facts["state"] = "broken" if broken else ("ok" if facts["gpus"] else "none")
        facts["problems"] = [asdict(problem) for problem in self._problems]
        facts["remarks"] = [*self._warnings, *topology.remarks(facts)]
        # What cannot be asked is not absent.
        there = [topology.describe(facts["gpus"], facts["links"])] if facts["gpus"] or not broken else []
        told = [problem.sentence for problem in self._problems]
        facts["verdict"] = [*there, *told, *facts["remarks"]]
        facts["summary"] = facts["verdict"][0]
        return facts

    def _lines(self, *words: str) -> list[str]:
        answer = self._ask(*words)
        return answer[1].splitlines() if answer and answer[0] == 0 else []

    def _smi(self, *words: str) -> str:
        answer = self._ask("nvidia-smi", *words)
        return answer[1] if answer and answer[0] == 0 else ""

    def _pci_devices(self, classes: t.Sequence[str]) -> list[str]:
        found = []
        for path in self._files.find("/sys/bus/pci/devices/*"):
            if self._files.read(path + "/vendor") == _VENDOR and self._files.read(path + "/class")[:6] in classes:
                found.append(Path(path).name)
        return found

    def _report(self, module_version: str, present: bool) -> smi.Report:
        answer = self._ask("nvidia-smi", "-q", "-x")
        if answer is None:
            if module_version or present:
                what = "a driver is loaded" if module_version else "there is an NVIDIA GPU on the PCIe bus"
                hint = "install the driver's userspace of the module's version" if module_version else "install the driver (cuda_driver)"
                self._problems.append(Diagnosis("driver_missing", f"{what}, and nvidia-smi is not there", [], hint))
            return smi.Report("", "")
        status, output = answer
        try:
            report = smi.parse_report(output, module_version)
        except smi.SmiError as failure:
            # Userspace without a GPU says many things, some of them as if access were refused.
            if module_version or present:
                self._tell(failure)
            return smi.Report("", "")
        lost = re.search(r"(?im)^.*(?:Unable to determine the device handle|GPU is lost|fallen off the bus).*", output)
        if status == _WARNED and report.gpus and not lost:
            self._warnings.append(f"nvidia-smi warns: {' '.join(smi.beside_report(output).split())}")
        elif status != 0 or lost:
            self._tell(smi.explain_failure(lost[0] if lost else smi.beside_report(output), module_version))
        elif present and not report.gpus:
            self._tell(smi.explain_failure("No devices were found"))
        if not report.cuda:
            report = smi.Report(report.driver, smi.parse_banner(self._smi())[1], report.gpus)
        return report

    def _tell(self, failure: smi.SmiError) -> None:
        self._problems.append(Diagnosis(failure.code, str(failure), failure.evidence.splitlines()[:5], failure.hint))

    def _gpus(self, report: smi.Report) -> list[dict[str, t.Any]]:
        if not report.gpus:
            return []
        rows = smi.parse_query(self._smi(f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"), _QUERY)
        asked = {row["uuid"]: row for row in rows}
        devices = {entry["uuid"]: entry["mig_devices"] for entry in smi.parse_list(self._smi("-L"))} if any(gpu["mig"] for gpu in report.gpus) else {}
        gpus = []
        for position, gpu in enumerate(report.gpus):
            # Where a GPU before it is lost, a GPU's index is not its place in the report.
            own = asked.get(gpu["uuid"], {})
            sysfs = f"/sys/bus/pci/devices/{gpu['pci']}"
            node = self._files.read(sysfs + "/numa_node")
            processes = [{**process, "unit": self._unit(process["pid"])} for process in gpu["processes"]]
            gpus.append(
                {
                    "index": int(own.get("index") or position),
                    **gpu,
                    "compute_capability": own.get("compute_cap", ""),
                    "mig_devices": devices.get(gpu["uuid"], []),
                    "numa_node": int(node) if node.isdigit() else None,
                    "cpus": self._files.read(sysfs + "/local_cpulist"),
                    "processes": processes,
                }
            )
        return gpus

    def _unit(self, pid: int | None) -> str:
        return unit_in(self._files.read(f"/proc/{pid}/cgroup"))

    def _links(self, matrix: smi.Matrix, gpus: int) -> list[dict[str, t.Any]]:
        if gpus < 2:
            return []
        return topology.make_links(matrix, *(smi.parse_matrix(self._smi("topo", *words)) for words in (("-mp",), ("-p2p", "r"), ("-p2p", "w"))))

    def _machine(self) -> dict[str, str]:
        answer = self._ask("systemd-detect-virt")
        virtualization = answer[1].strip() if answer else self._guess_virtualization()
        return {"kind": kernel.kind_of_machine(virtualization), "virtualization": virtualization or "none"}

    def _guess_virtualization(self) -> str:
        """What shows on a machine without systemd's own command."""
        container = re.search(r"(?:^|\0)container=([^\0]+)", self._files.read("/proc/1/environ"))
        marks = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"))
        if container:
            return container[1]
        marked = next((name for path, name in marks if self._files.find(path)), "")
        return marked or ("vm-other" if re.search(r"(?m)^flags\s*:.*\bhypervisor\b", self._files.read("/proc/cpuinfo")) else "none")

    def _library(self) -> str:
        """Version of the driver's user-mode library, by the name of its file."""
        places = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current")
        names = [Path(path).name for place in places for path in self._files.find(f"{place}/libcuda.so.[0-9]*.*")]
        return max((name.partition(".so.")[2] for name in names), key=numbers, default="")

    def _compatibility(self) -> str:
        found = [match[1] for path in self._files.find("/usr/local/cuda-*/compat/libcuda.so.1") for match in [re.search(r"cuda-([\d.]+)", path)] if match]
        return max(found, key=numbers, default="")

    def _iommu(self, addresses: t.Sequence[str]) -> dict[str, t.Any]:
        types = {self._files.read(f"/sys/bus/pci/devices/{address}/iommu_group/type") for address in addresses} - {""}
        return {"enabled": bool(self._files.find("/sys/kernel/iommu_groups/*")), "translating": any(kind.startswith("DMA") for kind in types)}

    def _acs(self, addresses: t.Sequence[str]) -> dict[str, t.Any]:
        answer = self._ask("lspci", "-vv") if addresses else None
        # Without the right to read it lspci shows no ACS, as if there were none.
        text = answer[1] if answer and answer[0] == 0 and "<access denied>" not in answer[1] else None
        bridges = [name for name, on in kernel.parse_acs(text or "").items() if on]
        above = {part for address in addresses for part in self._files.resolve(f"/sys/bus/pci/devices/{address}").split("/")}
        # Only what lies between the GPUs and the root counts; where sysfs does not say, all of it.
        known = [name for name in bridges if smi.pci_address(name if name.count(":") > 1 else f"0000:{name}") in above]
        return {"known": text is not None, "enabled": sorted(known if any(part.startswith("pci") and ":" in part for part in above) else bridges)}

    def _fabric(self, driver: str, gpus: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
        switches = self._pci_devices((_SWITCH_CLASS,)) or [Path(path).name for path in self._files.find("/proc/driver/nvidia-nvswitch/devices/*")]
        waiting = [gpu for gpu in gpus if gpu["fabric"]["state"] in ("In Progress", "Not Started")]
        needed = bool(switches or waiting)
        active = False
        if needed:
            answer = self._ask("systemctl", "is-active", _FABRIC_UNIT)
            active = bool(answer and answer[0] == 0)
            mismatch = kernel.explain_fabric(self._lines(*_FABRIC_LOG), driver)
            if mismatch and not active:
                self._problems.append(mismatch)
            elif waiting:
                state = waiting[0]["fabric"]["state"]
                cause = f"the NVLink fabric is not ready ({state}): CUDA answers with error 802, system not yet initialized"
                self._problems.append(Diagnosis("system_not_initialized", cause, [], "start nvidia-fabricmanager, of exactly the driver's version"))
        ready = bool(gpus) and all(gpu["fabric"]["state"] == "Completed" for gpu in gpus)
        return {"needed": needed, "active": active, "ready": ready, "switches": switches}
