# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""How the client for the chat API reaches the interpreter that runs it: as a package of its own, since an engine has no Ansible."""

from __future__ import annotations

import inspect
import json
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _load_client, _sse
from ansible_collections.llmops.inference.plugins.module_utils._workload import Prompt

_PACKAGE = "llmops_load_client"


def write_client(folder: Path) -> None:
    """Writes the client's package into a folder."""
    package = folder / _PACKAGE
    package.mkdir(exist_ok=True)
    for name, text in (("__init__", ""), ("_load_client", inspect.getsource(_load_client)), ("_sse", inspect.getsource(_sse))):
        (package / f"{name}.py").write_text(text, encoding="utf-8")


def client_command(python: str, folder: Path, plan: Path) -> list[str]:
    """Returns the command that starts the client.

    Args:
        python: interpreter of an engine.
        folder: where ``write_client`` put it.
        plan: see ``_load_client``.
    """
    start = f"import sys; sys.path.insert(0, {str(folder)!r}); from {_PACKAGE}._load_client import main; main()"
    return [python, "-s", "-c", start, str(plan)]


def request_lines(prompts: t.Iterable[Prompt], output_tokens: int) -> str:
    """Returns the requests of a run as the client reads them; ``output_tokens`` is for those that do not say their own."""
    return "".join(
        json.dumps({"messages": list(prompt.messages), "output_tokens": prompt.output_tokens or output_tokens, "body": dict(prompt.body)}) + "\n"
        for prompt in prompts
    )
