#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_report
short_description: Write one HTML page of all benchmark records
version_added: "0.1.0"
description:
  - Reads all benchmark records below a directory of the controller and writes one HTML page of them - what is measured now, the history of each server with
    the flags that changed, any two records side by side, and a sortable table.
  - The page is one file that loads nothing else. It works from disk, without network, and on a phone. The same records give the same page.
  - Verdicts are those of the records' own comparison. Records with unlike conditions are shown with what differs, and without a ratio.
  - A file that is no record of a known version is left out, and said in a warning and on the page.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows one line for each record of the page.
  async:
    support: none
    details: It runs on the controller.
options:
  records_dir:
    description: Directory on the controller below which the records lie, each host's in a directory of its name.
    type: path
    required: true
  dest:
    description: Path of the page on the controller. Missing directories are made.
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_benchmark
"""

EXAMPLES = r"""
- name: Write the page of all benchmark records
  llmops.inference.sglang_report:
    records_dir: "{{ inventory_dir }}/benchmarks"
    dest: "{{ inventory_dir }}/benchmarks/index.html"

- name: Fail when the committed page is not that of the committed records
  llmops.inference.sglang_report:
    records_dir: benchmarks
    dest: benchmarks/index.html
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

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    module = AnsibleModule({"records_dir": {"type": "path", "required": True}, "dest": {"type": "path", "required": True}}, supports_check_mode=True)
    module.fail_json(msg="this runs on the controller, by the action plugin of the same name")


if __name__ == "__main__":
    main()
