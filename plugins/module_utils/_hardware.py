# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The hardware under a benchmark: what it is (a condition of every number), and how it ran meanwhile (clocks, power, temperature, throttling)."""

from __future__ import annotations

import re
import statistics
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Ask, Files, GpuHost
from ansible_collections.llmops.inference.plugins.module_utils._nvidia_smi import parse_query

_FIELDS = ("index", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
# Drivers before 535 know the second name only.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_SHOWN = 200
# Bits of NVML's nvmlClocksEventReasons. Idle, fixed application clocks and display settings take nothing away that was there before.
_THROTTLES = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}


def hardware(ask: Ask, files: Files, unit: str, machine: tuple[str, int, str]) -> dict[str, t.Any]:
    """Returns the record's ``hardware``: the GPUs that the server uses (all, where that cannot be seen), their links and driver, processors and kernel.

    Args:
        ask: runs a command of the host.
        files: reads its files.
        unit: the server's unit.
        machine: kind of processor where the system does not name it, number of processors, release of the kernel.
    """
    facts = GpuHost(ask, files).collect()
    own = [gpu for gpu in facts["gpus"] if any(process.get("unit") == unit for process in gpu["processes"])] or facts["gpus"]
    indices = {gpu["index"] for gpu in own}
    kinds = sorted({str(link["kind"]) for link in facts["links"] if set(link["gpus"]) <= indices})
    named = re.search(r"(?m)^model name\s*:\s*(.+)$", files.read("/proc/cpuinfo"))
    kind, count, kernel = machine
    return {
        "gpus": [{"name": gpu["name"], "memory_mib": gpu["memory_total_mib"], "power_limit_w": gpu["power_limit_w"]} for gpu in own],
        "links": " ".join(kinds),
        "driver": facts["driver"]["version"] if own else "",
        "cpu": named[1].strip() if named else kind,
        "cpus": count,
        "kernel": kernel,
    }


def throttles(mask: str) -> list[str]:
    """Returns the names of what slows a GPU down, from the bit mask that nvidia-smi prints (``0x0000000000000004``)."""
    bits = int(mask, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", mask) else 0
    return [name for bit, name in _THROTTLES.items() if bits & bit]


class GpuSampler:
    """Collects samples of all GPUs while a repetition runs.

    Args:
        ask: runs a command of the host.
        present: whether there are GPUs to ask.

    Attributes:
        trouble: why they are not sampled any more; empty where they are, or there are none.
    """

    def __init__(self, ask: Ask, present: bool) -> None:
        self._ask = ask
        self._present = present
        self._reasons = list(_REASONS) if present else []
        self._samples: list[dict[str, str]] = []
        self.trouble = ""

    def sample(self) -> None:
        """Takes one sample; a name that this driver does not know is not asked again."""
        while self._reasons:
            fields = (*_FIELDS, self._reasons[0])
            answer = self._ask("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
            if answer and answer[0] == 0:
                self._samples += parse_query(answer[1], (*_FIELDS, "reasons"))
                return
            self._reasons.pop(0)
            if not self._reasons:
                said = "it is not there" if answer is None else " ".join(answer[1].split())[:_SHOWN] or f"status {answer[0]}"
                self.trouble = f"clocks, power, temperature and throttling of the GPUs are not known from some moment on: nvidia-smi gave no answer ({said})"

    def take(self) -> list[dict[str, t.Any]] | None:
        """Returns the samples so far, one entry per GPU, and begins anew: median clocks, the highest power and temperature, every throttle reason seen.

        None where there are GPUs and no sample; empty where there are none.
        """
        samples, self._samples = self._samples, []
        if self._present and not samples:
            return None
        return [_summary(index, [row for row in samples if row["index"] == index]) for index in sorted({row["index"] for row in samples}, key=int)]


def _summary(index: str, rows: t.Sequence[t.Mapping[str, str]]) -> dict[str, t.Any]:
    def values(field: str) -> list[float]:
        return [float(row[field]) for row in rows if row[field]]

    def median(field: str) -> float | None:
        return statistics.median(values(field)) if values(field) else None

    return {
        "index": int(index),
        "clock_mhz": median("clocks.sm"),
        "memory_clock_mhz": median("clocks.mem"),
        "power_w": max(values("power.draw"), default=None),
        "temperature_c": max(values("temperature.gpu"), default=None),
        "throttle": sorted({name for row in rows for name in throttles(row["reasons"])}),
    }
