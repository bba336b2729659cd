#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_changes
short_description: Tell which hosts a branch changes, by the releases that both sides render
version_added: "0.1.0"
description:
  - Renders the releases of the work tree and of the commit where it left its base, each from a copy of the repository, and compares their ids. A variable of
    a group shows every host that it reaches, and a comment shows none.
  - The copies are rendered by an Ansible of their own, without a password and without the environment of the caller. Encrypted values are replaced by the
    digests of their ciphertexts before. Other than that an inventory is code, and a check of a branch runs it; see SECURITY.md.
  - It runs on the controller, and no host is reached. The release of a host that cannot be rendered is reported with the reason.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing but O(work_dir).
  diff_mode:
    support: none
    details: What differs is the result.
  async:
    support: none
    details: It runs on the controller.
options:
  inventory:
    description: The inventory, a directory or a file in the work tree of a git repository.
    type: path
    required: true
  base:
    description: What the work tree is compared with, a branch, tag or commit. It counts from the last commit that both have.
    type: str
    required: true
  work_dir:
    description: Directory for the copies, which go, and for the configuration files of models, which are kept by content.
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_check_report
  - module: llmops.inference.sglang_render
  - module: llmops.inference.sglang_preflight
"""

EXAMPLES = r"""
- name: Render the releases of both sides and compare them
  llmops.inference.sglang_changes:
    inventory: inventory
    base: origin/main
    work_dir: /var/tmp/llmops-check
  register: compared
"""

RETURN = r"""
changes:
  description: What is compared, and what differs.
  returned: success
  type: dict
  contains:
    base:
      description: C(ref) as it was asked for, and the C(commit) that the work tree began from.
      type: dict
    head:
      description: C(commit) of the work tree, and whether it is C(dirty).
      type: dict
    inventory:
      description: Where the inventory is in the repository.
      type: str
    remarks:
      description: What could not be looked at, and why.
      type: list
      elements: str
    hosts:
      description:
        - Hosts that differ or that cannot be told about - C(host), C(before) and C(after) (documents of M(llmops.inference.sglang_render), null on the side
          that does not have the host), and C(requests), the keys of the questions about it.
      type: list
      elements: dict
    unchanged:
      description: Number of the other hosts.
      type: int
questions:
  description:
    - What the engines are to be asked, once for each distinct release. C(key), the options of M(llmops.inference.sglang_preflight), and C(unanswerable), why
      it cannot be asked; empty when it can.
  returned: success
  type: list
  elements: dict
"""
