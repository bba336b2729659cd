#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_history
short_description: Write the history of all servers' performance, from benchmark records and git
version_added: "0.1.0"
description:
  - Writes one Markdown file with a table for each server and workload - when it was measured, the commit of the inventory with its message, what was changed
    since the record before (flags with their layer, environment, engine, model), the throughput before and after with its interval, and the verdict.
  - Verdicts are those of the records' own comparison. Records with unlike conditions are shown with what differs, and without a ratio.
  - A message belongs to the commit that the record names. The other commits that touch the inventory since the record before it are told with it, the newest
    first, at most 20; commits of records and of C(deployed) are not among them.
  - A commit that git does not know, in a shallow clone or after a rebase, is said to be unknown. Only records that are in the work tree count.
  - A file that is no record of a known version is left out, and said in the history.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  async:
    support: none
    details: It runs on the controller.
options:
  records_dir:
    description:
      - Directory on the controller below which the records lie, each host's in a directory of its name.
      - The directory above it is the inventory, whose commits are told.
    type: path
    required: true
  dest:
    description: Path of the Markdown file on the controller. Missing directories are made.
    type: path
    required: true
  authors:
    description: Whether commits are told with their authors' names.
    type: bool
    default: false
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_benchmark
  - module: llmops.inference.sglang_report
"""

EXAMPLES = r"""
- name: Write the history of all servers' performance
  llmops.inference.sglang_history:
    records_dir: "{{ inventory_dir }}/benchmarks"
    dest: "{{ inventory_dir | dirname }}/reports/history.md"
"""

RETURN = r"""
dest:
  description: Path of the Markdown file.
  returned: success
  type: str
  sample: /srv/gitops/reports/history.md
records:
  description: How many records the history has.
  returned: success
  type: int
  sample: 16
hosts:
  description: Hosts that have a record in the history.
  returned: success
  type: list
  elements: str
  sample: [ct129]
remarks:
  description: A sentence for each file that was left out, and for what git does not know.
  returned: success
  type: list
  elements: str
  sample: ["2 of the commits that records name are not known to git here: the clone is shallow: git fetch --unshallow brings them"]
"""
