# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._cuda_plan import (
    APT_DRIVER_GLOBS,
    Plan,
    System,
    Wish,
    apt_preferences,
    choose_versions,
    driver_packages,
    explain_apt,
    explain_module,
    fabric_package,
    make_plan,
    parse_madison,
    persistence_package,
    running_refusal,
    upstream,
)

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
DEBIAN = System("Debian", "Debian")
UBUNTU = System("Debian", "Ubuntu")
RED_HAT = System("RedHat", "RedHat")
GUEST = replace(DEBIAN, container=True)
DRIVER = Wish("580", persistence=False)
BOTH = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms")
LATEST, OLDER, OLD = "580.159.04", "580.95.05", "575.57.08"


def facts(module="", cuda="", gpus=(), fabric=False, pci=(), nouveau=False, module_open=True):
    """What gpu_facts found: as much as a plan reads."""
    found = [{"index": index, "name": name, "compute_capability": capability} for index, (name, capability) in enumerate(gpus)]
    driver = {"module": module, "module_open": module_open, "cuda": cuda, "nouveau": nouveau}
    return {"driver": driver, "gpus": found, "pci": list(pci), "fabric_manager": {"needed": fabric}}


H200 = facts(module=LATEST, cuda="13.0", gpus=[("NVIDIA H200", "9.0")], pci=["0000:01:00.0"])


def debian(version, **others):
    """What is installed of the driver on Debian, with NVIDIA's revision."""
    return {**dict.fromkeys((*BOTH, "nvidia-modprobe"), f"{version}-1"), **{name.replace("_", "-"): value for name, value in others.items()}}


@pytest.mark.parametrize(
    "version, expected",
    [
        ("580.159.04-1", "580.159.04"),
        ("3:580.159.04-1.el9", "580.159.04"),
        ("580.173.02-0ubuntu0.24.04.1", "580.173.02"),
        ("535.171.04-1~deb12u1", "535.171.04"),
        ("1:4.5.3-1", "4.5.3"),
        ("2.28.9-1+cuda13.0", "2.28.9"),
        ("580.178", "580.178"),
        ("", ""),
    ],
)
def test_upstream(version, expected):
    assert upstream(version) == expected


PACKAGES = [
    ("575", "nvidia", True, ["libnvidia-compute-575", "nvidia-utils-575", "nvidia-dkms-575-open"]),
    ("580", "nvidia", True, ["libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open"]),
    ("580", "nvidia", False, ["libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580"]),
    ("590", "nvidia", True, ["libnvidia-compute", "nvidia-utils", "nvidia-dkms-open"]),
    ("590", "offline", False, ["libnvidia-compute", "nvidia-utils", "nvidia-dkms"]),
    ("620", "nvidia", True, ["libnvidia-compute", "nvidia-utils", "nvidia-dkms-open"]),
    ("580", "distro", True, ["libnvidia-compute-580-server", "nvidia-utils-580-server", "nvidia-dkms-580-server-open"]),
    ("590", "distro", False, ["libnvidia-compute-590-server", "nvidia-utils-590-server", "nvidia-dkms-590-server"]),
]


@pytest.mark.parametrize("branch, repository, open_module, names", PACKAGES)
def test_packages_on_ubuntu(branch, repository, open_module, names):
    """From branch 590 on NVIDIA's names lose the branch, Ubuntu's own keep it."""
    assert driver_packages(UBUNTU, repository, int(branch), open_module) == (names[0], names)
    assert driver_packages(replace(UBUNTU, container=True), repository, int(branch), open_module) == (names[0], names[:-1])


@pytest.mark.parametrize("branch", [575, 580, 590, 620])
@pytest.mark.parametrize(
    "system, repository, open_module, names",
    [
        (DEBIAN, "nvidia", True, ["nvidia-driver-cuda", "nvidia-kernel-open-dkms"]),
        (DEBIAN, "nvidia", False, ["nvidia-driver-cuda", "nvidia-kernel-dkms"]),
        (DEBIAN, "offline", True, ["nvidia-driver-cuda", "nvidia-kernel-open-dkms"]),
        (DEBIAN, "distro", True, ["libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-open-kernel-dkms"]),
        (DEBIAN, "distro", False, ["libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-kernel-dkms"]),
        (RED_HAT, "nvidia", True, ["nvidia-driver-cuda", "kmod-nvidia-open-dkms"]),
        (RED_HAT, "nvidia", False, ["nvidia-driver-cuda", "kmod-nvidia-latest-dkms"]),
        (System("RedHat", "Rocky"), "offline", True, ["nvidia-driver-cuda", "kmod-nvidia-open-dkms"]),
    ],
)
def test_packages_elsewhere_never_carry_the_branch(system, repository, open_module, names, branch):
    assert driver_packages(system, repository, branch, open_module) == (names[0], names)
    assert driver_packages(replace(system, container=True), repository, branch, open_module) == (names[0], names[:-1])


@pytest.mark.parametrize(
    "system, repository, branch, name",
    [
        (UBUNTU, "nvidia", 575, "nvidia-fabricmanager-575"),
        (UBUNTU, "nvidia", 580, "nvidia-fabricmanager"),
        (UBUNTU, "offline", 620, "nvidia-fabricmanager"),
        (UBUNTU, "distro", 580, "nvidia-fabricmanager-580"),
        (UBUNTU, "distro", 595, "nvidia-fabricmanager-595"),
        (DEBIAN, "nvidia", 575, "nvidia-fabricmanager-575"),
        (DEBIAN, "nvidia", 580, "nvidia-fabricmanager"),
        (DEBIAN, "distro", 550, ""),
        (RED_HAT, "nvidia", 575, "nvidia-fabric-manager"),
        (RED_HAT, "nvidia", 580, "nvidia-fabricmanager"),
        (RED_HAT, "distro", 580, ""),
    ],
)
def test_fabric_package(system, repository, branch, name):
    assert fabric_package(system, repository, branch) == name


@pytest.mark.parametrize(
    "system, repository, branch, name",
    [
        (UBUNTU, "nvidia", 580, "nvidia-compute-utils-580"),
        (UBUNTU, "nvidia", 590, "nvidia-persistenced"),
        (UBUNTU, "distro", 590, "nvidia-compute-utils-590-server"),
        (DEBIAN, "nvidia", 580, "nvidia-persistenced"),
        (DEBIAN, "distro", 550, "nvidia-persistenced"),
        (RED_HAT, "nvidia", 575, "nvidia-persistenced"),
    ],
)
def test_persistence_package(system, repository, branch, name):
    assert persistence_package(system, repository, branch) == name


def test_nothing_is_asked_for():
    for driver in ("none", ""):
        assert make_plan(Wish(driver), DEBIAN, H200, {"nvidia-driver-cuda": "535.1-1"}) == Plan(kernel=True, cuda="13.0")


