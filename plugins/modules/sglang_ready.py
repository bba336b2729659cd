#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_ready
short_description: Wait until an SGLang server can serve, or say why it cannot
version_added: "0.1.0"
description:
  - Follows one run of the unit C(sglang-INSTANCE.service) by systemd's state, its journal and HTTP.
  - Ready means that the unit is up, the listener on the port belongs to the unit's own processes, C(/ready) or C(/health) says so,
    the model has the expected name and one real generation returned tokens.
  - Ends at once when the run dies, and names the cause with the deciding lines of the journal. Ends as well when a phase of the start makes no progress
    for longer than its limit. Changes nothing.
extends_documentation_fragment:
  - llmops.inference.attributes
  - llmops.inference.attributes.probe
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Changes nothing.
  async:
    support: none
    details: The action plugin runs it in the background and shows its progress.
options:
  instance:
    description: Name of the instance; its unit is C(sglang-INSTANCE.service).
    type: str
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_release
  - module: llmops.inference.sglang_benchmark
"""

EXAMPLES = r"""
- name: Wait for the server
  llmops.inference.sglang_ready:
    instance: main
    port: 30000
    model_name: qwen3-8b

- name: Look once whether it serves, with its key
  llmops.inference.sglang_ready:
    instance: main
    port: 30000
    model_name: qwen3-8b
    api_key: "{{ vault_sglang_api_key }}"
    timeout: 0
  register: sglang_state
  failed_when: false
"""

RETURN = r"""
ready:
  description: Whether the server can serve.
  returned: always
  type: bool
  sample: true
phases:
  description: >-
    Phases of the start so far, in order, with their seconds - process, arguments, distributed, weights, kv_cache, decode_graphs, draft_graphs,
    prefill_graphs, http, warm_up, ready; those that the journal does not show are left out.
  returned: always
  type: list
  elements: dict
  sample: [{"phase": "weights", "seconds": 12.4}]
remarks:
  description: What is worth knowing and is no failure, for example a warning that looks like a cause.
  returned: always
  type: list
  elements: str
vitals:
  description: >-
    Vital signs read from the journal - weights and KV cache with sizes, types and seconds, graphs by kind, attention backend, speculation, context length,
    memory left at each step by rank, the engine's own timings. What the journal does not tell is absent.
  returned: always
  type: dict
  sample: {"kv_cache_tokens": 242880, "kv_cache_dtype": "bfloat16", "weights_seconds": 0.2}
elapsed:
  description: Seconds that the module waited.
  returned: always
  type: float
  sample: 51.3
diagnosis:
  description: Why the server is not ready; empty when it is.
  returned: always
  type: dict
  contains:
    code:
      description: Stable name of the cause.
      type: str
      returned: when not ready
      sample: kv_pool_too_small
    cause:
      description: One sentence for a person.
      type: str
      returned: when not ready
      sample: the weights leave no memory for the KV cache under mem_fraction_static 0.7 (11.2 GB left after them)
    evidence:
      description: The deciding lines of the journal.
      type: list
      elements: str
      returned: when not ready
    hint:
      description: What to do.
      type: str
      returned: when not ready
    where:
      description: >-
        Where the failure lies - V(release) (arguments, model, engine, memory for these flags), V(host) (disk, busy GPU, port, driver, permissions), or empty
        when that is not known.
      type: str
      returned: when not ready
      sample: release
    certainty:
      description: Whether the cause is V(certain), V(suspected) or V(unknown).
      type: str
      returned: when not ready
      sample: certain
    implicated:
      description: Flags, and variables of the inventory and of the environment, that have to do with it.
      type: list
      elements: str
      returned: when not ready
      sample: [mem_fraction_static, tp_size]
    captured:
      description: What the journal tells in figures and names.
      type: dict
      returned: when not ready
      sample: {"mem_fraction_static": 0.7, "avail_mem_gb": 11.2}
    remedy:
      description: The line of the inventory to change, in YAML; empty unless name and value follow from the figures of the journal.
      type: str
      returned: when not ready
      sample: "sglang_server_flags: {mem_fraction_static: 0.85}"
journal:
  description: Last lines of the run's journal, secrets masked; empty when ready.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._http import ClientError
from ansible_collections.llmops.inference.plugins.module_utils._probe import (
    ARGUMENTS,
    ProbeError,
    make_expectation,
    make_host,
    present,
    sentence,
    unit_name,
)
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES
from ansible_collections.llmops.inference.plugins.module_utils._watch import Watch


def main() -> None:
    module = AnsibleModule({"instance": {"type": "str", "required": True}, **ARGUMENTS}, supports_check_mode=True)
    secrets = [module.params["api_key"]]
    progress = Progress(f"sglang_ready-{module.params['instance']}", titles=TITLES)
    try:
        outcome = Watch(make_host(module.run_command, module.params), make_expectation(module.params), progress).run()
    except (ClientError, HostError, ProbeError) as error:
        module.fail_json(msg=str(error), **present(None, secrets))
    finally:
        progress.end()
    if not outcome.ready:
        module.fail_json(msg=f"{unit_name(module.params['instance'])} is not ready: {sentence(outcome, secrets)}", **present(outcome, secrets))
    module.exit_json(changed=False, **present(outcome, secrets))


if __name__ == "__main__":
    main()
