# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A load generator as a process: it is started once, is given one order after another, and is watched while it works."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError

# The engine's benchmark takes its key from here; it must not stand on a command line.
KEY_VARIABLE = "OPENAI_API_KEY"
_TICK_SECONDS = 0.5
_END_SECONDS = 10.0
# How long it may take to end once it has closed its output.
_STATUS_SECONDS = 2.0
# What it printed last: enough for a message, however much there is.
_TAIL_BYTES, _LINE_CHARACTERS = 65536, 300
# Besides proxies: what would let the engine's process reach for the hub or for a GPU that the server needs, or keep to itself what it waits for.
_FIXED = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}

Tick = t.Callable[[], None]


def client_environment(inherited: t.Mapping[str, str], home: str, api_key: str = "", ca_path: str = "") -> dict[str, str]:
    """Returns the environment of a load generator: no proxy, no hub, no GPU, and the key, which must not stand on a command line.

    Args:
        inherited: environment of this process.
        home: a directory that it may write to.
        api_key: key of the server, or an empty text.
        ca_path: CA bundle for https, or an empty text.
    """
    environment = {name: value for name, value in inherited.items() if not name.lower().endswith("_proxy")}
    environment.update({**_FIXED, "HOME": home, KEY_VARIABLE: api_key})
    environment.update({"SSL_CERT_FILE": ca_path, "REQUESTS_CA_BUNDLE": ca_path} if ca_path else {})
    return environment


class ClientProcess:
    """One load generator; used as a context manager, which ends it with all that it started.

    Args:
        command: how it is started.
        environment: see :func:`client_environment`.
        folder: for what it prints to standard error; must exist.
    """

    def __init__(self, command: t.Sequence[str], environment: t.Mapping[str, str], folder: Path) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._folder = folder
        self._errors = folder / "client.log"
        self._unread = b""

    def __enter__(self) -> ClientProcess:
        with open(self._errors, "wb") as errors:
            # Not run_command: it stays, so that its imports are paid for once.
            self._process = subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
                self._command,
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                # What an ended process was still to be told.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def expect(self, event: str, seconds: float, tick: Tick = lambda: None) -> None:
        """Waits for an answer.

        Args:
            event: the answer's name.
            seconds: after which it is given up.
            tick: called about twice a second while it waits.

        Raises:
            BenchmarkError: it ended, answered otherwise, or took too long.
        """
        deadline = time.monotonic() + seconds
        while True:
            line = self._line()
            if line is not None and self._event(line) == event:
                return
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the load generator took longer than {seconds:g} s{self._last_words()}")
            if line is None:
                tick()

    def run(self, order: t.Mapping[str, t.Any], seconds: float, tick: Tick = lambda: None) -> None:
        """Gives one order and waits until it is done.

        Raises:
            BenchmarkError: as :meth:`expect`.
        """
        stream = t.cast("t.IO[bytes]", self._process.stdin)
        try:
            stream.write(json.dumps(order).encode() + b"\n")
            stream.flush()
        except BrokenPipeError:
            raise BenchmarkError(f"the load generator has ended{self._last_words()}") from None
        self.expect("done", seconds, tick)

    def _line(self) -> bytes | None:
        """Returns the next answer, or None when there was none for a moment.

        Raises:
            BenchmarkError: the process has ended.
        """
        if b"\n" not in self._unread:
            descriptor = t.cast("t.IO[bytes]", self._process.stdout).fileno()
            # What it started may hold the stream open after it.
            ended = self._process.poll() is not None
            if select.select([descriptor], [], [], 0 if ended else _TICK_SECONDS)[0]:
                piece = os.read(descriptor, 65536)
                ended = not piece
                self._unread += piece
            if ended:
                raise BenchmarkError(f"the load generator ended{self._status()}{self._last_words()}")
        line, newline, self._unread = self._unread.partition(b"\n")
        if not newline:
            self._unread = line
            return None
        return line

    def _event(self, line: bytes) -> t.Any:
        """Returns the name of an answer.

        Raises:
            BenchmarkError: it is none.
        """
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise BenchmarkError(f"the load generator's answer makes no sense: {line[:_LINE_CHARACTERS].decode(errors='replace')}{self._last_words()}")
        return answer.get("event")

    def _status(self) -> str:
        """Its status in words; empty for one that closed its output and goes on."""
        try:
            return f" with status {self._process.wait(_STATUS_SECONDS)}"
        except subprocess.TimeoutExpired:
            return ""

    def _last_words(self) -> str:
        with open(self._errors, "rb") as errors:
            errors.seek(max(errors.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            text = errors.read().decode(errors="replace")
        lines = [line.strip()[:_LINE_CHARACTERS] for line in text.splitlines() if line.strip()]
        return ": " + " / ".join(lines[-3:]) if lines else ""
