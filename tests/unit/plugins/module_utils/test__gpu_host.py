# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, running_servers
from ansible_collections.llmops.inference.tests.unit.gpu import (
    A6000,
    CAPABILITIES,
    FABRIC_ACTIVE,
    FABRIC_LOG,
    LIST,
    NO_DRIVER,
    NVRM,
    REPORT,
    SECOND,
    Host,
    case,
    matrix,
    outputs,
    process,
    real,
    recorded,
    report,
    two_a6000,
)

OFF_BUS = "Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
NOTHING = "N/A"


@pytest.fixture(name="host")
def fixture_host(tmp_path):
    return Host(tmp_path)


def codes(facts):
    """Returns the codes of the problems, after what holds of every answer."""
    assert facts["summary"] == facts["verdict"][0]
    assert all(problem["cause"] and problem["hint"] and f"{problem['cause']}: {problem['hint']}" in facts["verdict"] for problem in facts["problems"])
    assert all(remark in facts["verdict"] for remark in facts["remarks"])
    assert facts["state"] == ("broken" if facts["problems"] else "ok" if facts["gpus"] else "none")
    return [problem["code"] for problem in facts["problems"]]


def test_files(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b1").write_bytes(b" caf\xc3 \n")
    (tmp_path / "a" / "b0").write_text("")
    files = Files(str(tmp_path))
    assert (files.read("/a/b1"), files.read("/a"), files.read("/none")) == ("caf\ufffd", "", "")
    assert (files.find("/a/b*"), files.find("/none/*")) == (["/a/b0", "/a/b1"], [])


@pytest.mark.parametrize(
    "answer, units",
    [
        (
            (0, "sglang-main.service   loaded active     running SGLang main\nsglang-b@1.service loaded activating start x\n\n"),
            ["sglang-main.service", "sglang-b@1.service"],
        ),
        ((0, ""), []),
        ((1, "Failed to connect to bus: No such file or directory\n"), []),
        (None, []),
    ],
)
def test_running_servers(answer, units):
    asked = []
    assert running_servers(lambda *words: asked.append(words) or answer) == units
    assert asked == [("systemctl", "list-units", "--plain", "--no-legend", "--state=active,activating,reloading", "sglang-*.service")]


def test_two_h200_at_rest(tmp_path):
    facts = real(tmp_path, "gpu-x2").facts()
    assert codes(facts) == []
    assert facts["verdict"] == ["2x H200, PCIe 5.0 x16, joined by 18 NVLinks, P2P works"]
    assert facts["links"] == [{"gpus": [0, 1], "kind": "NV18", "nvlinks": 18, "pcie": "PHB", "p2p": True, "p2p_state": "OK"}]
    assert facts["machine"] == {"kind": "vm", "virtualization": "kvm"}
    driver = {"version": "580.159.04", "cuda": "13.0", "module": "580.159.04", "module_open": True, "library": "", "compatibility": ""}
    assert facts["driver"] == {**driver, "nouveau": False}
    assert facts["devices"] == {"present": ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"], "missing": []}
    assert facts["pci"] == ["0000:00:06.0", "0000:00:07.0"]
    assert [(gpu["index"], gpu["compute_capability"], gpu["numa_node"], gpu["cpus"], gpu["mig_devices"]) for gpu in facts["gpus"]] == [
        (0, "9.0", None, "0-31", []),
        (1, "9.0", None, "0-31", []),
    ]
    assert (facts["nics"], facts["infiniband"], facts["xids"], facts["acs"]) == ([], [], [], {"known": False, "enabled": []})
    assert facts["iommu"] == {"enabled": False, "translating": False}
    assert facts["fabric_manager"] == {"needed": False, "active": False, "ready": True, "switches": []}


def test_two_h200_that_serve(tmp_path):
    host = real(tmp_path, "gpu-x2").says(REPORT, recorded("gpu-x2-serving", "qx.xml"))
    host.has("/proc/1720/cgroup", "0::/system.slice/sglang-main.service\n")
    host.has("/proc/1721/cgroup", "1:name=systemd:/user.slice/user@1000.service/app.slice/other.service/inner\n")
    facts = host.facts()
    assert codes(facts) == []
    assert [gpu["processes"] for gpu in facts["gpus"]] == [
        [{"pid": 1720, "name": "sglang::scheduler_TP0", "memory_mib": 133864, "unit": "sglang-main.service"}],
        [{"pid": 1721, "name": "sglang::scheduler_TP1", "memory_mib": 133864, "unit": "other.service"}],
    ]


@pytest.mark.parametrize("cgroup", ["0::/system.slice/docker-12ab.scope\n", "0::/\n", ""])
def test_a_process_of_no_unit(tmp_path, cgroup):
    host = two_a6000(tmp_path, processes=process(7, "python3") + process("N/A", "?")).has("/proc/7/cgroup", cgroup)
    assert [entry["unit"] for entry in host.facts()["gpus"][0]["processes"]] == ["", ""]


def test_one_h200(tmp_path):
    host = real(tmp_path, "gpu-x1")
    for words in ("-mp", "-p2p r", "-p2p w"):
        del host.answers[f"nvidia-smi topo {words}"]
    facts = host.facts()
    assert (codes(facts), facts["verdict"], facts["links"]) == ([], ["1x H200, PCIe 5.0 x16"], [])


def test_no_gpu(host):
    facts = host.facts()
    assert (codes(facts), facts["state"], facts["verdict"], facts["gpus"], facts["links"]) == ([], "none", ["no GPU"], [], [])
    driver = {"version": "", "cuda": "", "module": "", "module_open": False, "library": "", "compatibility": ""}
    assert facts["driver"] == {**driver, "nouveau": False}
    assert facts["machine"] == {"kind": "bare", "virtualization": "none"}


@pytest.mark.parametrize(
    "output, status",
    [
        (NO_DRIVER, 9),
        ("No devices were found\n", 6),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", 12),
        ("Failed to initialize NVML: Unknown Error\n", 255),
        ("", 1),
    ],
)
def test_userspace_without_a_gpu(host, output, status):
    facts = host.says(REPORT, output, status).facts()
    assert (codes(facts), facts["state"], facts["verdict"]) == ([], "none", ["no GPU"])


def test_a_system_that_says_little(host):
    host.answers.clear()
    facts = host.facts()
    assert (codes(facts), facts["machine"], facts["xids"]) == ([], {"kind": "bare", "virtualization": "none"}, [])


@pytest.mark.parametrize(
    "module, nvidia_smi, code, words",
    [
        ("", None, "driver_missing", "there is an NVIDIA GPU on the PCIe bus, and nvidia-smi is not there: install the driver (cuda_driver)"),
        ("580.95.05", None, "driver_missing", "a driver is loaded, and nvidia-smi is not there: install the driver's userspace of the module's version"),
        ("", (9, NO_DRIVER), "driver_not_loaded", "the NVIDIA kernel module is not loaded: look whether it was built for the running kernel"),
        ("580.95.05", (6, "No devices were found\n"), "gpu_absent", "the driver is loaded and drives no GPU"),
        pytest.param("580.95.05", (0, report()), "gpu_absent", "the driver is loaded and drives no GPU", id="an-empty-report-of-a-host-with-a-gpu"),
        ("580.95.05", (255, "Failed to initialize NVML: Unknown Error\n"), "nvml_denied", "access to the GPU's device nodes is refused"),
        ("580.95.05", (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"), "library_missing", "install the userspace packages"),
        pytest.param("580.95.05", (0, report({})[:-60]), "nvidia_smi_unreadable", "XML report cannot be read", id="a-report-that-was-cut-off"),
        ("580.95.05", (124, "nvidia-smi gave no answer"), "nvidia_smi_failed", "nvidia-smi failed: nvidia-smi gave no answer"),
    ],
)
def test_a_gpu_that_cannot_be_asked(host, module, nvidia_smi, code, words):
    host.has_device("0000:01:00.0", "0x030000")
    if module:
        host.has_driver(module, 0)
    if nvidia_smi:
        host.says(REPORT, nvidia_smi[1], nvidia_smi[0])
    facts = host.facts()
    assert (codes(facts), facts["state"], facts["gpus"], facts["pci"]) == ([code], "broken", [], ["0000:01:00.0"])
    assert words in facts["summary"] and "no GPU" not in facts["verdict"]


def test_library_and_module_of_different_versions(host):
    """Case L12."""
    found = outputs(case("l12_nvml_mismatch.txt"))
    host.has_device("0000:01:00.0").has("/proc/driver/nvidia/version", found["cat /proc/driver/nvidia/version"][1])
    for version in ("580.95.05", "580.178", "580.173.02"):
        host.has(f"/usr/lib/x86_64-linux-gnu/libcuda.so.{version}")
    facts = host.has("/usr/lib/x86_64-linux-gnu/libcuda.so.1").says(REPORT, found["nvidia-smi"][1], 18).facts()
    assert codes(facts) == ["driver_library_mismatch"]
    assert "of different versions: library 580.178, module 580.173.02: reboot" in facts["summary"]
    assert "no GPU" not in facts["verdict"], "what cannot be asked is not absent"
    driver = {"version": "580.173.02", "cuda": "13.0", "module": "580.173.02", "module_open": False, "library": "580.178", "compatibility": ""}
    assert facts["driver"] == {**driver, "nouveau": False}


def test_a_container_without_unified_memory(host):
    """Case I04."""
    session = outputs(case("i04_lxc_dev_listing.txt"))
    host.says("systemd-detect-virt", session["systemd-detect-virt -c"][1]).says(LIST, session["nvidia-smi -L"][1]).says(REPORT, report({}))
    for line in session["ls -l /dev/nvidia*"][1].splitlines():
        host.has(line.split()[-1])
    facts = host.facts()
    assert (codes(facts), facts["machine"]) == (["nvidia_uvm_missing"], {"kind": "container", "virtualization": "lxc"})
    assert facts["devices"] == {"present": ["/dev/nvidia0", "/dev/nvidiactl"], "missing": ["/dev/nvidia-uvm"]}
    assert facts["summary"].startswith("1x RTX A6000") and "on the container's host: `modprobe nvidia-uvm`" in facts["verdict"][1]


@pytest.mark.parametrize("output", [OFF_BUS + report({}), report({}) + "\r\n" + OFF_BUS.replace("\n", "\r\n")], ids=["before", "after"])
@pytest.mark.parametrize("status", [0, 15])
def test_a_gpu_is_lost_and_the_other_still_listed(tmp_path, output, status):
    host = two_a6000(tmp_path).says(REPORT, output, status).says(NVRM, case("l14a_xid79.log").replace("kernel: ", ""))
    facts = host.facts()
    assert codes(facts) == ["gpu_off_bus", "xid"]
    assert facts["problems"][0]["evidence"] == [OFF_BUS.strip()]
    assert (len(facts["gpus"]), len(facts["pci"]), facts["summary"]) == (1, 2, "1x RTX A6000, PCIe 4.0 x16")


def test_a_complaint_beside_a_good_report(tmp_path):
    host = two_a6000(tmp_path)
    host.says(REPORT, host.answers[REPORT][1] + "WARNING: infoROM is corrupted at gpu 0000:41:00.0\n", 14)
    facts = host.facts()
    assert (facts["state"], facts["remarks"]) == ("ok", ["nvidia-smi warns: WARNING: infoROM is corrupted at gpu 0000:41:00.0"])


def test_a_gpu_split_by_mig(tmp_path):
    """Case T05."""
    first, second = "GPU-00000000-1111-2222-3333-444444444444", "GPU-00000000-1111-2222-3333-555555555555"
    host = two_a6000(tmp_path).says(REPORT, report({"uuid": first, "mig": "Enabled"}, {**SECOND, "uuid": second, "mig": "Disabled"}))
    facts = host.says(LIST, case("t05_smi_L_mig.txt")).facts()
    assert (codes(facts), len(facts["gpus"])) == ([], 2)
    assert [[device["profile"] for device in gpu["mig_devices"]] for gpu in facts["gpus"]] == [["2g.20gb", "1g.10gb"], []]
    assert facts["remarks"] == ["GPU 0 is split by MIG into 2 devices: a server uses one of them by its UUID"]


def test_two_a6000_without_peer_to_peer(tmp_path):
    """Case L19: ACS between the GPUs, and everything else that slows them."""
    host = two_a6000(tmp_path, second={"width": "8x"}, limit="200.00 W", persistence="Disabled")
    for words in ("r", "w"):
        host.says(f"nvidia-smi topo -p2p {words}", matrix([["X", "CNS"], ["CNS", "X"]], affinity="\t"))
    host.says("lspci -vv", case("l19_lspci_acsctl.txt"))
    host.has("/sys/bus/pci/devices/0000:01:00.0/iommu_group/type", "DMA-FQ\n").has("/sys/kernel/iommu_groups/0/type", "DMA-FQ\n")
    facts = host.facts()
    assert codes(facts) == []
    assert facts["summary"] == "2x RTX A6000, PCIe 4.0 x16, through the host bridge, no NVLink, P2P is off because the chipset does not support it"
    assert facts["acs"] == {"known": True, "enabled": ["00:03.1", "20:01.1"]}
    assert facts["iommu"] == {"enabled": True, "translating": True}
    assert [remark.partition(":")[0] for remark in facts["remarks"]] == [
        "GPU 0 is limited to 200 W of 300 W",
        "GPU 1 runs at x8 of x16",
        "persistence is off",
        "ACS redirects peer-to-peer traffic at 00",
        "the IOMMU translates",
    ]


@pytest.mark.parametrize(
    "answer, known, enabled",
    [
        ((0, case("l19_lspci_acsctl.txt")), True, ["00:03.1", "20:01.1"]),
        ((0, "00:03.1 PCI bridge: x\n\tCapabilities: [40]\n"), True, []),
        pytest.param((0, "00:03.1 PCI bridge: x\n\tCapabilities: <access denied>\n"), False, [], id="not-root"),
        pytest.param((1, "lspci: Cannot open /proc/bus/pci\n"), False, [], id="no-bus"),
        (None, False, []),
    ],
)
def test_what_is_known_of_acs(tmp_path, answer, known, enabled):
    host = two_a6000(tmp_path)
    if answer:
        host.answers["lspci -vv"] = answer
    assert host.facts()["acs"] == {"known": known, "enabled": enabled}


@pytest.mark.parametrize(
    "first, second, domain, enabled",
    [
        pytest.param(["0000:00:03.1"], ["0000:20:01.1"], "", ["00:03.1", "20:01.1"], id="above-both"),
        pytest.param(["0000:00:03.1"], ["0000:20:03.1"], "", ["00:03.1"], id="off-above-one"),
        pytest.param(["0000:40:01.1"], ["0000:40:01.1", "0000:41:00.0", "0000:42:08.0"], "", [], id="above-other-devices"),
        pytest.param(["0000:40:01.1", "0000:20:01.1"], ["0000:40:01.1"], "0000:", ["0000:20:01.1"], id="a-switch-with-its-domain"),
        pytest.param(["0000:00:03.1"], ["0000:20:01.1"], "0001:", [], id="another-domain"),
    ],
)
def test_acs_above_the_gpus_only(tmp_path, first, second, domain, enabled):
    host = two_a6000(tmp_path).has_behind("0000:01:00.0", *first).has_behind("0000:41:00.0", *second)
    host.says("lspci -vv", "".join((domain if line[0] != "\t" else "") + line for line in case("l19_lspci_acsctl.txt").splitlines(keepends=True)))
    facts = host.facts()
    assert (facts["acs"], facts["pci"]) == ({"known": True, "enabled": enabled}, ["0000:01:00.0", "0000:41:00.0"])


@pytest.mark.parametrize(
    "kind, enabled, translating", [("identity", True, False), ("DMA", True, True), ("DMA-FQ", True, True), ("blocked", True, False), (None, False, False)]
)
def test_iommu(tmp_path, kind, enabled, translating):
    host = two_a6000(tmp_path)
    if kind:
        host.has("/sys/bus/pci/devices/0000:41:00.0/iommu_group/type", kind + "\n").has("/sys/kernel/iommu_groups/7/type", kind + "\n")
    assert host.facts()["iommu"] == {"enabled": enabled, "translating": translating}


@pytest.mark.parametrize(
    "state, active, log, found, remarked",
    [
        pytest.param("N/A", (3, "failed\n"), case("l11d_fabricmanager_mismatch.log"), ["fabricmanager_version_mismatch"], True, id="L11d"),
        pytest.param("Completed", (0, "active\n"), case("l11d_fabricmanager_mismatch.log"), [], False, id="L11d-that-is-over"),
        pytest.param("In Progress", (3, "inactive\n"), "", ["system_not_initialized"], True, id="L11-802"),
        ("Not Started", (0, "active\n"), "", ["system_not_initialized"], False),
        ("In Progress", (3, "failed\n"), case("l11d_fabricmanager_mismatch.log"), ["fabricmanager_version_mismatch"], True),
        ("Completed", (0, "active\n"), "", [], False),
        ("N/A", None, None, [], True),
        pytest.param("Completed", None, None, [], False, id="a-container-whose-host-runs-it"),
    ],
)
@pytest.mark.parametrize("place", ["pci", "proc"])
def test_nvswitch(tmp_path, state, active, log, found, remarked, place):
    host = two_a6000(tmp_path, second={"state": state, "status": NOTHING}, state=state)
    host.says(REPORT, report({"state": state}, {**SECOND, "state": state}, driver="550.107.02"))
    if place == "pci":
        host.has_device("0000:c1:00.0", "0x068000")
    else:
        host.has("/proc/driver/nvidia-nvswitch/devices/0000:c1:00.0/information")
    if active:
        host.says(FABRIC_ACTIVE, active[1], active[0]).says(FABRIC_LOG, log)
    facts = host.facts()
    assert codes(facts) == found
    assert facts["fabric_manager"] == {
        "needed": True,
        "active": bool(active and active[0] == 0),
        "ready": state == "Completed",
        "switches": ["0000:c1:00.0"],
    }
    assert facts["pci"] == ["0000:01:00.0", "0000:41:00.0"], "a switch is no GPU"
    assert any("the fabric manager does not run" in remark for remark in facts["remarks"]) is remarked
    assert not found or found[0] != "fabricmanager_version_mismatch" or "install the fabric manager of exactly 550.107.02" in facts["verdict"][1]


def test_a_fabric_that_waits_without_a_switch_in_sight(tmp_path):
    facts = two_a6000(tmp_path, state="In Progress").facts()
    assert (codes(facts), facts["fabric_manager"]) == (["system_not_initialized"], {"needed": True, "active": False, "ready": False, "switches": []})


@pytest.mark.parametrize(
    "log, found, remark",
    [
        pytest.param(case("l14a_xid79.log"), ["xid"], None, id="L14-79"),
        pytest.param(case("l14c_xid119_then_45.log"), ["xid"], None, id="L14-119"),
        pytest.param(case("l14d_off_bus_no_xid.log"), ["gpu_off_bus"], None, id="L14-no-number"),
        pytest.param(case("l14b_xid31_exit0.log"), [], "GPU 0000:01:00: Xid 31: a memory page fault of a process, or a faulty GPU, since boot", id="L14-31"),
        pytest.param(case("l14b_xid31_exit0.log") + case("l14a_xid79.log").replace("41:00", "01:00"), ["xid"], None, id="L14-31-then-79"),
        ("", [], None),
    ],
)
def test_errors_in_the_kernel_log(tmp_path, log, found, remark):
    facts = two_a6000(tmp_path).says(NVRM, log).facts()
    assert codes(facts) == found
    assert facts["remarks"] == ([remark] if remark else []) and len(facts["xids"]) == bool(log)


def test_an_old_driver(tmp_path):
    host = two_a6000(tmp_path)
    host.says(REPORT, report({"mig": NOTHING}, SECOND, driver="470.256.02", cuda=NOTHING)).says("nvidia-smi", case("t03a_banner_580.txt"))
    host.says(CAPABILITIES, 'Field "compute_cap" is not a valid field to query.\n', 2)
    facts = host.facts()
    assert (codes(facts), facts["driver"]["version"], facts["driver"]["cuda"]) == ([], "470.256.02", "13.0"), "the banner knows"
    assert [gpu["compute_capability"] for gpu in facts["gpus"]] == ["", ""]


def test_what_a_driver_supports_is_known_by_its_branch(tmp_path):
    host = two_a6000(tmp_path).says(REPORT, report({}, SECOND, driver="575.57.08", cuda=NOTHING)).says("nvidia-smi", "", 255)
    assert host.facts()["driver"]["cuda"] == "12.9"


def test_a_topology_that_nvidia_smi_does_not_tell(tmp_path):
    host = two_a6000(tmp_path)
    for words in ("-m", "-mp", "-p2p r", "-p2p w"):
        host.says(f"nvidia-smi topo {words}", "Topology is not supported on this machine\n", 1)
    facts = host.facts()
    assert (codes(facts), facts["links"], facts["summary"]) == ([], [], "2x RTX A6000, PCIe 4.0 x16")


def test_adapters(tmp_path):
    """Case T01."""
    host = two_a6000(tmp_path).says("nvidia-smi topo -m", case("t01_topo_ansi_nic.txt")).has("/sys/class/infiniband/mlx5_0/ports/1/state")
    facts = host.facts()
    assert (facts["nics"], facts["infiniband"], facts["links"][0]["kind"]) == (["mlx5_0", "mlx5_1"], ["mlx5_0"], "NV12")


@pytest.mark.parametrize(
    "installed, version",
    [
        ([], ""),
        (["cuda-13.0"], "13.0"),
        (["cuda-12.9", "cuda-13", "cuda-13.0"], "13.0"),
        pytest.param(["cuda-9.2", "cuda-13.10", "cuda-13.2"], "13.10", id="by-number-not-by-letter"),
        (["cuda-toolkit"], ""),
    ],
)
def test_the_forward_compatibility_package(host, installed, version):
    for name in installed:
        host.has(f"/usr/local/{name}/compat/libcuda.so.1")
    assert host.facts()["driver"]["compatibility"] == version


@pytest.mark.parametrize("place", ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current"])
def test_the_newest_library_is_the_one_that_is_used(host, place):
    for version in ("580.95.05", "580.126.09", "1"):
        host.has(f"{place}/libcuda.so.{version}")
    assert host.facts()["driver"]["library"] == "580.126.09"


def test_addresses_of_many_digits(host):
    host.says(REPORT, report({"id": "00010000:81:00.0"})).has_driver("580.95.05", 0)
    host.has_device("10000:81:00.0", numa_node="1", local_cpulist="16-31").has_device("0000:02:00.0", "0x020000").has_device("0000:03:00.0", vendor="0x8086")
    facts = host.facts()
    assert (codes(facts), facts["pci"]) == ([], ["10000:81:00.0"])
    assert [(gpu["pci"], gpu["numa_node"], gpu["cpus"]) for gpu in facts["gpus"]] == [("10000:81:00.0", 1, "16-31")]


def test_a_gpu_that_tells_nothing(tmp_path):
    host = two_a6000(tmp_path, **{name: NOTHING for name in A6000 if name not in ("id", "name", "uuid", "processes")})
    facts = host.facts()
    assert (codes(facts), facts["remarks"]) == ([], [])
    assert facts["gpus"][0]["minor"] is None and facts["gpus"][0]["memory_total_mib"] is None