@pytest.mark.parametrize(
    "driver, installed, driver_change, target, found",
    [
        pytest.param("580", {}, True, "580", "", id="missing"),
        pytest.param("580", debian(OLDER), False, OLDER, OLDER, id="a-branch-keeps-what-is-there"),
        pytest.param("580", debian(LATEST), False, LATEST, LATEST, id="whatever-the-repository-has"),
        pytest.param(LATEST, debian(LATEST), False, LATEST, LATEST, id="exact"),
        pytest.param("580.159", debian(LATEST), False, LATEST, LATEST, id="a-part-of-a-version"),
        pytest.param("580.15", debian(LATEST), True, "580.15", LATEST, id="is-none-of-its-digits"),
        pytest.param("580", debian("5800.1"), True, "580", "5800.1", id="nor-is-a-branch"),
        pytest.param(LATEST, debian(OLDER), True, LATEST, OLDER, id="upgrade"),
        pytest.param(OLDER, debian(LATEST), True, OLDER, LATEST, id="downgrade"),
        pytest.param("580", debian(OLD), True, "580", OLD, id="to-the-next-branch"),
        pytest.param("575", debian(LATEST), True, "575", LATEST, id="back-to-a-branch"),
        pytest.param("580", {"nvidia-driver-cuda": f"{OLDER}-1"}, True, "580", OLDER, id="kernel-module-missing"),
        pytest.param("580", {"nvidia-kernel-open-dkms": f"{OLDER}-1"}, True, "580", "", id="userspace-missing"),
        pytest.param("580", debian(OLDER, nvidia_kernel_open_dkms=f"{LATEST}-1"), True, "580", OLDER, id="two-versions-of-one-branch"),
        pytest.param(OLDER, debian(OLDER, nvidia_kernel_open_dkms=f"{LATEST}-1"), True, OLDER, OLDER, id="half-upgraded"),
        pytest.param("580", {"nvidia-driver-cuda": f"{OLDER}-1", "nvidia-kernel-dkms": f"{OLDER}-1"}, True, "580", OLDER, id="the-other-module"),
        pytest.param("loaded", debian(LATEST), False, LATEST, LATEST, id="loaded"),
        pytest.param("loaded", debian(OLDER), True, LATEST, OLDER, id="another-than-loaded"),
    ],
)
def test_a_driver_on_a_host(driver, installed, driver_change, target, found):
    plan = make_plan(replace(DRIVER, driver=driver), DEBIAN, H200, installed)
    assert plan.refusals == []
    assert plan.packages == {"nvidia-driver-cuda": target, "nvidia-kernel-open-dkms": target, "nvidia-modprobe": ""}
    assert (plan.driver_change, plan.installed, plan.lead, plan.kernel) == (driver_change, found, "nvidia-driver-cuda", True)
    assert not plan.change or plan.driver_change


@pytest.mark.parametrize(
    "system, installed",
    [
        (RED_HAT, {"nvidia-driver-cuda": "580.159.04-1.el9", "kmod-nvidia-open-dkms": "580.159.04-1.el9"}),
        (UBUNTU, dict.fromkeys(("libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open"), "580.159.04-1ubuntu1")),
    ],
    ids=["RedHat", "Ubuntu"],
)
def test_revisions_of_other_families(system, installed):
    for driver in ("580", LATEST):
        plan = make_plan(replace(DRIVER, driver=driver), system, H200, {**installed, "nvidia-modprobe": "535.1-1"})
        assert (plan.change, plan.driver_change, plan.installed) == (False, False, LATEST)
        assert plan.packages == {**dict.fromkeys(installed, LATEST), "nvidia-modprobe": ""}
        assert (plan.keep, plan.of_driver, plan.kept) == (list(installed), list(installed), {})


@pytest.mark.parametrize("driver", ["latest", "58", "5800", "580.", "580.1.2.3", "580 ", "v580", "580.159.04-1", "None", "True"])
def test_a_driver_that_is_no_version(driver):
    plan = make_plan(replace(DRIVER, driver=driver), DEBIAN, H200, {})
    assert plan.refusals == [f"cuda_driver {driver!r} is none of none, loaded, a branch such as '580', a version such as '580.159.04' (in quotes)"]
    assert (plan.packages, plan.driver, plan.driver_change) == ({}, "", False)


CONTAINER = [
    pytest.param("loaded", LATEST, LATEST, [], id="loaded"),
    pytest.param("580", LATEST, LATEST, [], id="the-branch-of-the-module"),
    pytest.param(LATEST, LATEST, LATEST, [], id="the-version-of-the-module"),
    pytest.param(
        OLDER, LATEST, LATEST, [f"cuda_driver {OLDER}: this is a container, its host's kernel module is {LATEST}, and the userspace must"], id="another"
    ),
    pytest.param("590", LATEST, LATEST, [f"cuda_driver 590: this is a container, its host's kernel module is {LATEST}"], id="another-branch"),
    pytest.param(LATEST, "", LATEST, [], id="no-module-to-fit"),
    pytest.param("580", "", "580", [], id="no-module-to-fit-a-branch"),
    pytest.param("loaded", "", "", ["cuda_driver: loaded means the userspace of the loaded kernel module's version, and no NVIDIA module"], id="none-loaded"),
]


@pytest.mark.parametrize("driver, module, target, refusals", CONTAINER)
def test_a_container_follows_its_host(driver, module, target, refusals):
    """L12: in a container library and module come from different places."""
    plan = make_plan(Wish(driver, fabric_manager="auto"), GUEST, facts(module=module, gpus=[("NVIDIA H200", "9.0")], fabric=True), {})
    assert [told.startswith(start) for told, start in zip(plan.refusals, refusals)] == [True] * len(refusals) == [True] * len(plan.refusals)
    assert plan.packages == ({"nvidia-driver-cuda": target} if target else {}), "neither a module nor the daemons of the host"
    assert (plan.kernel, plan.services, plan.reboot, plan.driver) == (False, [], "", target)


def test_a_module_that_changed_under_a_container():
    """The host was upgraded: the container follows, and nobody reboots it."""
    plan = make_plan(Wish("loaded"), GUEST, facts(module=LATEST), {"nvidia-driver-cuda": f"{OLDER}-1"})
    assert (plan.driver_change, plan.installed, plan.driver, plan.reboot) == (True, OLDER, LATEST, "")


@pytest.mark.parametrize(
    "module, installed, reboot",
    [
        pytest.param(OLDER, debian(LATEST), f"driver {LATEST} is installed and the kernel still runs module {OLDER}", id="L12-not-rebooted"),
        pytest.param(LATEST, debian(LATEST), "", id="runs"),
        pytest.param("", debian(LATEST), "", id="not-loaded-yet"),
        pytest.param(OLD, {}, "", id="nothing-installed-yet"),
        pytest.param(OLD, debian(OLDER, nvidia_kernel_open_dkms=f"{LATEST}-1"), "", id="packages-first"),
    ],
)
def test_reboot(module, installed, reboot):
    assert make_plan(DRIVER, DEBIAN, facts(module=module), installed).reboot == reboot


