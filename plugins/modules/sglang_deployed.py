#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_deployed
short_description: Write down beside the inventory what was deployed to a host
version_added: "0.1.0"
description:
  - Writes C(HOST.json) with the release that serves, the digests of its encrypted secrets, the commit of the inventory, the time, and who deployed it.
    M(llmops.inference.sglang_pending) goes by these files.
  - A second deployment of the same gives no difference. A file that is damaged is written anew.
  - It runs on the controller, and the host is not reached.
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
  deployed_dir:
    description: Directory of these files. The directory above it is the inventory, whose commit is written down.
    type: path
    required: true
  release:
    description: Id of the release that serves.
    type: str
    required: true
  action:
    description: What M(llmops.inference.sglang_release) did.
    type: str
    required: true
  pending:
    description:
      - What M(llmops.inference.sglang_pending) returned, from which the host's secrets and way to boot are taken. Without the host in it they count as
        not looked at.
    type: list
    elements: dict
    default: []
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_pending
  - module: llmops.inference.sglang_release
"""

EXAMPLES = r"""
- name: Write down what was deployed
  llmops.inference.sglang_deployed:
    deployed_dir: "{{ inventory_dir }}/deployed"
    release: "{{ release.release }}"
    action: "{{ release.action }}"
    pending: "{{ compared.pending }}"
"""

RETURN = r"""
deployed:
  description: What the file says now, or would say; empty when the task fails.
  returned: always
  type: dict
  sample:
    format: 1
    kind: deployed
    host: ct129
    release: 3494591af2ee
    action: deployed
    secrets: {api_key: vaulted 1a2b3c4d}
    boot: true
    commit: 1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6
    dirty: false
    at: "2026-11-30T10:00:00Z"
    by: alice@laptop
"""
