# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Runs the ranks of an all-reduce measurement on this host: one process each, ended together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._allreduce import AllreduceError, Ranks, explain_failure, parse_debug

_POLL_SECONDS = 0.05
_KILL_SECONDS = 10.0
_GRACE_SECONDS = 1.0


class RankRunner:
    """Starts the ranks of this host and waits for them.

    Args:
        python: interpreter with torch.
        worker: path of the worker script.
        folder: for the ranks' output; must exist.
        environment: what the operator sets for NCCL.
        timeout: seconds for one run.
    """

    def __init__(self, python: str, worker: Path, folder: Path, environment: t.Mapping[str, str], timeout: float) -> None:
        self._python = python
        self._worker = worker
        self._folder = folder
        self._environment = environment
        self._timeout = timeout

    def run(self, ranks: Ranks, order: t.Mapping[str, t.Any]) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
        """Returns (what rank 0 printed, what NCCL's log says); the first is empty on a host without rank 0.

        Raises:
            AllreduceError: a rank failed, or there was no answer in time.
        """
        folder = self._folder / str(order["mode"])
        folder.mkdir()
        processes: list[subprocess.Popen[bytes]] = []
        first: list[int] = []
        failed: list[int] = []
        timed_out = 0.0
        try:
            for rank in range(ranks.local):
                processes.append(self._start(ranks, rank, order, folder))
            deadline = time.monotonic() + self._timeout
            while True:
                states = [_state(process) for process in processes]
                failed = [rank for rank, state in enumerate(states) if state]
                if failed and not first:
                    # The cause may be another's, which fails a moment later: all may say theirs.
                    first, deadline = failed, min(deadline, time.monotonic() + _GRACE_SECONDS)
                if None not in states:
                    break
                if time.monotonic() > deadline:
                    timed_out = 0.0 if failed else self._timeout
                    break
                time.sleep(_POLL_SECONDS)
        finally:
            _end(processes)
        debug = parse_debug("\n".join(path.read_text(errors="replace") for path in sorted(folder.glob("nccl.*"))))
        if failed or timed_out:
            later = [rank for rank in failed if rank not in first]
            raise AllreduceError(explain_failure(_words(folder, first or [0]), debug, timed_out, _words(folder, later)))
        return self._answer(folder, ranks), debug

    def _start(self, ranks: Ranks, rank: int, order: t.Mapping[str, t.Any], folder: Path) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        # The engine remembers its test of peer-to-peer below HOME: here it is made anew, and nothing is left behind.
        environment.update({"HOME": str(folder), "SGLANG_CACHE_DIR": str(folder), "XDG_CACHE_HOME": str(folder)})
        environment.update(self._environment)
        # Last: transports and the cause of a hang are read from this log.
        environment.update({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(folder / "nccl.%p")})
        environment.update(ranks.environment(rank))
        # Expandable segments have no handles that the engine's all-reduce could pass on.
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
            environment.pop(name, None)
        with open(folder / f"out.{rank}", "wb") as out, open(folder / f"err.{rank}", "wb") as err:
            # Not run_command: the ranks run at once and wait for one another.
            return subprocess.Popen(  # pylint: disable=ansible-bad-function
                [self._python, "-s", str(self._worker), json.dumps(order)],
                env=environment,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    @staticmethod
    def _answer(folder: Path, ranks: Ranks) -> dict[str, t.Any]:
        if ranks.node != 0:
            return {}
        lines = [line for line in (folder / "out.0").read_text(errors="replace").splitlines() if line.startswith("{")]
        if not lines:
            raise AllreduceError("rank 0 ended without a result")
        try:
            answer: dict[str, t.Any] = json.loads(lines[-1])
        except json.JSONDecodeError:
            raise AllreduceError(f"rank 0 ended with a result that is none: {lines[-1][:200]}") from None
        return answer


def _words(folder: Path, ranks: t.Sequence[int]) -> str:
    """Returns what ranks printed, the highest first: of failures at once rank 0 speaks last."""
    names = [f"{name}.{rank}" for rank in sorted(ranks, reverse=True) for name in ("out", "err")]
    return "\n".join((folder / name).read_text(errors="replace") for name in names)


def _state(process: subprocess.Popen[bytes]) -> int | None:
    """Returns 0 or what it failed with, None while it runs. An ended rank stays a zombie, so that its group's number remains its own."""
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else ended.si_status


def _end(processes: t.Sequence[subprocess.Popen[bytes]]) -> None:
    """Kills what still runs, with the children that it started, those of ranks that have ended too."""
    for process in processes:
        os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        # A process that the driver does not let go cannot be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_SECONDS)
