#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_benchmark
short_description: Measure a running SGLang server with the engine's own serving benchmark
version_added: "0.1.0"
description:
  - Runs the serving benchmark of the engine on this host, from its virtual environment, against the server, so that numbers compare with
    published ones. It adds workloads with realistic prompts, warm-up, repetitions, statistics, and the conditions under which a number was measured.
  - Every repetition sends other prompts, so that the prefix cache does not flatter the number, unless O(warm) asks for that. Clocks, power,
    temperature and throttle reasons of the GPUs are sampled meanwhile.
  - Requests that are not its own, before or during the measurement, make a point V(contended). Any failed request fails the benchmark unless
    O(failed_pct) allows it.
  - A point that failed ends a sweep. Further points are measured where the server still serves, and no further start; the task fails, and its records
    have what was measured, and the reason.
  - With O(starts) above 1 it restarts the server in between; otherwise it changes nothing but the result that it stores beside the release.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Measures nothing.
  diff_mode:
    support: none
  async:
    support: none
    details: The action plugin runs it in the background and shows its progress.
options:
  instance:
    description: Name of the instance. Its good release is measured.
    type: str
    required: true
  python:
    description: Interpreter of the engine.
    type: path
    required: true
  benchmark_module:
    description: Python module of the engine that holds its serving benchmark; found in the engine's marker unless given.
    type: str
    default: ""
  part:
    description:
      - With V(all) the server on this host is measured, without a network in the number. For a load generator on another host, V(subject) returns on the
        server's host what is measured, and V(load), given that as O(subject), measures from here.
    type: str
    choices: [all, subject, load]
    default: all
  subject:
    description: With O(part=load), what O(part=subject) returned.
    type: dict
    default: {}
  where:
    description: With O(part=load), the name of this host for the record.
    type: str
    default: ""
  tokenizer:
    description: Directory of the model, for its tokenizer and configuration.
    type: path
    required: true
  workloads:
    description:
      - What is asked. V(decode) is coding tasks with 512 tokens of answer; V(chat) short questions; V(long_context) a question about a long text;
        V(shared_prefix) many questions about one text; V(short_cached) the flattering one, short prompts from a warm cache; V(random_ids) token ids at random.
    type: list
    elements: str
    default: [decode]
  dataset:
    description:
      - >-
        An own workload besides, one JSON object a line with C(prompt) (a text), C(messages) as the chat API takes them, or C(conversations), of which the first
        turn is the prompt; with C(output_tokens) where a line has its own length of answer.
    type: str
    default: ""
  dataset_name:
    description: Name or path of O(dataset), for messages and for the record.
    type: str
    default: dataset
  client:
    description:
      - With V(auto) the engine's own benchmark is the load generator wherever it can send the workload. It cannot send messages of several turns, tools, or
        answers of their own length; those are sent by a small client for the chat API. With V(openai) that client sends every text.
    type: str
    choices: [auto, openai]
    default: auto
  requests:
    description: Requests of one repetition, at least; the workload's own number unless given. Two rounds of what is in flight are sent anyway.
    type: int
  input_tokens:
    description: Length of a prompt in tokens, for V(random_ids) and about right for the workloads with long texts; the workload's own unless given.
    type: int
  output_tokens:
    description: Length of every answer in tokens; the workload's own unless given. The end-of-sequence token is ignored.
    type: int
  concurrency:
    description: Requests in flight, one point of a sweep each.
    type: list
    elements: int
    default: [1]
  request_rates:
    description: Arrivals per second (Poisson process), one further point each, without a limit of requests in flight.
    type: list
    elements: float
    default: []
  sweep:
    description: Measure 1, 4, 16, 64, ... requests in flight instead of O(concurrency), until the throughput grows by less than 10 %.
    type: bool
    default: false
  repetitions:
    description: Measured repetitions of each point.
    type: int
    default: 5
  warmup_repetitions:
    description: Repetitions before them, at most; fewer when two in a row agree within 3 %.
    type: int
    default: 4
  starts:
    description: Starts of the server that are measured. Above 1 it is restarted in between, and does not answer meanwhile.
    type: int
    default: 1
  warm:
    description: Send the same prompts again and again, so that they come from the prefix cache.
    type: bool
    default: false
  flush:
    description: Empty the prefix cache before each repetition. It takes the cache from everybody whom the server serves.
    type: bool
    default: false
  slo:
    description: Objectives for goodput, upper limits in milliseconds by name (C(ttft_ms), C(tpot_ms), C(e2e_ms)).
    type: dict
    default: {}
  failed_pct:
    description: Share of failed requests that is put up with, in percent. The numbers are of the others then.
    type: float
    default: 0.0
  seed:
    description: Of prompts, their order and arrivals.
    type: int
    default: 1
  repetition_timeout:
    description: Seconds after which one repetition is given up.
    type: float
    default: 900
  admin_api_key:
    description: Key for O(flush), where the server asks for another one.
    type: str
    default: ""
  host:
    description: Address that the server is bound to.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the server.
    type: int
    required: true
  tls:
    description: Whether the server speaks HTTPS.
    type: bool
    default: false
  ca_path:
    description: CA bundle for HTTPS.
    type: path
  api_key:
    description: Key that the server asks for.
    type: str
    default: ""
  model_name:
    description: Name that the server serves.
    type: str
    required: true
  timeout:
    description: Seconds that a restart may take, see O(starts).
    type: float
    default: 1800
  stall_timeouts:
    description: Seconds without progress after which a phase of a restart counts as stuck, by phase, see M(llmops.inference.sglang_release).
    type: dict
    default: {}
  leader:
    description: URL of rank 0, of a server on several nodes, see M(llmops.inference.sglang_ready).
    type: str
    default: ""
  store:
    description: Directory under which the releases of all instances are kept.
    type: path
    default: /var/lib/llmops-inference
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_ready
  - module: llmops.inference.sglang_record
