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
    published ones. Prompts are random token ids, warm-up requests come first, the end-of-sequence token is ignored.
  - Returns throughput and latencies as numbers with their units in the names. Fails when a request failed.
  - With O(release) it stores the result beside that release; otherwise it changes nothing.
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
    description: Name of the instance.
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
  tokenizer:
    description: Directory of the model, for its tokenizer.
    type: path
    required: true
  requests:
    description: Measured requests.
    type: int
    default: 5
  concurrency:
    description: Requests in flight.
    type: int
    default: 1
  input_tokens:
    description: Length of a prompt in tokens.
    type: int
    default: 128
  output_tokens:
    description: Length of an answer in tokens.
    type: int
    default: 512
  warmup_requests:
    description: Requests before the measurement.
    type: int
    default: 2
  timeout:
    description: Seconds after which the benchmark is given up.
    type: int
    default: 900
  release:
    description: Id of the release to store the result with.
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
"""

RETURN = r"""
benchmark:
  description: The result; empty when nothing was measured.
  returned: always
  type: dict
  contains:
    output_tok_per_s:
      description: Output tokens per second over all streams, time to first token included.
      type: float
      returned: success
      sample: 198.1
    ttft_ms:
      description: Time to first token in milliseconds.
      type: dict
      returned: success
      sample: {"mean": 19.1, "median": 18.9, "p99": 20.4}
    itl_ms:
      description: Inter-token latency (between two chunks of the stream) in milliseconds.
      type: dict
      returned: success
      sample: {"mean": 5.0, "median": 5.0, "p99": 5.3}
    tpot_ms:
      description: Time per output token after the first, in milliseconds.
      type: dict
      returned: success
      sample: {"mean": 5.0, "median": 5.0, "p99": 5.1}
    failed:
      description: Requests that failed.
      type: int
      returned: success
      sample: 0
"""

import json
import os
import time
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import BenchmarkError, Profile, Target, benchmark_command, parse_result
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.module_utils._release import Store

OPTIONS = {
    "instance": {"type": "str", "required": True},
    "python": {"type": "path", "required": True},
    "benchmark_module": {"type": "str", "default": ""},
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "required": True},
    "tls": {"type": "bool", "default": False},
    "ca_path": {"type": "path"},
    "api_key": {"type": "str", "default": "", "no_log": True},
    "model_name": {"type": "str", "required": True},
    "tokenizer": {"type": "path", "required": True},
    "requests": {"type": "int", "default": 5},
    "concurrency": {"type": "int", "default": 1},
    "input_tokens": {"type": "int", "default": 128, "no_log": False},
    "output_tokens": {"type": "int", "default": 512, "no_log": False},
    "warmup_requests": {"type": "int", "default": 2},
    "timeout": {"type": "int", "default": 900},
    "release": {"type": "str", "default": ""},
    "store": {"type": "path", "default": "/var/lib/llmops-inference"},
}
MEASURES = ("requests", "concurrency", "input_tokens", "output_tokens", "warmup_requests")
DEFAULT = "sglang.benchmark.serving"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def make_profile(params: dict[str, t.Any]) -> Profile:
    name = "single_stream_512" if (params["concurrency"], params["output_tokens"]) == (1, 512) else "custom"
    return Profile(name, **{measure: params[measure] for measure in MEASURES})


def module_of(python: str) -> str:
    """Engines up to 0.5.15 keep their benchmark elsewhere; the marker that the installation wrote says where."""
    marker = Path(python).parent.parent / "engine.json"
    return str(json.loads(marker.read_text()).get("benchmark_module", DEFAULT)) if marker.exists() else DEFAULT


def measure(module: AnsibleModule, profile: Profile) -> dict[str, t.Any]:
    params = module.params
    output = Path(module.tmpdir) / "benchmark.jsonl"
    target = Target(params["host"], params["port"], params["tls"], params["model_name"], params["tokenizer"])
    command = benchmark_command(params["python"], params["benchmark_module"] or module_of(params["python"]), profile, target, str(output))
    environment = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "HOME": module.tmpdir, "OPENAI_API_KEY": params["api_key"]}
    environment.update({"SSL_CERT_FILE": params["ca_path"]} if params["ca_path"] else {})
    for name in PROXIES:
        os.environ.pop(name, None)
    status, out, error = module.run_command(["timeout", str(params["timeout"]), *command], environ_update=environment, cwd=module.tmpdir)
    if status != 0:
        reason = f"took longer than {params['timeout']} s" if status == 124 else "failed: " + " / ".join((error or out).strip().splitlines()[-3:])
        raise BenchmarkError(f"the engine's benchmark {reason}")
    result = parse_result(output.read_text(), profile)
    result["measured_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if result["failed"]:
        raise BenchmarkError(f"{result['failed']} of {profile.requests} requests failed")
    return result


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    params = module.params
    if module.check_mode:
        module.exit_json(changed=False, benchmark={})
    progress = Progress(f"sglang_benchmark-{params['instance']}")
    progress("measuring with the engine's own benchmark")
    try:
        result = measure(module, make_profile(params))
        if params["release"]:
            Store(Path(params["store"]) / params["instance"]).write(params["release"], "benchmark", result)
    except (BenchmarkError, OSError) as error:
        module.fail_json(msg=redact(str(error), [params["api_key"]]), benchmark={})
    finally:
        progress.end()
    module.exit_json(changed=bool(params["release"]), benchmark=result)


if __name__ == "__main__":
    main()
