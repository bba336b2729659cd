# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._nvidia_smi import (
    Matrix,
    Report,
    SmiError,
    explain_failure,
    parse_banner,
    parse_list,
    parse_matrix,
    parse_query,
    parse_report,
    pci_address,
)
from ansible_collections.llmops.inference.tests.unit.gpu import NO_DRIVER, SECOND, case, matrix, outputs, process, recorded, report

OLD = """\
<?xml version="1.0" ?>
<nvidia_smi_log>
<driver_version>470.256.02</driver_version><cuda_version>11.4</cuda_version>
<gpu id="00000000:0B:00.0">
<product_name>Tesla V100-PCIE-32GB</product_name>
<power_readings>
<power_limit>250.00 W</power_limit><enforced_power_limit>200.00 W</enforced_power_limit><max_power_limit>250.00 W</max_power_limit>
</power_readings>
</gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    "text, address",
    [
        ("00000000:41:00.0", "0000:41:00.0"),
        ("0000:41:00.0", "0000:41:00.0"),
        ("00000000:C1:00.0", "0000:c1:00.0"),
        (" 00000001:00:00.0\n", "0001:00:00.0"),
        pytest.param("00010000:81:00.0", "10000:81:00.0", id="behind-VMD-five-digits"),
        ("0:41:00.0", "0000:41:00.0"),
    ],
)
def test_pci_address(text, address):
    assert pci_address(text) == address


def test_a_real_report():
    found = parse_report(recorded("gpu-x2", "qx.xml"))
    assert (found.driver, found.cuda, len(found.gpus)) == ("580.159.04", "13.0", 2)
    assert found.gpus[1] == {
        "name": "NVIDIA H200",
        "uuid": "GPU-d94047d2-0000-4000-8000-e7c18a9411c5",
        "pci": "0000:00:07.0",
        "minor": 1,
        "memory_total_mib": 143771,
        "memory_used_mib": 0,
        "memory_free_mib": 143156,
        "pcie": {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16},
        "power_limit_w": 700.0,
        "power_limit_max_w": 700.0,
        "ecc": True,
        "persistence": True,
        "mig": False,
        "virtualization": "Pass-Through",
        "fabric": {"state": "Completed", "status": "Success"},
        "processes": [],
    }


def test_a_real_report_of_one_gpu():
    (gpu,) = parse_report(recorded("gpu-x1", "qx.xml")).gpus
    assert (gpu["minor"], gpu["fabric"]) == (0, {"state": "", "status": ""})


def test_a_real_report_while_a_server_runs():
    gpus = parse_report(recorded("gpu-x2-serving", "qx.xml")).gpus
    assert [gpu["processes"] for gpu in gpus] == [
        [{"pid": 1720, "name": "sglang::scheduler_TP0", "memory_mib": 133864}],
        [{"pid": 1721, "name": "sglang::scheduler_TP1", "memory_mib": 133864}],
    ]
    assert [gpu["memory_used_mib"] + gpu["memory_free_mib"] for gpu in gpus] == [143157, 143157]


@pytest.mark.parametrize(
    "change, name, value",
    [
        ({"limit": "N/A", "limit_max": "[N/A]"}, "power_limit_w", None),
        ({"limit": "[Unknown Error]"}, "power_limit_w", None),
        ({"limit": "285.50 W"}, "power_limit_w", 285.5),
        ({"total": "N/A"}, "memory_total_mib", None),
        ({"used": "Insufficient Permissions"}, "memory_used_mib", None),
        ({"total": " 49140 MiB "}, "memory_total_mib", 49140),
        ({"total": "49140.75 MiB"}, "memory_total_mib", 49140),
        ({"total": "NaN MiB"}, "memory_total_mib", None),
        ({"width": "N/A"}, "pcie", {"generation": 1, "generation_max": 4, "width": None, "width_max": 16}),
        ({"minor": "N/A"}, "minor", None),
        ({"ecc": "N/A"}, "ecc", None),
        ({"persistence": "[N/A]"}, "persistence", None),
        ({"mig": "N/A"}, "mig", False),
        ({"mig": "Enabled"}, "mig", True),
        ({"virtualization": "None"}, "virtualization", ""),
        ({"virtualization": "VGPU"}, "virtualization", "VGPU"),
        ({"name": "NVIDIA &lt;A&gt;, 80 GB &amp; more"}, "name", "NVIDIA <A>, 80 GB & more"),
        ({"processes": process("N/A", "x", "N/A")}, "processes", [{"pid": None, "name": "x", "memory_mib": None}]),
        ({"processes": "<process_info></process_info>"}, "processes", [{"pid": None, "name": "", "memory_mib": None}]),
        ({"state": "In Progress", "status": "N/A"}, "fabric", {"state": "In Progress", "status": ""}),
    ],
)
def test_odd_values(change, name, value):
    assert parse_report(report(change)).gpus[0][name] == value


def test_a_report_without_anything():
    assert parse_report("<nvidia_smi_log></nvidia_smi_log>") == Report("", "", [])
    (gpu,) = parse_report("<nvidia_smi_log><gpu/></nvidia_smi_log>").gpus
    assert (gpu["name"], gpu["pcie"]["width"], gpu["processes"], gpu["mig"]) == ("", None, [], False)


def test_a_report_of_an_old_driver():
    found = parse_report(OLD)
    (gpu,) = found.gpus
    assert (found.driver, found.cuda, gpu["name"], gpu["pci"]) == ("470.256.02", "11.4", "Tesla V100-PCIE-32GB", "0000:0b:00.0")
    assert (gpu["power_limit_w"], gpu["power_limit_max_w"], gpu["memory_total_mib"]) == (200.0, 250.0, None)


@pytest.mark.parametrize(
    "versions, driver, cuda",
    [
        pytest.param("<kmd_version>610.43.02</kmd_version><cuda_umd_version>13.3</cuda_umd_version>", "610.43.02", "13.3", id="T03-610"),
        ("<driver_version>580.95.05</driver_version><cuda_version>N/A</cuda_version>", "580.95.05", ""),
        ("<driver_version/>", "", ""),
    ],
)
def test_versions_of_a_report(versions, driver, cuda):
    found = parse_report(f"<nvidia_smi_log>{versions}</nvidia_smi_log>")
    assert (found.driver, found.cuda) == (driver, cuda)


def test_lines_around_a_report_and_other_line_ends():
    text = "Unable to determine the device handle for GPU1\n" + report({}, SECOND).replace("\n", "\r\n") + "\r\nWARNING: infoROM is corrupted\r\n"
    assert [gpu["pci"] for gpu in parse_report(text).gpus] == ["0000:01:00.0", "0000:41:00.0"]


@pytest.mark.parametrize(
    "text, code",
    [
        ("", "nvidia_smi_failed"),
        (NO_DRIVER, "driver_not_loaded"),
        pytest.param(report({})[:-40], "nvidia_smi_unreadable", id="cut-off"),
        pytest.param(report({"name": "a & b"}), "nvidia_smi_unreadable", id="bare-ampersand"),
        pytest.param("<nvidia_smi_log><gpu></nvidia_smi_log>", "nvidia_smi_unreadable", id="tag-left-open"),
        pytest.param("</nvidia_smi_log><nvidia_smi_log>", "nvidia_smi_unreadable", id="the-wrong-way-round"),
    ],
)
def test_no_report(text, code):
    with pytest.raises(SmiError) as refused:
        parse_report(text)
    assert refused.value.code == code and refused.value.hint and len(refused.value.evidence) <= 400


@pytest.mark.parametrize(
    "text, fields, rows",
    [
        ("0, NVIDIA H200, 9.0\n", ("index", "name", "compute_cap"), [{"index": "0", "name": "NVIDIA H200", "compute_cap": "9.0"}]),
        ("GPU-1, 9.0\r\nGPU-2, 8.6\r\n", ("uuid", "compute_cap"), [{"uuid": "GPU-1", "compute_cap": "9.0"}, {"uuid": "GPU-2", "compute_cap": "8.6"}]),
        ("GPU-1, [N/A]\n", ("uuid", "compute_cap"), [{"uuid": "GPU-1", "compute_cap": ""}]),
        ("GPU-1, [Unknown Error]\n", ("uuid", "compute_cap"), [{"uuid": "GPU-1", "compute_cap": ""}]),
        pytest.param("GPU-1, [GPU is lost]\n", ("uuid", "compute_cap"), [{"uuid": "GPU-1", "compute_cap": ""}], id="any-value-in-brackets"),
        ("GPU-1, \n", ("uuid", "compute_cap"), [{"uuid": "GPU-1", "compute_cap": ""}]),
        pytest.param("0, NVIDIA A, B, 9.0\n1, NVIDIA H200, 9.0\n", ("index", "name", "compute_cap"), ["1"], id="a-comma-in-a-name-is-not-guessed-at"),
        pytest.param('Field "compute_cap" is not a valid field to query.\n', ("uuid", "compute_cap"), [], id="old-driver"),
        ("", ("uuid",), []),
    ],
)
def test_parse_query(text, fields, rows):
    found = parse_query(text, fields)
    assert found == rows or [row["index"] for row in found] == rows


def test_gpus_and_mig_devices():
    """Case T05."""
    assert parse_list(case("t05_smi_L_mig.txt")) == [
        {
            "index": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "uuid": "GPU-00000000-1111-2222-3333-444444444444",
            "mig_devices": [
                {"profile": "2g.20gb", "uuid": "MIG-aaaaaaaa-0000-5000-8000-000000000001"},
                {"profile": "1g.10gb", "uuid": "MIG-aaaaaaaa-0000-5000-8000-000000000002"},
            ],
        },
        {"index": 1, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-00000000-1111-2222-3333-555555555555", "mig_devices": []},
    ]


@pytest.mark.parametrize(
    "text, found",
    [
        (recorded("gpu-x2", "smi-L.txt"), [(0, "NVIDIA H200", []), (1, "NVIDIA H200", [])]),
        ("GPU 10: A (B), C (UUID: GPU-1)\r\n  MIG 1g.5gb+me Device  0: (UUID: MIG-GPU-1/3/0)\r\n", [(10, "A (B), C", [("1g.5gb+me", "MIG-GPU-1/3/0")])]),
        ("  MIG 1g.5gb Device  0: (UUID: MIG-1)\n", []),
        ("No devices found.\n", []),
        ("", []),
    ],
)
def test_parse_list(text, found):
    assert [(gpu["index"], gpu["name"], [(device["profile"], device["uuid"]) for device in gpu["mig_devices"]]) for gpu in parse_list(text)] == found


@pytest.mark.parametrize(
    "text, driver, cuda",
    [
        pytest.param(case("t03a_banner_580.txt"), "580.95.05", "13.0", id="T03-580"),
        pytest.param(case("t03b_banner_610.txt"), "610.43.02", "13.3", id="T03-610"),
        (recorded("gpu-x1", "smi.txt"), "580.159.04", "13.0"),
        ("| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: N/A |\r\n", "580.95.05", ""),
        ("| NVIDIA-SMI 580.95.05   Driver Version: ERR!   CUDA Version: ERR! |\n", "", ""),
        ("", "", ""),
    ],
)
def test_parse_banner(text, driver, cuda):
    assert parse_banner(text) == (driver, cuda)


@pytest.mark.parametrize(
    "text, found",
    [
        pytest.param(
            case("t01_topo_ansi_nic.txt"), Matrix(2, {(0, 1): "NV12"}, ["mlx5_0", "mlx5_1"], {0: "0-63", 1: "64-127"}, {0: 0, 1: 1}), id="T01-colours-adapters"
        ),
        pytest.param(case("t01_topo_plain.txt"), Matrix(2, {(0, 1): "NV12"}, ["NIC0", "NIC1"], {0: "0-63", 1: "64-127"}, {0: 0, 1: 1}), id="T01-plain"),
        pytest.param(case("t01_topo_one_gpu.txt"), Matrix(1, {}, [], {0: "0-15"}, {0: 0}), id="T01-one-gpu"),
        (recorded("gpu-x2", "topo-m.txt"), Matrix(2, {(0, 1): "NV18"}, [], {0: "0-31", 1: "0-31"}, {0: 0, 1: 0})),
        (recorded("gpu-x2", "topo-mp.txt"), Matrix(2, {(0, 1): "PHB"}, [], {0: "0-31", 1: "0-31"}, {0: 0, 1: 0})),
        (recorded("gpu-x2", "topo-p2p-r.txt"), Matrix(2, {(0, 1): "OK"})),
        (recorded("gpu-x1", "topo-p2p-w.txt"), Matrix(1, {})),
        (case("t01_topo_ansi_nic.txt").replace("\n", "\r\n"), Matrix(2, {(0, 1): "NV12"}, ["mlx5_0", "mlx5_1"], {0: "0-63", 1: "64-127"}, {0: 0, 1: 1})),
        pytest.param(
            "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\tPXB\t0-15\t0\nGPU1\tSYS\t X \tSYS\t16-31\t1\nmlx5_0\tPXB\tSYS\t X \t\t\n",
            Matrix(2, {(0, 1): "SYS"}, ["mlx5_0"], {0: "0-15", 1: "16-31"}, {0: 0, 1: 1}),
            id="old-driver-names-adapters-in-the-header",
        ),
        pytest.param(
            "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPIX\t\t\t\tN/A\nGPU1\tPIX\t X \t0-7\tN/A\t\tN/A\n",
            Matrix(2, {(0, 1): "PIX"}, [], {1: "0-7"}, {}),
            id="no-affinity",
        ),
        ("\tGPU0\tGPU1\nGPU0\t X \n", Matrix(2, {})),
        ("Failed to initialize NVML: Driver/library version mismatch\n", Matrix(0, {})),
        ("", Matrix(0, {})),
    ],
)
def test_parse_matrix(text, found):
    assert parse_matrix(text) == found


def test_a_matrix_of_eight_gpus():
    """Two islands of four: NVLink inside (of different width), the interconnect between NUMA nodes across; GPU10 and more are no GPU1."""
    kinds = [
        [" X " if row == column else ("SYS" if row // 4 != column // 4 else f"NV{4 if row + column == 3 else 8}") for column in range(8)] for row in range(8)
    ]
    found = parse_matrix(matrix(kinds))
    assert (found.gpus, len(found.links)) == (8, 28)
    assert (found.links[0, 1], found.links[0, 3], found.links[1, 2], found.links[3, 4], found.links[6, 7]) == ("NV8", "NV4", "NV4", "SYS", "NV8")
    assert all(low < high for low, high in found.links)
    many = parse_matrix(matrix([[" X " if row == column else f"NV{row + column}" for column in range(16)] for row in range(16)]))
    assert (many.gpus, len(many.links), many.links[1, 10], many.links[14, 15]) == (16, 120, "NV11", "NV29")


MISMATCH = outputs(case("l12_nvml_mismatch.txt"))["nvidia-smi"][1]


@pytest.mark.parametrize(
    "output, module, code, cause",
    [
        pytest.param(MISMATCH, "580.173.02", "driver_library_mismatch", ": library 580.178, module 580.173.02", id="L12"),
        pytest.param(MISMATCH, "", "driver_library_mismatch", "are of different versions", id="L12-in-a-container"),
        (NO_DRIVER, "", "driver_not_loaded", "the NVIDIA kernel module is not loaded"),
        ("Failed to initialize NVML: Driver Not Loaded\r\n", "", "driver_not_loaded", "not loaded"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure\nthat", "", "library_missing", "libnvidia-ml is not"),
        ("Failed to initialize NVML: NVML Shared Library Not Found\n", "", "library_missing", "libnvidia-ml is not"),
        ("No devices were found\n", "", "gpu_absent", "drives no GPU"),
        ("Failed to initialize NVML: Unknown Error\n", "", "nvml_denied", "access"),
        ("Failed to initialize NVML: Insufficient Permissions\n", "", "nvml_denied", "access"),
        ("Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU\n", "", "gpu_off_bus", "off the bus"),
        ("Unable to determine the device handle for GPU0: 0000:0A:00.0: Unknown Error\n", "", "gpu_off_bus", "off the bus"),
        ("Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error\n", "", "gpu_off_bus", "off the bus"),
        ("Unable to determine the device handle for gpu 0000:01:00.0: Unknown Error\n", "", "gpu_off_bus", "off the bus"),
        ("Something {new}\n  happened\n", "", "nvidia_smi_failed", "nvidia-smi failed: Something {new} happened"),
        ("", "", "nvidia_smi_failed", "nvidia-smi failed"),
    ],
)
def test_explain_failure(output, module, code, cause):
    found = explain_failure(output, module)
    assert (found.code, found.evidence) == (code, output.strip()[:400])
    assert cause in str(found) and "{versions}" not in str(found) and found.hint
