# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._compat import MINIMUM_DRIVER, Build, Machine, judge, numbers, supported_cuda
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding, errors

H200 = ("NVIDIA H200", "9.0")
A100 = ("NVIDIA A100-SXM4-80GB", "8.0")
A6000 = ("NVIDIA RTX A6000", "8.6")
RTX3090 = ("NVIDIA GeForce RTX 3090", "8.6")
V100 = ("Tesla V100-PCIE-32GB", "7.0")
T4 = ("Tesla T4", "7.5")
CU13, CU12 = Build("13.0"), Build("12.9")


@pytest.mark.parametrize(
    "version, found",
    [("580.65.06", (580, 65, 6)), ("580.178", (580, 178)), ("13.0", (13, 0)), ("570.211.01-1ubuntu1", (570, 211, 1, 1, 1)), ("", ()), ("N/A", ())],
)
def test_numbers(version, found):
    assert numbers(version) == found


@pytest.mark.parametrize(
    "driver, cuda",
    [
        ("620.10", "13.4"),
        ("615.31", "13.4"),
        ("610.43.02", "13.3"),
        ("580.95.05", "13.0"),
        ("575.57.08", "12.9"),
        ("550.54.14", "12.4"),
        ("546.01", "12.3"),
        ("525.60.13", "12.0"),
        ("470.256.02", ""),
        ("", ""),
    ],
)
def test_supported_cuda(driver, cuda):
    assert supported_cuda(driver) == cuda


@pytest.mark.parametrize(
    "machine, build, code, severity, words",
    [
        (Machine("580.159.04", "13.0", [H200]), CU13, None, None, ""),
        (Machine("580.65.06", "", [H200]), CU13, None, None, ""),
        (Machine("610.43.02", "13.3", [H200]), CU13, None, None, ""),
        (Machine("580.159.04", "13.0", [H200]), CU12, None, None, ""),
        (Machine("", "", []), CU13, None, None, ""),
        (Machine("", "", [H200]), CU13, None, None, ""),
        (Machine("535.54.03", "12.2", [H200]), Build(""), None, None, ""),
        (Machine("580.159.04", "13.0", [H200]), Build("13.2"), "minor_version_compatibility", "warning", "supports CUDA 13.0, the engine is built for 13.2"),
        pytest.param(
            Machine("580.159.04", "", [H200]), Build("13.2"), "minor_version_compatibility", "warning", "supports CUDA 13.0", id="driver-does-not-say"
        ),
        (Machine("525.60.13", "12.0", [A6000]), CU12, "minor_version_compatibility", "warning", "prefer a driver of the engine's CUDA version"),
        pytest.param(
            Machine("535.54.03", "12.2", [H200]),
            CU13,
            "driver_too_old",
            "error",
            "needs NVIDIA driver 580.65.06 or newer, the host runs 535.54.03 (CUDA 12.2 at most)",
            id="L11",
        ),
        pytest.param(Machine("580.65.05", "", [H200]), CU13, "driver_too_old", "error", "580.65.06 or newer", id="one-patch-short"),
        pytest.param(Machine("470.256.02", "11.4", [A100]), CU12, "driver_too_old", "error", "an engine built for CUDA 11", id="two-majors"),
        pytest.param(
            Machine("470.256.02", "", [A100]), CU12, "driver_too_old", "error", "or an engine built for an older CUDA", id="nobody-knows-what-it-supports"
        ),
        (Machine("580.159.04", "13.0", [H200]), Build("14.0"), "cuda_unknown", "warning", "was not judged"),
        (Machine("570.124.06", "12.8", [H200], "13.0"), CU13, "forward_compatibility", "warning", "LD_LIBRARY_PATH"),
        (Machine("570.124.06", "12.8", [RTX3090], "13.0"), CU13, "driver_too_old", "error", "does not help: it is not for NVIDIA GeForce RTX 3090"),
        (Machine("570.124.06", "12.8", [H200, A6000], "13.0"), CU13, "driver_too_old", "error", "does not help: it is not for NVIDIA RTX A6000"),
        (Machine("570.124.06", "12.8", [H200], "12.9"), CU13, "driver_too_old", "error", "does not help: it is of CUDA 12.9"),
        (Machine("560.35.03", "12.6", [H200], "13.0"), CU13, "driver_too_old", "error", "does not help: driver branch 560 is no base for it"),
        (Machine("570.124.06", "12.8", [T4], "13.0"), CU13, "forward_compatibility", "warning", "forward compatibility package 13.0"),
        (Machine("580.159.04", "13.0", [V100]), CU13, "capability_too_old", "error", "compute capability 7.0; CUDA 13.0 has no code for GPUs older than 7.5"),
        (Machine("580.159.04", "13.0", [V100]), CU12, None, None, ""),
        (Machine("580.159.04", "13.0", [T4]), CU13, None, None, ""),
        (Machine("580.159.04", "13.0", [("NVIDIA X", "")]), CU13, None, None, ""),
        (Machine("580.159.04", "13.0", [("NVIDIA X", "[N/A]")]), CU13, None, None, ""),
        (Machine("", "", [V100]), CU13, "capability_too_old", "error", "7.0"),
        (
            Machine("580.159.04", "13.0", [T4]),
            Build("13.0", ("sm_80", "sm_90a")),
            "no_kernel_image",
            "error",
            "no kernel for Tesla T4 (compute capability 7.5)",
        ),
    ],
)
def test_judge(machine, build, code, severity, words):
    found = judge(machine, build)
    assert [(finding.code, finding.severity) for finding in found] == ([(code, severity)] if code else [])
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source.startswith("NVIDIA, CUDA") for finding in found)
    assert errors(found) == [finding for finding in found if severity == "error"]


def test_a_driver_and_a_gpu_are_judged_apart_and_equal_gpus_once():
    found = judge(Machine("535.54.03", "12.2", [V100, H200, V100]), CU13)
    assert [finding.code for finding in found] == ["driver_too_old", "capability_too_old"]
    assert errors([Finding("a", "note", ""), Finding("b", "error", "")]) == [Finding("b", "error", "")]


@pytest.mark.parametrize(
    "architectures, capability, runs",
    [
        ((), "9.0", True),
        (("sm_90",), "9.0", True),
        (("sm_80",), "8.6", True),
        (("sm_86",), "8.0", False),
        (("sm_86",), "8.9", True),
        (("sm_90",), "10.0", False),
        (("sm_90a",), "9.0", True),
        (("sm_100a",), "10.3", False),
        (("sm_100f",), "10.3", True),
        (("sm_103f",), "10.0", False),
        (("sm_100f",), "12.0", False),
        (("sm_120f",), "12.1", True),
        (("compute_80",), "12.0", True),
        (("compute_90",), "8.9", False),
        (("compute_90a",), "10.0", False),
        (("compute_90a",), "9.0", True),
        (("compute_120f",), "12.1", True),
        (("compute_100f",), "12.0", False),
        (("sm_100",), "10.0", True),
        (("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"), "12.1", True),
        (("gfx942", "sm_9", "native", ""), "9.0", False),
    ],
)
def test_what_torch_has_kernels_for(architectures, capability, runs):
    found = judge(Machine("610.43.02", "13.3", [("NVIDIA X", capability)]), Build("12.9", architectures))
    assert [finding.code for finding in found] == ([] if runs else ["no_kernel_image"])


def test_the_tables_agree():
    """The first driver of each major CUDA supports that CUDA."""
    for major, driver in MINIMUM_DRIVER.items():
        assert supported_cuda(driver) in ("", f"{major}.0")
