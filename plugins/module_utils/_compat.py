# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether a driver and GPUs can run an engine: one pure function with its sources.

Sources: NVIDIA, CUDA Compatibility (minor version compatibility, forward compatibility); CUDA Toolkit Release Notes, table "CUDA Toolkit and
Minimum Required Driver Version for CUDA Minor Version Compatibility" and the architectures that CUDA 13 dropped; CUDA C++ Programming Guide,
Binary Compatibility and PTX Compatibility.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

# CUDA major -> oldest driver on Linux that runs it by minor version compatibility.
MINIMUM_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# CUDA major -> oldest compute capability that its libraries still have code for.
MINIMUM_CAPABILITY = {11: (3, 5), 12: (5, 0), 13: (7, 5)}
# The first driver branch that came with a CUDA version, newest first: what a driver supports when it does not say.
_SUPPORTED = (
    (615, "13.4"),
    (610, "13.3"),
    (595, "13.2"),
    (590, "13.1"),
    (580, "13.0"),
    (575, "12.9"),
    (570, "12.8"),
    (565, "12.7"),
    (560, "12.6"),
    (555, "12.5"),
    (550, "12.4"),
    (545, "12.3"),
    (535, "12.2"),
    (530, "12.1"),
    (525, "12.0"),
)
# Branches that NVIDIA lists as a base for forward compatibility; the others have ended or were new feature branches.
_FORWARD_BASES = (535, 570, 580, 590, 595, 610, 615)
# Products without the forward compatibility that data centre GPUs have.
_CONSUMER = re.compile(r"GeForce|TITAN|Quadro|\bRTX\b|\bGTX\b|\bT\d{3,4}\b", re.IGNORECASE)

MINOR_SOURCE = "NVIDIA, CUDA Compatibility: minor version compatibility"
FORWARD_SOURCE = "NVIDIA, CUDA Compatibility: forward compatibility"
BINARY_SOURCE = "NVIDIA, CUDA C++ Programming Guide: binary and PTX compatibility"


@dataclass(frozen=True)
class Machine:
    """What of a host decides.

    Attributes:
        driver: version of the loaded driver, empty where there is none.
        cuda: newest CUDA version that the driver says it supports, empty where it does not say.
        gpus: (name, compute capability) of each GPU; a capability may be empty.
        compatibility: CUDA version of an installed forward compatibility package (``cuda-compat``), empty where there is none.
    """

    driver: str = ""
    cuda: str = ""
    gpus: t.Sequence[tuple[str, str]] = ()
    compatibility: str = ""


@dataclass(frozen=True)
class Build:
    """What an engine was built for.

    Attributes:
        cuda: CUDA version of its torch, ``13.0``; empty for an engine without CUDA.
        architectures: what torch has kernels for: ``sm_80``, ``sm_90a``, ``compute_120``; empty where not known.
    """

    cuda: str = ""
    architectures: t.Sequence[str] = field(default_factory=tuple)


