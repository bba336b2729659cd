# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""All-reduce between the GPUs of one or several hosts: message sizes, what the ranks are told, results, and why a run gave none.

Bandwidth as NVIDIA's nccl-tests define it (PERFORMANCE.md): algorithm bandwidth = bytes / time; bus bandwidth = algorithm bandwidth * 2(n-1)/n.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass, field

FORMAT, KIND = 1, "links"
DTYPE_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


class AllreduceError(RuntimeError):
    """A measurement that gives no number; the message is for the operator."""


@dataclass(frozen=True)
class Size:
    """One message.

    Attributes:
        bytes: its length.
        phase: ``decode``, ``prefill``, or ``given``.
        tokens: how many tokens' hidden states it holds; 0 where the length was given.
    """

    bytes: int
    phase: str = "given"
    tokens: int = 0


def message_sizes(hidden_size: int, batches: t.Sequence[int], prefill: t.Sequence[int], dtype: str, given: t.Sequence[int] = ()) -> list[Size]:
    """Returns the messages that tensor parallel sends: one hidden state per token of a decode batch or of a prefill chunk.

    Args:
        hidden_size: of the model.
        batches: decode batch sizes, tokens per step.
        prefill: chunk lengths, tokens.
        dtype: of the hidden states.
        given: further lengths, bytes.

    Raises:
        AllreduceError: a length that is not positive or no multiple of the element, or a dtype without a length.
    """
    if dtype not in DTYPE_BYTES:
        raise AllreduceError(f"dtype {dtype} is none of {', '.join(DTYPE_BYTES)}")
    width = DTYPE_BYTES[dtype]
    sizes = [Size(tokens * hidden_size * width, phase, tokens) for phase, lengths in (("decode", batches), ("prefill", prefill)) for tokens in lengths]
    sizes += [Size(length) for length in given]
    for size in sizes:
        if size.bytes <= 0 or size.bytes % width:
            raise AllreduceError(f"a message of {size.bytes} bytes is no positive multiple of {width} bytes ({dtype})")
    if not sizes:
        raise AllreduceError("no message size: give decode_batches, prefill_tokens or message_bytes")
    return sorted(dict.fromkeys(sizes), key=lambda size: (size.bytes, size.phase))


