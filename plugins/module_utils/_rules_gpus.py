# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether the GPUs that a server sees are those that it needs. The engine compares nothing: a rank dies of an invalid device ordinal."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import replicas
from ansible_collections.llmops.inference.plugins.module_utils._visible_gpus import Device, Visible, see

_IDS = "sglang entrypoints/engine.py:603 (0.5.12) / :935 (0.5.23), managers/data_parallel_controller.py:264 / :445"
_NO_DEVICE = "sglang utils/common.py get_device: No accelerator is available"
_VARIABLE = "CUDA C++ Programming Guide, CUDA Environment Variables: CUDA_VISIBLE_DEVICES; torch cuda/__init__.py _parse_visible_devices"
_ORDER = "CUDA C++ Programming Guide, CUDA Environment Variables: CUDA_DEVICE_ORDER (FASTEST_FIRST by default)"
_MIG = "NVIDIA MIG User Guide: CUDA device enumeration (a process sees a single MIG device)"
_MEMORY = "sglang utils/common.py:832 (0.5.23) get_nvgpu_memory_capacity, distributed/bootstrap.py:445: The memory capacity is unbalanced"
_FIELDS = ("tp_size", "pp_size", "dp_size")


def seen(candidate: Candidate) -> Visible:
    """Returns what the server sees of the host's GPUs (of none where they are not known)."""
    return see(candidate.gpus or (), candidate.environment.get("CUDA_VISIBLE_DEVICES"))


def visible_gpus(candidate: Candidate) -> list[Device]:
    """Returns the devices that the server sees, in its own numbering."""
    return list(seen(candidate).devices)


