# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.modules import sglang_model_facts as module


def test_a_model(tmp_path, run_module, documented):
    (tmp_path / "config.json").write_text("{}")
    ran = run_module(module, {"path": str(tmp_path)}, check_mode=True)
    assert (ran.status, ran.result["changed"], ran.result["model"]["path"]) == (0, False, str(tmp_path))
    assert documented(module) <= set(ran.result)
    assert json.dumps(ran.result["model"])


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "holds no config.json"), ("{", "is no JSON: ")],
)
def test_no_model(tmp_path, run_module, text, message):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    ran = run_module(module, {"path": str(tmp_path)})
    assert ran.failed and message in ran.result["msg"] and ran.result["model"] == {}


def test_a_directory_that_cannot_be_read(tmp_path, run_module):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "a.safetensors").symlink_to(tmp_path / "gone")
    ran = run_module(module, {"path": str(tmp_path)})
    assert ran.failed and "a.safetensors" in ran.result["msg"]
