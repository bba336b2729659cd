# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters of the role cuda, through Ansible's templating: values arrive as an inventory has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.llmops.inference.plugins.filter.cuda import FilterModule
from ansible_collections.llmops.inference.plugins.module_utils._cuda_plan import Plan, apt_preferences
from ansible_collections.llmops.inference.tests.unit.gpu import two_a6000
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__cuda_plan import CASES, H200, KERNEL, LATEST, MADISON, OLD, OLDER, REJECTED

VARS = Path(__file__).resolve().parents[4] / "roles" / "cuda" / "vars" / "main.yml"
DEFAULTS = yaml.safe_load((VARS.parents[1] / "defaults" / "main.yml").read_text())
# As package_facts returns them.
APT = {
    "nvidia-driver-cuda": [{"name": "nvidia-driver-cuda", "version": "580.95.05-1", "arch": "amd64", "source": "apt"}],
    "nvidia-kernel-open-dkms": [{"name": "nvidia-kernel-open-dkms", "version": "580.95.05-1", "arch": "amd64", "source": "apt"}],
    "nvidia-modprobe": [{"name": "nvidia-modprobe", "version": "535.161.07-1~deb12u1", "arch": "amd64", "source": "apt"}],
}
RPM = {
    "nvidia-driver-cuda": [{"name": "nvidia-driver-cuda", "version": "580.95.05", "release": "1.el9", "epoch": 3, "arch": "x86_64", "source": "rpm"}],
    "kmod-nvidia-open-dkms": [{"name": "kmod-nvidia-open-dkms", "version": "580.95.05", "release": "1.el9", "epoch": 3, "arch": "noarch", "source": "rpm"}],
    "nvidia-modprobe": [
        {"name": "nvidia-modprobe", "version": "575.57.08", "release": "1.el9", "epoch": 3, "arch": "x86_64", "source": "rpm"},
        {"name": "nvidia-modprobe", "version": "580.95.05", "release": "1.el9", "epoch": 3, "arch": "x86_64", "source": "rpm"},
    ],
}


def template(expression, **variables):
    return Templar(loader=DataLoader(), variables=variables).template(trust_as_template("{{ " + expression + " }}"))


def plan(packages=None, family="Debian", distribution="Debian", kind="bare", **inputs):
    """The role's own expressions, with its defaults and an inventory's inputs."""
    role = {name: trust_as_template(value) for name, value in yaml.safe_load(VARS.read_text())["__cuda_wish"].items()}
    variables = {**DEFAULTS, **inputs, "wish": role, "gpu": {**H200, "machine": {"kind": kind}}, "packages": packages or {}}
    variables["system"] = {"family": family, "distribution": distribution, "container": kind == "container"}
    return template("gpu | llmops.inference.cuda_plan(wish, system, packages)", **variables)


def test_every_filter_is_registered():
    assert sorted(FilterModule().filters()) == [
        "cuda_choice",
        "cuda_module_failure",
        "cuda_package_failure",
        "cuda_plan",
        "cuda_preferences",
        "cuda_running_refusal",
        "nccl_proposal",
        "nccl_summary",
    ]


def test_cuda_plan_by_default():
    found = plan(packages=APT)
    assert found == vars(Plan(kernel=True, cuda="13.0")), "nothing is asked for"


@pytest.mark.parametrize("packages, family", [(APT, "Debian"), (RPM, "RedHat")])
def test_cuda_plan_of_what_is_installed(packages, family):
    found = plan(packages=packages, family=family, distribution=family, cuda_driver="580", cuda_persistence_enabled=False)
    assert (found["installed"], found["change"], found["driver_change"]) == (OLDER, False, False)
    assert found["packages"] == {**dict.fromkeys(packages, OLDER), "nvidia-modprobe": ""}
    assert set(found["of_driver"]) == set(packages) - ({"nvidia-modprobe"} if family == "Debian" else set()), "of several versions the last"


@pytest.mark.parametrize(
    "inputs, packages, refusals",
    [
        pytest.param({"cuda_driver": 580}, ["nvidia-driver-cuda"], [], id="a-branch-without-quotes"),
        pytest.param({"cuda_driver": 580.142}, ["nvidia-driver-cuda"], [], id="a-version-that-yaml-takes-for-a-number"),
        pytest.param({"cuda_driver": None}, [], ["cuda_driver 'None' is none of none, loaded, a branch"], id="nothing"),
        pytest.param({"cuda_toolkit": 13.0, "cuda_nccl": "2.28.9"}, ["cuda-toolkit-13-0", "libnccl-dev", "libnccl2"], [], id="toolkit"),
        pytest.param({"cuda_fabric_manager": True, "cuda_driver": "580"}, ["nvidia-driver-cuda", "nvidia-fabricmanager"], [], id="boolean"),
        pytest.param({"cuda_fabric_manager": "false", "cuda_driver": "580"}, ["nvidia-driver-cuda"], [], id="text"),
    ],
)
def test_values_as_an_inventory_has_them(inputs, packages, refusals):
    found = plan(**inputs)
    assert set(packages) <= set(found["packages"])
    assert [told.startswith(start) for told, start in zip(found["refusals"], refusals)] == [True] * len(refusals) == [True] * len(found["refusals"])


