#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_benchmark
short_description: Measure all-reduce between GPUs, with the messages that tensor parallel sends
version_added: "0.1.0"
description:
  - Runs one process per GPU with the torch of an engine's virtual environment and measures all-reduce over messages of the size of one hidden state
    per token - a few tokens for decode, a chunk for prefill - called one by one and inside a CUDA graph, as an engine does.
  - Every message's values are checked before it is timed; a wrong one fails the module.
  - Refuses to run on GPUs that something else uses, a live server above all, unless O(allow_busy).
  - Runs between several hosts when the task runs on all of them at once with O(nodes) and O(node_rank).
  - On a host without GPUs it measures with gloo between processes.
  - Shows its steps while it runs.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Measures nothing.
  diff_mode:
    support: none
    details: Changes nothing.
  async:
    support: none
    details: It runs in the background by itself.
options:
  python:
    description: Interpreter with torch, of an engine for example.
    type: path
    required: true
  backend:
    description: V(auto) takes V(nccl) where there is a GPU.
    type: str
    choices: [auto, nccl, gloo]
    default: auto
  gpus:
    description: Indices or UUIDs of the GPUs, one rank each; empty means all.
    type: list
    elements: str
    default: []
  ranks:
    description: Processes on this host, with V(gloo).
    type: int
    default: 2
  hidden_size:
    description: Hidden size of the model.
    type: int
    default: 5120
  decode_batches:
    description: Tokens per decode step.
    type: list
    elements: int
    default: [1, 8, 64]
  prefill_tokens:
    description: Tokens per prefill chunk.
    type: list
    elements: int
    default: [2048, 8192]
  message_bytes:
    description: Further message lengths, bytes.
    type: list
    elements: int
    default: []
  dtype:
    description: Type of the hidden states.
    type: str
    choices: [bfloat16, float16, float32]
    default: bfloat16
  samples:
    description: Samples per message; each is the mean of O(repeats) calls. The median is reported.
    type: int
    default: 21
  repeats:
    description: Calls per sample; a tenth of it for messages over 1 MiB.
    type: int
    default: 50
  warmup:
    description: Calls before the first sample.
    type: int
    default: 20
  environment:
    description: Environment of the ranks, the server's NCCL settings for example, so that they are measured as well.
    type: dict
    default: {}
  timeout:
    description: Seconds for one way of calling.
    type: float
    default: 300
  allow_busy:
    description: Also run on GPUs that are in use.
    type: bool
    default: false
  nodes:
    description: How many hosts take part.
    type: int
    default: 1
  node_rank:
    description: Number of this host, from 0.
    type: int
    default: 0
  master_address:
    description: Where rank 0 listens.
    type: str
    default: 127.0.0.1
  master_port:
    description: Its TCP port; 0 takes a free one, on a single host.
    type: int
    default: 0
  nccl_tests:
    description: Path of nccl-tests' C(all_reduce_perf), which then measures the same messages as well.
    type: path
author:
  - the llmops.inference authors (@llmops)
"""

EXAMPLES = r"""
- name: Measure the links between all GPUs
  llmops.inference.nccl_benchmark:
    python: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/bin/python
    hidden_size: 5120
  register: links

- name: Measure with peer-to-peer off
  llmops.inference.nccl_benchmark:
    python: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/bin/python
    environment:
      NCCL_P2P_DISABLE: "1"
"""

RETURN = r"""
allreduce:
  description: The measurement; empty in check mode, and on hosts other than the first of several.
  returned: always
  type: dict
  contains:
    format:
      description: Of the record.
      type: int
      returned: when measured
    kind:
      description: Of the record, V(links).
      type: str
      returned: when measured
    messages:
      description:
        - One entry per message - bytes, phase, tokens, and for each way of calling (C(eager), C(graph), C(engine)) median_us, p10_us, p90_us, samples and
          bus_gb_per_s (bytes / time * 2(n-1)/n).
      type: list
      elements: dict
      returned: when measured
    backend:
      description: V(nccl) or V(gloo).
      type: str
      returned: when measured
    ranks:
      description: How many took part.
      type: int
      returned: when measured
    transports:
      description: How NCCL joined the ranks, from its own log.
      type: list
      elements: str
      returned: when measured
      sample: ["P2P/CUMEM"]
    unavailable:
      description: Ways of calling that could not be measured, with the reason.
      type: dict
      returned: when measured
    nccl_tests:
      description: What nccl-tests measured - bytes, out_of_place and in_place.
      type: list
      elements: dict
      returned: when measured
    conditions:
      description: What the numbers belong to - GPUs, links, driver, torch, NCCL, environment, dtype, hidden size, samples.
      type: dict
      returned: when measured
    measured_at:
      description: UTC.
      type: str
      returned: when measured
