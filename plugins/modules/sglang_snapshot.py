#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_snapshot
short_description: Keep what a release needs of its host beside the inventory
version_added: "0.1.0"
description:
  - How a release looks depends on a few facts of its host (architecture, Python, systemd), and what the engine makes of its flags on the GPUs and the model's
    configuration. This keeps them in the inventory's repository, so that a change can be rendered and judged where no host can be reached.
  - What changes by the minute is not kept, and what servers of this collection hold of a GPU's memory counts as free. A host that is as it was gives no
    difference, the time of recording included.
  - It runs on the controller; the facts are those that earlier tasks gathered.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The files are made for the inventory's version control.
  async:
    support: none
    details: It runs on the controller.
options:
  snapshots_dir:
    description: Directory of the inventory's snapshots; each host has a directory of its name there.
    type: path
    required: true
  state:
    description:
      - V(recorded) writes the host's snapshot from C(ansible_facts), O(gpu_facts) and O(model).
      - V(read) sets C(ansible_facts) from it, C(llmops_gpu) included, as if the host had been asked.
    type: str
    choices: [recorded, read]
    default: recorded
  gpu_facts:
    description: Facts of M(llmops.inference.gpu_facts); left out for a host that needs no GPU.
    type: dict
  model:
    description: The model as M(llmops.inference.sglang_model_facts) describes it.
    type: dict
    default: {}
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.gpu_facts
  - module: llmops.inference.sglang_model_facts
  - module: llmops.inference.sglang_render
"""

EXAMPLES = r"""
- name: Keep the facts of the host beside the inventory
  llmops.inference.sglang_snapshot:
    snapshots_dir: "{{ inventory_dir }}/snapshots"
    gpu_facts: "{{ ansible_facts['llmops_gpu'] }}"
    model: "{{ model.model }}"
"""

RETURN = r"""
files:
  description: Files that were written or removed, below the host's directory.
  returned: always
  type: list
  elements: str
  sample: [gpu.json, host.json]
snapshot:
  description: What was read beside the facts; empty otherwise.
  returned: always
  type: dict
  contains:
    recorded_at:
      description: When it was recorded, UTC.
      type: str
      returned: with O(state=read)
    model:
      description: Path, repository, revision and weights of the model.
      type: dict
      returned: with O(state=read)
    model_dir:
      description: Directory with the model's configuration files; empty when there are none.
      type: str
      returned: with O(state=read)
    model_digest:
      description: Digest over these files.
      type: str
      returned: with O(state=read)
"""
