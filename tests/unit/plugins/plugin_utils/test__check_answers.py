# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_answers import by_question

ASKED = {"key": "a", "version": "0.5.19", "unanswerable": ""}
CASES = (
    (ASKED, [{"item": ASKED, "preflight": {"verdict": "passed"}, "cached": True, "changed": False}], {"preflight": {"verdict": "passed"}, "cached": True}),
    (ASKED, [{"item": ASKED, "preflight": {"verdict": "passed"}}], {"preflight": {"verdict": "passed"}, "cached": False}),
    (ASKED, [{"item": ASKED, "preflight": {}, "failed": True, "msg": "no such interpreter"}], {"error": "no such interpreter"}),
    (ASKED, [{"item": ASKED, "skipped": True}], {"error": "the preflight gave no answer"}),
    ({**ASKED, "unanswerable": "the snapshot knows no GPUs"}, [], {"error": "the snapshot knows no GPUs"}),
)


@pytest.mark.parametrize(("question", "results", "expected"), CASES)
def test_each_question_has_an_answer_or_a_reason(question, results, expected):
    assert by_question([question], results) == {"a": expected}


def test_an_engine_that_is_not_there_is_said():
    (answer,) = by_question([ASKED], [{"item": {**ASKED, "key": "b"}, "preflight": {"verdict": "passed"}}]).values()
    assert "no build of SGLang 0.5.19 without CUDA" in answer["error"] and "sglang_check_engine_locks" in answer["error"]
