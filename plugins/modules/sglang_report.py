#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_report
short_description: Write one HTML page of all benchmark records, the comparison of two, and pictures of their history
version_added: "0.1.0"
description:
  - Reads all benchmark records below a directory of the controller and writes one HTML page of them - what is measured now, the history of each server with
    the flags that changed, any two records side by side, and a sortable table.
  - The page is one file that loads nothing else. It works from disk, without network, and on a phone. The same records and commits give the same page.
  - The history has the message of each record's commit, and the other commits that touch the inventory since the record before it, as git on the controller
    tells them. A commit that git does not know, in a shallow clone or after a rebase, is said to be unknown.
  - With O(compare) the comparison of two records is written as well, as Markdown made for a comment on a change, with a picture.
  - Verdicts are those of the records' own comparison. Records with unlike conditions are shown with what differs, and without a ratio.
  - A file that is no record of a known version is left out, and said in a warning and on the page.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows one line for each record of the page, and the comparison.
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
    description: Path of the page on the controller. Missing directories are made.
    type: path
    required: true
  compare:
    description:
      - Two records to compare, that which counts as before first. None is compared without.
      - Each is the path of a record's file, its id as the page shows it (C(HOST/NAME)), its name alone, or the beginning of one of these that only one has.
      - The host's other records tell how far starts of its server differ.
    type: list
    elements: str
    default: []
  compare_dest:
    description:
      - Path of the comparison on the controller. The pictures have its name, with C(.svg) and C(.png).
      - By default C(comparison.md) beside O(dest).
    type: path
  plots:
    description:
      - Whether pictures are drawn, as SVG and PNG - of the comparison, and of the history of each server and workload that has more than one record, as
        C(history-HOST-WORKLOAD) beside O(dest).
      - Pictures need matplotlib in Ansible's Python. Without it everything else is written, and RV(remarks) says so.
    type: bool
    default: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_benchmark
  - module: llmops.inference.sglang_history
"""

EXAMPLES = r"""
- name: Write the page of all benchmark records
  llmops.inference.sglang_report:
    records_dir: "{{ inventory_dir }}/benchmarks"
    dest: "{{ inventory_dir }}/benchmarks/index.html"

- name: Compare two records as well
  llmops.inference.sglang_report:
    records_dir: "{{ inventory_dir }}/benchmarks"
    dest: "{{ inventory_dir }}/benchmarks/index.html"
    compare:
      - ct129/20261117T101500Z-decode-3494591af2ee
      - ct129/20261130T101500Z-decode-b16b00b5cafe
    compare_dest: /tmp/comment.md

- name: Fail when the committed page is not that of the committed records
  llmops.inference.sglang_report:
    records_dir: benchmarks
    dest: benchmarks/index.html
    plots: false
  check_mode: true
  register: __report
  failed_when: __report is changed
"""

RETURN = r"""
dest:
  description: Path of the page.
  returned: success
  type: str
  sample: /srv/inventory/benchmarks/index.html
files:
  description: Paths of all files of the report, those that were as they should be included.
  returned: success
  type: list
  elements: str
  sample: [/srv/inventory/benchmarks/index.html, /srv/inventory/benchmarks/comparison.md]
comparison:
  description: What O(compare) came to; empty without.
  returned: success
  type: dict
  contains:
    dest:
      description: Path of the comparison.
      type: str
    text:
      description: The verdict and its reason in one sentence.
      type: str
    verdict:
      description: C(faster), C(slower), C(no measurable difference), C(not comparable) or C(invalid baseline).
      type: str
    reason:
      description: One sentence.
      type: str
    ratio:
      description: Throughput now, in parts of that before; null where there is none.
      type: float
    low:
      description: Lower end of the ratio's 95 % interval; null where there is none.
      type: float
    high:
      description: Upper end of it.
      type: float
remarks:
  description: Sentences about what the report is without - pictures, or messages of commits.
  returned: success
  type: list
  elements: str
  sample: ["there is no picture of history-ct129-decode: pictures need matplotlib on the controller"]
records:
  description: How many records the page shows.
  returned: success
  type: int
  sample: 16
hosts:
  description: Hosts that have a record on the page.
  returned: success
  type: list
  elements: str
  sample: [ct129]
skipped_files:
  description: A sentence for each file that was left out.
  returned: success
  type: list
  elements: str
  sample: ["ct129/3494591af2ee.json: it is no record of a benchmark"]
"""
