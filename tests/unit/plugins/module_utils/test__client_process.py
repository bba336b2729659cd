# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
import time

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _client_process
from ansible_collections.llmops.inference.plugins.module_utils._client_process import ClientProcess, client_environment
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError

# What every played load generator begins with.
WORDS = """
import json, os, subprocess, sys, time
def say(event):
    sys.stdout.write(json.dumps({"event": event}) + "\\n")
    sys.stdout.flush()
def moan(text):
    sys.stderr.write(text + "\\n")
    sys.stderr.flush()
"""
ANSWERS = """
say("ready")
for line in sys.stdin:
    moan("asked " + line.strip())
    say("done")
"""


@pytest.fixture(name="client")
def fixture_client(tmp_path, monkeypatch):
    """Starts a load generator that is a small program."""
    monkeypatch.setattr(_client_process, "_TICK_SECONDS", 0.05)

    def start(program):
        return ClientProcess([sys.executable, "-c", WORDS + program], {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"}, tmp_path)

    return start


def is_running(pid):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def waits_for(condition, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_one_order_after_another(client, tmp_path):
    with client(ANSWERS) as process:
        process.expect("ready", 20)
        process.run({"run": 1}, 20)
        process.run({"run": 2, "words": ["ä"]}, 20)
    assert (tmp_path / "client.log").read_text().splitlines() == ['asked {"run": 1}', 'asked {"run": 2, "words": ["\\u00e4"]}']


def test_it_is_watched_while_it_works(client):
    ticks = []
    with client('say("ready")\nsys.stdin.readline()\ntime.sleep(0.4)\nsay("done")\ntime.sleep(60)') as process:
        process.expect("ready", 20)
        process.run({}, 20, lambda: ticks.append(1))
    assert 2 <= len(ticks) <= 9


def test_other_events_are_passed_over(client):
    with client('say("begun"); say("half"); say("ready"); time.sleep(60)') as process:
        process.expect("ready", 20)


def test_an_answer_in_pieces(client):
    program = 'sys.stdout.write(\'{"event":\'); sys.stdout.flush(); time.sleep(0.2); sys.stdout.write(\' "ready"}\\n{"event": "done"}\\n\'); sys.stdout.flush()'
    with client(f"{program}; time.sleep(60)") as process:
        process.expect("ready", 20)
        process.expect("done", 20)


TROUBLE = [
    pytest.param("sys.exit(3)", "the load generator ended with status 3", id="dies"),
    pytest.param('moan("a"); moan("b\\n\\n"); moan("c"); moan("d"); sys.exit(1)', "the load generator ended with status 1: b / c / d", id="dies-with-words"),
    pytest.param("os.kill(os.getpid(), 9)", "the load generator ended with status -9", id="is-killed"),
    pytest.param('raise ValueError("no such model")', "ValueError: no such model", id="raises"),
    pytest.param('print("hello"); moan("odd"); time.sleep(60)', "the load generator's answer makes no sense: hello", id="no-json"),
    pytest.param('print("5"); time.sleep(60)', "the load generator's answer makes no sense: 5", id="a-number"),
    pytest.param('print("[]"); time.sleep(60)', "the load generator's answer makes no sense: []", id="a-list"),
    pytest.param('sys.stdout.buffer.write(b"\\xff\\xfe\\n"); sys.stdout.flush(); time.sleep(60)', "the load generator's answer makes no sense: ", id="no-text"),
    pytest.param('print("x" * 100000); time.sleep(60)', f"the load generator's answer makes no sense: {'x' * 300}", id="long"),
    pytest.param('print("half", end=""); sys.exit(2)', "the load generator ended with status 2", id="half-a-line"),
    pytest.param("os.close(1); time.sleep(60)", "the load generator ended", id="closes-its-output"),
    pytest.param(
        'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]); moan("bye"); sys.exit(4)',
        "the load generator ended with status 4: bye",
        id="dies-and-leaves-its-output-to-another",
    ),
]


@pytest.mark.parametrize("program, message", TROUBLE)
def test_trouble_is_told_with_its_last_words(client, program, message):
    with client(program) as process, pytest.raises(BenchmarkError) as raised:
        process.expect("ready", 30)
    assert message in str(raised.value) and len(str(raised.value)) < 1500


@pytest.mark.parametrize("program", ["time.sleep(60)", "while True: say('busy')"], ids=["hangs", "talks-without-end"])
def test_it_is_given_up_after_a_while(client, program):
    with client(f"moan('waits for the server'); say('ready')\n{program}") as process:
        process.expect("ready", 30)
        with pytest.raises(BenchmarkError, match="^the load generator took longer than 0.3 s: waits for the server$"):
            process.run({}, 0.3)


def test_a_flood_of_errors_neither_stops_it_nor_fills_the_message(client):
    with client('sys.stderr.write(("y" * 5000 + "\\n") * 2000); say("ready"); sys.stdin.readline(); moan("the end"); sys.exit(1)') as process:
        process.expect("ready", 20)
        with pytest.raises(BenchmarkError) as raised:
            process.run({}, 20)
    assert str(raised.value) == f"the load generator ended with status 1: {'y' * 300} / {'y' * 300} / the end"


def test_an_order_to_one_that_has_ended(client):
    with client('say("ready"); moan("enough"); sys.exit(0)') as process:
        process.expect("ready", 20)
        assert waits_for(lambda: process._process.poll() is not None)
        with pytest.raises(BenchmarkError, match="^the load generator (has ended|ended with status 0): enough$"):
            process.run({"words": ["x" * 100000]}, 20)


@pytest.mark.parametrize("end", ["time.sleep(60)", "sys.exit(0)"], ids=["stays", "has-ended"])
def test_what_it_started_ends_with_it(client, tmp_path, end):
    program = (
        'child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])\nopen("pids", "w").write(f"{os.getpid()} {child.pid}")\nsay("ready")\n'
    )
    with client(program + end) as process:
        process.expect("ready", 20)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert is_running(pids[1])
    assert waits_for(lambda: not any(is_running(pid) for pid in pids))


def test_it_ends_when_the_benchmark_fails(client, tmp_path):
    with pytest.raises(KeyError), client('open("pids", "w").write(str(os.getpid())); say("ready"); time.sleep(60)') as process:
        process.expect("ready", 20)
        raise KeyError("elsewhere")
    assert waits_for(lambda: not is_running(int((tmp_path / "pids").read_text())))


def test_an_interpreter_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="/nowhere/python"), ClientProcess(["/nowhere/python"], {}, tmp_path):
        pass


OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize(
    "inherited, options, expected",
    [
        pytest.param({"PATH": "/bin"}, {}, {"PATH": "/bin", "OPENAI_API_KEY": ""}, id="plain"),
        pytest.param({"http_proxy": "x", "HTTPS_PROXY": "x", "all_proxy": "x", "no_proxy": "y"}, {}, {"OPENAI_API_KEY": ""}, id="N03-no-proxy"),
        pytest.param({}, {"api_key": "s3cret"}, {"OPENAI_API_KEY": "s3cret"}, id="U09-key"),
        pytest.param({"OPENAI_API_KEY": "mine", "CUDA_VISIBLE_DEVICES": "0"}, {}, {"OPENAI_API_KEY": ""}, id="nobody-elses-key-and-no-gpu"),
        pytest.param({}, {"ca_path": "/ca.pem"}, {"OPENAI_API_KEY": "", "SSL_CERT_FILE": "/ca.pem", "REQUESTS_CA_BUNDLE": "/ca.pem"}, id="a-private-ca"),
    ],
)
def test_the_environment(inherited, options, expected):
    """N03: no proxy. U09: the key is not on the command line, which everybody on the host can read."""
    assert client_environment(inherited, "/tmp/home", **options) == {**OFFLINE, "HOME": "/tmp/home", **expected}
