# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.modules import sglang_engine
from ansible_collections.llmops.inference.tests.unit.gpu import A6000, CAPABILITIES, REPORT, Host, report

PROOF = {"version": "0.5.23", "torch": "2.13.0+cpu", "benchmark_module": "sglang.benchmark.serving"}


class Bench:
    """The module with a scratch directory of engines on a host without a GPU; uv, the interpreters and the host are played."""

    def __init__(self, path, run_module):
        self.root = path / "engines"
        self.lock = path / "lock.txt"
        self.lock.write_text("# deviation: without sglang-kernel\nsglang==0.5.23\n")
        self.fails = ""
        self.proof = PROOF
        self.host = Host(path / "host")
        self.commands = []
        self.run_module = run_module

    def run(self, check_mode=False, **args):
        self.commands.clear()
        paths = {"root": str(self.root), "lock": str(self.lock), "prove": "/p.py", "uv": "/uv", "support": "/cpu_support"}
        options = {"version": "0.5.23", "flavour": "cpu", **paths}
        ran = self.run_module(sglang_engine, {**options, **args}, command=self.command, check_mode=check_mode)
        self.environment = ran.environment
        return ran

    def find(self, name, required=False, opt_dirs=None):
        """Plays get_bin_path: the host has what it answers to, and timeout."""
        return f"/usr/bin/{name}" if name in {"timeout", *(command.split()[0] for command in self.host.answers)} else None

    def has_gpu(self, name, capability, driver, cuda):
        self.host.says(REPORT, report({"name": name}, driver=driver, cuda=cuda)).says(CAPABILITIES, f"0, {A6000['uuid']}, {capability}\n")
        self.host.has_device("0000:01:00.0").has_driver(driver, 0)

    def command(self, words, **options):
        if words[0] == "/usr/bin/timeout":
            return (*(self.host.ask(Path(words[2]).name, *words[3:]) or (1, "")), "")
        self.commands.append(words)
        if self.fails and self.fails in words:
            return 1, "", "error: No space left on device"
        if words[1:2] == ["venv"]:
            os.makedirs(words[-1])
        if "/p.py" in words:
            Path(words[-1]).write_text("{}")
            return 0, "noise\n" + json.dumps(self.proof) + "\n", ""
        return 0, "3.11\n", ""


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch, run_module):
    monkeypatch.setattr(sglang_engine, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    before, bench = os.umask(0o077), Bench(tmp_path, run_module)
    monkeypatch.setenv("LLMOPS_INFERENCE_ROOT", str(bench.host.root))
    monkeypatch.setattr(AnsibleModule, "get_bin_path", bench.find)
    yield bench
    os.umask(before)


def test_an_engine_is_installed_once(bench, documented):
    ran = bench.run()
    assert (ran.status, ran.result["changed"]) == (0, True)
    assert ran.keys == documented(sglang_engine)
    engine = ran.result["engine"]
    assert {name: engine[name] for name in PROOF} == PROOF
    assert engine["deviations"] == ["without sglang-kernel"]
    assert ran.result["path"] == engine["path"] == str(bench.root / "0.5.23-cpu-c1f4c226-py311-x86_64")
    again = bench.run()
    assert (again.result["changed"], again.result["engine"], again.keys) == (False, engine, ran.keys)
    assert len(bench.commands) == 1, "only the interpreter is asked for its version"


def test_what_is_installed_can_be_read_by_the_server(bench):
    engine = Path(bench.run().result["path"])
    assert [oct((engine / name).stat().st_mode)[-3:] for name in (".", "engine.json")] == ["755", "644"], "whatever root's umask is"


@pytest.mark.parametrize("flavour, installed", [("cpu", True), ("cuda", False)])
def test_the_support_package_is_for_the_cpu(bench, flavour, installed):
    bench.run(flavour=flavour)
    assert any("/cpu_support" in words for words in bench.commands) is installed


def test_check_mode(bench, documented):
    ran = bench.run(check_mode=True)
    assert (ran.result["changed"], ran.result["engine"], ran.keys) == (True, {}, documented(sglang_engine))
    assert not bench.root.exists()
    installed = bench.run().result
    ran = bench.run(check_mode=True)
    assert (ran.result["changed"], ran.result["engine"], ran.result["path"]) == (False, installed["engine"], installed["path"])


def test_an_engine_that_is_there_is_not_judged_again(bench):
    """Its lock may need another host by now: it runs."""
    bench.run()
    bench.lock.write_text(f"# llmops: glibc=99.1\n{bench.lock.read_text()}")
    for check_mode in (False, True):
        assert (bench.run(check_mode=check_mode).failed, bench.run().result["changed"]) == (False, False)


CUDA_LOCK = "# llmops: cuda=13.0\nsglang==0.5.23\n"


@pytest.mark.parametrize(
    "gpu, lock, message",
    [
        pytest.param(
            ("Tesla V100-PCIE-32GB", "7.0", "580.95.05", "13.0"),
            CUDA_LOCK,
            "Tesla V100-PCIE-32GB has compute capability 7.0; CUDA 13.0 has no code for GPUs older than 7.5: ",
            id="L10-gpu",
        ),
        pytest.param(
            ("NVIDIA H200", "9.0", "550.163.01", "12.4"),
            CUDA_LOCK,
            "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs 550.163.01 (CUDA 12.4 at most): ",
            id="L11-driver",
        ),
        pytest.param(
            ("NVIDIA H200", "9.0", "580.95.05", "13.0"),
            CUDA_LOCK + "nvidia-nccl-cu12==2.29.3\nnvidia-nccl-cu13==2.29.7\n",
            "the packages mix CUDA 12 (nvidia-nccl-cu12 2.29.3) and CUDA 13 (nvidia-nccl-cu13 2.29.7); ",
            id="I01-two-majors",
        ),
        pytest.param(
            ("NVIDIA H200", "9.0", "580.95.05", "13.0"),
            CUDA_LOCK.replace("0.5.23", "0.5.2"),
            "the lock pins sglang 0.5.2, sglang_engine_version is 0.5.23",
            id="I01-another-version",
        ),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_what_cannot_work_is_refused_before_the_download(bench, check_mode, gpu, lock, message):
    bench.has_gpu(*gpu)
    bench.lock.write_text(lock)
    ran = bench.run(check_mode=check_mode, flavour="cuda")
    assert ran.failed and ran.result["msg"].startswith(f"engine 0.5.23 (cuda): {message}")
    assert len(bench.commands) == 1, "only the interpreter was asked for its version"
    assert not bench.root.exists()


@pytest.mark.parametrize("architectures, fails", [(["sm_80"], True), (["sm_80", "sm_90"], False), ([], False)])
def test_kernels_for_the_gpu(bench, architectures, fails):
    """L10: only the installed torch says what it was built for."""
    bench.has_gpu("NVIDIA H200", "9.0", "580.95.05", "13.0")
    bench.lock.write_text(CUDA_LOCK)
    bench.proof = {**PROOF, "cuda": "13.0", "architectures": architectures}
    ran = bench.run(flavour="cuda")
    assert ran.failed is fails
    if fails:
        assert "the engine's torch has no kernel for NVIDIA H200 (compute capability 9.0): it has sm_80" in ran.result["msg"]
        assert not list(bench.root.glob("*/engine.json")), "the next deployment does not use it either"


def test_a_host_without_a_gpu_is_not_asked_for_one(bench):
    bench.lock.write_text(CUDA_LOCK)
    bench.proof = {**PROOF, "cuda": "13.0", "architectures": ["sm_80"]}
    assert not bench.run(flavour="cuda").failed


@pytest.mark.parametrize("cache", [None, "/srv/uv"])
def test_the_cache_is_uvs_own_unless_given(bench, cache):
    bench.run(**({"cache": cache} if cache else {}))
    (install,) = [words for words in bench.commands if "--require-hashes" in words]
    assert install[install.index("--cache-dir") + 1 :][:1] == [cache] if cache else "--cache-dir" not in install


def test_the_proof_runs_without_a_gpu_and_its_bytecode_is_kept(bench):
    bench.run()
    assert bench.environment == {"PYTHONDONTWRITEBYTECODE": "", "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"}


def test_no_progress_is_left(bench, tmp_path):
    bench.run()
    assert list((tmp_path / "progress").iterdir()) == []


def test_old_engines_go(bench):
    bench.run()
    (bench.root / "old").mkdir()
    ran = bench.run(keep=1)
    assert (ran.result["changed"], ran.result["pruned"]) == (True, ["old"])


@pytest.mark.parametrize(
    "lock, fails, message",
    [
        pytest.param("sglang==0.5.23\n", "venv", "making the virtual environment failed: the disk is full", id="step"),
        pytest.param("# llmops: glibc=99.1\nsglang==0.5.23\n", "", "this engine's wheels need glibc 99.1 or newer, the host has ", id="unfit-host"),
        pytest.param("torch==2\n", "", "the lock pins no sglang", id="lock"),
        pytest.param(None, "", "[Errno 2] No such file or directory", id="no-lock"),
        pytest.param("sglang==0.5.23\n", "/usr/bin/python3", "sglang_engine_python /usr/bin/python3 does not run", id="no-python"),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_failures_have_the_same_keys(bench, documented, check_mode, lock, fails, message):
    bench.fails = fails
    bench.lock.unlink() if lock is None else bench.lock.write_text(lock)
    ran = bench.run(check_mode=check_mode)
    if fails == "venv" and check_mode:
        assert not ran.failed, "check mode takes no step"
        return
    assert (ran.status, ran.failed, ran.keys) == (1, True, documented(sglang_engine))
    assert ran.result["msg"].startswith(f"engine 0.5.23 (cpu): {message}")
    assert (ran.result["engine"], ran.result["pruned"]) == ({}, [])
