#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_drift_report
short_description: Say where hosts differ from the inventory
version_added: "0.1.0"
description:
  - Holds what the role C(sglang_server) has seen of each host (C(tasks/drift.yml)) against what the inventory asks for, and against what is kept beside it -
    records of benchmarks, snapshots of hosts, and what was recorded as deployed.
  - Writes a report in Markdown, the verdict first, and the same as JSON beside it.
  - A host that cannot be reached, or could not be judged, is in the report with its reason and never counts as one that does not differ.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Judges, and writes no report.
  diff_mode:
    support: none
  async:
    support: none
    details: It runs on the controller.
options:
  hosts:
    description:
      - Host to what was seen there, the fact C(__sglang_server_drift).
      - C(unreachable) or C(failed) with the reason where nothing could be seen, empty where the host got lost on the way.
    type: dict
    required: true
  before:
    description: RV(hosts) of the report before a repair.
    type: dict
    default: {}
  repairs:
    description: Host to what a repair did there - C(action) as M(llmops.inference.sglang_release) tells it, and C(msg) of a failure.
    type: dict
    default: {}
  records_dir:
    description: Directory of the inventory's benchmark records; the commit that is reported is that of its parent.
    type: path
    required: true
  snapshots_dir:
    description: Directory of the snapshots. One that is not there is not in use.
    type: path
    required: true
  deployed_dir:
    description: Directory of what was recorded as deployed, one C(HOST.json) a host. One that is not there is not in use.
    type: path
    required: true
  dest:
    description: Path of the report on the controller. Missing directories are made. The JSON has the same name with C(.json).
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_release
"""

EXAMPLES = r"""
- name: Write the report of drift
  llmops.inference.sglang_drift_report:
    hosts: {ct129: {unreachable: no route to host}}
    records_dir: "{{ inventory_dir }}/benchmarks"
    snapshots_dir: "{{ inventory_dir }}/snapshots"
    deployed_dir: "{{ inventory_dir }}/deployed"
    dest: reports/drift.md
  run_once: true
"""

RETURN = r"""
verdict:
  description: All of it in one sentence.
  returned: success
  type: str
  sample: 1 host of 3 differs from the inventory
counts:
  description: How many hosts there are of each status.
  returned: success
  type: dict
  sample: {unreachable: 0, not judged: 0, drift: 1, repaired: 0, same: 2}
hosts:
  description:
    - Host to its entry - status (V(same), V(drift), V(repaired), V(not judged), V(unreachable)), asked and there (ids of releases), findings (kind, text, hint,
      repairable), remarks, repairable, repaired, repair (action, restarted, msg).
    - C(sentences) says why the host should fail the run; empty for V(same) and V(repaired).
  returned: success
  type: dict
dest:
  description: Path of the report.
  returned: success
  type: str
  sample: /srv/gitops/reports/drift.md
"""
