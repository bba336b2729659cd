# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What became of the questions to the engines: an answer each, or why there is none."""

from __future__ import annotations

import typing as t

_Data = t.Mapping[str, t.Any]


def by_question(questions: t.Iterable[_Data], results: t.Iterable[_Data]) -> dict[str, dict[str, t.Any]]:
    """Returns, by the question's key, ``preflight`` and ``cached``, or ``error``.

    Args:
        questions: of the action sglang_changes.
        results: of sglang_preflight in a loop over those that could be asked: its result, with the question as ``item``.
    """
    answered = {result["item"]["key"]: result for result in results if isinstance(result.get("item"), t.Mapping)}
    return {question["key"]: _answer(question, answered.get(question["key"])) for question in questions}


def _answer(question: _Data, result: _Data | None) -> dict[str, t.Any]:
    if question["unanswerable"]:
        return {"error": question["unanswerable"]}
    if result is None:
        version = question["version"]
        return {
            "error": f"there is no build of SGLang {version} without CUDA for this machine's Python: no lock of it is shipped. Name your own with "
            f"sglang_check_engine_locks, made by `make ENGINE={version} FLAVOUR=cpu PYTHON=3.11 lock`, or another interpreter with sglang_check_engine_python"
        }
    if not result.get("preflight"):
        return {"error": str(result.get("msg") or "the preflight gave no answer")}
    return {"preflight": dict(result["preflight"]), "cached": bool(result.get("cached"))}
