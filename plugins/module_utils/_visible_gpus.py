# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which GPUs a process sees, and whether they suffice.

Sources: CUDA C++ Programming Guide, CUDA Environment Variables (``CUDA_VISIBLE_DEVICES``, ``CUDA_DEVICE_ORDER``); NVIDIA MIG User Guide, MIG Device
Names and CUDA device enumeration; torch ``cuda/__init__.py`` ``_parse_visible_devices``, which the engine asks through ``torch.cuda``.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._candidate import whole


@dataclass(frozen=True)
class Device:
    """A CUDA device that a process sees.

    Attributes:
        name: product name.
        uuid: of the GPU, or of its MIG device.
        memory_total_mib: memory; None where not known.
        compute_capability: ``9.0``; empty where not known.
        mig: it is a part of a GPU.
        gpu: index of the GPU in the facts.
    """

    name: str
    uuid: str
    memory_total_mib: int | None
    compute_capability: str
    mig: bool
    gpu: int


@dataclass(frozen=True)
class Visible:
    """What ``CUDA_VISIBLE_DEVICES`` comes to.

    Attributes:
        devices: in the order in which the process numbers them.
        ignored: entries that count for nothing, from the first invalid one on.
        repeated: an entry that is named twice, which leaves no device at all.
        hidden: devices that are named and yet not seen, because a process sees one MIG device and nothing beside it.
    """

    devices: tuple[Device, ...] = ()
    ignored: tuple[str, ...] = ()
    repeated: str = ""
    hidden: int = 0


def see(gpus: t.Sequence[t.Mapping[str, t.Any]], named: str | None) -> Visible:
    """Returns what a process sees.

    Args:
        gpus: the host's GPUs, in the order of the PCI bus.
        named: value of ``CUDA_VISIBLE_DEVICES``; None where it is not set.
    """
    if named is None:
        return _one_mig([device for index in range(len(gpus)) for device in _whole_gpu(gpus, index)], ())
    entries = [entry.strip() for entry in named.split(",")]
    devices: list[Device] = []
    kind = _kind(entries[0])
    for place, entry in enumerate(entries):
        found = _find(gpus, entry) if _kind(entry) == kind else []
        if not found:
            return _one_mig(devices, tuple(filter(None, entries[place:])))
        if any(device in devices for device in found):
            return Visible((), (), entry)
        devices += found
    return _one_mig(devices, ())


def _kind(entry: str) -> str:
    return entry[:4] if entry[:4] in ("GPU-", "MIG-") else ""


def _one_mig(devices: t.Sequence[Device], ignored: tuple[str, ...]) -> Visible:
    """A process sees one MIG device only, and no whole GPU beside it (NVIDIA MIG User Guide)."""
    first = next((device for device in devices if device.mig), None)
    if first is None:
        return Visible(tuple(devices), ignored)
    return Visible((first,), ignored, "", len(devices) - 1)


def _find(gpus: t.Sequence[t.Mapping[str, t.Any]], entry: str) -> list[Device]:
    """The devices of one entry: ``0``, ``GPU-uuid`` or the unique beginning of one, ``MIG-uuid``, ``MIG-GPU-uuid/gi/ci``."""
    if entry.startswith("MIG-GPU-"):
        parent = re.fullmatch(r"MIG-(GPU-[^/]+)/\d+/\d+", entry)
        index = _gpu_by_uuid(gpus, parent[1]) if parent else None
        return _legacy_part(gpus, index, entry) if index is not None else []
    if entry.startswith("MIG-"):
        parts = [part for index in range(len(gpus)) for part in _parts(gpus, index) if part.uuid.startswith(entry)]
        return parts if len(parts) == 1 else []
    if entry.startswith("GPU-"):
        index = _gpu_by_uuid(gpus, entry)
    else:
        # As strtoul reads it: ``1gpu`` is 1.
        number = re.match(r"\+?\d+", entry)
        index = int(number[0]) if number else None
    return _whole_gpu(gpus, index) if index is not None and index < len(gpus) else []


def _gpu_by_uuid(gpus: t.Sequence[t.Mapping[str, t.Any]], beginning: str) -> int | None:
    found = [index for index, gpu in enumerate(gpus) if str(gpu.get("uuid", "")).startswith(beginning)]
    return found[0] if len(found) == 1 else None


def _whole_gpu(gpus: t.Sequence[t.Mapping[str, t.Any]], index: int) -> list[Device]:
    """A GPU, or its first MIG device where it is split (none where the split has no device)."""
    gpu = gpus[index]
    if gpu.get("mig"):
        return _parts(gpus, index)[:1]
    memory = gpu.get("memory_total_mib")
    capability = str(gpu.get("compute_capability") or "")
    return [Device(str(gpu.get("name", "")), str(gpu.get("uuid", "")), memory, capability, False, index)]


def _parts(gpus: t.Sequence[t.Mapping[str, t.Any]], index: int) -> list[Device]:
    gpu = gpus[index]
    return [
        Device(
            f"{gpu.get('name', '')} MIG {part.get('profile', '')}",
            str(part.get("uuid", "")),
            _memory(str(part.get("profile", ""))),
            str(gpu.get("compute_capability") or ""),
            True,
            index,
        )
        for part in gpu.get("mig_devices") or ()
    ]


def _legacy_part(gpus: t.Sequence[t.Mapping[str, t.Any]], index: int, entry: str) -> list[Device]:
    """Names of drivers before 470 tell instances apart by numbers that the facts do not have: the only part, else one of unknown size."""
    parts = _parts(gpus, index)
    if len(parts) < 2:
        return parts
    gpu = gpus[index]
    return [Device(f"{gpu.get('name', '')} MIG", entry, None, str(gpu.get("compute_capability") or ""), True, index)]


def _memory(profile: str) -> int | None:
    """Memory by a profile's name: ``1g.10gb`` is nominally 10 GiB."""
    found = re.search(r"\.(\d+)gb\b", profile)
    return whole(found[1], 0) * 1024 if found else None
