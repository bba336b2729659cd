#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_record
short_description: Keep the records of benchmarks beside the inventory, compared with the host's baseline
version_added: "0.1.0"
description:
  - Adds to the records of M(llmops.inference.sglang_benchmark) what only the controller knows (host, commit of the inventory, requested flags) and the
    verdict against the baseline of the workload, masks secrets and home directories, and writes each record with a report beside it.
  - With O(accept) the records become the baseline of their workloads. Nothing else ever changes C(baseline.json).
  - It runs on the controller, and the host is not reached. A damaged record or baseline of the host is an error before anything is written.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Compares, and says what it would write.
  diff_mode:
    support: full
    details: Shows C(baseline.json).
  async:
    support: none
options:
  records:
    description: What M(llmops.inference.sglang_benchmark) returned for this host.
    type: list
    elements: dict
    required: true
  records_dir:
    description:
      - Directory of the inventory's records, by custom C(benchmarks) beside its C(group_vars). A host's records lie in a directory of its name.
      - The directory above it is the inventory, whose commit is recorded.
    type: path
    required: true
  links_dir:
    description:
      - Directory of what was measured of links, one directory for each host; O(records_dir) unless given. What is newest of this host
        (M(llmops.inference.nccl_benchmark), as the playbook C(links) writes it) is named in the records. A comparison shows it and holds nothing against it.
    type: path
  flags:
    description: Requested flags with their layers, from P(llmops.inference.sglang_requested_flags#filter).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The engine's field.
        type: str
        required: true
      value:
        description: As the inventory has it.
        type: raw
        required: true
      layer:
        description: Which layer won.
        type: str
        choices: [model, hardware, host, extra]
        required: true
  accept:
    description:
      - Make the records the baseline of their workloads, together with the host's other records of the same release under equal conditions.
      - A contended or failed record cannot be one, nor one with repetitions whose tokens nobody counted. It is kept, the baseline stays as it was, and the
        task fails.
    type: bool
    default: false
  plots:
    description: Draw the pictures, where matplotlib is installed beside Ansible.
    type: bool
    default: true
  ignore_conditions:
    description: Conditions that may differ from the baseline's, as in the gate's settings.
    type: list
    elements: str
    choices:
      - model
      - model_revision
      - gpus
      - gpu_memory
      - gpu_power_limit
      - gpu_links
      - driver
      - kernel
      - cpu
      - cpus
      - client
      - api
      - measured_from
      - workload
      - requests
      - input_length
      - output_length
      - cache_policy
      - seed
      - prompts
      - slo
    default: []
  metric:
    description: Which number the verdict is about. Of a latency it is the median unless the name says otherwise.
    type: str
    choices:
      - output_tok_per_s
      - total_tok_per_s
      - request_per_s
      - goodput_per_s
      - ttft_ms
      - tpot_ms
      - itl_ms
      - e2e_ms
      - ttft_ms_p50
      - ttft_ms_p90
      - ttft_ms_p99
      - ttft_ms_mean
      - tpot_ms_p50
      - tpot_ms_p90
      - tpot_ms_p99
      - tpot_ms_mean
      - itl_ms_p50
      - itl_ms_p90
      - itl_ms_p99
      - itl_ms_mean
      - e2e_ms_p50
      - e2e_ms_p90
      - e2e_ms_p99
      - e2e_ms_mean
    default: output_tok_per_s
author:
  - the llmops.inference authors (@llmops)
notes:
  - It needs git on the controller for the commit of the inventory; without it the record names none.
seealso:
  - module: llmops.inference.sglang_benchmark
  - plugin: llmops.inference.sglang_requested_flags
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Keep the records
  llmops.inference.sglang_record:
    records: "{{ sglang_speed.records }}"
    records_dir: "{{ inventory_dir }}/benchmarks"

- name: Keep the records and accept them as the baseline
  llmops.inference.sglang_record:
    records: "{{ sglang_speed.records }}"
    records_dir: "{{ inventory_dir }}/benchmarks"
    accept: true
"""

RETURN = r"""
records:
  description: >-
    One entry per record - path (of its file, relative to O(records_dir)), workload, verdict (the comparison with the baseline; empty without one)
    and text (one line for a person). Of a failure, those that were written.
  returned: always
  type: list
  elements: dict
  sample:
    - path: ct129/20261130T101500Z-decode-3494591af2ee.json
      workload: decode
      verdict: {}
      text: "decode: 55.2 tok/s (54.9 to 55.6) at concurrency 1, no baseline"
baseline:
  description: What became of the baseline, or which workloads have none; empty otherwise.
  returned: always
  type: str
  sample: "baseline of decode: 3 records, 3 starts"
remarks:
  description: What is worth knowing and is no failure.
  returned: always
  type: list
  elements: str
  sample: ["the inventory has changes that are not committed"]
"""
