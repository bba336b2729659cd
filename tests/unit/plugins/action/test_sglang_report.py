# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.action.sglang_report import ActionModule
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record

NAME = "20261130T101500Z-decode-3494591af2ee"


@pytest.fixture(name="site")
def make_site(tmp_path):
    folder = tmp_path / "benchmarks" / "ct129"
    folder.mkdir(parents=True)
    (folder / f"{NAME}.json").write_text(json.dumps(record()))
    (folder / "old.json").write_text("{}")
    return tmp_path


def report(site, check_mode=False, diff=False, **args):
    args = {name: value for name, value in {"records_dir": str(site / "benchmarks"), "dest": str(site / "made" / "index.html"), **args}.items() if value}
    task = SimpleNamespace(args=args, check_mode=check_mode, diff=diff, async_val=0, action="llmops.inference.sglang_report")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _remote_is_local=True)
    return ActionModule(task, connection, None, None, Templar(None), None).run(task_vars={})


def test_it_writes_the_page_once(site):
    first = report(site)
    page = site / "made" / "index.html"
    assert (first["changed"], first["records"], first["hosts"], first["dest"]) == (True, 1, ["ct129"], str(page))
    assert f"ct129/{NAME}" in page.read_text() and page.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in page.parent.iterdir()] == ["index.html"], "nothing is left beside it"
    written = page.stat().st_mtime_ns
    assert report(site)["changed"] is False and page.stat().st_mtime_ns == written


def test_what_is_left_out_is_told(site):
    told = "ct129/old.json: it is no record of a benchmark"
    result = report(site)
    assert result["skipped_files"] == [told] and result["warnings"] == [f"left out of the report: {told}"]
    assert told in (site / "made" / "index.html").read_text()


def test_check_mode_writes_nothing(site):
    assert report(site, check_mode=True)["changed"] is True and not (site / "made").exists()
    report(site)
    assert report(site, check_mode=True)["changed"] is False


def test_a_difference_has_a_line_for_each_record(site):
    report(site)
    second = record(measured_at="2026-12-01T10:15:00Z", starts=record()["starts"])
    (site / "benchmarks" / "ct129" / "b.json").write_text(json.dumps(second))
    (found,) = report(site, check_mode=True, diff=True)["diff"]
    before, after = (found[side].splitlines() for side in ("before", "after"))
    assert before[0] == after[0] == f"ct129/{NAME}, 100.0 tok/s, no record before"
    assert after[1].startswith("ct129/b, 100.0 tok/s, no ") and len(before) == 2 and len(after) == 3
    assert report(site, diff=True)["diff"] and report(site, diff=True)["diff"] == []


def test_a_directory_that_is_not_there(site):
    with pytest.raises(AnsibleActionFail, match="nowhere is no directory: benchmarks have written no record there"):
        report(site, records_dir=str(site / "nowhere"))


def test_a_page_that_cannot_be_written(site):
    (site / "made").write_text("a file")
    with pytest.raises(AnsibleActionFail, match="cannot be written"):
        report(site)


@pytest.mark.parametrize("args", [{"dest": None}, {"records_dir": None}, {"other": 1}])
def test_wrong_arguments(site, args):
    with pytest.raises(AnsibleActionFail, match="required|missing|Unsupported"):
        report(site, **args)
