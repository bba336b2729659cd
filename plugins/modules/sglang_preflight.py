#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_preflight
short_description: Judge a server's flags by the installed engine, before anything is stopped
version_added: "0.1.0"
description:
  - Lets the engine itself parse and resolve the arguments, in its own interpreter and with the server's environment, and compares what was asked with
    what will run. Every value that the engine changed comes with function, line, the condition in the source that was true, the comment beside it, and
    what the engine logs about it, if anything.
  - Adds what the engine accepts and then dies of or ignores - heads and experts against the parallel sizes, GPUs that are not there, memory, ports, files
    that the service user cannot read.
  - With O(unit) the engine runs as the service user in a transient unit with the server's own sandbox, without network and without devices. The hardware is
    always the one that O(gpu_facts) describe. Nothing is downloaded, no server starts.
  - What could not be told is said (finding V(unexplained)); it never counts as fine.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: It changes nothing but its cache, so it runs fully.
  diff_mode:
    support: none
  async:
    support: full
options:
  python:
    description: Interpreter of the engine.
    type: path
    required: true
  engine:
    description: >-
      What the engine is - C(name) (with the hash of its lock), C(version), C(flavour), C(cuda) (CUDA version of its torch). Where C(cuda) is missing, it is
      read from the engine's completion marker, and of an engine without CUDA taken from the driver of O(gpu_facts).
    type: dict
    required: true
  argv:
    description: Arguments of the server, without secrets.
    type: list
    elements: str
    required: true
  secret_flags:
    description: Names of flags that the server gets as secrets. Their values are not needed.
    type: list
    elements: str
    default: []
  environment:
    description: Environment of the server, without secrets. It takes part in what the engine decides.
    type: dict
    default: {}
  sources:
    description: Which inventory variable set which field of the engine, to be named in findings.
    type: dict
    default: {}
  unit:
    description:
      - Text of the server's unit. The probe runs as its user, in its sandbox.
      - Left out, the probe runs as the user of this task, without a sandbox, for machines that only judge.
    type: str
  instance:
    description: Name of the instance that the candidate replaces. Ports and GPU memory that its unit holds count as free.
    type: str
    default: ""
  gpu_facts:
    description: >-
      Facts of M(llmops.inference.gpu_facts), of this host or recorded from another one. Left out, a V(cuda) engine is judged for the GPUs of this host, and a
      V(cpu) engine for none.
    type: dict
  recorded:
    description: O(gpu_facts) are of another machine. Ports, files and free memory of this one are not looked at.
    type: bool
    default: false
  model_dir:
    description: Directory with the model's configuration, where the path in O(argv) is not on this machine.
    type: path
  not_honoured:
    description: What a flag is worth that the engine accepts and that will not take effect.
    type: str
    choices: [ignore, warn, fail]
    default: fail
  silently_disabled:
    description: What a default optimisation is worth that the engine switches off without logging it.
    type: str
    choices: [ignore, warn, fail]
    default: warn
  fail_on_rejection:
    description: Whether a rejected candidate fails the task.
    type: bool
    default: true
  quiet:
    description: Do not show the report while the playbook runs.
    type: bool
    default: false
  cache:
    description: Directory of kept answers; empty keeps none.
    type: str
    default: /var/cache/llmops-inference/preflight
  timeout:
    description: Seconds that the engine gets.
    type: float
    default: 300
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.gpu_facts
  - module: llmops.inference.sglang_release
"""

EXAMPLES = r"""
- name: Ask the engine of this host
  llmops.inference.sglang_preflight:
    python: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/bin/python
    engine: {name: 0.5.23-cuda-1a2b3c4d-py312-x86_64, version: 0.5.23, flavour: cuda}
    argv: [--model-path, /opt/sglang/models/qwen3-8b, --tp-size, "2"]

- name: Judge flags for a GPU host on any machine with the cpu engine
  llmops.inference.sglang_preflight:
    python: /opt/sglang/engines/0.5.23-cpu-b1018104-py311-x86_64/bin/python
    engine: {name: 0.5.23-cpu-b1018104-py311-x86_64, version: 0.5.23, flavour: cpu, cuda: "13.0"}
    argv: [--model-path, /opt/sglang/models/qwen3-8b, --tp-size, "2"]
    model_dir: model_configs/qwen3-8b
    gpu_facts: "{{ lookup('ansible.builtin.file', 'ct129.json') | from_json }}"
    recorded: true
    cache: ""
  delegate_to: localhost
