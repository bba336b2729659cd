# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks of this scenario have in common."""

from __future__ import annotations

import os
import shlex

import pytest
import testinfra

OLD, NEW = "580.95.05", "580.159.04"


@pytest.fixture(scope="session")
def machine():
    """The host that plays a bare machine with two GPUs."""
    return testinfra.get_host("podman://llmops-cuda")


@pytest.fixture(scope="session")
def guest():
    """The host that is a container with its host's driver."""
    return testinfra.get_host("podman://llmops-lxc")


@pytest.fixture(scope="session")
def cuda(playbook):
    """Runs the playbook on one host with other variables."""

    def run(host, *options, **variables):
        return playbook("cuda", "-l", host, *options, **variables)

    return run


@pytest.fixture(scope="session")
def keys():
    """Directory with the repositories' keys."""
    return f"{os.environ['LLMOPS_CACHE']}/apt/keys"


def write(host, path, text):
    """Writes a file of the stand-ins."""
    host.check_output("printf %%s %s > %s", text, path)


def module_loaded(host, version):
    """Lets the kernel run a module of that version, as after a reboot."""
    write(host, "/srv/stand-in/root/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n")


def driver_packages(host):
    """Package -> version of whatever belongs to the driver."""
    lines = host.check_output("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n'").splitlines()
    rows = [line.split() for line in lines if line.endswith(" installed")]
    return {name: version for name, version, _state in rows if name.startswith(("nvidia-", "libcuda1", "libnvidia-")) and version[0] == "5"}


class Answer:
    """Replaces what a command answers while a check runs."""

    def __init__(self, host, call, text, status):
        self._host, self._path = host, "/srv/stand-in/commands/00-now.txt"
        write(host, self._path, f"$ {call}\n{text}\nrc={status}\n")

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._host.check_output(shlex.join(["rm", self._path]))