@dataclass(frozen=True)
class Ranks:
    """Who takes part.

    Attributes:
        backend: ``nccl`` or ``gloo``.
        local: how many ranks this host runs.
        nodes: how many hosts.
        node: number of this host, from 0.
        gpus: indices or UUIDs of this host's GPUs, one per rank; empty with gloo.
        address: where rank 0 listens.
        port: its TCP port.
    """

    backend: str
    local: int
    nodes: int = 1
    node: int = 0
    gpus: t.Sequence[str] = field(default_factory=tuple)
    address: str = "127.0.0.1"
    port: int = 29400

    @property
    def world(self) -> int:
        """How many ranks there are in all."""
        return self.local * self.nodes

    def environment(self, local_rank: int) -> dict[str, str]:
        """Returns what torch.distributed reads from the environment of one rank."""
        environment = {
            "RANK": str(self.node * self.local + local_rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(self.world),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }
        if self.backend == "gloo":
            return {**environment, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        # CUDA's own order begins with the fastest.
        return {**environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(self.gpus)}


def bus_bandwidth(size: int, microseconds: float, ranks: int) -> float:
    """Returns GB/s on the links: bytes / time * 2(n-1)/n."""
    return size / microseconds / 1e3 * 2 * (ranks - 1) / ranks


def percentile(samples: t.Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile of samples."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))]


def summarise(sizes: t.Sequence[Size], modes: t.Mapping[str, t.Mapping[str, t.Any]], ranks: int) -> list[dict[str, t.Any]]:
    """Returns one row per message, with one entry per way of calling.

    Args:
        sizes: the messages.
        modes: mode -> what its rank 0 printed: ``samples`` (bytes -> microseconds of each sample) and ``wrong`` (bytes -> wrong elements).
        ranks: how many took part.

    Raises:
        AllreduceError: a result was wrong.
    """
    wrong = [f"{count} elements of {size} bytes ({mode})" for mode, found in modes.items() for size, count in found["wrong"].items() if count]
    if wrong:
        raise AllreduceError(f"the all-reduce gave wrong values: {', '.join(wrong)}; the links cannot be trusted (look at ACS, the IOMMU and Xid errors)")
    rows = []
    for size in sizes:
        row: dict[str, t.Any] = asdict(size)
        for mode, found in modes.items():
            samples = found["samples"].get(str(size.bytes), [])
            if samples:
                median = percentile(samples, 0.5)
                row[mode] = {
                    "median_us": round(median, 2),
                    "p10_us": round(percentile(samples, 0.1), 2),
                    "p90_us": round(percentile(samples, 0.9), 2),
                    "samples": len(samples),
                    "bus_gb_per_s": round(bus_bandwidth(size.bytes, median, ranks), 2),
                }
        rows.append(row)
    return rows


_NCCL_LINES = (
    (r"NCCL version (?P<value>\d+\.\d+\.\d+)", "version"),
    (r"Channel \S+ : \d+\[[^\]]*\] -> \d+\[[^\]]*\](?: \[\w+\])? via (?P<value>\S+)", "transport"),
    (r"(?P<value>Init COMPLETE)", "initialised"),
)


def parse_debug(text: str) -> dict[str, t.Any]:
    """Returns what NCCL's own log (``NCCL_DEBUG=INFO``) says: version, transports between ranks, whether initialisation ended."""
    found: dict[str, list[str]] = {name: [] for _pattern, name in _NCCL_LINES}
    for pattern, name in _NCCL_LINES:
        found[name] = list(dict.fromkeys(match["value"] for match in re.finditer(pattern, text)))
    return {"version": (found["version"] or [""])[0], "transports": sorted(found["transport"]), "initialised": bool(found["initialised"])}


_CAUSES = (
    (
        r"No space left on device|Error while creating shared memory segment",
        "shared memory is too small",
        "give the host or container a larger /dev/shm (cuda_shm_size)",
    ),
    (
        r"unhandled system error|ncclSystemError",
        "NCCL met an error of the system",
        "most often shared memory, permissions or the network",
    ),
    (r"Duplicate GPU detected", "two ranks were given one GPU", "name every GPU once"),
    (r"CUDA driver version is insufficient|driver on your system is too old", "the driver is older than the engine's CUDA needs", "install a newer driver"),
    (r"Error 802|system not yet initialized", "the NVLink fabric is not ready", "start the fabric manager, of exactly the driver's version"),
    (r"no kernel image is available", "the engine's torch has no kernel for this GPU", "use an engine built for it"),
    (r"out of memory", "GPU memory ran out", "free the GPU, or measure smaller messages"),
    (r"EADDRINUSE|[Aa]ddress already in use", "the port of rank 0 is taken", "give another master_port"),
    (r"No module named '(?P<detail>[^']+)'", "the interpreter has no {detail}", "give the python of an engine's virtual environment"),
    (
        (
            r"[Cc]onnection (?:refused|timed out)|[Tt]imed? ?out .*(?:rank|client|store)|Failed to (?:bind|connect)"
            r"|client socket has (?:timed out|failed to connect)"
        ),
        "the ranks do not reach each other",
        "check master_address, the firewall and NCCL_SOCKET_IFNAME",
    ),
)


def explain_failure(output: str, debug: t.Mapping[str, t.Any], timed_out: float = 0.0, others: str = "") -> str:
    """Returns why a run gave no result, in one sentence.

    Args:
        output: what the ranks that failed first printed.
        debug: what :func:`parse_debug` found.
        timed_out: seconds after which the run was ended, 0 when it ended by itself.
        others: what the ranks that failed after them printed.
    """
    for text in (output, others):
        for pattern, cause, hint in _CAUSES:
            match = re.search(pattern, text)
            if match:
                return f"{cause.format(**match.groupdict())}: {hint}"
    if timed_out and debug["initialised"]:
        via = f" ({', '.join(debug['transports'])})" if debug["transports"] else ""
        return (
            f"no answer within {timed_out:.0f} s although NCCL was initialised{via}: peer-to-peer is suspected; "
            "try environment NCCL_P2P_DISABLE: '1', and look at ACS and the IOMMU of the host"
        )
    if timed_out:
        return f"no answer within {timed_out:.0f} s: NCCL was not initialised; the ranks may not reach each other"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "a rank failed: " + (" / ".join(lines[-3:])[:500] or "it printed nothing")


def parse_nccl_tests(text: str) -> list[dict[str, t.Any]]:
    """Reads the table of nccl-tests' ``all_reduce_perf``, with ``error`` (old) or ``#wrong`` columns and with or without ``root``.

    Returns:
        One row per message: bytes, and for ``out_of_place`` and ``in_place`` time in microseconds, bandwidths in GB/s and wrong elements
        (None where it did not check).

    Raises:
        AllreduceError: there is no table, or a result was wrong.
    """
    header = re.search(r"(?m)^#\s+size\s+count\s.*\s(?:cpu)?time\s.*$", text)
    if header is None:
        raise AllreduceError("nccl-tests printed no table: " + " / ".join(text.strip().splitlines()[-3:])[:300])
    columns = header[0].lstrip("#").split()
    # With -C it is the CPU's time; -I puts further columns behind each half.
    halves = dict(zip(("out_of_place", "in_place"), (at for at, column in enumerate(columns) if column in ("time", "cputime"))))
    by_error = "error" in columns
    rows = []
    for line in text.splitlines():
        cells = line.split()
        if len(cells) < halves["out_of_place"] + 4 or not cells[0].isdigit():
            continue
        row: dict[str, t.Any] = {"bytes": int(cells[0])}
        for name, at in halves.items():
            if len(cells) >= at + 4:
                row[name] = _measured(cells[at : at + 4], by_error)
        rows.append(row)
    wrong = [row["bytes"] for row in rows for name in ("out_of_place", "in_place") if row.get(name, {}).get("wrong")]
    if wrong or re.search(r"Out of bounds values\s*:\s*\d+ FAILED", text):
        raise AllreduceError(f"nccl-tests found wrong values at {', '.join(map(str, dict.fromkeys(wrong)))} bytes")
    return rows


def _measured(cells: t.Sequence[str], by_error: bool) -> dict[str, t.Any]:
    """The old column is the largest relative error; nccl-tests itself lets rounding pass up to 1e-2 of half precision."""
    wrong = None if cells[3] == "N/A" else ((0 if float(cells[3]) <= 1e-2 else 1) if by_error else int(cells[3]))
    return {"time_us": float(cells[0]), "algorithm_gb_per_s": float(cells[1]), "bus_gb_per_s": float(cells[2]), "wrong": wrong}


def busy_gpus(facts: t.Mapping[str, t.Any], wanted: t.Sequence[str], servers: t.Sequence[str] = ()) -> list[str]:
    """Returns one sentence for each wanted GPU that something else uses.

    Args:
        facts: what gpu_facts found.
        wanted: indices or UUIDs; empty means all.
        servers: running units of this collection.
    """
    found = []
    for gpu in facts["gpus"]:
        names = {str(gpu["index"]), gpu["uuid"], *(device["uuid"] for device in gpu.get("mig_devices", []))}
        if wanted and not names & set(wanted):
            continue
        holders = [f"{process['unit'] or process['name']} (pid {process['pid']})" for process in gpu["processes"]]
        if holders:
            found.append(f"GPU {gpu['index']} is used by {', '.join(holders)}")
        elif (gpu["memory_used_mib"] or 0) > 1024:
            owner = f", and {', '.join(servers)} runs" if servers else ""
            found.append(f"GPU {gpu['index']} has {gpu['memory_used_mib']} MiB in use by processes that cannot be seen from here{owner}")
    return found


_MODES = {"eager": "one by one", "graph": "in a CUDA graph", "engine": "the engine's own, in a graph"}


def _length(count: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} B"


def describe(record: t.Mapping[str, t.Any], host: str, proposals: t.Sequence[t.Mapping[str, str]] = ()) -> list[str]:
    """Returns a measurement for a person, one line per entry.

    Args:
        record: what the module nccl_benchmark returns; empty where nothing was measured.
        host: name of the inventory host.
        proposals: NCCL settings that the links suggest: name, value, reason.
    """
    if not record:
        return [f"{host}: nothing was measured here"]
    conditions = record["conditions"]
    via = f" via {', '.join(record['transports'])}" if record["transports"] else ""
    software = f"torch {conditions['torch']}" + (f", NCCL {conditions['nccl']}" if conditions["nccl"] else "")
    lines = [f"{host}: all-reduce of {conditions['dtype']} over {record['ranks']} ranks ({record['backend']}{via}; {conditions['gpus']}; {software})"]
    modes = [mode for mode in _MODES if any(mode in row for row in record["messages"])]
    for row in record["messages"]:
        what = f"{row['phase']} of {row['tokens']} token{'s' if row['tokens'] > 1 else ''}" if row["tokens"] else "given"
        cells = [f"{_MODES[mode]} {row[mode]['median_us']:.1f} us ({row[mode]['bus_gb_per_s']:.1f} GB/s)" for mode in modes if mode in row]
        lines.append(f"  {_length(row['bytes']):>9}  {what:<22} {', '.join(cells)}")
    lines += [f"  not measured {_MODES[mode]}: {reason}" for mode, reason in record["unavailable"].items()]
    if proposals:
        lines.append("  settings that the links suggest; put what you want into sglang_server_hardware_env and measure again:")
        lines += [f'    {proposal["name"]}: "{proposal["value"]}"  # {proposal["reason"]}' for proposal in proposals]
    return lines
