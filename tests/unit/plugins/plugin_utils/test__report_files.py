# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _report_files
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_plots import PlotError
from ansible_collections.llmops.inference.plugins.plugin_utils._report_files import Files, add_comparison, add_histories
from ansible_collections.llmops.inference.tests.unit.report_records import ATTACK, by_host, record, weeks

HERE = Path("/x")


def fail(*_args):
    raise PlotError("pictures need matplotlib")


@pytest.fixture(autouse=True)
def fixture_drawn(monkeypatch):
    """Pictures that say what they are of, so that no library is needed."""
    monkeypatch.setattr(_report_files, "comparison_plot", lambda pair, form: f"{form} of {len(pair)}".encode())
    monkeypatch.setattr(_report_files, "history_plot", lambda records, form: f"{form} of {len(records)}".encode())


def test_a_comparison():
    files, pair = Files(), (record(1, rates={1: 50.0}), record(2, rates={1: 60.0}))
    found = add_comparison(files, HERE / "comment.md", pair, [], True)
    assert found["verdict"] == "faster"
    assert files.contents[HERE / "comment.md"].startswith(b"**decode on ct129: 59.8 against 50.2 tok/s, faster than")
    assert (files.contents[HERE / "comment.svg"], files.contents[HERE / "comment.png"], files.remarks) == (b"svg of 2", b"png of 2", [])


def test_a_comparison_without_pictures(monkeypatch):
    files, pair = Files(), (record(1), record(2))
    add_comparison(files, HERE / "comment.md", pair, [], False)
    assert list(files.contents) == [HERE / "comment.md"]
    monkeypatch.setattr(_report_files, "comparison_plot", fail)
    add_comparison(files, HERE / "comment.md", pair, [], True)
    assert list(files.contents) == [HERE / "comment.md"] and files.remarks == ["there is no picture of comment: pictures need matplotlib"]


def test_histories():
    files = Files()
    add_histories(files, HERE, by_host([*weeks(), *({**record(day), "instance": "second"} for day in (1, 2))]))
    assert {path.name: content for path, content in files.contents.items() if path.suffix == ".svg"} == {
        "history-ct129-decode.svg": b"svg of 10",
        "history-ct129-random_ids.svg": b"svg of 2",
        "history-ct129-second-decode.svg": b"svg of 2",
        "history-gpu-h200-1-decode.svg": b"svg of 2",
    }


def test_without_a_library_there_is_one_remark(monkeypatch):
    files = Files()
    monkeypatch.setattr(_report_files, "history_plot", fail)
    made = [record(day, host=f"h{number}") for number in range(5) for day in (1, 2)]
    add_histories(files, HERE, by_host(made))
    assert files.contents == {}
    assert files.remarks == ["there is no picture of history-h0-decode, history-h1-decode, history-h2-decode and 2 more: pictures need matplotlib"]


def test_names_stay_in_the_folder_and_apart():
    files = Files()
    made = [record(day, workload=name) for name in ("a/../b", "a.._b", ATTACK) for day in (1, 2)]
    add_histories(files, HERE, {"ct129": {str(place): one for place, one in enumerate(made)}})
    names = [path.name for path in files.contents if path.suffix == ".svg"]
    assert all(path.parent == HERE for path in files.contents) and len(set(names)) == 3
    assert all(not set(name) & set("/<>|`@ ") for name in names)