PROPRIETARY = {"nvidia-driver-cuda": f"{LATEST}-1", "nvidia-kernel-dkms": f"{LATEST}-1", "nvidia-modprobe": f"{LATEST}-1"}


@pytest.mark.parametrize(
    "open_module, loaded_open, installed, reboot",
    [
        pytest.param(True, False, debian(LATEST), "the open kernel modules are installed and the kernel still runs the other ones", id="to-open"),
        pytest.param(False, True, PROPRIETARY, "the proprietary kernel modules are installed and the kernel still runs the other ones", id="to-proprietary"),
        pytest.param(False, False, PROPRIETARY, "", id="proprietary"),
        pytest.param(True, False, PROPRIETARY, "", id="packages-first"),
    ],
)
def test_reboot_into_the_other_modules(open_module, loaded_open, installed, reboot):
    """Of the same version: only their kind tells them apart."""
    wish = replace(DRIVER, open_module=open_module)
    assert make_plan(wish, DEBIAN, facts(module=LATEST, module_open=loaded_open), installed).reboot == reboot
    assert make_plan(wish, GUEST, facts(module=LATEST, module_open=loaded_open), installed).reboot == "", "a container's are its host's"


@pytest.mark.parametrize(
    "system, installed, reboot",
    [
        pytest.param(DEBIAN, debian(LATEST), f"driver {LATEST} is installed and nouveau, which was loaded before it, still holds the GPU", id="machine"),
        pytest.param(DEBIAN, {}, "", id="packages-first"),
        pytest.param(GUEST, {"nvidia-driver-cuda": f"{LATEST}-1"}, "", id="of-the-containers-host"),
    ],
)
def test_nouveau(system, installed, reboot):
    assert make_plan(DRIVER, system, facts(nouveau=True), installed).reboot == reboot


@pytest.mark.parametrize(
    "system, wish, packages",
    [
        (replace(DEBIAN, kernel="6.1.0-40-amd64"), DRIVER, {"linux-headers-6.1.0-40-amd64": "", "linux-headers-amd64": ""}),
        (replace(DEBIAN, kernel="6.1.0-40-cloud-amd64"), DRIVER, {"linux-headers-6.1.0-40-cloud-amd64": "", "linux-headers-cloud-amd64": ""}),
        (replace(DEBIAN, kernel="6.12.48+deb13-cloud-amd64"), DRIVER, {"linux-headers-6.12.48+deb13-cloud-amd64": "", "linux-headers-cloud-amd64": ""}),
        (replace(DEBIAN, kernel="6.1.0-0.deb11.7-amd64"), DRIVER, {"linux-headers-6.1.0-0.deb11.7-amd64": "", "linux-headers-amd64": ""}),
        (replace(UBUNTU, kernel="6.8.0-60-generic"), DRIVER, {"linux-headers-6.8.0-60-generic": "", "linux-headers-generic": ""}),
        (replace(RED_HAT, kernel="5.14.0-503.11.1.el9_5.x86_64"), DRIVER, {"kernel-devel": "5.14.0-503.11.1.el9_5"}),
        (replace(GUEST, kernel="6.1.0-40-amd64"), DRIVER, {}),
        (replace(DEBIAN, kernel="6.1.0-40-amd64"), Wish("none"), {}),
        (DEBIAN, DRIVER, {}),
    ],
    ids=["debian", "cloud", "debian-13", "backports", "ubuntu", "red-hat", "container", "no-driver", "somebody-elses"],
)
def test_kernel_headers(system, wish, packages):
    """Without them DKMS builds no module."""
    found = make_plan(wish, system, facts(), {}).packages
    assert {name: version for name, version in found.items() if name.startswith(("linux-headers", "kernel-devel"))} == packages


def test_missing_headers_are_a_change_and_no_change_of_the_driver():
    plan = make_plan(DRIVER, replace(DEBIAN, kernel="6.1.0-40-amd64"), facts(module=LATEST), debian(LATEST))
    assert (plan.change, plan.driver_change) == (True, False)
    versions, refusals = choose_versions(plan, {"linux-headers-amd64": ["6.1.158-1"]})
    told = "linux-headers-6.1.0-40-amd64 is in no repository any more: reboot into the installed kernel first, or cuda_kernel_headers_enabled: false"
    assert (versions, refusals) == ({}, [told])


@pytest.mark.parametrize("system, comes", [(DEBIAN, True), (UBUNTU, True), (RED_HAT, True), (GUEST, False)])
def test_device_nodes_of_cuda_come_with_kernel_modules(system, comes):
    plan = make_plan(DRIVER, system, H200, {})
    assert ("nvidia-modprobe" in plan.packages) is comes and "nvidia-modprobe" not in plan.keep


def test_what_is_kept():
    """The driver is kept as a whole, by its version: libraries of other products and the headers go with the distribution."""
    nccl = {"libnccl2": "2.28.9-1+cuda13.0", "libnccl_dev": "2.27.7-1+cuda13.0", "libnvinfer10": "10.13.3.9-1+cuda13.0", "libnvidia_ml1": f"{OLDER}-1"}
    system = replace(DEBIAN, kernel="6.1.0-40-amd64")
    plan = make_plan(replace(DRIVER, nccl="2.28.9", dcgm=True), system, H200, debian(OLDER, nvidia_settings="535.1-1", **nccl))
    assert plan.keep == [*BOTH, "libnccl2", "libnccl-dev"]
    assert plan.kept == {"libnccl2": "2.28.9-1+cuda13.0"}
    assert plan.of_driver == [*BOTH, "nvidia-modprobe", "libnvidia-ml1"]
    red_hat = make_plan(DRIVER, replace(RED_HAT, kernel="5.14.0-503.11.1.el9_5.x86_64"), H200, {})
    assert red_hat.keep == ["nvidia-driver-cuda", "kmod-nvidia-open-dkms"]


@pytest.mark.parametrize(
    "driver, found, cuda",
    [
        pytest.param("570", "13.0", "12.8", id="of-the-driver-that-will-be-there"),
        pytest.param("none", "12.4", "12.4", id="of-the-one-that-is"),
        pytest.param("none", "", "13", id="not-known"),
    ],
)
def test_cuda_of_the_driver(driver, found, cuda):
    assert make_plan(replace(DRIVER, driver=driver), DEBIAN, facts(cuda=found), {}).cuda == cuda


