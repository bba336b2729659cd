# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._visible_gpus import see

A, B, C = "GPU-00000000-1111-2222-3333-444444444444", "GPU-00000000-9999-2222-3333-444444444444", "GPU-cccccccc-1111-2222-3333-444444444444"
PART, OTHER = "MIG-aaaaaaaa-0000-5000-8000-000000000001", "MIG-bbbbbbbb-0000-5000-8000-000000000002"


def gpu(uuid, *profiles, mig=None):
    parts = [{"profile": profile, "uuid": part} for profile, part in zip(profiles, (PART, OTHER))]
    return {
        "name": "NVIDIA H200",
        "uuid": uuid,
        "compute_capability": "9.0",
        "memory_total_mib": 143771,
        "mig": bool(parts) if mig is None else mig,
        "mig_devices": parts,
    }


PLAIN = [gpu(A), gpu(B), gpu(C)]
SPLIT = [gpu(A, "1g.18gb", "2g.35gb"), gpu(B)]

# Case F12: how a list of devices is written, on three GPUs.
CASES = (
    (None, [0, 1, 2], (), ""),
    ("0,1", [0, 1], (), ""),
    (" 0, 1 ", [0, 1], (), ""),
    ("2,0", [2, 0], (), ""),
    ("+1", [1], (), ""),
    ("1gpu2,2ampere", [1, 2], (), ""),
    (A, [0], (), ""),
    (f"{C}, {A}", [2, 0], (), ""),
    ("GPU-c", [2], (), ""),
    ("GPU-00000000-9", [1], (), ""),
    ("GPU-00000000", [], ("GPU-00000000",), ""),
    ("GPU-dddd", [], ("GPU-dddd",), ""),
    ("", [], (), ""),
    ("-1", [], ("-1",), ""),
    ("0,-1,1", [0], ("-1", "1"), ""),
    ("0,3,1", [0], ("3", "1"), ""),
    ("2,", [2], (), ""),
    ("0,,1", [0], ("1",), ""),
    ("none", [], ("none",), ""),
    (f"0,{C}", [0], (C,), ""),
    (f"{C},0", [2], ("0",), ""),
    (f"{C},MIG-aaaa", [2], ("MIG-aaaa",), ""),
    ("0,0", [], (), "0"),
    ("1,0,1,2", [], (), "1"),
    (f"{C},GPU-c", [], (), "GPU-c"),
    ("MIG-GPU-nobody/1/0", [], ("MIG-GPU-nobody/1/0",), ""),
)


@pytest.mark.parametrize("named, gpus, ignored, repeated", CASES)
def test_see(named, gpus, ignored, repeated):
    found = see(PLAIN, named)
    assert [device.gpu for device in found.devices] == gpus
    assert (found.ignored, found.repeated, found.hidden) == (ignored, repeated, 0)
    assert all((device.mig, device.memory_total_mib, device.compute_capability) == (False, 143771, "9.0") for device in found.devices)


@pytest.mark.parametrize(
    "named, uuid, memory, hidden",
    [
        (PART, PART, 18 * 1024, 0),
        (OTHER, OTHER, 35 * 1024, 0),
        ("MIG-b", OTHER, 35 * 1024, 0),
        (f"{OTHER},{PART}", OTHER, 35 * 1024, 1),
        ("0", PART, 18 * 1024, 0),
        (A, PART, 18 * 1024, 0),
        (None, PART, 18 * 1024, 1),
        ("1,0", PART, 18 * 1024, 1),
        (f"MIG-{A}/3/0", f"MIG-{A}/3/0", None, 0),
    ],
)
def test_a_mig_device_is_the_only_one_that_a_process_sees(named, uuid, memory, hidden):
    found = see(SPLIT, named)
    (device,) = found.devices
    assert (device.uuid, device.memory_total_mib, device.mig, device.gpu, device.compute_capability) == (uuid, memory, True, 0, "9.0")
    assert (found.hidden, found.repeated, found.ignored) == (hidden, "", ())
    assert device.name.startswith("NVIDIA H200 MIG")


@pytest.mark.parametrize("named", ["MIG-", "MIG-cccc", f"MIG-{A}/3", f"MIG-{A}", f"MIG-{B}/1/0"])
def test_a_name_of_no_mig_device(named):
    found = see(SPLIT, named)
    assert (found.devices, found.ignored) == ((), (named,))


def test_names_of_old_drivers_where_there_is_one_part():
    (device,) = see([gpu(A, "1g.10gb.me")], f"MIG-{A}/1/0").devices
    assert (device.uuid, device.memory_total_mib) == (PART, 10 * 1024)


def test_beside_a_gpu_that_is_split_a_whole_one_can_be_named():
    found = see(SPLIT, "1")
    assert [(device.uuid, device.mig) for device in found.devices] == [(B, False)]


def test_a_gpu_that_is_split_into_nothing():
    assert see([gpu(A, mig=True)], None).devices == ()
    assert see([gpu(A, mig=True)], "0").devices == ()
    assert [device.gpu for device in see([gpu(A, mig=True), gpu(B)], None).devices] == [1]


def test_facts_may_be_thin():
    (device,) = see([{}], None).devices
    assert (device.name, device.uuid, device.memory_total_mib, device.compute_capability, device.mig, device.gpu) == ("", "", None, "", False, 0)
    assert see([], None).devices == ()
    assert see([{"mig": True, "mig_devices": [{}]}], None).devices[0].memory_total_mib is None