@pytest.mark.parametrize("value, module", [("false", "nvidia-kernel-dkms"), ("no", "nvidia-kernel-dkms"), ("true", "nvidia-kernel-open-dkms")])
def test_booleans_of_the_command_line_are_text(value, module):
    """``-e cuda_driver_open_enabled=false`` passes the role's argument specification."""
    assert module in plan(cuda_driver="580", cuda_driver_open_enabled=value, cuda_dcgm_enabled="no")["packages"]


def test_cuda_running_refusal():
    units = "sglang-main.service loaded active running SGLang main\nsglang-b.service    loaded activating start SGLang b\n\n"
    wanted = plan(packages=APT, cuda_driver="575")
    told = template("plan | llmops.inference.cuda_running_refusal(units, false)", plan=wanted, units=units)
    assert told.startswith(f"the driver would change from {OLDER} to 575 while sglang-main.service, sglang-b.service runs: ")
    assert template("plan | llmops.inference.cuda_running_refusal(units, 'false')", plan=wanted, units=units) == told
    for units_now, allowed in (("", False), ("", "false"), (units, True), (units, "true")):
        assert template("plan | llmops.inference.cuda_running_refusal(units, allowed)", plan=wanted, units=units_now, allowed=allowed) == ""


def test_cuda_choice():
    wanted = plan(cuda_driver="580", cuda_persistence_enabled=False)
    expression = "plan | llmops.inference.cuda_choice(madison, held)"
    versions = {"nvidia-driver-cuda": LATEST, "nvidia-kernel-open-dkms": LATEST, "nvidia-modprobe": ""}
    assert template(expression, plan=wanted, madison=MADISON, held="") == {"versions": versions, "driver": LATEST, "refusals": []}
    refused = template(expression, plan=wanted, madison=MADISON, held="vim\nnvidia-driver-cuda\n")
    assert (refused["versions"], refused["driver"], len(refused["refusals"])) == ({}, "", 1)
    mixed = "".join(f"{name} | 2.99.1-1 | http://192.0.2.1/debian bookworm/non-free amd64 Packages\n" for name in ("libnccl2", "libnccl-dev")) + MADISON
    for only, version in (("", "2.99.1-1"), ("file:///srv/apt/nvidia/debian12/x86_64/", "2.28.9-1+cuda13.0")):
        found = template("plan | llmops.inference.cuda_choice(madison, '', only)", plan=plan(cuda_nccl="2"), madison=mixed, only=only)
        assert found["versions"] == {"libnccl2": version, "libnccl-dev": version}
    assert template("plan | llmops.inference.cuda_choice(madison)", plan=plan(cuda_nccl="2.27"), madison=MADISON)["driver"] == ""


def test_cuda_preferences():
    versions = {"nvidia-driver-cuda": OLD, "libnccl2": "2.28.9"}
    assert template("versions | llmops.inference.cuda_preferences(driver)", versions=versions, driver=OLD) == apt_preferences(OLD, versions)


@pytest.mark.parametrize(
    "output, told",
    [
        pytest.param((CASES / "i02_apt_conflict.txt").read_text(), ["older cuda*.list", "key A4B469963BF863CC", "cuda_repository_key"], id="I02"),
        pytest.param(
            "E: Packages were downgraded\n  and -y was used without --allow-downgrades.",
            ["E: Packages were downgraded and -y was used without --allow-downgrades."],
            id="no-rule",
        ),
        pytest.param("x" * 1000 + " the end", ["x the end"], id="long"),
        pytest.param("", [""], id="nothing"),
    ],
)
def test_cuda_package_failure(output, told):
    text = template("output | llmops.inference.cuda_package_failure", output=output)
    assert all(part in text for part in told) and len(text) <= 600, text


def test_cuda_module_failure():
    text = template("error | llmops.inference.cuda_module_failure(answers)", error=REJECTED, answers=["", "SecureBoot enabled\n", f"{KERNEL}\n"])
    assert text.startswith("Secure Boot is on and the NVIDIA module's key is not enrolled: enroll the key")
    text = template("error | llmops.inference.cuda_module_failure(answers)", error="", answers=["", "", f"{KERNEL}\n"])
    assert text.startswith(f"DKMS has built no NVIDIA module for the running kernel {KERNEL}: install the headers")


def test_nccl_proposal(tmp_path):
    facts = two_a6000(tmp_path).facts()
    alone = template("facts | llmops.inference.nccl_proposal", facts=facts)
    several = template("facts | llmops.inference.nccl_proposal(['lo', 'eth0', 'eth1', 'docker0'], 'eth0', 2)", facts=facts)
    assert all(set(entry) == {"name", "value", "reason"} for entry in (*alone, *several))
    assert "NCCL_SOCKET_IFNAME" in {entry["name"] for entry in several} - {entry["name"] for entry in alone}


def test_nccl_summary():
    assert template("{} | llmops.inference.nccl_summary('ct129')") == ["ct129: nothing was measured here"]