@pytest.mark.parametrize(
    "gpus, wish, refusals",
    [
        pytest.param([("Tesla P100", "6.0")], DRIVER, ["GPU 0 (Tesla P100) is older than Turing and has no open kernel module"], id="pascal-open"),
        pytest.param([("Tesla V100", "7.0")], replace(DRIVER, open_module=False), [], id="volta-proprietary"),
        pytest.param(
            [("Tesla P100", "6.0")],
            replace(DRIVER, driver="590", open_module=False),
            ["GPU 0 (Tesla P100) is older than Turing: driver branch 580 is the last for it"],
            id="pascal-after-its-last-branch",
        ),
        pytest.param(
            [("Tesla P100", "6.0")],
            replace(DRIVER, driver="590"),
            ["GPU 0 (Tesla P100) is older than Turing and has no", "GPU 0 (Tesla P100) is older than Turing: driver branch 580"],
            id="pascal-both",
        ),
        pytest.param([("Tesla T4", "7.5")], replace(DRIVER, driver="620"), [], id="turing"),
        pytest.param([("NVIDIA H200", "9.0")], replace(DRIVER, open_module=False), [], id="hopper-proprietary"),
        pytest.param(
            [("NVIDIA H200", "9.0"), ("NVIDIA B200", "10.0")],
            replace(DRIVER, open_module=False),
            ["GPU 1 (NVIDIA B200) needs the open kernel module: cuda_driver_open_enabled: true"],
            id="blackwell-proprietary",
        ),
        pytest.param([("NVIDIA GeForce RTX 5090", "12.0")], DRIVER, [], id="blackwell-open"),
        pytest.param([("Tesla P100", "6.0"), ("NVIDIA B200", "10.0")], DRIVER, ["GPU 0 (Tesla P100) is older"], id="no-driver-for-both"),
        pytest.param([("NVIDIA H200", "9.0")], replace(DRIVER, driver="620", open_module=False), ["driver branch 620 has open kernel modules only"], id="620"),
        pytest.param([], replace(DRIVER, driver="615", open_module=False), [], id="615"),
        pytest.param([("NVIDIA X", ""), ("NVIDIA Y", "[N/A]"), ("NVIDIA Z", None)], replace(DRIVER, open_module=False), [], id="capability-not-known"),
    ],
)
def test_modules_and_gpus(gpus, wish, refusals):
    told = make_plan(wish, DEBIAN, facts(gpus=gpus), {}).refusals
    assert len(told) == len(refusals) and all(text.startswith(start) for text, start in zip(told, refusals)), told
    assert make_plan(wish, GUEST, facts(gpus=gpus), {}).refusals == [], "the module is the host's concern"


def test_red_hat_has_no_driver_of_its_own():
    plan = make_plan(replace(DRIVER, repository="distro"), System("RedHat", "AlmaLinux"), H200, {})
    assert plan.refusals == ["AlmaLinux has no NVIDIA driver of its own: cuda_repository: nvidia or offline"]


FABRIC = [
    pytest.param("auto", True, DEBIAN, "580", {}, {"nvidia-fabricmanager": "580"}, id="needed"),
    pytest.param("auto", True, DEBIAN, LATEST, {}, {"nvidia-fabricmanager": LATEST}, id="exact"),
    pytest.param("auto", True, DEBIAN, "580", debian(OLDER), {"nvidia-fabricmanager": OLDER}, id="exactly-the-installed-driver's"),
    pytest.param("auto", True, UBUNTU, "575", {}, {"nvidia-fabricmanager-575": "575"}, id="575"),
    pytest.param("auto", True, RED_HAT, "575", {}, {"nvidia-fabric-manager": "575"}, id="575-RedHat"),
    pytest.param("auto", False, DEBIAN, "580", {}, {}, id="no-switch"),
    pytest.param("true", False, DEBIAN, "580", {}, {"nvidia-fabricmanager": "580"}, id="asked-for"),
    pytest.param("false", True, DEBIAN, "580", {}, {}, id="turned-off"),
    pytest.param("auto", True, GUEST, "580", {}, {}, id="container"),
]


@pytest.mark.parametrize("fabric_manager, needed, system, driver, installed, packages", FABRIC)
def test_fabric_manager(fabric_manager, needed, system, driver, installed, packages):
    """L11: it must be of exactly the driver's version."""
    plan = make_plan(replace(DRIVER, driver=driver, fabric_manager=fabric_manager), system, facts(fabric=needed), installed)
    assert {name: version for name, version in plan.packages.items() if "fabric" in name} == packages
    assert plan.services == (["nvidia-fabricmanager.service"] if packages else []) and plan.refusals == []


def test_a_fabric_manager_of_another_version_is_changed():
    """L11"""
    wish = replace(DRIVER, fabric_manager="true")
    same, other = (make_plan(wish, DEBIAN, H200, debian(LATEST, nvidia_fabricmanager=f"{version}-1")) for version in (LATEST, OLDER))
    assert (same.change, other.change, other.driver_change) == (False, True, False)


def test_a_fabric_manager_that_is_not_there():
    plan = make_plan(replace(DRIVER, repository="distro", fabric_manager="true"), DEBIAN, H200, {})
    assert plan.refusals == ["Debian has no fabric manager: cuda_repository: nvidia"] and plan.services == []


@pytest.mark.parametrize(
    "system, found, packages, services",
    [
        pytest.param(DEBIAN, H200, {"nvidia-persistenced": "580"}, ["nvidia-persistenced.service"], id="host"),
        pytest.param(DEBIAN, facts(pci=["0000:01:00.0"]), {"nvidia-persistenced": "580"}, ["nvidia-persistenced.service"], id="without-a-driver-yet"),
        pytest.param(DEBIAN, facts(), {"nvidia-persistenced": "580"}, [], id="no-gpu-no-service"),
        pytest.param(UBUNTU, H200, {"nvidia-compute-utils-580": "580"}, ["nvidia-persistenced.service"], id="Ubuntu"),
        pytest.param(GUEST, H200, {}, [], id="container"),
    ],
)
def test_persistence(system, found, packages, services):
    """Of the driver's version; Debian's own archive has another one of it."""
    own = make_plan(replace(DRIVER, repository="distro", persistence=True), DEBIAN, found, {})
    assert own.packages["nvidia-persistenced"] == ""
    plan = make_plan(replace(DRIVER, persistence=True), system, found, {})
    assert {name: version for name, version in plan.packages.items() if "persistenced" in name or "compute-utils" in name} == packages
    assert plan.services == services


@pytest.mark.parametrize(
    "wish, system, packages",
    [
        (Wish(), DEBIAN, {}),
        (Wish(toolkit="none", nccl="none"), DEBIAN, {}),
        (Wish(toolkit="13.0"), DEBIAN, {"cuda-toolkit-13-0": ""}),
        (Wish(toolkit="12.9.1"), RED_HAT, {"cuda-toolkit-12-9": ""}),
        (Wish(nccl="2.28.9"), UBUNTU, {"libnccl2": "2.28.9", "libnccl-dev": "2.28.9"}),
        (Wish(nccl="2.28.9-1+cuda13.0"), RED_HAT, {"libnccl": "2.28.9-1+cuda13.0", "libnccl-devel": "2.28.9-1+cuda13.0"}),
    ],
)
def test_toolkit_and_nccl(wish, system, packages):
    plan = make_plan(wish, system, H200, {})
    assert (plan.packages, plan.change, plan.driver_change, plan.lead) == (packages, bool(packages), False, "")


