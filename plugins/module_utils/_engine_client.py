# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Runs the engine's own serving benchmark several times in one process. Started by the engine's interpreter; imports nothing of Ansible.

Only the command line of that benchmark is used, which all engine versions share. Its imports (torch, transformers) take longer than a short measurement,
so they are paid for once. One order per line on standard input, ``{"run": 3, "words": [...]}``; one answer per line on standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import typing as t


def answers() -> t.TextIO:
    """Returns the stream for the answers; what the benchmark prints goes to standard error from now on."""
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return stream


def failure(error: BaseException) -> str:
    """Returns what the first failed request says, in the benchmark that raised this; empty where it cannot be seen."""
    trace = error.__traceback__
    while trace:
        outputs = trace.tb_frame.f_locals.get("outputs")
        errors = [str(getattr(output, "error", "")).strip() for output in outputs] if isinstance(outputs, list) else []
        told = [text for text in errors if text]
        if told:
            return told[0].splitlines()[-1]
        trace = trace.tb_next
    return ""


def perform(module: str, words: list[str]) -> None:
    """Runs the benchmark as ``python -m`` does.

    Raises:
        SystemExit: it ended with a status other than 0, or no request succeeded.
    """
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    except IndexError as error:
        # It takes a percentile of no latencies, and dies of that without saying what the requests failed of.
        told = failure(error)
        if not told:
            raise
        raise SystemExit(f"no request succeeded: {told}") from None


def main(module: str) -> None:
    """Answers orders until there are no more.

    Args:
        module: Python module of the engine's serving benchmark.
    """
    stream = answers()

    def say(**event: t.Any) -> None:
        stream.write(json.dumps(event) + "\n")
        stream.flush()

    importlib.import_module(module)
    say(event="ready")
    for line in sys.stdin:
        order = json.loads(line)
        perform(module, order["words"])
        say(event="done", run=order["run"])


if __name__ == "__main__":
    main(sys.argv[1])
