# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine is there whole, proven and unwritable, or it is not used at all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = Path(__file__).resolve().parents[1]
FILES = SCENARIO.parents[1] / "roles" / "sglang_engine" / "files"
sys.path.insert(0, str(SCENARIO.parents[1] / "collections"))

from ansible_collections.llmops.inference.plugins.module_utils._engine import engine_name, parse_lock  # noqa: E402

ROOT = "/opt/sglang/scenario-engine/engines"
PROGRESS = "/run/llmops-inference/sglang_engine"


@pytest.fixture(scope="module")
def engine():
    """Directory that the engine has or will have."""
    lock = parse_lock((FILES / "locks" / "0.5.23-cpu-py311.txt").read_text())
    return f"{ROOT}/{engine_name('0.5.23', 'cpu', lock, '3.11', 'x86_64')}"


def converge(*options):
    """Runs the scenario's converge playbook and returns the process."""
    command = ["ansible-playbook", "-i", os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"]), str(SCENARIO / "converge.yml"), *options]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process, rc=0):
    output = process.communicate()[0]
    assert (process.returncode == 0) == (rc == 0), output[-4000:]
    return output


def test_the_marker_says_what_the_engine_is(host, engine):
    marker = json.loads(host.file(f"{engine}/engine.json").content_string)
    assert marker["version"] == "0.5.23"
    assert marker["torch"] == "2.13.0+cpu"
    assert marker["benchmark_module"] == "sglang.benchmark.serving"
    assert "without sglang-kernel" in marker["deviations"]


def test_the_shipped_parser_table_is_the_engines(host, engine):
    shipped = FILES / "flags" / "0.5.23.json"
    assert json.loads(host.file(f"{engine}/flags.json").content_string) == json.loads(shipped.read_text())


def test_nothing_of_it_is_writable_for_others_than_root(host, engine):
    assert host.check_output(f"find {engine} ( -perm /022 -o ! -user root ) ! -type l".replace("(", r"\(").replace(")", r"\)")) == ""


def test_bytecode_of_the_engine_is_compiled(host, engine):
    sources = int(host.check_output(f"find {engine}/lib/python3.11/site-packages/sglang -name '*.py' | wc -l"))
    compiled = int(host.check_output(f"find {engine}/lib/python3.11/site-packages/sglang -name '*.pyc' | wc -l"))
    assert compiled >= 0.99 * sources > 1000


def test_the_support_package_is_an_installed_package(host, engine):
    assert host.run(f"{engine}/bin/python -c 'import importlib.metadata as m; print(m.version(\"llmops-cpu-engine\"))'").stdout.strip() == "1.0.0"


def test_every_script_starts(host, engine):
    """A virtual environment that was moved has scripts whose interpreter is gone: status 126 or 127."""
    listing = f"find {engine}/bin -type f -perm -u+x ! -name 'python*' ! -name 'activate*'"
    script = f"{listing} | xargs -P 2 -I X sh -c 'timeout 20 X --help </dev/null >/dev/null 2>&1; echo \"$? X\"'"
    ran = host.run(f"cd /tmp && HOME=/tmp {script}").stdout.splitlines()
    assert len(ran) > 40
    assert [line for line in ran if line.split()[0] in ("126", "127")] == []


@pytest.mark.parametrize("step", ["installing the locked packages", "compiling bytecode", "proving the engine"])
def test_an_interrupted_installation_is_never_used(host, engine, eventually, step):
    host.check_output(f"rm -rf {engine}")
    process = converge()
    eventually(lambda: step in host.run(f"cat {PROGRESS}").stdout, what=f"the step '{step}'")
    host.check_output("pkill -KILL -f [s]glang_engine")
    process.communicate(timeout=60)
    assert process.returncode != 0
    host.run("pkill -KILL -f '[u]v pip install'; pkill -KILL -f [c]ompileall; pkill -KILL -f [p]rove_engine.py")
    assert host.file(engine).exists
    assert not host.file(f"{engine}/engine.json").exists


def test_the_next_run_builds_it_anew_and_old_ones_go_but_for_those_in_use(host, engine):
    for name in ("old", "used", "older"):
        host.check_output(f"mkdir -p {ROOT}/{name}/bin && touch {ROOT}/{name}/engine.json && touch -d '2 days ago' {ROOT}/{name}")
    host.check_output(f"printf '[Service]\\nExecStart={ROOT}/used/bin/python -m x\\n' > /etc/systemd/system/sglang-other.service")
    finish(converge())
    assert host.file(f"{engine}/engine.json").exists
    assert host.run(f"{engine}/bin/python -c 'import sglang.srt.server_args'").rc == 0
    assert sorted(host.check_output(f"ls {ROOT}").split()) == sorted([os.path.basename(engine), "used"])


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"sglang_engine_version": "0.5.99"}, "There is no lock .*0.5.99-cpu-py311.txt"),
        ({"sglang_engine_flavour": "gpu"}, "value of sglang_engine_flavour must be one of: cuda, cpu"),
        ({"sglang_engine_version": "0.5.16", "sglang_engine_find_links": ["/srv/nothing"]}, "engine 0.5.16 \\(cpu\\): installing the locked packages failed"),
        (
            {
                "sglang_engine_version": "0.5.16",
                "sglang_engine_find_links": [],
                "sglang_engine_offline_enabled": False,
                "sglang_engine_index_url": "http://127.0.0.1:9/simple",
            },
            "engine 0.5.16 \\(cpu\\): installing the locked packages failed: the index cannot be reached \\(http://127.0.0.1:9/simple",
        ),
    ],
    ids=["no-lock", "flavour", "no-wheels", "no-index"],
)
def test_bad_input_is_one_sentence(host, variables, message):
    output = finish(converge("-e", json.dumps(variables)), rc=1)
    assert re.search(message, " ".join(output.split())), output[-3000:]


def test_a_full_disk_is_named(host):
    host.check_output("mkdir -p /mnt/small && mount -t tmpfs -o size=200m tmpfs /mnt/small && cp -r /opt/sglang/scenario-engine/uv /mnt/small/")
    output = " ".join(finish(converge("-e", json.dumps({"sglang_engine_root": "/mnt/small"})), rc=1).split())
    assert re.search(r"this engine needs 4 GB of disk, 0\.\d GB are free below sglang_engine_root", output), output[-3000:]


def test_check_mode_on_a_bare_host_says_what_it_cannot_judge(host):
    output = finish(converge("--check", "--diff", "-e", json.dumps({"sglang_engine_root": "/opt/bare"})))
    assert "would be installed. Until it is there, what it makes of the flags cannot be judged on this host" in " ".join(output.split())
    assert not host.file("/opt/bare").exists
