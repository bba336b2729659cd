#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_render
short_description: Write down the release that the inventory asks for, without reaching its host
version_added: "0.1.0"
description:
  - Computes the id that M(llmops.inference.sglang_release) would give on the host, and keeps beside it what it takes to judge the release - arguments and
    where they come from, environment, hardware and model of the snapshot.
  - Of secrets it keeps the names, and where each comes from. Of one that came as the word for a ciphertext that is the ciphertext's digest; nothing is made
    of a value.
  - With O(problem) it writes down why a host has no release, so that the other hosts still have theirs.
  - It runs on the controller; the facts are those of M(llmops.inference.sglang_snapshot).
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Writes its document in check mode as well, for it is what was asked for.
  diff_mode:
    support: none
    details: The document is made to be compared by M(llmops.inference.sglang_changes).
  async:
    support: none
    details: It runs on the controller.
options:
  dest:
    description: Directory for the document C(HOST.json). Without it the document is only returned.
    type: path
  problem:
    description: Why the release could not be rendered; of the other options only O(refused) and O(engine) are looked at then.
    type: str
    default: ""
  refused:
    description: Whether that is because a check of the inventory refuses it, and not because something is not known here.
    type: bool
    default: false
  instance:
    description: Name of the server.
    type: str
    default: main
  unit:
    description: Text of the unit, as M(llmops.inference.sglang_release) takes it.
    type: str
    default: ""
  argv:
    description: Arguments of the server, without secrets.
    type: list
    elements: str
    default: []
  environment:
    description: Environment variables that are no secrets.
    type: dict
    default: {}
  base_environment:
    description: What the unit sets beside them; an engine that judges gets both.
    type: dict
    default: {}
  secret_flags:
    description: Flags that are handed over beside the release. Values are looked at only for where they come from.
    type: dict
    default: {}
  secret_environment:
    description: Environment variables that are handed over beside the release, likewise.
    type: dict
    default: {}
  engine:
    description: C(name), C(version), C(flavour) and C(cuda) of the engine.
    type: dict
    default: {}
  model:
    description: C(path) and C(revision) of the model.
    type: dict
    default: {}
  flags:
    description: Requested flags with their layers, from P(llmops.inference.sglang_requested_flags#filter).
    type: list
    elements: dict
    default: []
  sources:
    description: Flag to the variable that sets it, from P(llmops.inference.sglang_flag_sources#filter).
    type: dict
    default: {}
  not_honoured:
    description: What a flag is that will not take effect.
    type: str
    choices: [ignore, warn, fail]
    default: fail
  silently_disabled:
    description: What it is when the engine switches an optimisation off without a word.
    type: str
    choices: [ignore, warn, fail]
    default: warn
  gpu_facts:
    description: Facts of the GPUs from the snapshot; left out for a host that needs none.
    type: dict
  snapshot:
    description: What M(llmops.inference.sglang_snapshot) returned with O(llmops.inference.sglang_snapshot#module:state=read).
    type: dict
    default: {}
  gate:
    description: C(settings) of the gate and C(records_dir), where its baseline lies; empty without a gate.
    type: dict
    default: {}
  enabled:
    description: Whether the server starts with the machine.
    type: bool
    default: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_snapshot
  - module: llmops.inference.sglang_changes
  - module: llmops.inference.sglang_release
"""

EXAMPLES = r"""
- name: Write the release down
  llmops.inference.sglang_render:
    dest: /tmp/releases
    unit: "{{ lookup('ansible.builtin.template', 'sglang.service.j2') }}"
    argv: [--model-path, /opt/sglang/models/qwen3, --tp-size, "2"]
    engine:
      name: 0.5.12-cuda-c3a79aac-py311-x86_64
      version: 0.5.12
      flavour: cuda
    model:
      path: /opt/sglang/models/qwen3
      revision: ""
    snapshot: "{{ snapshot.snapshot }}"

- name: Write down why there is none
  llmops.inference.sglang_render:
    dest: /tmp/releases
    problem: the host has no snapshot
"""

RETURN = r"""
rendered:
  description: The document; empty when the task fails.
  returned: always
  type: dict
  contains:
    host:
      description: Name in the inventory.
      type: str
      returned: success
    problems:
      description: Why there is no release; empty when there is one.
      type: list
      elements: str
      returned: success
    remarks:
      description: What is not known of it, a stale snapshot for one.
      type: list
      elements: str
      returned: success
    release:
      description: The release, with its C(id).
      type: dict
      returned: when there is one
    secrets:
      description: Name of a secret to where it comes from.
      type: dict
      returned: when there is a release
      sample: {api_key: vaulted 1a2b3c4d}
"""
