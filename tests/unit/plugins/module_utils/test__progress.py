# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

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