"""

import inspect
import socket
import time
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils import _allreduce_worker
from ansible_collections.llmops.inference.plugins.module_utils._allreduce import (
    FORMAT,
    KIND,
    AllreduceError,
    Ranks,
    Size,
    busy_gpus,
    message_sizes,
    parse_nccl_tests,
    summarise,
)
from ansible_collections.llmops.inference.plugins.module_utils._environment import VariableError, merge
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost, make_ask, running_servers
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._ranks import RankRunner
from ansible_collections.llmops.inference.plugins.module_utils._redact import is_secret_variable, redact_environment

OPTIONS: dict[str, t.Any] = {
    "python": {"type": "path", "required": True},
    "backend": {"type": "str", "choices": ["auto", "nccl", "gloo"], "default": "auto"},
    "gpus": {"type": "list", "elements": "str", "default": []},
    "ranks": {"type": "int", "default": 2},
    "hidden_size": {"type": "int", "default": 5120},
    "decode_batches": {"type": "list", "elements": "int", "default": [1, 8, 64]},
    "prefill_tokens": {"type": "list", "elements": "int", "default": [2048, 8192], "no_log": False},
    "message_bytes": {"type": "list", "elements": "int", "default": []},
    "dtype": {"type": "str", "choices": ["bfloat16", "float16", "float32"], "default": "bfloat16"},
    "samples": {"type": "int", "default": 21},
    "repeats": {"type": "int", "default": 50},
    "warmup": {"type": "int", "default": 20},
    "environment": {"type": "dict", "default": {}},
    "timeout": {"type": "float", "default": 300},
    "allow_busy": {"type": "bool", "default": False},
    "nodes": {"type": "int", "default": 1},
    "node_rank": {"type": "int", "default": 0},
    "master_address": {"type": "str", "default": "127.0.0.1"},
    "master_port": {"type": "int", "default": 0},
    "nccl_tests": {"type": "path"},
}


def check(params: t.Mapping[str, t.Any]) -> None:
    small = [name for name in ("samples", "repeats", "nodes") if params[name] < 1]
    if small:
        raise AllreduceError(f"{', '.join(small)} must be 1 or more")
    if params["timeout"] <= 0:
        raise AllreduceError("timeout must be more than 0")
    if not 0 <= params["node_rank"] < params["nodes"]:
        raise AllreduceError(f"node_rank {params['node_rank']}: {params['nodes']} hosts are numbered from 0")


def choose_ranks(params: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any]) -> Ranks:
    # GPUs that cannot be used are no reason to measure something else.
    backend = params["backend"] if params["backend"] != "auto" else ("gloo" if facts["state"] == "none" else "nccl")
    # By number, in the order of the bus as nvidia-smi's: the engine's own all-reduce takes no UUID.
    known = {name: str(gpu["index"]) for gpu in facts["gpus"] for name in (str(gpu["index"]), gpu["uuid"])}
    known.update({device["uuid"]: device["uuid"] for gpu in facts["gpus"] for device in gpu["mig_devices"]})
    gpus = [known.get(name, name) for name in params["gpus"] or (str(gpu["index"]) for gpu in facts["gpus"])]
    unknown = [name for name in params["gpus"] if name not in known]
    if backend == "nccl" and (facts["state"] == "broken" or not facts["gpus"]):
        raise AllreduceError("nccl needs GPUs: " + "; ".join(facts["verdict"]))
    if backend == "nccl" and unknown:
        raise AllreduceError(f"gpus: {', '.join(unknown)}: this host has {', '.join(sorted(known))}")
    if backend == "nccl" and len(set(gpus)) < len(gpus):
        raise AllreduceError("gpus: one GPU is named twice")
    local = len(gpus) if backend == "nccl" else params["ranks"]
    if local * params["nodes"] < 2:
        raise AllreduceError(f"an all-reduce needs two ranks, there is {local} on {params['nodes']} host(s)")
    if params["nodes"] > 1 and not params["master_port"]:
        raise AllreduceError("master_port: several hosts need one port that all of them know")
    port = params["master_port"] or free_port()
    return Ranks(backend, local, params["nodes"], params["node_rank"], gpus if backend == "nccl" else (), params["master_address"], port)


def environment_of(params: t.Mapping[str, t.Any]) -> dict[str, str]:
    return merge([("environment", params["environment"])])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(module: AnsibleModule, facts: t.Mapping[str, t.Any], progress: Progress) -> dict[str, t.Any]:
    params = module.params
    ranks = choose_ranks(params, facts)
    sizes = message_sizes(params["hidden_size"], params["decode_batches"], params["prefill_tokens"], params["dtype"], params["message_bytes"])
    worker = Path(module.tmpdir) / "worker.py"
    worker.write_text(inspect.getsource(_allreduce_worker))
    environment = environment_of(params)
    module.no_log_values.update(value for name, value in environment.items() if is_secret_variable(name) and len(value) >= 4)
    runner = RankRunner(params["python"], worker, Path(module.tmpdir), environment, params["timeout"])
    order = {"backend": ranks.backend, "sizes": sorted({size.bytes for size in sizes}), "world": ranks.world}
    order.update({name: params[name] for name in ("dtype", "samples", "repeats", "warmup")})
    answers: dict[str, dict[str, t.Any]] = {}
    debug: dict[str, t.Any] = {}
    for mode in ("eager", "graph", "engine") if ranks.backend == "nccl" else ("eager",):
        progress(f"all-reduce over {ranks.world} ranks ({ranks.backend}, {mode})")
        try:
            answers[mode], debug = runner.run(ranks, {**order, "mode": mode})
        except AllreduceError as error:
            # What was measured already stays worth knowing.
            if mode == "eager":
                raise
            answers[mode] = {"unavailable": str(error)}
    if ranks.node != 0:
        return {}
    return make_record(
        params=params,
        facts=facts,
        ranks=ranks,
        sizes=sizes,
        answers=answers,
        debug=debug,
        tested=run_nccl_tests(module, ranks, sizes, progress),
    )


def make_record(
    *,
    params: t.Mapping[str, t.Any],
    facts: t.Mapping[str, t.Any],
    ranks: Ranks,
    sizes: t.Sequence[Size],
    answers: t.Mapping[str, t.Mapping[str, t.Any]],
    debug: t.Mapping[str, t.Any],
    tested: t.Sequence[t.Mapping[str, t.Any]],
) -> dict[str, t.Any]:
    measured = {mode: answer for mode, answer in answers.items() if "unavailable" not in answer}
    first = answers["eager"]
    return {
        "format": FORMAT,
        "kind": KIND,
        "messages": summarise(sizes, measured, ranks.world),
        "backend": ranks.backend,
        "ranks": ranks.world,
        "transports": debug["transports"],
        "unavailable": {mode: answer["unavailable"] for mode, answer in answers.items() if "unavailable" in answer},
        "nccl_tests": list(tested),
        "conditions": {
            "gpus": facts["summary"],
            "driver": facts["driver"]["version"],
            "torch": first["torch"],
            "cuda": first["cuda"],
            "nccl": first.get("nccl", ""),
            "environment": redact_environment(environment_of(params)),
            **{name: params[name] for name in ("dtype", "hidden_size", "samples", "repeats", "nodes")},
        },
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def run_nccl_tests(module: AnsibleModule, ranks: Ranks, sizes: t.Sequence[Size], progress: Progress) -> list[dict[str, t.Any]]:
    if not module.params["nccl_tests"] or ranks.backend != "nccl" or ranks.nodes > 1:
        return []
    rows = []
    kind = {"bfloat16": "bfloat16", "float16": "half", "float32": "float"}[module.params["dtype"]]
    environment = {**environment_of(module.params), "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(ranks.gpus)}
    for size in sorted({size.bytes for size in sizes}):
        progress(f"nccl-tests, {size} bytes")
        command = [module.params["nccl_tests"], "-b", str(size), "-e", str(size), "-g", str(ranks.local), "-d", kind, "-n", str(module.params["repeats"])]
        status, output, error = module.run_command(["timeout", str(module.params["timeout"]), *command], environ_update=environment)
        found = parse_nccl_tests(output + (error if status else ""))
        if status:
            raise AllreduceError(f"nccl-tests ended with status {status}: {' / '.join((output + error).strip().splitlines()[-3:])[:300]}")
        rows += found
    return rows


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    if module.check_mode:
        module.exit_json(changed=False, allreduce={})
    progress = Progress("nccl_benchmark")
    progress("looking at the GPUs")
    try:
        check(module.params)
        ask = make_ask(module)
        facts = GpuHost(ask, Files.here()).collect()
        if module.params["backend"] != "gloo" and not module.params["allow_busy"]:
            busy = busy_gpus(facts, module.params["gpus"], running_servers(ask))
            if busy:
                raise AllreduceError("; ".join(busy) + ": stop it first, or say allow_busy and read the numbers as disturbed. Nothing was run.")
        result = measure(module, facts, progress)
    except (AllreduceError, VariableError, OSError) as error:
        module.fail_json(msg=str(error), allreduce={})
    finally:
        progress.end()
    module.exit_json(changed=False, allreduce=result)


if __name__ == "__main__":
    main()
