# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks of the role cuda as they are rendered on systems that no scenario has: what would be asked of dnf, apt and the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__cuda_plan import LATEST, OLDER, facts

ROLE = Path(__file__).resolve().parents[3] / "roles" / "cuda"
SYSTEMS = {
    "rhel9": {"os_family": "RedHat", "distribution": "RedHat", "distribution_version": "9.6", "kernel": "5.14.0-570.el9.x86_64"},
    "rhel10": {"os_family": "RedHat", "distribution": "AlmaLinux", "distribution_version": "10.0", "kernel": "6.12.0-55.el10.x86_64"},
    "ubuntu2404": {"os_family": "Debian", "distribution": "Ubuntu", "distribution_version": "24.04", "kernel": "6.8.0-60-generic"},
    "debian13": {"os_family": "Debian", "distribution": "Debian", "distribution_version": "13", "kernel": "6.12.48+deb13-amd64"},
}


def load(path):
    return DataLoader().load_from_file(str(ROLE / path), trusted_as_template=True)


class Host:
    """One host with the role's own defaults and vars.

    Args:
        system: key of SYSTEMS.
        packages: package -> (version, release).
        gpu: what gpu_facts found.
        inputs: what the inventory says.
    """

    def __init__(self, system, packages=None, gpu=None, kind="bare", **inputs):
        found = {**SYSTEMS[system], "architecture": "x86_64", "service_mgr": "systemd"}
        found["distribution_major_version"] = found["distribution_version"].split(".")[0]
        found["llmops_gpu"] = {**(gpu or facts(gpus=[("NVIDIA H200", "9.0")], pci=["0000:01:00.0"])), "machine": {"kind": kind}}
        found["packages"] = {name: [{"name": name, "version": version, "release": release}] for name, (version, release) in (packages or {}).items()}
        own = {"cuda_repository_url": "https://mirror.example.org/cuda", "cuda_repository_key": "files/key.asc", **inputs}
        self.variables = {**load("defaults/main.yml"), **load("vars/main.yml"), **own, "ansible_facts": found, "inventory_hostname": "gpu1"}
        self.variables.setdefault("ansible_check_mode", False)

    def value(self, expression, **more):
        return Templar(loader=DataLoader(), variables={**self.variables, **more}).template(trust_as_template("{{ " + expression + " }}"))

    def runs(self, path):
        """(name, arguments) of the tasks of a file that would run, loops unrolled."""
        for task in load(path):
            variables = {**self.variables, **task.get("vars", {})}
            for item in Templar(loader=DataLoader(), variables=variables).template(task.get("loop", [None])):
                templar = Templar(loader=DataLoader(), variables={**variables, "item": item})
                if templar.template(trust_as_template("{{ " + str(task.get("when", "true")) + " }}")):
                    (action,) = [key for key in task if "." in key]
                    yield task["name"], templar.template(task[action])


def test_a_branch_on_red_hat_9():
    ran = dict(Host("rhel9", cuda_driver="580").runs("tasks/redhat.yml"))
    assert ran["Write the repository's entry"]["baseurl"] == "https://mirror.example.org/cuda/"
    assert ran["Write the repository's entry"]["gpgkey"] == "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-cuda"
    assert ran["Choose the branch's stream"]["argv"] == ["dnf", "--assumeyes", "module", "enable", "nvidia-driver:580-open"], (
        "enabled, not installed: no profile"
    )
    assert ran["Install the packages"]["name"] == [
        "nvidia-driver-cuda-580*",
        "kmod-nvidia-open-dkms-580*",
        "kernel-devel-5.14.0-570.el9*",
        "nvidia-modprobe",
        "nvidia-persistenced-580*",
    ]
    assert "kernel-devel" not in ran["Let the versions go that this role keeps"]["name"], "a locked one would keep DKMS from building for the next kernel"


def test_both_steps_of_a_change_of_stream():
    steps = [
        arguments["argv"]
        for name, arguments in Host("rhel9", cuda_driver="590.48.01", cuda_driver_open_enabled="false").runs("tasks/redhat.yml")
        if "stream" in name
    ]
    assert [words[2:] for words in steps] == [["module", "reset", "nvidia-driver"], ["module", "enable", "nvidia-driver:590-dkms"]]


