# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleActionFail
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.action.sglang_check_report import ActionModule
from ansible_collections.llmops.inference.tests.unit import check_changes as made


def report(folder, case, check_mode=False, **args):
    questions = [{"key": key, "version": "0.5.12", "unanswerable": answer.get("error", "")} for key, answer in case[1].items()]
    answers = [{"item": question, **case[1][question["key"]]} for question in questions if not question["unanswerable"]]
    args = {"changes": case[0], "questions": questions, "answers": answers, "dest_dir": str(folder), **args}
    task = SimpleNamespace(args={name: value for name, value in args.items() if value is not None}, check_mode=check_mode, diff=False, async_val=0, action="x")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _remote_is_local=True)
    return ActionModule(task, connection, None, None, Templar(None), None).run(task_vars={})


def test_it_writes_three_files_once(tmp_path):
    folder = tmp_path / "made" / "check"
    result = report(folder, made.rejected())
    assert (result["changed"], result["verdict"]) == (True, "rejected") and not result.get("failed")
    assert result["sentence"] == result["document"]["sentence"] != ""
    assert result["paths"] == [str(folder / name) for name in ("check.md", "check.json", "check.xml")]
    assert sorted(path.name for path in folder.iterdir()) == ["check.json", "check.md", "check.xml"], "nothing is left beside them"
    assert json.loads((folder / "check.json").read_text()) == result["document"]
    assert (folder / "check.md").read_text().startswith("<!-- llmops.inference check -->\n### Rejected: ")
    assert ElementTree.parse(folder / "check.xml").getroot()[0].get("failures") == "1"
    assert report(folder, made.rejected())["changed"] is False
    assert report(folder, made.useful())["changed"] is True


def test_what_passes_has_no_sentence(tmp_path):
    result = report(tmp_path, made.useful())
    assert (result["verdict"], result["sentence"], result["summary"]) == ("passed", "", "Passed: 1 server will be restarted")
    assert report(tmp_path, (made.changes(), {}))["verdict"] == "nothing"


def test_whatever_a_stranger_writes(tmp_path):
    assert report(tmp_path, made.hostile())["verdict"] == "rejected"


def test_check_mode_writes_nothing(tmp_path):
    assert report(tmp_path / "made", made.rejected(), check_mode=True)["changed"] is True and not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "args, message",
    [
        ({"changes": None}, "changes"),
        ({"dest_dir": None}, "dest_dir"),
        ({"other": 1}, "Unsupported"),
        ({"changes": {}}, "changes.base must be a dict: None"),
        ({"questions": None}, "questions"),
        ({"answers": None}, "answers"),
    ],
)
def test_wrong_arguments(tmp_path, args, message):
    with pytest.raises(AnsibleActionFail, match=message):
        report(tmp_path, made.rejected(), **args)


def test_a_directory_that_is_none(tmp_path):
    (tmp_path / "check").write_text("a file")
    with pytest.raises(AnsibleActionFail, match="the report cannot be written into .*check: "):
        report(tmp_path / "check", made.rejected())
