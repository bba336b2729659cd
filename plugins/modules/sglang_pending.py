#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_pending
short_description: Tell which hosts do not have what the inventory asks for, by what was last deployed to them
version_added: "0.1.0"
description:
  - Renders the releases of the work tree and compares each with what M(llmops.inference.sglang_deployed) wrote down of its host.
  - The inventory is compared with each host's own last deployment, never with another commit. When CI leaves out runs for two of three merges, the third run
    deploys all three.
  - A host whose release cannot be rendered here counts as one that is to be deployed; on the host itself more is known.
  - It runs on the controller, in a copy without secrets, and no host is reached.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing.
  diff_mode:
    support: none
    details: Changes nothing.
  async:
    support: none
    details: It runs on the controller.
options:
  inventory:
    description: The inventory, a directory or a file in the work tree of a git repository.
    type: path
    required: true
  deployed_dir:
    description: Directory of what was deployed, by custom C(deployed) in the inventory.
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_deployed
  - module: llmops.inference.sglang_changes
"""

EXAMPLES = r"""
- name: Compare the inventory with what was deployed
  llmops.inference.sglang_pending:
    inventory: inventory
    deployed_dir: inventory/deployed
  register: compared

- name: Show what is to be deployed
  ansible.builtin.debug:
    msg: "{{ compared.summary }}"
"""

RETURN = r"""
pending:
  description:
    - Hosts that are to be deployed - C(host), C(reason) in a sentence, C(secrets) and C(boot), which M(llmops.inference.sglang_deployed) writes down.
  returned: success
  type: list
  elements: dict
  sample:
    - host: ct129
      reason: 3494591af2ee -> b70fee4a3c06
      secrets: {api_key: vaulted 1a2b3c4d}
      boot: true
current:
  description: Number of hosts that have what the inventory asks for.
  returned: success
  type: int
summary:
  description: Sentences for the operator.
  returned: success
  type: list
  elements: str
  sample: ["ct129: 3494591af2ee -> b70fee4a3c06"]
"""