def test_red_hat_10_has_no_streams():
    ran = dict(Host("rhel10", cuda_driver=LATEST).runs("tasks/redhat.yml"))
    assert "Choose the branch's stream" not in ran
    assert ran["Install the packages"]["name"][:2] == [f"nvidia-driver-cuda-{LATEST}*", f"kmod-nvidia-open-dkms-{LATEST}*"]


@pytest.mark.parametrize("enabled, state", [(True, "present"), (False, "absent"), ("false", "absent")])
def test_locks_of_red_hat(enabled, state):
    packages = dict.fromkeys(("nvidia-driver-cuda", "kmod-nvidia-open-dkms"), (LATEST, "1.el10"))
    host = Host("rhel10", packages, cuda_driver=LATEST, cuda_hold_enabled=enabled)
    names = ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"]
    assert dict(host.runs("tasks/hold.yml")) == {"Keep the versions on Red Hat's family, or let them go": {"name": names, "state": state}}


@pytest.mark.parametrize(
    "system, entry, packages",
    [
        ("ubuntu2404", "cuda-ubuntu2404-x86_64", {"libnvidia-compute-580", "nvidia-dkms-580-open", "linux-headers-6.8.0-60-generic", "linux-headers-generic"}),
        ("debian13", "cuda-debian13-x86_64", {"nvidia-driver-cuda", "nvidia-kernel-open-dkms", "linux-headers-amd64"}),
    ],
)
def test_apt(system, entry, packages):
    host = Host(system, cuda_driver="580")
    assert host.value("__cuda_apt_name") == entry
    assert packages <= set(host.value("__cuda_plan.packages"))


@pytest.mark.parametrize(
    "inputs, kind, possible",
    [
        ({"cuda_reboot_enabled": True}, "bare", True),
        ({"cuda_reboot_enabled": "true"}, "vm", True),
        ({"cuda_reboot_enabled": False}, "bare", False),
        pytest.param({"cuda_reboot_enabled": "false"}, "bare", False, id="text-of-the-command-line"),
        pytest.param({"cuda_reboot_enabled": True}, "container", False, id="I05-container"),
        pytest.param({"cuda_reboot_enabled": True, "ansible_connection": "local"}, "bare", False, id="I05-local"),
        pytest.param({"cuda_reboot_enabled": True, "ansible_connection": "community.docker.docker"}, "bare", False, id="I05-docker"),
        ({"cuda_reboot_enabled": True, "ansible_connection": "ssh"}, "bare", True),
    ],
)
def test_when_a_host_may_be_rebooted(inputs, kind, possible):
    assert Host("debian13", kind=kind, **inputs).value("__cuda_reboot_possible") is possible


@pytest.mark.parametrize(
    "gpu, first",
    [
        pytest.param(facts(module=OLDER, pci=["0000:01:00.0"]), "Stop where a reboot is needed and not allowed", id="older-module"),
        pytest.param(facts(nouveau=True, pci=["0000:01:00.0"]), "Stop where a reboot is needed and not allowed", id="nouveau"),
        pytest.param(facts(pci=["0000:01:00.0"]), "Load the kernel modules where none is loaded", id="not-loaded"),
        pytest.param(facts(module=LATEST, pci=["0000:01:00.0"]), "", id="runs"),
        pytest.param(facts(), "", id="no-gpu"),
    ],
)
def test_the_order_around_the_kernel(gpu, first):
    gpu["driver"]["module_open"] = True
    names = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms")
    host = Host("debian13", dict.fromkeys(names, (f"{LATEST}-1", "")), gpu, cuda_driver=LATEST)
    blocks = load("tasks/kernel.yml")
    templar = Templar(loader=DataLoader(), variables=host.variables)
    would = [task["name"] for task in blocks if templar.template(trust_as_template("{{ " + str(task["when"]) + " }}"))]
    if would and "ansible.builtin.assert" in (task := next(task for task in blocks if task["name"] == would[0])):
        passes = templar.template(trust_as_template("{{ " + task["ansible.builtin.assert"]["that"] + " }}"))
        would = would[1:] if passes else would[:1]
    assert (would or [""])[0] == first
