# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.action.sglang_history import ActionModule
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, needs_git, put
from ansible_collections.llmops.inference.tests.unit.report_records import record

HOSTILE = "Draft <b>three</b> | tokens @all"


@pytest.fixture(name="site")
def make_site(tmp_path, monkeypatch):
    """A repository with two changes of the inventory, and a record of each."""
    alone(monkeypatch, tmp_path)
    root = tmp_path / "repository"
    for day, rate, message in ((1, 50.0, "Two GPUs"), (3, 55.0, HOSTILE)):
        commit(root, "Words", day, hosts=str(day))
        made = record(day, rates={1: rate}, flags={"speculative_num_steps": day})
        made["inventory"] = {"commit": commit(root, message, day, "Ada", host_vars__ct129=str(day)), "dirty": False}
        put(root, f"inventory/benchmarks/ct129/{day}.json", json.dumps(made))
    put(root, "inventory/benchmarks/ct129/old.json", "{}")
    return root


def write(site, check_mode=False, diff=False, **args):
    args = {"records_dir": str(site / "inventory" / "benchmarks"), "dest": str(site / "reports" / "history.md"), **args}
    task = SimpleNamespace(args={name: value for name, value in args.items() if value}, check_mode=check_mode, diff=diff, async_val=0, action="x")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _remote_is_local=True)
    return ActionModule(task, connection, None, None, Templar(None), None).run(task_vars={})


@needs_git
def test_it_writes_the_history_once(site):
    first, target = write(site), site / "reports" / "history.md"
    assert (first["changed"], first["dest"], first["records"], first["hosts"]) == (True, str(target), 2, ["ct129"])
    assert first["remarks"] == ["left out: ct129/old.json: it is no record of a benchmark"]
    new, old = target.read_text().splitlines()[-2:]
    assert " Draft &#60;b&#62;three&#60;/b&#62; &#124; tokens &#64;&#8203;all<br>" in new and new.count("Words") == 1
    assert "speculative_num_steps 1 -> 3 (host)" in new and "**faster**, 1." in new and "Two GPUs" not in new
    assert "Two GPUs" in old and old.endswith("| first record |") and "Ada" not in new + old
    assert write(site)["changed"] is False
    assert write(site, authors=True)["changed"] is True and "(Ada)" in target.read_text()


@needs_git
def test_check_mode_and_difference(site):
    result = write(site, check_mode=True, diff=True)
    assert result["changed"] is True and not (site / "reports").exists()
    assert result["diff"][0]["before"] == "" and result["diff"][0]["after"].startswith("# History of performance\n")
    write(site)
    assert write(site, diff=True)["diff"] == []


def test_without_a_repository(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path)
    put(tmp_path, "inventory/benchmarks/ct129/1.json", json.dumps(record(1)))
    (remark,) = write(tmp_path)["remarks"]
    assert remark.startswith("commits are told without all of their messages: ")
    assert "01d0005 (git does not know it here)" in (tmp_path / "reports" / "history.md").read_text()


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(AnsibleActionFail, match="benchmarks is no directory: benchmarks have written no record there"):
        write(tmp_path)


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "inventory" / "benchmarks").mkdir(parents=True)
    put(tmp_path, "reports", "a file")
    with pytest.raises(AnsibleActionFail, match="the history cannot be written: "):
        write(tmp_path)


@pytest.mark.parametrize("args", [{"dest": None}, {"records_dir": None}, {"other": 1}])
def test_wrong_arguments(tmp_path, args):
    with pytest.raises(AnsibleActionFail, match="required|missing|Unsupported"):
        write(tmp_path, **args)