@pytest.mark.parametrize(
    "wish, message",
    [
        (Wish(toolkit="newest"), "cuda_toolkit 'newest' is none of from_engine, none, a version such as '13.0' (in quotes)"),
        (Wish(toolkit="v13.0"), "cuda_toolkit 'v13.0' is none of from_engine, none, a version such as '13.0' (in quotes)"),
        (Wish(nccl="newest"), "cuda_nccl 'newest' is none of from_engine, none, a version such as '2.28.9' (in quotes)"),
        (Wish(toolkit=""), "cuda_toolkit '' is none of from_engine, none, a version such as '13.0' (in quotes)"),
        (Wish(nccl=""), "cuda_nccl '' is none of from_engine, none, a version such as '2.28.9' (in quotes)"),
    ],
)
def test_versions_that_are_none(wish, message):
    plan = make_plan(wish, DEBIAN, H200, {})
    assert (plan.refusals, plan.packages) == ([message], {})


@pytest.mark.parametrize(
    "nccl, installed, change",
    [
        ("2.28.9", "2.28.9-1+cuda13.0", False),
        ("2.28.9-1", "2.28.9-1+cuda13.0", False),
        ("2.28.9-1+cuda13.0", "2.28.9-1+cuda13.0", False),
        ("2.28", "2.28.9-1+cuda13.0", False),
        ("2.28.9-1+cuda12.9", "2.28.9-1+cuda13.0", True),
        ("2.2", "2.28.9-1+cuda13.0", True),
        ("2.28.9", "2.28.90-1+cuda13.0", True),
    ],
)
def test_an_installed_nccl(nccl, installed, change):
    assert make_plan(Wish(nccl=nccl), DEBIAN, H200, {"libnccl2": installed, "libnccl-dev": installed}).change is change


@pytest.mark.parametrize(
    "driver, cuda, package",
    [
        pytest.param("none", "13.0", "datacenter-gpu-manager-4-cuda13", id="of-the-driver-that-is-there"),
        pytest.param("none", "12.4", "datacenter-gpu-manager-4-cuda12", id="of-an-older-one"),
        pytest.param("none", "", "datacenter-gpu-manager-4-cuda13", id="not-known"),
        pytest.param("580", "", "datacenter-gpu-manager-4-cuda13", id="of-the-wanted-one"),
        pytest.param(OLD, "", "datacenter-gpu-manager-4-cuda12", id="of-the-wanted-older-one"),
        pytest.param("580", "12.9", "datacenter-gpu-manager-4-cuda13", id="upgrade"),
        pytest.param("575", "13.0", "datacenter-gpu-manager-4-cuda12", id="downgrade"),
    ],
)
def test_dcgm(driver, cuda, package):
    plan = make_plan(replace(DRIVER, driver=driver, dcgm=True), DEBIAN, facts(cuda=cuda), {})
    assert [name for name in plan.packages if name.startswith("datacenter")] == [package]
    assert plan.services == ["nvidia-dcgm.service"] and plan.refusals == []


@pytest.mark.parametrize(
    "wish, message",
    [
        (Wish(dcgm=True), "cuda_dcgm_enabled: DCGM is in NVIDIA's repository only (cuda_repository: nvidia)"),
        (Wish(toolkit="13.0"), "cuda_toolkit and cuda_nccl versions are in NVIDIA's repository only (cuda_repository: nvidia)"),
        (Wish(nccl="2.28.9"), "cuda_toolkit and cuda_nccl versions are in NVIDIA's repository only (cuda_repository: nvidia)"),
    ],
)
def test_what_distributions_do_not_have(wish, message):
    assert make_plan(replace(wish, repository="distro"), RED_HAT, H200, {}).refusals == [message]


@pytest.mark.parametrize(
    "plan, servers, allowed, refusal",
    [
        (Plan(driver="580", driver_change=True), [], False, ""),
        (Plan(driver="580", driver_change=True), ["sglang-main.service"], True, ""),
        (Plan(driver="580", change=True), ["sglang-main.service"], False, ""),
        (Plan(driver="580", driver_change=True), ["sglang-main.service"], False, "the driver would change to 580 while sglang-main.service runs"),
        (
            Plan(driver="580", installed=OLD, driver_change=True),
            ["sglang-a.service", "sglang-b.service"],
            False,
            f"the driver would change from {OLD} to 580 while sglang-a.service, sglang-b.service runs",
        ),
    ],
)
def test_running_refusal(plan, servers, allowed, refusal):
    told = running_refusal(plan, servers, allowed)
    assert told.startswith(refusal) and bool(told) is bool(refusal)


# As apt 2.6 prints it: names right-aligned, versions of all sources together.
MADISON = """\
nvidia-driver-cuda | 580.159.04-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-driver-cuda | 580.95.05-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-driver-cuda | 575.57.08-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-kernel-open-dkms | 580.159.04-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-kernel-open-dkms | 580.95.05-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-kernel-open-dkms | 575.57.08-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-persistenced | 580.159.04-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-persistenced | 535.171.04-1~deb12u1 | file:/srv/apt/debian-nonfree bookworm/contrib amd64 Packages
nvidia-persistenced | 535.171.04-1~deb12u1 | http://deb.debian.org/debian bookworm/contrib amd64 Packages
nvidia-persistenced | 545.23.08-1 | http://deb.debian.org/debian bookworm-backports/contrib Sources
nvidia-modprobe | 580.159.04-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
nvidia-fabricmanager | 580.159.04-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
  libnccl2 | 2.28.9-1+cuda13.0 | file:/srv/apt/nvidia/debian12/x86_64  Packages
  libnccl2 | 2.27.7-1+cuda13.0 | file:/srv/apt/nvidia/debian12/x86_64  Packages
libnccl-dev | 2.28.9-1+cuda13.0 | file:/srv/apt/nvidia/debian12/x86_64  Packages
libnccl-dev | 2.27.7-1+cuda13.0 | file:/srv/apt/nvidia/debian12/x86_64  Packages
datacenter-gpu-manager-4-cuda13 |  1:4.4.1-1 | file:/srv/apt/nvidia/debian12/x86_64  Packages
"""
AVAILABLE = parse_madison(MADISON)


def test_parse_madison():
    assert AVAILABLE["nvidia-driver-cuda"] == ["580.159.04-1", "580.95.05-1", "575.57.08-1"]
    assert AVAILABLE["nvidia-persistenced"] == ["580.159.04-1", "535.171.04-1~deb12u1"], "of several sources once; sources cannot be installed"
    assert AVAILABLE["libnccl2"][0] == "2.28.9-1+cuda13.0" and AVAILABLE["datacenter-gpu-manager-4-cuda13"] == ["1:4.4.1-1"]
    assert parse_madison("") == parse_madison("N: Unable to locate package x\n") == parse_madison("W: a | b\n") == {}