def numbers(version: str) -> tuple[int, ...]:
    """Returns a version's numbers, to compare by."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def supported_cuda(driver: str) -> str:
    """Returns the newest CUDA version that a driver supports, by its branch; empty for one older than the table."""
    branch = numbers(driver)[:1]
    return next((cuda for first, cuda in _SUPPORTED if branch >= (first,)), "")


def judge(machine: Machine, build: Build) -> list[Finding]:
    """Returns what is wrong, doubtful or worth knowing; nothing of severity ``error`` means that the engine can run.

    Args:
        machine: the host.
        build: the engine.
    """
    if not build.cuda or not (machine.driver or machine.gpus):
        return []
    return [
        *_judge_driver(machine, build.cuda),
        *(finding for name, capability in dict.fromkeys(machine.gpus) for finding in _judge_gpu(name, capability, build)),
    ]


def _judge_driver(machine: Machine, runtime: str) -> list[Finding]:
    needed = MINIMUM_DRIVER.get(numbers(runtime)[0])
    supported = machine.cuda or supported_cuda(machine.driver)
    if not machine.driver:
        return []
    if needed is None:
        text = f"this engine's CUDA {runtime} is newer than what this collection knows: the driver ({machine.driver}) was not judged"
        return [Finding("cuda_unknown", "warning", text, "", MINOR_SOURCE)]
    if numbers(machine.driver) >= numbers(needed):
        return _judge_minor(machine.driver, supported, runtime)
    consumer = [name for name, _capability in machine.gpus if _CONSUMER.search(name)]
    forward = _why_not_forward(machine, runtime, consumer)
    if machine.compatibility and not forward:
        text = f"driver {machine.driver} runs CUDA {runtime} through the forward compatibility package {machine.compatibility}"
        hint = "its libraries must come first: put their directory into LD_LIBRARY_PATH of the server"
        return [Finding("forward_compatibility", "warning", text, hint, FORWARD_SOURCE)]
    text = f"this engine's CUDA {runtime} needs NVIDIA driver {needed} or newer, the host runs {machine.driver}"
    text += f" (CUDA {supported} at most)" if supported else ""
    older = f"CUDA {supported.partition('.')[0]}" if supported else "an older CUDA"
    hint = f"install driver {numbers(needed)[0]} or newer (cuda_driver), or an engine built for {older}"
    hint += f"; the forward compatibility package does not help: {forward}" if machine.compatibility else ""
    return [Finding("driver_too_old", "error", text, hint, MINOR_SOURCE)]


def _why_not_forward(machine: Machine, runtime: str, consumer: t.Sequence[str]) -> str:
    if consumer:
        return f"it is not for {consumer[0]}"
    if numbers(machine.compatibility) < numbers(runtime):
        return f"it is of CUDA {machine.compatibility}"
    if numbers(machine.driver)[0] not in _FORWARD_BASES:
        return f"driver branch {numbers(machine.driver)[0]} is no base for it"
    return ""


def _judge_minor(driver: str, supported: str, runtime: str) -> list[Finding]:
    if not supported or numbers(supported) >= numbers(runtime):
        return []
    text = f"driver {driver} supports CUDA {supported}, the engine is built for {runtime}: kernels run by minor version compatibility, its PTX does not"
    hint = "kernels that are compiled to PTX at run time can fail with an unsupported toolchain: prefer a driver of the engine's CUDA version"
    return [Finding("minor_version_compatibility", "warning", text, hint, MINOR_SOURCE)]


def _judge_gpu(name: str, capability: str, build: Build) -> list[Finding]:
    own = numbers(capability)[:2]
    if len(own) != 2:
        return []
    oldest = MINIMUM_CAPABILITY.get(numbers(build.cuda)[0], (0, 0))
    if own < oldest:
        text = f"{name} has compute capability {capability}; CUDA {build.cuda} has no code for GPUs older than {oldest[0]}.{oldest[1]}"
        return [Finding("capability_too_old", "error", text, "use an engine built for an older CUDA, or another GPU", BINARY_SOURCE)]
    if not build.architectures or any(_runs_on(architecture, own) for architecture in build.architectures):
        return []
    text = f"the engine's torch has no kernel for {name} (compute capability {capability}): it has {', '.join(build.architectures)}"
    return [Finding("no_kernel_image", "error", text, "use an engine whose torch is built for this GPU", BINARY_SOURCE)]


def _runs_on(architecture: str, own: tuple[int, ...]) -> bool:
    """A cubin runs on its own major with the same or a newer minor, an ``a`` one only on exactly its own; PTX on anything newer."""
    found = re.fullmatch(r"(?P<kind>sm|compute)_(?P<major>\d+)(?P<minor>\d)(?P<suffix>[af]?)", architecture)
    if not found:
        return False
    theirs = int(found["major"]), int(found["minor"])
    if found["suffix"] == "a":
        return own == theirs
    if found["kind"] == "compute":
        return own >= theirs if not found["suffix"] else own[0] == theirs[0] and own >= theirs
    return own[0] == theirs[0] and own[1] >= theirs[1]
