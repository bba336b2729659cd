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
from ansible_collections.llmops.inference.plugins.plugin_utils import _report_files
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_plots import PlotError
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, needs_git

LATER = "20261201T101500Z-decode-b70fee4a3c06"
NO_GIT = "commits are told without all of their messages: "
NAME = "20261130T101500Z-decode-3494591af2ee"


def no_picture(*_args):
    raise PlotError("pictures need matplotlib")


@pytest.fixture(autouse=True)
def fixture_no_picture(monkeypatch):
    """Alike with matplotlib and without."""
    for name in ("comparison_plot", "history_plot"):
        monkeypatch.setattr(_report_files, name, no_picture)


@pytest.fixture(name="site")
def make_site(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path)
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


def later(site, **changes):
    """Another record of the host."""
    made = record(**{"measured_at": "2026-12-01T10:15:00Z", "release": {"id": "b70fee4a3c06", "subject": "b"}, "starts": record()["starts"], **changes})
    (site / "benchmarks" / "ct129" / f"{LATER}.json").write_text(json.dumps(made))


def test_two_records_are_compared(site):
    later(site)
    result = report(site, compare=[NAME, LATER])
    target = site / "made" / "comparison.md"
    assert result["comparison"]["dest"] == str(target) and result["comparison"]["verdict"] == "no measurable difference"
    assert result["comparison"]["text"].startswith("no measurable difference: nothing can be told: ")
    assert target.read_text().startswith("**decode on ct129: 100.0 against 100.0 tok/s, no ")
    assert result["files"] == [str(site / "made" / "index.html"), str(target)]
    assert result["remarks"][1:] == [
        "there is no picture of comparison, history-ct129-decode: pictures need matplotlib",
    ]
    assert report(site, compare=[NAME, LATER])["changed"] is False
    (found,) = report(site, compare=[LATER, NAME], diff=True)["diff"]
    assert (found["after_header"], found["before"][:20]) == (str(target), "**decode on ct129: 1") and found["before"] != found["after"]
    assert "the record that counts as before is the newer one" in report(site, compare=[LATER, NAME])["remarks"]


def test_a_comparison_elsewhere_and_its_pictures(site, monkeypatch):
    later(site)
    monkeypatch.setattr(_report_files, "comparison_plot", lambda pair, form: form.encode())
    monkeypatch.setattr(_report_files, "history_plot", lambda records, form: form.encode())
    result = report(site, compare=f"{NAME},{LATER}", compare_dest=str(site / "comment.md"))
    assert sorted(path.name for path in site.glob("comment.*")) == ["comment.md", "comment.png", "comment.svg"]
    assert sorted(path.name for path in (site / "made").iterdir()) == ["history-ct129-decode.png", "history-ct129-decode.svg", "index.html"]
    assert len(result["files"]) == 6 and result["remarks"][0].startswith(NO_GIT) and len(result["remarks"]) == 1


def test_without_pictures(site):
    later(site)
    assert report(site, plots="no", compare=[NAME, LATER])["remarks"][1:] == []


@pytest.mark.parametrize(
    "args, problem",
    [
        ({"compare": [NAME]}, "sglang_report_compare takes two records"),
        ({"compare": [NAME, "nothing"]}, f"sglang_report_compare names 'nothing', .*; the nearest is ct129/{NAME}"),
        ({"compare": [NAME, LATER], "compare_dest": "made/index.html"}, "sglang_report_compare_path and sglang_report_path are both .*index.html"),
    ],
)
def test_what_cannot_be_compared(site, monkeypatch, args, problem):
    monkeypatch.chdir(site)
    with pytest.raises(AnsibleActionFail, match=problem):
        report(site, **args)
    assert not (site / "made").exists()


@needs_git
def test_messages_of_commits_are_on_the_page(site, tmp_path):
    commit(tmp_path, "An older one", 1)
    made = commit(tmp_path, "</script> Two GPUs", 2)
    (site / "benchmarks" / "ct129" / f"{NAME}.json").write_text(json.dumps(record(inventory={"commit": made})))
    result = report(site)
    page = (site / "made" / "index.html").read_text()
    assert '"message":"\\u003c/script\\u003e Two GPUs"' in page and "An older one" not in page and result["remarks"] == []


@pytest.mark.parametrize("args", [{"dest": None}, {"records_dir": None}, {"other": 1}])
def test_wrong_arguments(site, args):
    with pytest.raises(AnsibleActionFail, match="required|missing|Unsupported"):
        report(site, **args)
