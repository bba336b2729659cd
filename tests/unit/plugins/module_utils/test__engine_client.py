# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _engine_client

# What stands in for the engine's benchmark: it does what its first word says, and keeps account of its runs.
PLAYED = """
import os, sys
class Output:
    def __init__(self, error):
        self.error = error
COUNT = globals().get("COUNT", 0) + 1
if __name__ == "__main__":
    print("============ Serving Benchmark Result ============")
    os.write(1, b"straight to the file\\n")
    with open("runs", "a") as runs:
        runs.write(" ".join(sys.argv) + f" {COUNT}\\n")
    word = sys.argv[1]
    if word == "raise":
        raise RuntimeError("no such backend")
    if word.startswith("exit"):
        sys.exit(int(word[4:]) if word[4:] else None)
    if word == "none":
        def calculate(outputs):
            [].pop()
        calculate([Output(""), Output("Traceback:\\n  File\\nInternal Server Error: out of memory\\n"), Output("other")])
    if word == "index":
        [].pop()
    if word == "words":
        sys.exit("the server is not ready")
"""


class Driver:
    """Runs the driver as the benchmark does, with a played benchmark for the engine's."""

    def __init__(self, path):
        self.path = path
        (path / "played.py").write_text(PLAYED)
        (path / "client.py").write_text(inspect.getsource(_engine_client))

    def run(self, *orders, module="played"):
        given = "".join(json.dumps({"run": i, "words": words}) + "\n" for i, words in enumerate(orders, 1))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.path), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-s", "client.py", module]
        return subprocess.run(command, input=given, text=True, capture_output=True, cwd=self.path, env=environment, timeout=60, check=False)

    @property
    def runs(self):
        return (self.path / "runs").read_text().splitlines()


@pytest.fixture(name="driver")
def fixture_driver(tmp_path):
    return Driver(tmp_path)


def events(ran):
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_several_orders_in_one_process(driver):
    ran = driver.run(["fine", "--num-prompts", "4"], ["exit0"], ["exit"], ["fine"])
    assert events(ran) == [{"event": "ready"}, *({"event": "done", "run": number} for number in (1, 2, 3, 4))]
    assert ran.returncode == 0
    assert [line.split()[1:-1] for line in driver.runs] == [["fine", "--num-prompts", "4"], ["exit0"], ["exit"], ["fine"]]
    assert {line.split()[-1] for line in driver.runs} == {"1"}, "nothing of one run is left in the next"


def test_what_the_benchmark_prints_is_no_answer(driver):
    ran = driver.run(["fine"])
    assert events(ran) == [{"event": "ready"}, {"event": "done", "run": 1}]
    assert "Serving Benchmark Result" in ran.stderr and "straight to the file" in ran.stderr


@pytest.mark.parametrize(
    "word, status, text",
    [
        pytest.param("exit1", 1, "", id="status"),
        pytest.param("exit2", 2, "", id="wrong-arguments"),
        pytest.param("words", 1, "the server is not ready", id="words"),
        pytest.param("none", 1, "\nno request succeeded: Internal Server Error: out of memory\n", id="B04-all-requests-failed"),
        pytest.param("index", 1, "IndexError: pop from empty list", id="another-fault-of-it"),
        pytest.param("raise", 1, "RuntimeError: no such backend", id="exception"),
    ],
)
def test_a_benchmark_that_fails_ends_it(driver, word, status, text):
    ran = driver.run(["fine"], [word], ["fine"])
    assert events(ran) == [{"event": "ready"}, {"event": "done", "run": 1}]
    assert ran.returncode == status and text in ran.stderr
    assert len(driver.runs) == 2


def test_without_orders_it_only_imports(driver):
    ran = driver.run()
    assert (events(ran), ran.returncode, ran.stderr) == ([{"event": "ready"}], 0, "")
    assert not (driver.path / "runs").exists()


def test_an_engine_that_keeps_its_benchmark_elsewhere(driver):
    ran = driver.run(["fine"], module="nowhere")
    assert (events(ran), ran.returncode) == ([], 1)
    assert ran.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'nowhere'"


def test_it_needs_nothing_of_ansible():
    imported = [line for line in inspect.getsource(_engine_client).splitlines() if line.startswith(("import ", "from "))]
    names = {line.split()[1].partition(".")[0] for line in imported}
    assert names <= set(sys.stdlib_module_names) if hasattr(sys, "stdlib_module_names") else "ansible" not in " ".join(imported)


def test_its_source_is_found_in_the_archive_that_ansible_sends(tmp_path):
    """A module runs from a zip file, where a source is no file."""
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        archive.writestr("sent/__init__.py", "")
        archive.writestr("sent/_engine_client.py", Path(_engine_client.__file__).read_text())
    program = "import inspect; from sent import _engine_client; print(len(inspect.getsource(_engine_client)))"
    found = subprocess.check_output([sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path / "sent.zip")}, text=True, timeout=60)
    assert int(found) == len(inspect.getsource(_engine_client))
