#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_model_facts
short_description: Describe a model that lies on this host
version_added: "0.1.0"
description:
  - Reads the small configuration files of a model's directory, and from the headers of its weights how many bytes there are of which type.
  - With these facts, kept beside the inventory by M(llmops.inference.sglang_snapshot), flags can be judged for the model on a machine that does not have it.
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
    support: full
options:
  path:
    description: Directory of the model, with its C(config.json).
    type: path
    required: true
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.gpu_facts
  - module: llmops.inference.sglang_snapshot
"""

EXAMPLES = r"""
- name: Describe the model
  llmops.inference.sglang_model_facts:
    path: /opt/sglang/models/Qwen--Qwen3-8B/0123456789abcdef0123456789abcdef01234567
  register: model
"""

RETURN = r"""
model:
  description: The model; empty when the task fails.
  returned: always
  type: dict
  contains:
    format:
      description: Version of this shape.
      type: int
      returned: success
    path:
      description: The directory.
      type: str
      returned: success
    repository:
      description: Where the model came from; empty for one that the role C(sglang_model) did not download.
      type: str
      returned: success
    revision:
      description: The commit that was downloaded, as the hub resolved it; empty as above.
      type: str
      returned: success
    files:
      description: The configuration files, name to content.
      type: dict
      returned: success
    weights:
      description: C(files) (their number), C(bytes), and C(by_dtype) (type to bytes).
      type: dict
      returned: success
      sample: {files: 2, bytes: 16381470720, by_dtype: {BF16: 16381470720}}
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._model_facts import ModelFactsError, model_facts

OPTIONS = {"path": {"type": "path", "required": True}}


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    found: dict[str, t.Any] = {}
    try:
        found = model_facts(Path(module.params["path"]))
    except (ModelFactsError, OSError) as error:
        module.fail_json(msg=str(error), model=found)
    module.exit_json(changed=False, model=found)


if __name__ == "__main__":
    main()
