# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a proposed change does to each server, on the controller. See M(llmops.inference.sglang_check_report)."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.plugin_utils._check_answers import by_question
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import CheckInputError, check_document
from ansible_collections.llmops.inference.plugins.plugin_utils._check_junit import check_junit
from ansible_collections.llmops.inference.plugins.plugin_utils._check_markdown import check_markdown
from ansible_collections.llmops.inference.plugins.plugin_utils._check_verdict import headline
from ansible_collections.llmops.inference.plugins.plugin_utils._controller_action import ControllerAction
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import as_text, write_changed

ARGUMENTS: dict[str, t.Any] = {
    "changes": {"type": "dict", "required": True},
    "questions": {"type": "list", "elements": "dict", "required": True},
    "answers": {"type": "list", "elements": "dict", "required": True},
    "dest_dir": {"type": "path", "required": True},
}


class ActionModule(ControllerAction):
    """Makes the document and writes its three forms; no host is reached, and a change that is rejected is no failure of this."""

    def run(self, tmp: t.Any = None, task_vars: t.Any = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            document = check_document(args["changes"], by_question(args["questions"], args["answers"]))
        except CheckInputError as error:
            raise AnsibleActionFail(str(error)) from error
        folder = Path(args["dest_dir"])
        contents = {"check.md": check_markdown(document).encode(), "check.json": as_text(document).encode(), "check.xml": check_junit(document)}
        try:
            changed = write_changed({folder / name: content for name, content in contents.items()}, self._task.check_mode)
        except OSError as error:
            raise AnsibleActionFail(f"the report cannot be written into {folder}: {error}") from error
        result.update(changed=bool(changed), document=document, verdict=document["verdict"], sentence=document["sentence"])
        result["summary"] = headline(document["hosts"])
        result["paths"] = [str(folder / name) for name in contents]
        return result
