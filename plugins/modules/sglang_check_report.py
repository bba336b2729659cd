#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_check_report
short_description: Write what a proposed change does to each server
version_added: "0.1.0"
description:
  - Says what happens to each server when a change of the inventory is merged - flags by layer, environment, unit, engine, what changes in the engine's
    effective configuration, what is not honoured and why, memory before and after, and which baseline will judge it - with a verdict.
  - Writes three files - C(check.md) for a comment on the change, C(check.json) with everything (C(docs/check.schema.json)), and C(check.xml) for JUnit.
  - Values, host names and texts are those of whoever proposes the change. In the Markdown none of them becomes HTML, a link, a picture or a mention.
  - The first line of C(check.md) is C(<!-- llmops.inference check -->), by which an older comment can be found and replaced. It is shorter than 60,000 bytes;
    what had to be left out is said.
  - A change that is rejected is no failure of this; look at RV(verdict).
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The files are the difference.
  async:
    support: none
    details: It runs on the controller.
options:
  changes:
    description:
      - The hosts whose releases differ between two commits, as the playbook C(llmops.inference.check) finds them.
      - C(base) (C(ref), C(commit)), C(head) (C(commit), C(dirty)), C(remarks), C(unchanged) (how many hosts do not differ), and C(hosts), each with C(host),
        C(before) and C(after) (rendered releases or null), and C(requests) (keys of O(questions) for C(before), C(after) and C(upgrade), or null).
    type: dict
    required: true
  questions:
    description: The questions that M(llmops.inference.sglang_changes) found, each with its C(key), C(version) and C(unanswerable).
    type: list
    elements: dict
    required: true
  answers:
    description: Results of M(llmops.inference.sglang_preflight) in a loop over those that could be asked.
    type: list
    elements: dict
    required: true
  dest_dir:
    description: Directory on the controller for the three files. It is made where it is missing.
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_preflight
"""

EXAMPLES = r"""
- name: Write the report
  llmops.inference.sglang_check_report:
    changes: "{{ __check_changes }}"
    questions: "{{ __check_questions }}"
    answers: "{{ __check_answers.results }}"
    dest_dir: check
  register: __check_report

- name: Fail when the change must not be merged
  ansible.builtin.assert:
    that: __check_report.sentence == ''
    fail_msg: "{{ __check_report.verdict }}: {{ __check_report.sentence }}"
"""

RETURN = r"""
document:
  description: What C(check.json) holds.
  returned: success
  type: dict
  sample: {"format": 1, "kind": "check", "verdict": "passed", "unchanged": 17, "hosts": []}
verdict:
  description:
    - The worst of all hosts - V(rejected), V(not honoured) (a flag would do nothing, and the inventory does not tolerate that), V(unjudged), V(warned),
      V(passed), or V(nothing) when no host differs.
  returned: success
  type: str
  sample: rejected
sentence:
  description: One line saying why the change fails; empty when it does not.
  returned: success
  type: str
  sample: "1 rejected of 3 servers that this change touches; ct129: sglang_server_flags.tp_sise: --tp-sise is not a flag of this engine (nearest: --tp-size)"
summary:
  description: The verdict and what happens when the change is merged, in one line.
  returned: success
  type: str
  sample: "Rejected: 2 servers will be restarted, 1 is rejected"
paths:
  description: The files.
  returned: success
  type: list
  elements: str
  sample: [/srv/gitops/check/check.md, /srv/gitops/check/check.json, /srv/gitops/check/check.xml]
"""
