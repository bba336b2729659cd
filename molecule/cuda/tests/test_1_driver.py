# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver from NVIDIA's repository: its exact version, held, and changed only when nothing is hurt by it. In the order of a host's life."""

from __future__ import annotations

import pytest
from conftest import NEW, OLD, Answer, driver_packages, module_loaded, write

MACHINE = "llmops-cuda"


def test_the_driver_is_of_one_version_and_the_older_one_of_two(machine):
    packages = driver_packages(machine)
    assert {"nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", "nvidia-persistenced"} <= set(packages)
    assert set(packages.values()) == {f"{OLD}-1"}
    assert machine.package("libnccl2").version == "2.27.7-1+cuda13.0"


def test_an_older_entry_of_the_repository_was_adopted(machine):
    """Case I02: two entries of one repository with unlike keys break every later apt call."""
    entries = machine.check_output("grep -rl /srv/apt/nvidia /etc/apt").splitlines()
    assert entries == ["/etc/apt/sources.list.d/cuda-debian12-x86_64.list"]
    assert "signed-by=/usr/share/keyrings/cuda-archive-keyring.asc" in machine.file(entries[0]).content_string
    assert machine.run("apt-get update").rc == 0


def test_services(machine):
    assert machine.service("nvidia-persistenced").is_running
    assert not machine.package("nvidia-fabricmanager").is_installed, "there is no NVSwitch"


def test_settings(machine):
    assert machine.file("/etc/security/limits.d/llmops-cuda.conf").contains("memlock")
    assert "scaling_governor - - - - performance" in machine.file("/etc/tmpfiles.d/llmops-cuda.conf").content_string


def test_an_unattended_upgrade_takes_nothing_away(machine):
    before = driver_packages(machine)
    machine.check_output("DEBIAN_FRONTEND=noninteractive apt-get -y dist-upgrade")
    assert driver_packages(machine) == before
    assert machine.package("libnccl2").version == "2.27.7-1+cuda13.0"


def test_check_mode_changes_nothing_and_says_what_it_would(machine, cuda):
    before = driver_packages(machine)
    run = cuda(MACHINE, "--check", "--diff", cuda_driver=NEW)
    assert driver_packages(machine) == before
    assert "Say which packages would be installed" in " ".join(run.changed)
    assert f"nvidia-driver-cuda={NEW}*" in run.text


BAD = [
    ({"cuda_driver": "latest"}, "cuda_driver 'latest' is none of none, loaded, a branch such as '580', a version such as '580.159.04'"),
    ({"cuda_driver": "580.1.1"}, "nvidia-driver-cuda 580.1.1 is not in the repository, which has 580.159.04, 580.95.05, 575.57.08"),
    ({"cuda_drivr": "580"}, "cuda_drivr is no variable of this collection; did you mean cuda_driver?"),
    ({"cuda_repository_url": ""}, "cuda_repository nvidia needs cuda_repository_url and cuda_repository_key"),
    ({"cuda_repository": "offline"}, "cuda_repository offline needs cuda_offline_path"),
    ({"cuda_repository": "cloud"}, "value of cuda_repository must be one of: nvidia, distro, offline, got: cloud"),
    ({"cuda_repository": "distro", "cuda_dcgm_enabled": True}, "DCGM is in NVIDIA's repository only"),
    ({"cuda_driver": "620", "cuda_driver_open_enabled": False}, "driver branch 620 has open kernel modules only"),
]


