# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real CPU engine with the tiny model on loopback, and both load generators against it: for tests of engines and for ratios."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _engine_client
from ansible_collections.llmops.inference.plugins.module_utils._benchmark import benchmark_module
from ansible_collections.llmops.inference.plugins.module_utils._client_process import ClientProcess, client_environment
from ansible_collections.llmops.inference.plugins.module_utils._http import Client
from ansible_collections.llmops.inference.plugins.module_utils._load_client_files import client_command, request_lines, write_client

NAME = "tiny-qwen3"
START_SECONDS = 300
RUN_SECONDS = 600


def cache() -> Path:
    return Path(os.environ.get("LLMOPS_CACHE") or Path.home() / ".cache" / "llmops-inference")


def python_of(version: str) -> str:
    """The interpreter of an engine that tools/engines.sh made."""
    return json.loads((cache() / "engines" / "index.json").read_text())[version]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def tiny_server(version: str, folder: Path):
    """Starts a server and gives a client for it; its log lies in the folder."""
    port = free_port()
    words = ["--model-path", str(cache() / "models" / NAME), "--served-model-name", NAME, "--host", "127.0.0.1", "--port", str(port)]
    words += ["--device", "cpu", "--max-total-tokens", "8192", "--context-length", "2048", "--enable-metrics"]
    log = folder / "server.log"
    environment = client_environment(os.environ, str(folder))
    with log.open("wb") as output:
        command = [python_of(version), "-m", "sglang.launch_server", *words]
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment, start_new_session=True)
    client = Client(f"http://127.0.0.1:{port}")
    try:
        deadline = time.monotonic() + START_SECONDS
        while client.request("/health_generate", timeout=30).status != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.5)
        yield client, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Started:
    """A load generator as a context manager: ready when it is entered."""

    _process: ClientProcess

    def __enter__(self):
        self._process.__enter__()
        self._process.expect("ready", START_SECONDS)
        return self

    def __exit__(self, *error):
        self._process.__exit__(*error)


class OwnClient(Started):
    """The collection's client in an engine's interpreter; ``run`` gives its result.

    Args:
        python: the interpreter.
        url: of the server.
        folder: for its files.
        plan: more of the plan.
    """

    def __init__(self, python, url, folder, **plan):
        self._folder = folder
        folder.mkdir(exist_ok=True)
        write_client(folder)
        (folder / "plan.json").write_text(json.dumps({"base_url": url, "model": NAME, **plan}))
        command = client_command(python, folder, folder / "plan.json")
        self._process = ClientProcess(command, client_environment(os.environ, str(folder)), folder)

    def run(self, prompts, output_tokens, concurrency=None, **order):
        requests, output = self._folder / "requests.jsonl", self._folder / "result.json"
        requests.write_text(request_lines(prompts, output_tokens))
        order = {"run": 1, "requests": str(requests), "output": str(output), "concurrency": concurrency, "seed": 1, **order}
        self._process.run(order, RUN_SECONDS)
        return json.loads(output.read_text())


class EngineClient(Started):
    """The engine's own benchmark, through the chat API as well, in one process."""

    def __init__(self, python, url, folder):
        self._folder, self._url = folder, url
        folder.mkdir(exist_ok=True)
        command = [python, "-s", str(Path(_engine_client.__file__).resolve()), benchmark_module(python)]
        self._process = ClientProcess(command, client_environment(os.environ, str(folder)), folder)

    def run(self, prompts, output_tokens, concurrency):
        data, output = self._folder / "data.jsonl", self._folder / "result.jsonl"
        data.write_text("".join(json.dumps({"conversations": [{"content": prompt.text}, {"content": "none"}]}) + "\n" for prompt in prompts))
        output.unlink(missing_ok=True)
        model = str(cache() / "models" / NAME)
        words = ["--backend", "sglang-oai-chat", "--base-url", self._url, "--model", model, "--tokenizer", model, "--served-model-name", NAME]
        words += ["--dataset-name", "custom", "--dataset-path", str(data), "--sharegpt-output-len", str(output_tokens), "--num-prompts", str(len(prompts))]
        words += ["--max-concurrency", str(concurrency), "--warmup-requests", "0", "--seed", "1", "--disable-tqdm", "--output-details"]
        self._process.run({"run": 1, "words": [*words, "--output-file", str(output)]}, RUN_SECONDS)
        return json.loads(output.read_text().splitlines()[-1])
