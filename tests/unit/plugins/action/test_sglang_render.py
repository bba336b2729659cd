# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action.sglang_render import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.modules import sglang_render as module
from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import rendered, unrendered
from ansible_collections.llmops.inference.tests.unit.gitops_repository import asked, options_of, run_action


def run(tmp_path, host="ct129", **args):
    given = {name: value for name, value in {**asked(), **args}.items() if value is not None}
    return run_action(ActionModule, {"dest": str(tmp_path / "made"), **given}, host)


def test_the_document_is_written(tmp_path):
    result = run(tmp_path)
    assert result["changed"] is False and result["rendered"] == rendered("ct129", asked())
    assert json.loads((tmp_path / "made" / "ct129.json").read_text()) == result["rendered"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["ct129.json"]


def test_it_is_only_returned(tmp_path):
    assert run_action(ActionModule, asked())["rendered"] == rendered("ct129", asked())


def test_a_problem_needs_nothing_else(tmp_path):
    found = run_action(ActionModule, {"dest": str(tmp_path), "problem": "it has no snapshot"})["rendered"]
    assert found == unrendered("ct129", "it has no snapshot")
    assert json.loads((tmp_path / "ct129.json").read_text()) == found


@pytest.mark.parametrize("refused", [True, False])
def test_a_check_that_refuses(refused):
    assert run_action(ActionModule, {"problem": "no such flag", "refused": refused})["rendered"]["refused"] is refused


def test_a_problem_without_words(tmp_path):
    assert run_action(ActionModule, {"problem": ""})["rendered"]["problems"] == ["for an unknown reason"]


def test_a_host_with_dots(tmp_path):
    run(tmp_path, "ct129.example.com")
    assert (tmp_path / "made" / "ct129.example.com.json").is_file()


@pytest.mark.parametrize("host", ["a/b", "../a", "", ".a"])
def test_names_that_are_none_of_files(tmp_path, host):
    result = run(tmp_path, host)
    assert result["failed"] and repr(host) in result["msg"] and result["rendered"] == {} and not list(tmp_path.iterdir())


def test_a_unit_that_is_none(tmp_path):
    result = run(tmp_path, unit="ExecStart=/x\n")
    assert result["failed"] and result["rendered"] == {} and not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "made").write_text("a file")
    assert run(tmp_path)["msg"].startswith("the release of ct129 cannot be written down: ")


@pytest.mark.parametrize("args", [{"not_honoured": "maybe"}, {"flags": ["x"]}, {"other": 1}, {"enabled": "perhaps"}])
def test_wrong_options(tmp_path, args):
    with pytest.raises(AnsibleActionFail):
        run(tmp_path, **args)


def test_options_are_those_of_the_action():
    options = {name: {key: value for key, value in option.items() if key != "no_log"} for name, option in ARGUMENTS.items()}
    assert options_of(yaml.safe_load(module.DOCUMENTATION)) == options