"""

RETURN = r"""
preflight:
  description: The result; its schema is C(docs/preflight.schema.json) of this collection.
  returned: always
  type: dict
  contains:
    verdict:
      description: V(passed), V(warned) or V(rejected).
      type: str
      returned: always
    explained:
      description: Whether the engine's resolution could be followed.
      type: bool
      returned: always
    findings:
      description: What there is to say - code, severity (V(error), V(warning), V(note)), text, hint, source, fields, variables.
      type: list
      elements: dict
      returned: always
    flags:
      description: What becomes of each flag - flag, variable, field, asked, effective, outcome, deprecated, successor.
      type: list
      elements: dict
      returned: always
    changes:
      description: Every value that the engine changed - field, before, after, function, at, because, comment, logged, also.
      type: list
      elements: dict
      returned: always
    effective:
      description: All fields of the engine as they will run; empty where they could not be told.
      type: dict
      returned: always
    environment:
      description: Environment variables that the engine sets itself.
      type: dict
      returned: always
    memory:
      description: The memory budget of each GPU; null where it could not be told.
      type: dict
      returned: always
    probe:
      description: >-
        What the probe did - touched (processes, connections and GPU device files that were really used), asked (how often the engine asked the described
        hardware, by function), missing (functions that this engine no longer has).
      type: dict
      returned: always
    engine:
      description: The engine that was asked.
      type: dict
      returned: always
    hardware:
      description: The hardware that it was asked for.
      type: dict
      returned: always
cached:
  description: Whether the engine's answer was known already.
  returned: always
  type: bool
rejection:
  description: What rejects the candidate, in sentences that name the inventory variable; empty otherwise.
  returned: always
  type: str
report:
  description: The result on one screen.
  returned: always
  type: list
  elements: str
"""

import json
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost, make_ask
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError, LocalHost
from ansible_collections.llmops.inference.plugins.module_utils._http import Client
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy, Subject
from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache
from ansible_collections.llmops.inference.plugins.module_utils._preflight_host import Preflight, Request
from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import report, sentence
from ansible_collections.llmops.inference.plugins.module_utils._probe import unit_name
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe
from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError, parse_unit

OPTIONS = {
    "python": {"type": "path", "required": True},
    "engine": {"type": "dict", "required": True},
    "argv": {"type": "list", "elements": "str", "required": True},
    "secret_flags": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "environment": {"type": "dict", "default": {}},
    "sources": {"type": "dict", "default": {}},
    "unit": {"type": "str"},
    "instance": {"type": "str", "default": ""},
    "gpu_facts": {"type": "dict"},
    "recorded": {"type": "bool", "default": False},
    "model_dir": {"type": "path"},
    "not_honoured": {"type": "str", "choices": ["ignore", "warn", "fail"], "default": "fail"},
    "silently_disabled": {"type": "str", "choices": ["ignore", "warn", "fail"], "default": "warn"},
    "fail_on_rejection": {"type": "bool", "default": True},
    "quiet": {"type": "bool", "default": False},
    "cache": {"type": "str", "default": "/var/cache/llmops-inference/preflight"},
    "timeout": {"type": "float", "default": 300},
}


def cuda_of(python: str) -> str:
    """The CUDA version that the engine's completion marker names."""
    marker = Path(python).parent.parent / "engine.json"
    try:
        return str(json.loads(marker.read_text()).get("cuda") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def make_request(module: AnsibleModule) -> Request:
    params = module.params
    engine = {"cuda": cuda_of(params["python"]), **params["engine"]}
    facts = params["gpu_facts"]
    if facts is None and engine.get("flavour") == "cuda":
        facts = GpuHost(make_ask(module), Files.here()).collect()
    unit = unit_name(params["instance"]) if params["instance"] else ""
    group = LocalHost(module.run_command, unit, 0, Client("")).unit_state().control_group if unit and not params["recorded"] else ""
    environment = {name: str(value) for name, value in params["environment"].items()}
    probe = Probe(params["python"], environment, parse_unit(params["unit"]) if params["unit"] else None, params["timeout"])
    return Request(probe, engine, params["argv"], params["secret_flags"], params["model_dir"] or "", facts, params["recorded"], unit, group)


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    params = module.params
    result: dict[str, t.Any] = {"preflight": {}, "cached": False, "rejection": "", "report": []}
    try:
        request = make_request(module)
        subject = Subject(request.engine, params["sources"], {}, Policy(params["not_honoured"], params["silently_disabled"]))

        def run_probe(command: list[str], text: str, environment: dict[str, str]) -> tuple[int, str, str]:
            return module.run_command(command, data=text, environ_update=environment)

        preflight = Preflight(request, subject, Cache(Path(params["cache"]) if params["cache"] else None), run_probe, module.run_command)
        result["preflight"] = preflight.result()
        result["cached"] = preflight.cached
    except (HostError, SystemdError, OSError) as error:
        module.fail_json(msg=str(error), **result)
    result["report"] = report(result["preflight"], result["cached"])
    result["rejection"] = sentence(result["preflight"])
    if params["fail_on_rejection"] and result["rejection"]:
        module.fail_json(msg=result["rejection"], **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
