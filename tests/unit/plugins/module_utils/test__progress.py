# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress


def test_the_step_is_in_the_file_until_the_end(tmp_path):
    progress = Progress("sglang_ready-main", tmp_path / "run" / "llmops")
    path = tmp_path / "run" / "llmops" / "sglang_ready-main"
    progress("installing")
    assert path.read_text() == "installing"
    progress("proving", 3.5)
    assert path.read_text() == "proving"
    progress.end()
    assert not path.exists()
    progress.end()


def test_steps_known_by_name_have_titles(tmp_path):
    progress = Progress("job", tmp_path, {"weights": "loading weights"})
    for step, text in (("weights", "loading weights"), ("other", "other")):
        progress(step)
        assert (tmp_path / "job").read_text() == text


def test_the_same_step_is_written_once(tmp_path):
    """A watch reports several times a second."""
    progress = Progress("job", tmp_path)
    progress("weights", 0.1)
    (tmp_path / "job").write_text("read")
    progress("weights", 0.2)
    assert (tmp_path / "job").read_text() == "read"
    progress("graphs", 0.0)
    assert (tmp_path / "job").read_text() == "graphs"


def test_without_a_step_there_is_no_file(tmp_path):
    Progress("job", tmp_path / "new").end()
    assert not (tmp_path / "new").exists()


def test_a_detail_is_a_second_line(tmp_path):
    progress = Progress("job", tmp_path, {"weights": "loading weights"})
    for detail, text in (("3 %", "loading weights\n3 %"), ("4 %", "loading weights\n4 %"), ("", "loading weights")):
        progress("weights", 1.0, detail)
        assert (tmp_path / "job").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["job"], "replaced whole: who reads it sees one text or the other"


def test_a_look_leaves_what_another_job_tells(tmp_path):
    Progress("job", tmp_path)("loading weights")
    Progress("job", tmp_path).end()
    assert (tmp_path / "job").read_text() == "loading weights"


def test_the_time_of_the_file_is_when_the_step_began(tmp_path):
    progress, path = Progress("job", tmp_path), tmp_path / "job"
    progress("weights", 1.0, "3 %")
    os.utime(path, (1000, 1000))
    progress("weights", 2.0, "4 %")
    assert path.read_text() == "weights\n4 %" and path.stat().st_mtime == 1000
    progress("graphs")
    assert path.stat().st_mtime > 1000
    path.unlink()
    progress("graphs", 1.0, "1 of 3")
    assert path.read_text() == "graphs\n1 of 3"