@pytest.mark.parametrize("variables, message", BAD, ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_bad_input_is_one_sentence_and_changes_nothing(machine, cuda, variables, message):
    before = driver_packages(machine)
    run = cuda(MACHINE, expect=1, **variables)
    assert message in run.text
    assert driver_packages(machine) == before


@pytest.mark.parametrize(
    "key, message",
    [
        ("other.asc", "which is not the given one: give the present key (cuda_repository_key)"),
        ("expired.asc", "which has expired: give the repository's present key"),
    ],
)
def test_a_wrong_key(machine, cuda, keys, key, message):
    """Case I02: NVIDIA's rotated key."""
    before = driver_packages(machine)
    expired = {"cuda_repository_url": "file:/srv/apt/nvidia-expired/debian12/x86_64"} if key.startswith("expired") else {}
    machine.check_output("rm -rf /var/lib/apt/lists/*")
    run = cuda(MACHINE, expect=1, cuda_driver=NEW, cuda_repository_key=f"{keys}/{key}", **expired)
    assert message in run.text
    assert driver_packages(machine) == before


def test_a_package_held_by_hand_is_named(machine, cuda):
    machine.check_output("apt-mark hold libcuda1")
    before = driver_packages(machine)
    try:
        run = cuda(MACHINE, expect=1, cuda_driver=NEW)
        assert "libcuda1 is held by hand (`apt-mark hold`) and would have to change: `apt-mark unhold libcuda1` first" in run.text
        assert driver_packages(machine) == before
    finally:
        machine.check_output("apt-mark unhold libcuda1")


def test_the_driver_does_not_change_under_a_running_server(machine, cuda):
    write(machine, "/run/systemd/system/sglang-main.service", "[Service]\nExecStart=/bin/sleep infinity\n")
    machine.check_output("systemctl daemon-reload && systemctl start sglang-main")
    before = driver_packages(machine)
    run = cuda(MACHINE, expect=1, cuda_driver=NEW)
    assert f"the driver would change from {OLD} to {NEW} while sglang-main.service runs" in run.text
    assert driver_packages(machine) == before
    assert machine.service("sglang-main").is_running


def test_an_upgrade_that_needs_a_reboot_stops_the_play(machine, cuda):
    """The server goes on with the old module; nothing is unloaded under it."""
    # As the real daemon, which cannot open a module of another version.
    machine.check_output("mkdir -p /run/systemd/system/nvidia-persistenced.service.d")
    write(machine, "/run/systemd/system/nvidia-persistenced.service.d/mismatch.conf", "[Service]\nExecStartPre=/bin/false\n")
    machine.check_output("systemctl daemon-reload")
    run = cuda(MACHINE, expect=1, cuda_driver=NEW, cuda_driver_change_running_enabled=True)
    machine.check_output("rm -r /run/systemd/system/nvidia-persistenced.service.d && systemctl daemon-reload && systemctl start nvidia-persistenced")
    assert set(driver_packages(machine).values()) == {f"{NEW}-1"}
    assert f"driver {NEW} is installed and the kernel still runs module {OLD}: a reboot is needed." in run.text
    assert "Reboot the host, or set cuda_reboot_enabled. No server was touched." in run.text
    assert machine.service("sglang-main").is_running


def test_it_stays_stopped_until_the_reboot(machine, cuda):
    """Case I05: a container or a local connection is never rebooted."""
    before = machine.check_output("systemctl show --property=UserspaceTimestampMonotonic --value")
    run = cuda(MACHINE, expect=1, cuda_driver=NEW, cuda_reboot_enabled=True)
    assert "cuda_reboot_enabled does not reboot a container or through a local connection" in run.text
    assert run.changed == []
    assert machine.check_output("systemctl show --property=UserspaceTimestampMonotonic --value") == before


def test_after_the_reboot_nothing_is_left_to_do(machine, cuda):
    module_loaded(machine, NEW)
    machine.check_output("systemctl stop sglang-main")
    assert cuda(MACHINE, cuda_driver=NEW).changed == []


def test_a_branch_keeps_what_is_installed_of_it(machine, cuda):
    assert cuda(MACHINE, cuda_driver="580").changed == []
    assert set(driver_packages(machine).values()) == {f"{NEW}-1"}


def test_a_fabric_manager_is_of_exactly_the_drivers_version(machine, cuda):
    run = cuda(MACHINE, cuda_driver="580", cuda_fabric_manager="true")
    assert machine.package("nvidia-fabricmanager").version == f"{NEW}-1"
    assert machine.service("nvidia-fabricmanager").is_running and machine.service("nvidia-fabricmanager").is_enabled
    assert any("Install the packages" in task for task in run.changed)
    assert cuda(MACHINE, cuda_driver="580", cuda_fabric_manager="true").changed == []


def test_dcgm_and_a_toolkit_from_offline_packages(machine, cuda):
    offline = {"cuda_repository": "offline", "cuda_offline_path": "/srv/apt/nvidia/debian12/x86_64"}
    cuda(MACHINE, cuda_driver="580", cuda_dcgm_enabled=True, cuda_toolkit="13.0", cuda_nccl="2.28.9", **offline)
    assert machine.package("datacenter-gpu-manager-4-cuda13").is_installed and machine.service("nvidia-dcgm").is_running
    assert machine.package("cuda-toolkit-13-0").is_installed
    assert machine.package("libnccl2").version == "2.28.9-1+cuda13.0"
    assert set(driver_packages(machine).values()) == {f"{NEW}-1"}


def test_a_service_that_does_not_start_is_named_with_what_it_said(machine, cuda):
    """As the persistence daemon of a host whose GPU it cannot open."""
    machine.check_output("mkdir -p /run/systemd/system/nvidia-persistenced.service.d && systemctl stop nvidia-persistenced")
    said = "[Service]\nExecStart=\nExecStart=/bin/sh -c 'echo Failed to query NVIDIA devices. >&2; exit 1'\nType=oneshot\n"
    write(machine, "/run/systemd/system/nvidia-persistenced.service.d/fails.conf", said)
    machine.check_output("systemctl daemon-reload")
    try:
        run = cuda(MACHINE, expect=1, cuda_driver="580", cuda_nccl="2.28.9")
        assert "nvidia-persistenced.service does not start:" in run.text and "Failed to query NVIDIA devices." in run.text
        assert "No server was touched." in run.text
    finally:
        machine.check_output("rm -r /run/systemd/system/nvidia-persistenced.service.d && systemctl daemon-reload && systemctl reset-failed")


def test_a_downgrade_is_a_change_of_the_inventory_like_any_other(machine, cuda):
    run = cuda(MACHINE, expect=1, cuda_driver=OLD, cuda_nccl="2.28.9")
    assert {version for name, version in driver_packages(machine).items() if name != "nvidia-fabricmanager"} == {f"{OLD}-1"}
    assert f"driver {OLD} is installed and the kernel still runs module {NEW}" in run.text
    module_loaded(machine, OLD)
    run = cuda(MACHINE, "-v", cuda_nccl="2.28.9")
    assert "2x H200, PCIe 5.0 x16, joined by 18 NVLinks, P2P works" in run.text, "facts are those of the record"
    assert "GPU-3a59cba7-0000-4000-8000-bc7e24556d18" in run.text


def test_gpus_that_are_broken_stop_the_play_with_their_cause(machine, cuda):
    """Case L12. The other causes are in the unit tests of gpu_facts."""
    said = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178"
    with Answer(machine, "nvidia-smi -q -x", said, 18):
        run = cuda(MACHINE, expect=1, cuda_nccl="2.28.9")
    assert f"the driver's library and the loaded kernel module are of different versions: library 580.178, module {OLD}" in run.text
    assert "No server was touched." in run.text


def test_links_are_not_measured_under_a_live_server(machine, playbook):
    """The second of two records: what two serving GPUs said."""
    serving = machine.check_output("cat /srv/stand-in/commands/serving.txt")
    write(machine, "/srv/stand-in/commands/00-now.txt", serving + "\n")
    try:
        run = playbook("links", "-l", MACHINE, expect=1, cuda_links_backend="nccl")
        assert "GPU 0 is used by sglang::scheduler_TP0 (pid 1720); GPU 1 is used by sglang::scheduler_TP1 (pid 1721): stop it first" in run.text
    finally:
        machine.check_output("rm /srv/stand-in/commands/00-now.txt")
