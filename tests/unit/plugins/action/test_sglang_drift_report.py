# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.action.sglang_drift_report import ActionModule

GONE = {"unreachable": "no route to host"}


def report(site, check_mode=False, **args):
    places = {name: str(site / name.partition("_")[0]) for name in ("records_dir", "snapshots_dir", "deployed_dir")}
    args = {name: value for name, value in {"dest": str(site / "reports" / "drift.md"), **places, **args}.items() if value is not None}
    task = SimpleNamespace(args=args, check_mode=check_mode, diff=False, async_val=0, action="llmops.inference.sglang_drift_report")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _remote_is_local=True)
    return ActionModule(task, connection, None, None, Templar(None), None).run(task_vars={})


def test_it_writes_both_reports(tmp_path):
    result = report(tmp_path, hosts={"ct129": GONE, "ct130": {"failed": "no"}})
    assert (result["verdict"], result["changed"]) == ("1 host could not be reached, 1 host could not be judged", True)
    assert result["hosts"]["ct129"]["sentences"] == "the host cannot be reached: no route to host"
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == ["drift.json", "drift.md"]
    assert "# Drift: 1 host could not be reached" in (tmp_path / "reports" / "drift.md").read_text()
    document = json.loads((tmp_path / "reports" / "drift.json").read_text())
    assert (document["kind"], [one["host"] for one in document["hosts"]], document["counts"]["same"]) == ("drift", ["ct129", "ct130"], 0)


def test_a_second_report_tells_what_was_repaired(tmp_path):
    first = report(tmp_path, hosts={"ct129": GONE})["hosts"]
    second = report(tmp_path, hosts={"ct129": {"failed": "no"}}, before=first, repairs={"ct129": {"action": "started", "msg": ""}, "other": {}})
    entry = second["hosts"]["ct129"]
    assert (entry["repaired"], entry["repair"]["restarted"]) == (["the host cannot be reached: no route to host"], True)


def test_secrets_do_not_show(tmp_path):
    report(tmp_path, hosts={"ct129": {"failed": "curl -H 'Authorization: Bearer abcdefgh12345' --api-key s3cr3t-value"}})
    for path in (tmp_path / "reports").iterdir():
        assert "s3cr3t-value" not in path.read_text() and "abcdefgh12345" not in path.read_text()


def test_check_mode_writes_nothing(tmp_path):
    assert report(tmp_path, check_mode=True, hosts={"ct129": GONE})["counts"]["unreachable"] == 1
    assert not (tmp_path / "reports").exists()


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(AnsibleActionFail, match="the report of drift cannot be made"):
        report(tmp_path, hosts={})


def test_a_report_that_would_take_the_place_of_the_other(tmp_path):
    with pytest.raises(AnsibleActionFail, match=r"sglang_drift_path .*drift.json: .*name another one"):
        report(tmp_path, hosts={}, dest=str(tmp_path / "drift.json"))


@pytest.mark.parametrize("args", [{"dest": None, "hosts": {}}, {"hosts": None}, {"hosts": {}, "other": 1}])
def test_wrong_arguments(tmp_path, args):
    with pytest.raises(AnsibleActionFail, match="required|missing|Unsupported"):
        report(tmp_path, **args)