@pytest.mark.parametrize(
    "only, versions",
    [
        pytest.param("", ["580.159.04-1", "535.171.04-1~deb12u1"], id="all"),
        pytest.param("file:/srv/apt/nvidia/debian12/x86_64", ["580.159.04-1"], id="one-slash"),
        pytest.param("file:///srv/apt/nvidia/debian12/x86_64/", ["580.159.04-1"], id="three-slashes"),
        pytest.param("http://deb.debian.org/debian/", ["535.171.04-1~deb12u1"], id="another"),
        pytest.param("https://mirror.example.org/cuda/", ["580.159.04-1", "535.171.04-1~deb12u1"], id="has-it-not"),
        pytest.param("file:/srv/apt/nvidia/debian12/x86", ["580.159.04-1", "535.171.04-1~deb12u1"], id="letters-of-an-address"),
    ],
)
def test_sources_do_not_mix(only, versions):
    found = parse_madison(MADISON, only)
    assert found["nvidia-persistenced"] == versions
    assert {name: kept for name, kept in found.items() if name != "nvidia-persistenced"} == {
        name: kept for name, kept in AVAILABLE.items() if name != "nvidia-persistenced"
    }, "what the repository does not have comes from elsewhere"


def choice(wish, installed=None, held=(), available=None):
    plan = make_plan(wish, DEBIAN, H200, installed or {})
    assert plan.refusals == []
    return choose_versions(Plan(**asdict(plan)), available or AVAILABLE, held)


@pytest.mark.parametrize(
    "wish, installed, chosen",
    [
        pytest.param(DRIVER, {}, dict.fromkeys(BOTH, LATEST), id="newest-of-the-branch"),
        pytest.param(replace(DRIVER, driver=OLDER), {}, dict.fromkeys(BOTH, OLDER), id="exact"),
        pytest.param(replace(DRIVER, driver="575"), debian(LATEST), dict.fromkeys(BOTH, OLD), id="downgrade"),
        pytest.param(replace(DRIVER, driver="580.95"), {}, dict.fromkeys(BOTH, OLDER), id="part-of-a-version"),
        pytest.param(Wish("580"), {}, dict.fromkeys((*BOTH, "nvidia-persistenced"), LATEST), id="the-persistence-daemon"),
        pytest.param(replace(DRIVER, fabric_manager="true"), {}, dict.fromkeys((*BOTH, "nvidia-fabricmanager"), LATEST), id="fabric-manager"),
        pytest.param(DRIVER, debian(OLDER, nvidia_kernel_open_dkms="575.57.08-1"), dict.fromkeys(BOTH, LATEST), id="mixed"),
        pytest.param(
            replace(DRIVER, dcgm=True), debian(OLDER), {**dict.fromkeys(BOTH, OLDER), "datacenter-gpu-manager-4-cuda13": ""}, id="beside-an-installed-driver"
        ),
        pytest.param(Wish(nccl="2.28.9"), {}, dict.fromkeys(("libnccl2", "libnccl-dev"), "2.28.9-1+cuda13.0"), id="nccl"),
        pytest.param(Wish(nccl="2.27"), {}, dict.fromkeys(("libnccl2", "libnccl-dev"), "2.27.7-1+cuda13.0"), id="nccl-part"),
        pytest.param(Wish(nccl="2.28.9-1+cuda13.0"), {}, dict.fromkeys(("libnccl2", "libnccl-dev"), "2.28.9-1+cuda13.0"), id="nccl-exactly"),
        pytest.param(Wish("none", nccl="2.28.9"), debian(OLD), dict.fromkeys(("libnccl2", "libnccl-dev"), "2.28.9-1+cuda13.0"), id="nccl-alone"),
    ],
)
def test_choose_versions(wish, installed, chosen):
    modprobe = {"nvidia-modprobe": ""} if wish.driver != "none" else {}
    assert choice(wish, installed) == ({**chosen, **modprobe}, [])


NCCL = ["2.28.9-1+cuda13.0", "2.28.9-1+cuda12.9", "2.27.7-1+cuda13.0", "2.27.7-1"]


@pytest.mark.parametrize(
    "driver, cuda, nccl, installed, chosen",
    [
        pytest.param("none", "13.0", "2.28.9", "", "2.28.9-1+cuda13.0", id="newest"),
        pytest.param("none", "12.8", "2.28.9", "", "2.28.9-1+cuda12.9", id="minor-versions-do-not-matter"),
        pytest.param("570", "13.0", "2.28.9", "", "2.28.9-1+cuda12.9", id="of-the-driver-that-will-be-there"),
        pytest.param("570", "13.0", "2.28.9", "2.28.9-1+cuda13.0", "2.28.9-1+cuda12.9", id="installed-for-a-newer-driver"),
        pytest.param("none", "12.4", "2.27", "", "2.27.7-1", id="says-no-cuda"),
        pytest.param("none", "12.4", "2.28.9-1+cuda13.0", "", "", id="exactly-the-newer"),
    ],
)
def test_nccl_is_not_built_for_a_newer_cuda(driver, cuda, nccl, installed, chosen):
    names = ("libnccl2", "libnccl-dev")
    plan = make_plan(Wish(driver, nccl=nccl, persistence=False), GUEST, facts(cuda=cuda), dict.fromkeys(names, installed) if installed else {})
    versions, refusals = choose_versions(plan, {"nvidia-driver-cuda": ["570.1-1"], **dict.fromkeys(names, NCCL)})
    assert [versions.get(name, "") for name in names] == [chosen] * 2 and plan.change
    told = f" {nccl} for CUDA {cuda} is not in the repository, which has 2.28.9, 2.27.7"
    assert refusals == ([] if chosen else [name + told for name in names])


@pytest.mark.parametrize(
    "wish, held, refusal",
    [
        pytest.param(
            replace(DRIVER, driver="590"),
            (),
            "nvidia-driver-cuda 590 is not in the repository, which has 580.159.04, 580.95.05, 575.57.08",
            id="branch",
        ),
        pytest.param(replace(DRIVER, driver="580.95.06"), (), "nvidia-driver-cuda 580.95.06 is not in the repository, which has 580.159.04", id="version"),
        pytest.param(replace(DRIVER, driver="580.9"), (), "nvidia-driver-cuda 580.9 is not in the repository, which has 580.159.04", id="digits-of-a-version"),
        pytest.param(Wish(nccl="2.2"), (), "libnccl2 2.2 is not in the repository, which has 2.28.9, 2.27.7", id="digits-of-nccl"),
        pytest.param(Wish(nccl="2.28.9-1+cuda12.9"), (), "libnccl2 2.28.9-1+cuda12.9 is not in the repository, which has 2.28.9, 2.27.7", id="cuda-of-nccl"),
        pytest.param(Wish(toolkit="13.1"), (), "cuda-toolkit-13-1 is not in the repository: check cuda_repository and cuda_driver", id="package"),
        pytest.param(replace(DRIVER, open_module=False), (), "nvidia-kernel-dkms is not in the repository", id="no-proprietary-module"),
        pytest.param(
            DRIVER,
            ("nvidia-kernel-open-dkms", "linux-image-amd64"),
            "nvidia-kernel-open-dkms is held by hand (`apt-mark hold`) and would have to change: `apt-mark unhold nvidia-kernel-open-dkms` first",
            id="held",
        ),
        pytest.param(
            DRIVER,
            ("libnvidia-ml1", "nvidia-container-toolkit", "libnvidia-container1"),
            "libnvidia-ml1 is held by hand (`apt-mark hold`) and would have to change: `apt-mark unhold libnvidia-ml1` first",
            id="held-part-of-the-driver",
        ),
        pytest.param(
            replace(DRIVER, driver=OLDER, fabric_manager="true"),
            (),
            f"nvidia-fabricmanager {OLDER} is not in the repository, which has 580.159.04",
            id="fabric",
        ),
    ],
)
def test_choose_versions_refuses(wish, held, refusal):
    versions, refusals = choice(wish, debian(OLD, libnvidia_ml1=f"{OLD}-1"), held)
    assert versions == {} and any(told.startswith(refusal) for told in refusals), refusals


