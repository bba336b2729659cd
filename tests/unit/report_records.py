# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Benchmark records like a host's over some weeks, to look at reports of them: one change at a time, a sweep, a contended run, other hardware."""

from __future__ import annotations

import random

from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.tests.unit import benchmark_records

SWEEP = {1: 55.2, 4: 188.0, 16: 561.0, 64: 1120.0}
FLAGS = {"tp_size": 2, "mem_fraction_static": 0.88, "speculative_algorithm": "NEXTN", "reasoning_parser": "qwen3"}
ATTACK = "</script><img src=x onerror=alert(1)>|`**@all**`"


def latency(dice, value, tail=1.3):
    """Percentiles around a value, in ms."""
    value *= dice.gauss(1, 0.01)
    return {"mean": round(value * 1.02, 2), "p50": round(value, 2), "p90": round(value * (1 + (tail - 1) / 2), 2), "p99": round(value * tail, 2)}


def repetition(dice, streams, rate, accepted):
    step, first = 1000 * streams / rate, 180 * streams**0.75
    return benchmark_records.repetition(
        round(rate, 2),
        requests=4 * streams,
        completed=4 * streams,
        output_tokens=2048 * streams,
        server={"prompt_tokens": 512 * streams, "generation_tokens": 2048 * streams},
        ttft_ms=latency(dice, first, 1.5),
        tpot_ms=latency(dice, step),
        itl_ms=latency(dice, step * accepted, 2.2),
        e2e_ms=latency(dice, step * 512 + first),
        goodput_per_s=round(rate / 512 * max(0.0, 1 - streams / 80), 4),
        accept_length=accepted,
        gpus=[{"index": index, "clock_mhz": 1800, "power_w": 287.0, "temperature_c": 78, "throttle": []} for index in range(2)],
    )


def histogram(dice, step):
    """Times between chunks: most at one step, some at two, and none within a chunk of several tokens."""
    width, counts = round(step / 8, 2), [0] * 24
    for _chunk in range(4000):
        steps = dice.choices((0, 1, 2), (0.05, 1.0, 0.06))[0]
        counts[min(23, max(0, int(dice.gauss(steps * step, 0.07 * step * steps) / width)))] += 1
    return {"edges": [round(width * place, 2) for place in range(25)], "counts": counts}


def point(dice, streams, rate, accepted=2.6):
    made = [repetition(dice, streams, rate * dice.gauss(1, 0.004), accepted) for _number in range(5)]
    return benchmark_records.point(made, concurrency=streams, itl_histogram_ms=histogram(dice, 1000 * streams / rate * accepted))


def record(day=30, host="ct129", workload="decode", rates=None, release="3494591af2ee", **options):
    """Returns a record of three starts.

    Args:
        day: of November 2026; also the seed.
        host: of the inventory.
        workload: its name.
        rates: output tok/s by streams.
        release: its id.
        options: flags (over FLAGS; None takes one away), version (of the engine), label (of the workload), accepted (acceptance length).
    """
    dice = random.Random(f"{day} {host} {workload}")
    version, label = options.get("version", "0.5.23"), options.get("label", "")
    flags = {**FLAGS, **options.get("flags", {})}
    starts = []
    for place in range(3):
        boot = dice.gauss(1, 0.004)
        points = [point(dice, streams, rate * boot, options.get("accepted", 2.6)) for streams, rate in (rates or {1: 55.2}).items()]
        starts.append(benchmark_records.start(*points, invocation=f"{host}-{day}-{workload}-{place}"))
    return benchmark_records.record(
        host=host,
        measured_at=f"2026-11-{day:02d}T10:15:00Z",
        client={"version": version},
        inventory={"commit": f"{day:02x}d0005f1" * 5},
        release={"id": release, "subject": f"subject-{release}"},
        engine={"name": f"{version}-cuda", "version": version},
        flags=[{"name": name, "value": value, "layer": "host"} for name, value in sorted(flags.items()) if value is not None],
        workload={"name": workload, "label": label, "hash": f"hash-{workload}", "slo": {"ttft_ms": 2000, "tpot_ms": 50}},
        starts=starts,
    )


def weeks():
    """Returns the records of two hosts over some weeks."""
    changed = [
        (3, 31.4, "77ab01c4f3e9", "0.5.19", {"speculative_algorithm": None}),
        (5, 52.8, "0f3a9c1be27d", "0.5.19", {}),
        (8, 52.6, "5d21e0aa9b3c", "0.5.19", {"mem_fraction_static": 0.9}),
        (12, 52.9, "0f3a9c1be27d", "0.5.19", {}),
        (17, 55.2, "3494591af2ee", "0.5.23", {}),
        (21, 55.3, "c0ffee123456", "0.5.23", {"enforce_piecewise_cuda_graph": True}),
        (24, 51.1, "9a8b7c6d5e4f", "0.5.23", {"speculative_num_steps": 5}),
        (26, 41.0, "9a8b7c6d5e4f", "0.5.23", {"speculative_num_steps": 5}),
        (28, 55.4, "3494591af2ee", "0.5.23", {}),
        (30, 58.9, "b16b00b5cafe", "0.5.23", {"speculative_num_steps": 4}),
    ]
    made = [record(day, rates={1: rate}, release=release, version=version, flags=flags) for day, rate, release, version, flags in changed]
    for start in made[7]["starts"]:
        start["points"][0].update(status="contended", remarks=["2 requests that are not ours were running"])
    tuned = {streams: rate if streams == 1 else 1.12 * rate for streams, rate in SWEEP.items()}
    made.append(record(17, workload="random_ids", rates=SWEEP))
    made.append(record(29, workload="random_ids", rates=tuned, flags={"chunked_prefill_size": 8192}, release="b16b00b5cafe"))
    made.append(record(27, workload="short_cached", rates={1: 70.3}, label="flattering: short prompts that the cache knows", accepted=3.4))
    other = [record(10, "gpu-h200-1", rates={1: 92.8}, release="aa01c4f3e9d0"), record(20, "gpu-h200-1", rates={1: 93.1}, release="aa01c4f3e9d0")]
    for entry in other:
        entry["hardware"].update(gpus=[{"name": "NVIDIA H200", "memory_mib": 143771, "power_limit_w": 700.0}] * 2, links="NV18")
    other[1]["hardware"]["driver"] = "585.10.01"
    return made + other


def hostile(text=ATTACK):
    """Returns a record in which every text that comes from outside is an attack."""
    made = record(15, workload="chat", rates={8: 310.0}, release="deadbeef0001", label=f"flattering: {text}", flags={f"flag{text}": [text]})
    made["model"]["name"] = made["engine"]["version"] = text
    made["environment"]["X"] = text
    made["starts"][0]["points"][0]["remarks"] = [text]
    made["starts"][0]["points"][0]["repetitions"][0].update(failed=1, errors=[f"{text}\n\n# head\n| a | b |"])
    return made


def by_host(records):
    """Returns records as the page takes them: by host and name of the file."""
    found = {}
    for made in records:
        found.setdefault(made["host"], {})[f"{view.record_name(made)}.json"] = made
    return found


def baseline(*records):
    """Returns the content of a ``baseline.json`` that names records of one workload."""
    return {"format": 1, "baselines": {records[0]["workload"]["name"]: {"records": [f"{view.record_name(made)}.json" for made in records]}}}
