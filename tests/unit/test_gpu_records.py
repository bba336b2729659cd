# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two real GPUs said and did, on the day that tests/gpu/environment.sh ran on them, against what the code makes of it now."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import describe
from ansible_collections.llmops.inference.plugins.module_utils._compat import Build, Machine, judge
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost

RECORDS = Path(__file__).resolve().parents[1] / "gpu" / "records" / "h200-x2"


def load(name):
    return json.loads((RECORDS / name).read_text())


def raw(name):
    """(command, output, status) of one raw record."""
    command, _newline, rest = (RECORDS / "raw" / name).read_text().partition("\n")
    output, _mark, status = rest.rpartition("rc=")
    return command[2:], output, int(status)


def test_the_raw_outputs_still_give_the_facts(tmp_path):
    answers = {command: (status, output) for command, output, status in map(raw, (path.name for path in (RECORDS / "raw").iterdir()))}
    facts = load("facts.json")
    files = {"/proc/driver/nvidia/version": raw("version.txt")[1], "/.dockerenv": "", **dict.fromkeys(raw("nodes.txt")[1].split(), "")}
    files["/usr/local/cuda-13.0/compat/libcuda.so.1"] = ""
    for address, gpu in zip(facts["pci"], facts["gpus"]):
        device = f"/sys/bus/pci/devices/{address}"
        files.update({f"{device}/vendor": "0x10de", f"{device}/class": "0x030200", f"{device}/local_cpulist": gpu["cpus"]})
    for path, text in files.items():
        (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.lstrip("/")).write_text(text)
    found = GpuHost(lambda *words: answers.get(" ".join(words)), Files(str(tmp_path))).collect()
    assert found == facts


def test_the_verdict_on_compatibility_is_what_really_ran():
    facts, torch = load("facts.json"), load("torch.json")
    assert torch["ran"] == [4.0, 4.0], "a kernel ran on each GPU"
    gpus = [(gpu["name"], gpu["compute_capability"]) for gpu in facts["gpus"]]
    assert [tuple(map(int, capability.split("."))) for _name, capability in gpus] == [tuple(capability) for capability in torch["capabilities"]]
    machine = Machine(facts["driver"]["version"], facts["driver"]["cuda"], gpus, facts["driver"]["compatibility"])
    assert judge(machine, Build(torch["cuda"], torch["architectures"])) == []


def test_peer_to_peer_is_what_torch_says():
    links, peers = load("facts.json")["links"], load("torch.json")["peers"]
    assert {(link["gpus"][0], link["gpus"][1]): link["p2p"] for link in links} == {(a, b): can for a, b, can in peers if a < b}


@pytest.mark.parametrize("name, transport", [("links.json", "P2P/CUMEM"), ("links-without-p2p.json", "SHM/direct/direct")])
def test_links(name, transport):
    record = load(name)
    assert record["transports"] == [transport]
    assert (record["conditions"]["environment"]["NCCL_NVLS_ENABLE"], record["conditions"]["driver"]) == ("0", "580.159.04")
    lines = describe(record, "two GPUs")
    assert len(lines) == 1 + len(record["messages"])
    assert re.search(r"10 KiB +decode of 1 tokens? +.*the engine's own", lines[1])
    engine = [row["bytes"] for row in record["messages"] if "engine" in row]
    assert max(engine) <= 8 << 20, "the engine uses its own all-reduce up to 8 MiB"


def test_what_the_links_are_worth():
    """Decode's messages cost little more without peer-to-peer; prefill's cost eight times as much."""
    ratios = {
        row["tokens"]: without["graph"]["median_us"] / row["graph"]["median_us"]
        for row, without in zip(load("links.json")["messages"], load("links-without-p2p.json")["messages"])
    }
    assert ratios[1] < 2
    assert ratios[4096] > 5
