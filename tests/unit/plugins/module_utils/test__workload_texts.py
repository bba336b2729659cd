# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import inspect

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _workload_blocks, _workload_texts
from ansible_collections.llmops.inference.plugins.module_utils._workload_texts import CODING_TASKS, COUNT_TO_A_HUNDRED, DOCUMENT_QUESTIONS, QUESTIONS


@pytest.mark.parametrize(
    "texts, least, shortest, longest",
    [
        pytest.param(CODING_TASKS, 24, 400, 1000, id="coding-tasks"),
        pytest.param(QUESTIONS, 32, 40, 120, id="questions"),
        pytest.param(DOCUMENT_QUESTIONS, 16, 40, 120, id="document-questions"),
        pytest.param((COUNT_TO_A_HUNDRED,), 1, 20, 60, id="count"),
    ],
)
def test_texts(texts, least, shortest, longest):
    assert len(set(texts)) == len(texts) >= least
    assert all(shortest <= len(text) <= longest and text.isascii() and text == text.strip() for text in texts)


def test_no_two_coding_tasks_begin_alike():
    assert len({task[:24] for task in CODING_TASKS}) == len(CODING_TASKS)


def test_a_module_stays_small_on_its_way_to_the_host():
    assert sum(len(inspect.getsource(module)) for module in (_workload_texts, _workload_blocks)) < 60_000