def gpus_needed(candidate: Candidate) -> list[int]:
    """Returns the device number of each rank on one node, as the engine computes them."""
    tp_size, pp_size, nnodes = (max(candidate.whole(name, 1), 1) for name in ("tp_size", "pp_size", "nnodes"))
    step = candidate.whole("gpu_id_step", 1)
    stages = max(pp_size // nnodes, 1)
    ranks = max(tp_size // max(nnodes // pp_size, 1), 1)
    return [
        candidate.whole("base_gpu_id", 0) + replica * tp_size * pp_size * step + stage * ranks + rank * step
        for replica in range(max(replicas(candidate), 1))
        for stage in range(stages)
        for rank in range(ranks)
    ]


def used_gpus(candidate: Candidate) -> list[Device]:
    """Returns the devices that this node's ranks run on, of those that there are."""
    devices = visible_gpus(candidate)
    return [devices[number] for number in gpus_needed(candidate) if 0 <= number < len(devices)]


def gpu_count(candidate: Candidate) -> list[Finding]:
    """There must be a GPU for each rank of this node (case F12)."""
    if not _judges(candidate):
        return []
    visible, needed = seen(candidate), gpus_needed(candidate)
    there = len(visible.devices)
    if not there:
        return [_none(candidate, visible)]
    if min(needed) >= 0 and max(needed) < there:
        return []
    if visible.devices[0].mig:
        text = f"a process sees 1 MIG device and this node needs {len(needed)} GPUs ({_sum(candidate)})"
        return [Finding("mig_is_one_gpu", "error", text, "set tp_size, pp_size and dp_size to 1, or use GPUs without MIG", _MIG, _FIELDS)]
    if len(needed) > there:
        text = f"this node needs {len(needed)} GPUs ({_sum(candidate)}) and the server sees {there}{_why_so_few(visible)}"
        hint = f"lower tp_size, pp_size or dp_size until {there} GPUs suffice, or let the server see more of them"
        return [Finding("too_few_gpus", "error", text, hint, _IDS, _FIELDS)]
    base, step = candidate.whole("base_gpu_id", 0), candidate.whole("gpu_id_step", 1)
    text = f"base_gpu_id {base} and gpu_id_step {step} lead to GPU {max(needed)}, the server sees 0 to {there - 1}{_why_so_few(visible)}"
    hint = "lower base_gpu_id or gpu_id_step: they count among the GPUs that CUDA_VISIBLE_DEVICES leaves"
    return [Finding("gpu_id_out_of_range", "error", text, hint, _IDS, ("base_gpu_id", "gpu_id_step"))]


def gpus_shared(candidate: Candidate) -> list[Finding]:
    """With gpu_id_step and pipeline stages the engine gives one GPU to two ranks: the step is missing from a stage's offset."""
    needed = gpus_needed(candidate)
    if len(set(needed)) == len(needed) or not _judges(candidate):
        return []
    text = f"two ranks get the same GPU: pp_size {candidate.value('pp_size', 1)} with gpu_id_step {candidate.value('gpu_id_step', 1)} gives {needed}"
    return [Finding("gpu_shared_by_ranks", "warning", text, "set gpu_id_step to 1 and order CUDA_VISIBLE_DEVICES instead", _IDS, ("gpu_id_step", "pp_size"))]


def visible_devices_form(candidate: Candidate) -> list[Finding]:
    """An invalid entry ends the list, a repeated one empties it, a second MIG device is not seen (case F12)."""
    if not _judges(candidate):
        return []
    visible = seen(candidate)
    # Without a device at all another finding says why.
    if not visible.devices:
        return []
    findings = []
    if visible.ignored:
        text = f"CUDA_VISIBLE_DEVICES ends before {visible.ignored[0]!r}, which names no GPU here: the server sees {len(visible.devices)}"
        hint = "name GPUs by index or all by GPU-uuid, each one that exists, as `nvidia-smi -L` lists them"
        findings.append(Finding("visible_devices_cut", "warning", text, hint, _VARIABLE))
    if visible.hidden and candidate.environment.get("CUDA_VISIBLE_DEVICES") is not None:
        text = f"CUDA_VISIBLE_DEVICES names {visible.hidden + 1} devices, of which a process sees one MIG device only"
        findings.append(Finding("mig_hides_devices", "warning", text, "name exactly one MIG device for each server", _MIG))
    return findings


def gpu_order(candidate: Candidate) -> list[Finding]:
    """Indexes count the fastest GPU first, not in the order of nvidia-smi, unless CUDA_DEVICE_ORDER is PCI_BUS_ID (case F12)."""
    names = list(dict.fromkeys(str(gpu.get("name", "")) for gpu in candidate.gpus or ()))
    variable = candidate.environment.get("CUDA_VISIBLE_DEVICES", "")
    if len(names) < 2 or not _judges(candidate) or variable.startswith(("GPU-", "MIG-")):
        return []
    if candidate.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return []
    text = f"this host has different GPUs ({', '.join(names)}), which CUDA numbers by speed and nvidia-smi by bus"
    hint = "set CUDA_DEVICE_ORDER=PCI_BUS_ID in the server's environment, or name GPUs by uuid"
    return [Finding("gpu_order_mixed", "warning", text, hint, _ORDER)]


def gpu_memory(candidate: Candidate) -> list[Finding]:
    """Under tensor parallelism all ranks get as much KV cache as the smallest GPU allows."""
    sizes = sorted({device.memory_total_mib for device in used_gpus(candidate) if device.memory_total_mib})
    if len(sizes) < 2 or candidate.whole("tp_size", 1) < 2 or not _judges(candidate):
        return []
    text = f"the server's GPUs have {sizes[0]} to {sizes[-1]} MiB: the smallest decides how much each of them uses"
    return [Finding("gpu_memory_mixed", "note", text, "use equal GPUs for one server", _MEMORY, ("tp_size",))]


def _judges(candidate: Candidate) -> bool:
    """The hardware is known and meant: no other device was asked for."""
    other = candidate.environment.get("SGLANG_USE_CPU_ENGINE") == "1"
    return candidate.gpus is not None and not other and str(candidate.value("device", "cuda")).startswith("cuda")


def _none(candidate: Candidate, visible: Visible) -> Finding:
    variable = candidate.environment.get("CUDA_VISIBLE_DEVICES")
    if not candidate.gpus:
        text, hint = "this host has no NVIDIA GPU and the server is to run on one", "use a host with a GPU, or set device to cpu with an engine for CPUs"
        return Finding("no_gpu", "error", text, hint, _NO_DEVICE, ("device",))
    if variable is None:
        text, hint = "every GPU of this host is split by MIG and has no MIG device", "create MIG devices, or switch MIG off"
        return Finding("no_gpu_visible", "error", text, hint, _MIG)
    why = f": it names {visible.repeated} twice" if visible.repeated else ""
    text = f"CUDA_VISIBLE_DEVICES={variable!r} leaves the server no GPU{why}"
    hint = f"name GPUs from 0 to {len(candidate.gpus) - 1}, or by the uuids of `nvidia-smi -L`"
    return Finding("no_gpu_visible", "error", text, hint, _VARIABLE)


def _sum(candidate: Candidate) -> str:
    factors = [f"tp_size {candidate.value('tp_size', 1)}"]
    if candidate.whole("pp_size", 1) > 1:
        factors.append(f"pp_size {candidate.value('pp_size')}")
    if replicas(candidate) > 1:
        factors.append(f"dp_size {replicas(candidate)}")
    nodes = candidate.whole("nnodes", 1)
    return " x ".join(factors) + (f" over {nodes} nodes" if nodes > 1 else "")


def _why_so_few(visible: Visible) -> str:
    return f" (CUDA_VISIBLE_DEVICES counts up to {visible.ignored[0]!r})" if visible.ignored else ""


RULES: t.Tuple[t.Callable[[Candidate], t.List[Finding]], ...] = (gpu_count, gpus_shared, visible_devices_form, gpu_order, gpu_memory)