"""

EXAMPLES = r"""
- name: Measure one stream of 512 tokens
  llmops.inference.sglang_benchmark:
    instance: main
    python: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/bin/python
    port: 30000
    model_name: qwen3-8b
    tokenizer: /opt/sglang/models/qwen3-8b
  register: sglang_speed

- name: Measure throughput and latency up to saturation, over three starts of the server
  llmops.inference.sglang_benchmark:
    instance: main
    python: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/bin/python
    port: 30000
    model_name: qwen3-8b
    tokenizer: /opt/sglang/models/qwen3-8b
    workloads: [random_ids]
    sweep: true
    starts: 3
"""

RETURN = r"""
records:
  description:
    - One record per workload, as far as the host knows it; C(docs/benchmark.schema.json) describes it. Empty when nothing was measured.
    - Of a benchmark that failed as well; such a record has a point with the status C(failed), which is neither baseline nor judged.
    - M(llmops.inference.sglang_record) adds what the controller knows and keeps it beside the inventory.
  returned: always
  type: list
  elements: dict
subject:
  description: With O(part=subject), what is measured - release, preflight, vital signs, what the server says, model, hardware and start; empty otherwise.
  returned: always
  type: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_host import JOB, HostBenchmark
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._http import ClientError
from ansible_collections.llmops.inference.plugins.module_utils._probe import ARGUMENTS, ProbeError
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._record import stored
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.module_utils._release import Store, StoreError
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError, BenchmarkFailed
from ansible_collections.llmops.inference.plugins.module_utils._workload import WorkloadError

OPTIONS = {
    "instance": {"type": "str", "required": True},
    "store": {"type": "path", "default": "/var/lib/llmops-inference"},
    "part": {"type": "str", "choices": ["all", "subject", "load"], "default": "all"},
    "subject": {"type": "dict", "default": {}},
    "where": {"type": "str", "default": ""},
    **JOB,
    **ARGUMENTS,
}


def measure(benchmark: HostBenchmark, params: dict[str, t.Any], store: Store) -> dict[str, t.Any]:
    if params["part"] == "load":
        return {"records": benchmark.load(params["subject"], params["where"])}
    release = store.good
    if not release:
        raise BenchmarkError(f"no release of {params['instance']} is known to be good: deploy it first")
    if params["part"] == "subject":
        return {"subject": benchmark.subject(release)}
    records = benchmark.run(release)
    store.write(release, "benchmark", stored(records))
    return {"records": records}


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True, required_if=[("part", "load", ("subject", "where"))])
    params = module.params
    nothing: dict[str, t.Any] = {"records": [], "subject": {}}
    if module.check_mode:
        module.exit_json(changed=False, **nothing)
    store = Store(Path(params["store"]) / params["instance"])
    progress = Progress(f"sglang_benchmark-{params['instance']}")
    secrets = [params["api_key"], params["admin_api_key"]]
    try:
        found = measure(HostBenchmark(module, params["instance"], store, params, params, report=progress), params, store)
    except BenchmarkFailed as failed:
        module.fail_json(msg=redact(str(failed), secrets), **{**nothing, "records": failed.records})
    except (BenchmarkError, ClientError, HostError, ProbeError, StoreError, WorkloadError, OSError) as error:
        module.fail_json(msg=redact(str(error), secrets), **nothing)
    finally:
        progress.end()
    module.exit_json(changed=params["part"] == "all", **{**nothing, **found})


if __name__ == "__main__":
    main()
