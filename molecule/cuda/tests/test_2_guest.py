# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container with its host's driver, and Debian's own packages of the same version; a host without systemd; links between two hosts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import driver_packages

ROOT = Path(__file__).resolve().parents[3]
GUEST = "llmops-lxc"


def module_version(host):
    return host.check_output("grep -o '535[0-9.]*' /srv/stand-in/root/proc/driver/nvidia/version")


def test_the_userspace_is_of_the_modules_version(guest):
    packages = driver_packages(guest)
    assert {"libcuda1", "libnvidia-ml1", "nvidia-smi"} <= set(packages)
    assert {packages[name].split("-")[0] for name in ("libcuda1", "libnvidia-ml1", "nvidia-smi")} == {module_version(guest)}
    assert not any("dkms" in name for name in packages), "a container has no kernel modules of its own"


def test_what_belongs_to_the_containers_host_is_left_alone(guest):
    assert not guest.file("/etc/sysctl.d/60-llmops-cuda.conf").exists


@pytest.mark.parametrize("driver", ["580", "535.1.1"])
def test_another_version_than_the_modules_is_refused(guest, cuda, driver):
    run = cuda(GUEST, expect=1, cuda_driver=driver)
    assert f"cuda_driver {driver}: this is a container, its host's kernel module is {module_version(guest)}" in run.text
    assert "(cuda_driver: loaded follows it). Nothing was changed." in run.text


def test_without_uvm_nvidia_smi_is_not_enough(guest, cuda):
    """Case I04."""
    guest.check_output("rm /srv/stand-in/root/dev/nvidia-uvm")
    try:
        run = cuda(GUEST, expect=1)
        assert "/dev/nvidia-uvm missing: nvidia-smi works but CUDA cannot" in run.text
        assert "on the container's host: `modprobe nvidia-uvm`" in run.text
    finally:
        guest.check_output("touch /srv/stand-in/root/dev/nvidia-uvm")


def test_debians_own_nvidia_smi_without_a_gpu(guest, cuda):
    """The real program, in a container whose device nodes were not passed on."""
    guest.check_output("mv /usr/local/bin/nvidia-smi /usr/local/bin/nvidia-smi.away")
    try:
        run = cuda(GUEST, expect=1)
        assert "access to the GPU's device nodes is refused" in run.text or "the NVIDIA kernel module is not loaded" in run.text
        guest.check_output("mv /srv/stand-in/root/proc/driver/nvidia/version /tmp/version")
        assert "no GPU" in cuda(GUEST, cuda_driver="none").text, "userspace alone is no broken GPU"
        guest.check_output("mv /tmp/version /srv/stand-in/root/proc/driver/nvidia/version")
    finally:
        guest.check_output("mv /usr/local/bin/nvidia-smi.away /usr/local/bin/nvidia-smi")


def test_a_driver_to_come_that_is_too_old_is_refused_before_it_comes(guest, playbook):
    before = driver_packages(guest)
    run = playbook("deploy", "-l", GUEST, expect=1, sglang_engine_flavour="cuda", sglang_server_hardware_flags={}, cuda_driver="575")
    assert "cuda_driver 575: this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer" in run.text
    assert driver_packages(guest) == before


def test_a_deployment_of_the_default_engine_is_refused_before_anything_is_brought(guest, playbook):
    """Debian's driver is too old for CUDA 13."""
    own = {"sglang_engine_flavour": "cuda", "sglang_engine_root": "/var/tmp/engine", "sglang_engine_system_packages_enabled": False}
    run = playbook("deploy", "-l", GUEST, expect=1, **own, sglang_server_hardware_flags={})
    assert "1x H200, PCIe 5.0 x16" in run.text, "the role cuda ran before"
    assert f"this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs {module_version(guest)} (CUDA 12.2 at most)" in run.text
    assert not guest.file("/var/tmp/engine").exists


def test_links_between_two_hosts(playbook, tmp_path):
    """With gloo, for want of GPUs: real processes on both hosts, one record."""
    run = playbook("links", cuda_links_nodes_enabled=True, cuda_links_backend="gloo", cuda_links_records_path=str(tmp_path), cuda_links_prefill_tokens=[64])
    (record,) = tmp_path.rglob("*.json")
    assert record == tmp_path / "llmops-cuda" / "links-nodes.json"
    found = json.loads(record.read_text())
    assert (found["ranks"], found["backend"], found["conditions"]["nodes"]) == (4, "gloo", 2)
    assert [row["tokens"] for row in found["messages"]] == [1, 8, 64, 64]
    assert all(row["eager"]["median_us"] > 0 for row in found["messages"])
    assert "llmops-lxc: nothing was measured here" in run.text


def test_links_on_one_host(playbook, tmp_path):
    run = playbook("links", "-l", GUEST, cuda_links_backend="gloo", cuda_links_records_path=str(tmp_path), cuda_links_hidden_size=1024)
    assert "all-reduce of bfloat16 over 2 ranks (gloo;" in run.text and "decode of 1 token" in run.text
    assert json.loads((tmp_path / GUEST / "links.json").read_text())["conditions"]["hidden_size"] == 1024


def test_a_host_without_systemd_gets_packages_and_is_told_of_the_services(keys):
    """Case I05."""
    name = "llmops-cuda-bare"
    subprocess.run([str(ROOT / "tools/hosts.sh"), "bare", name], check=True, cwd=ROOT)
    try:
        subprocess.run([str(ROOT / "tools/podman"), "exec", name, "sh", "-c", "rm -f /etc/apt/sources.list.d/*"], check=True)
        variables = {
            "ansible_connection": "containers.podman.podman",
            "sglang_rollout_hosts": "all",
            "cuda_dcgm_enabled": True,
            "cuda_repository_url": "file:/srv/apt/nvidia/debian12/x86_64",
            "cuda_repository_key": f"{keys}/good.asc",
        }
        command = ["ansible-playbook", "-i", f"{name},", str(ROOT / "playbooks/cuda.yml"), "-e", json.dumps(variables)]
        run = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert run.returncode == 0, run.stdout[-3000:]
        assert "nvidia-dcgm.service were installed and not started" in " ".join(run.stdout.split())
    finally:
        subprocess.run([str(ROOT / "tools/hosts.sh"), "down", name], check=True, cwd=ROOT)