@pytest.mark.parametrize("held", ["libnvinfer10", "libnvme1", "nvidia-settings", "libnvidia-container1", "linux-image-amd64"])
def test_what_goes_with_any_driver_may_be_held(held):
    """apt's globs name them, and their versions are not the driver's."""
    others = {"libnvinfer10": "10.13.3.9-1+cuda13.0", "libnvme1": "1.3-1", "nvidia_settings": "535.171.04-1", "libnvidia_container1": "1.17.8-1"}
    versions, refusals = choice(DRIVER, debian(OLD, **others), [held])
    assert (versions, refusals) == ({**dict.fromkeys(BOTH, LATEST), "nvidia-modprobe": ""}, [])


def test_what_is_right_already_need_not_be_in_the_repository():
    """Debian's archive keeps one version only; and a driver held by hand at the wanted version is no obstacle to DCGM."""
    there = {name: versions[:1] for name, versions in AVAILABLE.items()}
    wish = replace(DRIVER, dcgm=True, nccl="2.28.9")
    versions, refusals = choice(wish, debian(OLDER, libnccl2="2.28.9-1+cuda13.0"), held=(*BOTH, "libnccl2"), available=there)
    assert refusals == []
    nccl = dict.fromkeys(("libnccl2", "libnccl-dev"), "2.28.9-1+cuda13.0")
    assert versions == {**dict.fromkeys(BOTH, OLDER), **nccl, "datacenter-gpu-manager-4-cuda13": "", "nvidia-modprobe": ""}
    assert choice(DRIVER, debian(OLDER), held=("libnvidia-ml1", "libnvidia-container1"))[1] == []
    for held in (BOTH[:1], ("nvidia-persistenced",)):
        refusals = choice(Wish("580"), debian(OLDER, nvidia_kernel_open_dkms=f"{LATEST}-1", nvidia_persistenced=f"{OLDER}-1"), held=held)[1]
        assert refusals[0].startswith(f"{held[0]} is held by hand"), "a driver changes as a whole"


def test_apt_preferences():
    assert apt_preferences("", {}) == ""
    assert apt_preferences("", {"cuda-toolkit-13-0": ""}) == ""
    assert apt_preferences(LATEST, {"nvidia-driver-cuda": LATEST, "libnccl2": "2.28.9", "libnccl-dev": "2.28.9", "nvidia-persistenced": ""}) == (
        f"Package: {APT_DRIVER_GLOBS}\nPin: version 580.159.04*\nPin-Priority: 1001\n"
        "\nPackage: libnccl-dev\nPin: version 2.28.9*\nPin-Priority: 1001\n"
        "\nPackage: libnccl2\nPin: version 2.28.9*\nPin-Priority: 1001\n"
    )


NO_KEY = (
    "W: GPG error: file:/srv/apt/nvidia/debian12/x86_64  InRelease: The following signatures couldn't be verified because the public key is not available: "
    "NO_PUBKEY 7B9C2E4D5F60A1B3\nE: The repository 'file:/srv/apt/nvidia/debian12/x86_64  InRelease' is not signed."
)
# What apt says of a repository that it has read before.
STALE = (
    "W: An error occurred during the signature verification. The repository is not updated and the previous index files will be used. GPG error: "
    "https://mirror.example.org/cuda  InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B4\n"
    "W: Failed to fetch https://mirror.example.org/cuda/InRelease  The following signatures couldn't be verified because the public key is not available: "
    "NO_PUBKEY A4B4\nW: Some index files failed to download. They have been ignored, or old ones used instead."
)
# What apt of Debian 13 says, which asks sqv instead of gpgv.
SQV = "Sub-process /usr/bin/sqv returned an error code (1), error message is: "
SQV_MISSING = f"{SQV}Missing key 02182E60104FCDC26EAE1B8597A5D4CB8793F200, which is needed to verify signature."
SQV_EXPIRED = f"{SQV}The primary key is not live   because: "
SQV_WEAK = f"{SQV}Signing key on 02182E60 is not bound:   No binding signature   because: SHA1 is not considered secure since 2026-02-01T00:00:00Z"
NOT_ACCEPTED = "the repository's signature is by a key that is not accepted any more"
MISSING = "the repository is signed with key 02182E60104FCDC26EAE1B8597A5D4CB8793F200, which is not the given one"
FETCH = "Failed to fetch https://mirror.example.org/cuda/InRelease  "
APT = [
    pytest.param(f"Warning: OpenPGP signature verification failed: x: {SQV_MISSING}", [("apt_key_missing", MISSING)], id="sqv-key"),
    pytest.param(f"Warning: {FETCH}{SQV_MISSING}", [("apt_key_missing", MISSING)], id="sqv-key-of-a-known-repository"),
    pytest.param(f"{FETCH}{SQV_EXPIRED}Expired on 2024-12-12T00:00:00Z", [("apt_key_expired", f"{NOT_ACCEPTED} (Expired)")], id="sqv-expired"),
    pytest.param(f"{FETCH}{SQV_EXPIRED}it has expired", [("apt_key_expired", f"{NOT_ACCEPTED} (expired)")], id="sqv-expired-in-other-words"),
    pytest.param(f"Error: {FETCH}{SQV_WEAK}", [("apt_key_expired", f"{NOT_ACCEPTED} (SHA1)")], id="sqv-weak"),
    pytest.param(
        f"E: {FETCH}404  Not Found\nW: x: {SQV_MISSING}",
        [("apt_key_missing", MISSING), ("apt_unreachable", "the repository cannot be reached (https://mirror.example.org/cuda/InRelease)")],
        id="sqv-of-another-repository",
    ),
    pytest.param(NO_KEY, [("apt_key_missing", "the repository is signed with key 7B9C2E4D5F60A1B3, which is not the given one")], id="key"),
    pytest.param(STALE, [("apt_key_missing", "the repository is signed with key A4B4, which is not the given one")], id="key-of-a-known-repository"),
    pytest.param(
        "The following signatures were invalid: EXPKEYSIG 0123456789ABCDEF llmops.inference test archive (expired)",
        [("apt_key_expired", "the repository's signature is by key 0123456789ABCDEF, which has expired")],
        id="expired",
    ),
    pytest.param(
        "E: Conflicting values set for option Signed-By regarding source file:/srv/apt/nvidia/debian12/x86_64/ /: /etc/apt/keyrings/good.gpg != "
        "/etc/apt/keyrings/good.asc\nE: The list of sources could not be read.",
        [("apt_signed_by_conflict", "the repository file:/srv/apt/nvidia/debian12/x86_64/ is configured twice with different keys")],
        id="twice",
    ),
    pytest.param(
        "E: Unable to correct problems, you have held broken packages.", [("apt_held", "packages are held, or their versions do not fit together")], id="broken"
    ),
    pytest.param(
        "E: Held packages were changed and -y was used without --allow-change-held-packages.",
        [("apt_held", "packages are held, or their versions do not fit together")],
        id="held",
    ),
    pytest.param("E: Packages were downgraded and -y was used without --allow-downgrades.", [], id="says-it-itself"),
    pytest.param(
        "E: Failed to fetch http://192.0.2.1/cuda/Packages  404  Not Found",
        [("apt_unreachable", "the repository cannot be reached (http://192.0.2.1/cuda/Packages)")],
        id="not-found",
    ),
    pytest.param(
        "W: Failed to fetch http://mirror.invalid/cuda/InRelease  Could not resolve 'mirror.invalid'",
        [("apt_unreachable", "the repository cannot be reached (http://mirror.invalid/cuda/InRelease)")],
        id="no-such-host",
    ),
    pytest.param(
        "Could not connect to 192.0.2.1:80 (192.0.2.1), connection timed out",
        [("apt_unreachable", "the repository cannot be reached (192.0.2.1:80)")],
        id="no-connection",
    ),
    pytest.param("E: You don't have enough free space in /var/cache/apt/archives/.", [("disk_full", "the disk is full")], id="disk"),
    pytest.param(
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4242 (unattended-upgr)",
        [("dpkg_locked", "another package manager holds /var/lib/dpkg/lock-frontend")],
        id="locked",
    ),
    pytest.param("Reading package lists...\nE: Unable to locate package nvidia-open-999", [], id="another"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize("output, causes", APT)
def test_explain_apt(output, causes):
    found = explain_apt(output)
    assert [(diagnosis.code, diagnosis.cause) for diagnosis in found] == causes
    assert all(diagnosis.hint and diagnosis.evidence[0] in output for diagnosis in found)


def test_several_causes_of_apt():
    """I02: a rotated key and an older entry at once."""
    found = {diagnosis.code: diagnosis for diagnosis in explain_apt((CASES / "i02_apt_conflict.txt").read_text())}
    assert set(found) == {"apt_key_missing", "apt_signed_by_conflict"}
    assert "key A4B469963BF863CC" in found["apt_key_missing"].cause and "cuda_repository_key" in found["apt_key_missing"].hint
    assert "https://mirror.example.org/compute/cuda/repos/ubuntu2204/x86_64/ is configured twice" in found["apt_signed_by_conflict"].cause
    assert "older cuda*.list" in found["apt_signed_by_conflict"].hint


KERNEL = "6.1.0-40-amd64"
BUILT = f"nvidia/580.159.04, {KERNEL}, x86_64: installed\n"
REJECTED = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n"
ABSENT = f"modprobe: FATAL: Module nvidia not found in directory /lib/modules/{KERNEL}\n"
NO_DEVICE = "modprobe: ERROR: could not insert 'nvidia': No such device\n"


@pytest.mark.parametrize(
    "modprobe, dkms, secure_boot, code, cause",
    [
        pytest.param(
            REJECTED, BUILT, "SecureBoot enabled\n", "secure_boot_key", "Secure Boot is on and the NVIDIA module's key is not enrolled", id="secure-boot"
        ),
        pytest.param(
            "modprobe: ERROR: could not insert 'nvidia': Required key not available",
            BUILT,
            "SecureBoot enabled",
            "secure_boot_key",
            "Secure Boot is on and the",
            id="secure-boot-of-older-kernels",
        ),
        pytest.param(
            REJECTED, BUILT, "EFI variables are not supported on this system\n", "secure_boot_key", "the kernel checks modules, and the", id="without-firmware"
        ),
        pytest.param(ABSENT, "", "", "module_not_built", f"DKMS has built no NVIDIA module for the running kernel {KERNEL}", id="no-dkms"),
        pytest.param(ABSENT, "nvidia/580.159.04: added\n", "", "module_not_built", "DKMS has built no", id="not-built-or-failed"),
        pytest.param(ABSENT, BUILT.replace("-40-", "-39-"), "", "module_not_built", "DKMS has built no", id="for-the-kernel-before"),
        pytest.param(ABSENT, BUILT.replace("amd64", "amd64-rt"), "", "module_not_built", "DKMS has built no", id="for-another-flavour"),
        pytest.param(ABSENT, BUILT.replace("nvidia/", "zfs/"), "", "module_not_built", "DKMS has built no", id="another-module"),
        pytest.param(
            ABSENT,
            BUILT.replace("installed", "broken") + "nvidia/575.57.08: added\n",
            "",
            "module_build_failed",
            f"DKMS could not build the module: nvidia/580.159.04, {KERNEL}, x86_64: broken",
            id="build-failed",
        ),
        pytest.param(NO_DEVICE, BUILT, "", "no_gpu_for_module", "the module finds no GPU that it drives", id="no-device"),
        pytest.param(NO_DEVICE, "", "", "no_gpu_for_module", "the module finds no GPU that it drives", id="no-device-with-a-module-of-the-distribution"),
        pytest.param(
            "modprobe: ERROR: could not insert 'nvidia': Operation not permitted\n",
            BUILT.replace("nvidia/", "nvidia, "),
            "SecureBoot disabled\n",
            "module_not_loaded",
            "the NVIDIA module cannot be loaded (modprobe: ERROR: could not insert 'nvidia': Operation not permitted)",
            id="another-error",
        ),
        pytest.param("", BUILT, "", "module_not_loaded", "the NVIDIA module cannot be loaded", id="no-error"),
    ],
)
def test_explain_module(modprobe, dkms, secure_boot, code, cause):
    found = explain_module(modprobe, dkms, secure_boot, KERNEL)
    assert found.code == code and found.cause.startswith(cause), found.cause
    assert found.hint


def test_evidence_of_a_module():
    assert explain_module(ABSENT + "\nb\nc\nd\n", "", "", KERNEL).evidence == [ABSENT.strip(), "b", "c"]
    assert explain_module("", "nvidia/580.159.04: added\n", "", KERNEL).evidence == ["nvidia/580.159.04: added"]
    assert f"linux-headers-{KERNEL}" in explain_module(ABSENT, "", "", KERNEL).hint
