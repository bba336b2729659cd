# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._compat import Machine
from ansible_collections.llmops.inference.plugins.module_utils._engine import (
    EngineError,
    HostFacts,
    Installer,
    Lock,
    Plan,
    Source,
    engine_name,
    engines_in_use,
    explain,
    machine_of,
    parse_lock,
    prune,
    read_host_facts,
    refuse_unfit_engine,
    refuse_unfit_host,
    refuse_unfit_lock,
    unfit,
)

LOCK = """\
# llmops: python=3.11
# llmops: architecture=x86_64
# llmops: glibc=2.28
# llmops: disk_gb=12.5
# llmops: cuda=13.0
sglang==0.5.23 \\
    --hash=sha256:aaaa
    # via -r engine.in
torch==2.9.1 --hash=sha256:bbbb
"""
CASES = Path(__file__).resolve().parents[2] / "fixtures" / "cases"
H200, A6000, V100 = ("NVIDIA H200", "9.0"), ("NVIDIA RTX A6000", "8.6"), ("Tesla V100-PCIE-32GB", "7.0")
MACHINE = Machine("580.95.05", "13.0", [H200])
HOST = HostFacts(python="3.11", architecture="x86_64", glibc="2.36", free_gb=100.0, machine=MACHINE)


def test_parse_lock():
    assert dict(parse_lock(LOCK).needs) == {
        "python": "3.11",
        "architecture": "x86_64",
        "glibc": "2.28",
        "disk_gb": "12.5",
        "cuda": "13.0",
    }
    assert parse_lock(LOCK).packages == {"sglang": "0.5.23", "torch": "2.9.1"}
    assert parse_lock(LOCK).text == LOCK
    assert dict(parse_lock("sglang==0.5.23\n").needs) == {}


@pytest.mark.parametrize("text", ["", "torch==2.9.1\n", "# sglang==0.5.23\n", "sglang>=0.5\n", "sglang==\n", "sglang-kernel==1\n"])
def test_a_lock_without_sglang_is_refused(text):
    with pytest.raises(EngineError, match="^the lock pins no sglang: make one with `make lock ENGINE=VERSION FLAVOUR=cuda`$"):
        parse_lock(text)


def test_the_hash_covers_the_requirements():
    lines = ["sglang==0.5.23 \\", "--hash=sha256:aaaa", "torch==2.9.1 --hash=sha256:bbbb"]
    assert parse_lock(LOCK).hash == hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    "text, same",
    [
        pytest.param(LOCK.replace("# via", "# wanted by"), True, id="comment"),
        pytest.param("\n" + LOCK.replace("    --hash", "  --hash") + "\n\n", True, id="blanks"),
        pytest.param(LOCK.replace("glibc=2.28", "glibc=2.31"), True, id="header"),
        pytest.param(LOCK.replace("bbbb", "cccc"), False, id="hash"),
        pytest.param(LOCK.replace("2.9.1", "2.9.2"), False, id="version"),
        pytest.param(LOCK + "idna==3.7\n", False, id="more"),
    ],
)
def test_what_changes_the_hash(text, same):
    assert (parse_lock(text).hash == parse_lock(LOCK).hash) is same


def test_engine_name():
    lock = parse_lock(LOCK)
    assert engine_name("0.5.23", "cuda", lock, "3.11", "x86_64") == f"0.5.23-cuda-{lock.hash}-py311-x86_64"


@pytest.mark.parametrize("version", ["0.5.16", "0.5.2", "0.5.23.post1"])
def test_a_lock_of_another_version(version):
    with pytest.raises(EngineError, match=rf"^the lock pins sglang 0\.5\.23, sglang_engine_version is {version}$"):
        engine_name(version, "cuda", parse_lock(LOCK), "3.11", "x86_64")


@pytest.mark.parametrize(
    "host",
    [
        pytest.param({}, id="fit"),
        pytest.param({"glibc": "2.28", "free_gb": 12.5, "machine": Machine("580.65.06", "", [H200])}, id="just-enough"),
        pytest.param({"glibc": "3.0"}, id="next-glibc"),
        pytest.param({"machine": Machine()}, id="no-driver-yet"),
        pytest.param({"machine": Machine("", "", [H200])}, id="gpus-without-a-driver"),
        pytest.param({"machine": Machine("1000.1", "", [H200])}, id="driver-by-number"),
        pytest.param({"machine": Machine("570.124.06", "12.8", [H200], "13.0")}, id="L11-forward-compatibility"),
    ],
)
def test_a_fit_host(host):
    assert refuse_unfit_host(parse_lock(LOCK), HostFacts(**{**vars(HOST), **host})) is None


@pytest.mark.parametrize(
    "host, message",
    [
        pytest.param({"architecture": "aarch64"}, "this engine's wheels are for x86_64, the host is aarch64", id="architecture"),
        pytest.param(
            {"python": "3.12"}, "this lock is for Python 3.11, sglang_engine_python is Python 3.12: use that interpreter or another lock", id="python"
        ),
        pytest.param({"glibc": "2.27"}, "this engine's wheels need glibc 2.28 or newer, the host has 2.27", id="glibc"),
        pytest.param({"glibc": "2.9"}, "this engine's wheels need glibc 2.28 or newer, the host has 2.9", id="glibc-by-number"),
        pytest.param({"glibc": ""}, "this engine's wheels need glibc 2.28 or newer, the host has none", id="musl"),
        pytest.param({"free_gb": 12.44}, "this engine needs 12.5 GB of disk, 12.4 GB are free below sglang_engine_root", id="disk"),
        pytest.param(
            {"machine": Machine("570.211.01", "12.8", [H200])},
            "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs 570.211.01 (CUDA 12.8 at most): "
            "install driver 580 or newer (cuda_driver), or an engine built for CUDA 12",
            id="L11-driver",
        ),
        pytest.param(
            {"machine": Machine("570.211.01", "12.8", [A6000], "13.0")},
            "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs 570.211.01 (CUDA 12.8 at most): "
            "install driver 580 or newer (cuda_driver), or an engine built for CUDA 12; "
            "the forward compatibility package does not help: it is not for NVIDIA RTX A6000",
            id="L11-no-forward-compatibility-for-this-gpu",
        ),
        pytest.param(
            {"machine": Machine("580.95.05", "13.0", [H200, V100])},
            "Tesla V100-PCIE-32GB has compute capability 7.0; CUDA 13.0 has no code for GPUs older than 7.5: "
            "use an engine built for an older CUDA, or another GPU",
            id="L10-gpu-that-cuda-dropped",
        ),
        pytest.param(
            {"machine": Machine("535.54.03", "12.2", [V100])},
            "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs 535.54.03 (CUDA 12.2 at most): "
            "install driver 580 or newer (cuda_driver), or an engine built for CUDA 12; "
            "Tesla V100-PCIE-32GB has compute capability 7.0; CUDA 13.0 has no code for GPUs older than 7.5: "
            "use an engine built for an older CUDA, or another GPU",
            id="both",
        ),
    ],
)
def test_an_unfit_host(host, message):
    with pytest.raises(EngineError) as caught:
        refuse_unfit_host(parse_lock(LOCK), HostFacts(**{**vars(HOST), **host}))
    assert str(caught.value) == message


def test_a_lock_without_needs_fits_every_host():
    assert refuse_unfit_host(Lock("sglang==1\n", {}), HostFacts("3.9", "riscv64", "", 0.0, Machine("1.0", "", [V100]))) is None


ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


@pytest.mark.parametrize(
    "engine, machine",
    [
        pytest.param({"cuda": "13.0", "architectures": ARCHITECTURES}, MACHINE, id="fit"),
        pytest.param({"cuda": "13.0", "architectures": ["sm_80", "compute_80"]}, MACHINE, id="by-ptx"),
        pytest.param({"cuda": "13.0"}, MACHINE, id="installed-before-its-architectures-were-recorded"),
        pytest.param({"cuda": "13.0", "architectures": ["sm_120"]}, Machine(), id="no-gpu"),
        pytest.param({"cuda": "13.0", "architectures": ARCHITECTURES}, Machine("570.124.06", "12.8", [H200], "13.0"), id="forward-compatibility"),
        pytest.param({"cuda": None, "architectures": []}, MACHINE, id="cpu"),
        pytest.param({}, MACHINE, id="nothing-known"),
    ],
)
def test_a_fit_engine(engine, machine):
    assert refuse_unfit_engine(engine, machine) is None


@pytest.mark.parametrize(
    "engine, machine, message",
    [
        pytest.param(
            {"cuda": "13.0", "architectures": ["sm_80", "sm_100"]},
            MACHINE,
            "the engine's torch has no kernel for NVIDIA H200 (compute capability 9.0): it has sm_80, sm_100: use an engine whose torch is built for this GPU",
            id="L10-no-kernel",
        ),
        pytest.param(
            {"cuda": "13.0", "architectures": ARCHITECTURES},
            Machine("550.163.01", "", [H200]),
            "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer, the host runs 550.163.01 (CUDA 12.4 at most): "
            "install driver 580 or newer (cuda_driver), or an engine built for CUDA 12",
            id="L11-driver",
        ),
    ],
)
def test_an_unfit_engine(engine, machine, message):
    with pytest.raises(EngineError) as caught:
        refuse_unfit_engine(engine, machine)
    assert str(caught.value) == message


def test_machine_of():
    driver = {"version": "580.95.05", "cuda": "13.0", "compatibility": "13.2", "more": "x"}
    gpus = [{"name": "NVIDIA H200", "compute_capability": "9.0", "index": 0}, {"name": "NVIDIA RTX A6000", "compute_capability": "", "index": 1}]
    assert machine_of({"driver": driver, "gpus": gpus}) == Machine("580.95.05", "13.0", [H200, ("NVIDIA RTX A6000", "")], "13.2")


COMPILERS = "nvidia-cuda-nvcc==13.5.37\nnvidia-cuda-runtime==13.0.96\n"


@pytest.mark.parametrize(
    "pins, flavour, message",
    [
        pytest.param("", "cuda", "", id="fit"),
        pytest.param(COMPILERS.replace("13.5.37", "13.0.88"), "cuda", "", id="compilers"),
        pytest.param(COMPILERS, "cpu", "", id="compilers-that-nobody-uses"),
        pytest.param(
            COMPILERS, "cuda", "the compiler nvidia-cuda-nvcc 13.5.37 does not build against the headers of nvidia-cuda-runtime 13.0.96", id="headers"
        ),
        pytest.param(
            "nvidia-nccl-cu12==2.29.3\nnvidia-nccl-cu13==2.29.7\n",
            "cuda",
            "the packages mix CUDA 12 (nvidia-nccl-cu12 2.29.3) and CUDA 13 (nvidia-nccl-cu13 2.29.7); "
            "nvidia-nccl-cu12 and nvidia-nccl-cu13 overwrite each other's files: ",
            id="I01-two-majors",
        ),
    ],
)
def test_what_a_lock_pins_fits(pins, flavour, message):
    if not message:
        assert refuse_unfit_lock(parse_lock(LOCK + pins), flavour) is None
        return
    with pytest.raises(EngineError) as caught:
        refuse_unfit_lock(parse_lock(LOCK + pins), flavour)
    assert str(caught.value).startswith(message)


def test_read_host_facts(tmp_path):
    facts = read_host_facts(tmp_path / "not" / "yet", "3.11", MACHINE)
    assert (facts.python, facts.architecture) == ("3.11", os.uname().machine)
    assert facts.glibc == (os.confstr("CS_GNU_LIBC_VERSION") or "glibc ").split()[-1]
    assert facts.machine is MACHINE
    stat = os.statvfs(tmp_path)
    assert facts.free_gb == pytest.approx(stat.f_bavail * stat.f_frsize / 1e9, rel=0.2)


@pytest.mark.parametrize(
    "output, sentence",
    [
        pytest.param(
            "error: No solution found when resolving dependencies\n  cause: Because idna was not found in the cache and you require idna==3.7, we can conclude",
            "no wheel was found for idna: check the index, find-links and offline settings",
            id="uv-offline",
        ),
        pytest.param(
            "  cause: Because foo==1.0 has no wheels with a matching Python implementation tag (e.g., `cp311`) and you require foo==1.0, we can conclude",
            "no wheel was found for foo==1.0: check the index, find-links and offline settings",
            id="uv-no-wheel",
        ),
        pytest.param(
            "  cause: Because there is no version of idna==99.0 and you require idna==99.0, we can conclude that your requirements are unsatisfiable.",
            "no wheel was found for idna==99.0: check the index, find-links and offline settings",
            id="uv-no-version",
        ),
        pytest.param(
            "error: Request failed after 3 retries in 10.1s\n  cause: Failed to fetch: http://127.0.0.1:9/simple/idna/\n  cause: error sending request",
            "the index cannot be reached (http://127.0.0.1:9/simple/idna/)",
            id="uv-index",
        ),
        pytest.param(
            "error: Failed to fetch: `https://pypi.org/simple/idna/`", "the index cannot be reached (https://pypi.org/simple/idna/)", id="uv-index-quoted"
        ),
        pytest.param(
            "error: error sending request for url (https://example.org/a.whl)", "the index cannot be reached (https://example.org/a.whl)", id="uv-request"
        ),
        pytest.param(
            "error: Failed to download `idna==3.7`\n  cause: Hash mismatch for `idna==3.7`\n\n         Expected:\n           sha256:00\n",
            "the file for idna==3.7 is not the one the lock names",
            id="uv-hash",
        ),
        pytest.param("error: failed to write: No space left on device (os error 28)", "the disk is full", id="disk-full"),
        pytest.param(
            (CASES / "i01b_undefined_nccl_symbol.log").read_text(),
            "the NCCL library is not the one that torch was built with: it has no ncclCommResume; "
            "only the nvidia-nccl package that torch asks for may be installed",
            id="I01-nccl",
        ),
        pytest.param(
            'cuda_toolkit.h:41:8: error: #error "CUDA compiler and CUDA toolkit headers are incompatible, please check your include paths"\n   41 | #  error\n',
            "the CUDA compiler and the CUDA headers are of different versions",
            id="nvcc-headers",
        ),
        pytest.param(
            "crt/host_config.h:137:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not supported! The nvcc flag",
            "the host's C++ compiler does not fit the CUDA compiler: gcc versions later than 15 are not supported",
            id="nvcc-new-gcc",
        ),
        pytest.param(
            "gcc: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties.\n",
            "the host has no C++ compiler: install g++ (gcc-c++ on RedHat)",
            id="nvcc-no-gcc",
        ),
        pytest.param(
            "gcc: fatal error: cannot execute \u2018cc1plus\u2019: execvp: No such file or directory\ncompilation terminated.\n",
            "the host has no C++ compiler: install g++ (gcc-c++ on RedHat)",
            id="nvcc-no-g++",
        ),
        pytest.param("a\n\nb\nc\n  d \ne\n", "b / c / d / e", id="last-lines"),
        pytest.param("x" * 700, "x" * 600, id="cut"),
        pytest.param(" \n", "no output", id="silent"),
    ],
)
def test_explain(output, sentence):
    assert explain(output) == sentence


@pytest.mark.parametrize(
    "source, words",
    [
        (Source(), ["--no-config"]),
        (Source(index_url="https://i/simple"), ["--no-config", "--default-index", "https://i/simple"]),
        (Source(extra_index_urls=["https://a", "https://b"]), ["--no-config", "--index", "https://a", "--index", "https://b"]),
        (
            Source(index_url="https://i", extra_index_urls=["https://a"], find_links=["/wheels", "/more"], offline=True, cache="/c"),
            ["--no-config", "--offline", "--no-index", "--find-links", "/wheels", "--find-links", "/more", "--cache-dir", "/c"],
        ),
    ],
    ids=["default", "index", "more-indexes", "I01-offline-uses-no-index"],
)
def test_source_arguments(source, words):
    assert source.arguments() == words


def make_plan(root, pins="", **more):
    lock = parse_lock(f"# deviation: torch from cpu index\nsglang==0.5.23\n{pins}")
    return Plan("0.5.23-cpu", root, "/bin/uv", "/usr/bin/python3", "/tmp/lock.txt", lock, Source(cache="/c"), "/tmp/prove.py", **more)


def fake_run(plan, commands, fail_at=None, proof='{"version": "0.5.23"}'):
    """Runs nothing: records the commands, makes the directories that uv would make, and fails at one step."""

    def run(command):
        commands.append(command)
        if command[1] == "venv":
            packages = plan.path / "lib" / "python3.11" / "site-packages"
            (packages / "sglang").mkdir(parents=True)
            if plan.compiles:
                for name in ("bin", "include", "nvvm", "lib"):
                    (packages / "nvidia" / "cu13" / name).mkdir(parents=True)
                (packages / "nvidia" / "cu13" / "bin" / "nvcc").write_text("")
        if len(commands) == fail_at:
            return 2, "", "first\nlast words"
        return 0, f"warning\n{proof}\n" if plan.prove in command else "", ""

    return run


def test_install(tmp_path):
    plan = make_plan(tmp_path / "engines", support="/tmp/support")
    commands, steps = [], []
    installer = Installer(plan, fake_run(plan, commands), lambda step, seconds: steps.append(step))
    assert not installer.complete
    result = installer.install()
    engine = str(tmp_path / "engines" / "0.5.23-cpu")
    python = f"{engine}/bin/python"
    pip = ["/bin/uv", "pip", "install", "--quiet", "--python", python, "--no-config", "--cache-dir", "/c"]
    assert commands == [
        ["/bin/uv", "venv", "--no-config", "--quiet", "--python", "/usr/bin/python3", engine],
        [*pip, "--no-deps", "--require-hashes", "--requirement", "/tmp/lock.txt"],
        [*pip, "--no-deps", "--no-build-isolation", "/tmp/support"],
        [python, "-m", "compileall", "-q", "-j", "0", f"{engine}/lib/python3.11/site-packages/sglang"],
        [python, "-s", "/tmp/prove.py", f"{engine}/flags.json"],
    ]
    assert len(steps) == 5 and steps[0] == "making the virtual environment" and steps[-1] == "proving the engine"
    marker = {"format": 1, "name": "0.5.23-cpu", "path": engine, "python": python, "version": "0.5.23", "deviations": ["torch from cpu index"], "cuda_home": ""}
    assert {name: result[name] for name in marker} == marker
    assert sorted(result["seconds"]) == sorted(steps) and min(result["seconds"].values()) >= 0.0
    assert set(result) == {*marker, "seconds", "changed"} and result["changed"] is True
    assert {**json.loads(Path(engine, "engine.json").read_text()), "changed": True} == result
    assert installer.complete


def test_a_complete_engine_costs_nothing(tmp_path):
    plan = make_plan(tmp_path)
    first = Installer(plan, fake_run(plan, [])).install()
    commands = []
    assert Installer(plan, fake_run(plan, commands)).install() == {**first, "changed": False}
    assert commands == []


def test_no_support_package_by_default(tmp_path):
    plan, commands = make_plan(tmp_path), []
    Installer(plan, fake_run(plan, commands)).install()
    assert len(commands) == 4
    assert not any("--no-build-isolation" in command for command in commands)


STEPS = ["making the virtual environment", "installing the locked packages", "installing the CPU support package", "compiling bytecode", "proving the engine"]


@pytest.mark.parametrize("step", range(1, 6), ids=STEPS)
def test_a_step_that_fails(tmp_path, step):
    plan, commands = make_plan(tmp_path, support="/tmp/support"), []
    with pytest.raises(EngineError) as caught:
        Installer(plan, fake_run(plan, commands, fail_at=step)).install()
    assert str(caught.value) == f"{STEPS[step - 1]} failed: first / last words"
    assert len(commands) == step, "the first failure ends it"
    assert not (plan.path / "engine.json").exists()
    again = Installer(plan, fake_run(plan, commands))
    assert not again.complete
    assert again.install()["changed"] is True
    assert len(commands) == step + 5, "the second run starts from nothing"


@pytest.mark.parametrize("proof", ["", "no json", "{"])
def test_a_proof_without_a_result(tmp_path, proof):
    plan = make_plan(tmp_path)
    with pytest.raises(EngineError, match="^the engine's proof printed no result: "):
        Installer(plan, fake_run(plan, [], proof=proof)).install()
    assert not Installer(plan, fake_run(plan, [])).complete


@pytest.mark.parametrize("version", ["0.5.2", "0.5.23.post1"])
def test_another_version_than_the_one_asked_for(tmp_path, version):
    """I01: an index gave an older one."""
    plan = make_plan(tmp_path)
    message = f"sglang {version} was installed where the lock pins 0.5.23: an index or find-links gave another version"
    with pytest.raises(EngineError) as caught:
        Installer(plan, fake_run(plan, [], proof=json.dumps({"version": version}))).install()
    assert str(caught.value) == message
    assert not Installer(plan, fake_run(plan, [])).complete


def test_an_engine_without_a_kernel_for_the_gpu(tmp_path):
    """L10: also when it was installed for other GPUs."""
    proof = json.dumps({"version": "0.5.23", "cuda": "13.0", "architectures": ["sm_80"]})
    plan, elsewhere = make_plan(tmp_path, machine=MACHINE), make_plan(tmp_path, machine=Machine("580.95.05", "13.0", [A6000]))
    for complete in (False, True):
        with pytest.raises(EngineError, match=r"^the engine's torch has no kernel for NVIDIA H200 \(compute capability 9\.0\): it has sm_80: "):
            Installer(plan, fake_run(plan, [], proof=proof)).install()
        assert Installer(plan, fake_run(plan, [])).complete is complete
        assert Installer(elsewhere, fake_run(elsewhere, [], proof=proof)).install()["architectures"] == ["sm_80"]


NVCC = "nvidia-cuda-nvcc==13.0.88\nnvidia-cuda-runtime==13.0.96\n"


def test_compilers_are_proven(tmp_path):
    plan, commands, steps, sources = make_plan(tmp_path, NVCC), [], [], []
    fake = fake_run(plan, commands)

    def run(command):
        if command[0].endswith("/nvcc"):
            sources.append(Path(command[-1]).read_text())
        return fake(command)

    result = Installer(plan, run, lambda step, seconds: steps.append(step)).install()
    home = tmp_path / "0.5.23-cpu" / "cuda"
    assert result["cuda_home"] == str(home) and (home / "bin" / "nvcc").exists()
    assert steps[-2:] == ["proving the compilers", "proving the engine"]
    (compile_,) = [command for command in commands if command[0] == str(home / "bin" / "nvcc")]
    assert compile_[1:-3] == ["--shared", "--cudart=shared", "-gencode=arch=compute_80,code=sm_80", "-Xcompiler=-fPIC"]
    assert compile_[-3] == "-o" and "#include <cub/" in sources[0]
    assert not Path(compile_[-1]).exists(), "nothing is left of the proof"


@pytest.mark.parametrize("pins, flavour", [("", "cuda"), (NVCC, "cpu"), ("nvidia-cuda-nvcc-cu12==12.9.86\n", "cuda")])
def test_engines_without_compilers(tmp_path, pins, flavour):
    plan = make_plan(tmp_path, pins, flavour=flavour)
    assert Installer(plan, fake_run(plan, [])).install()["cuda_home"] == ""
    assert not (plan.path / "cuda").exists()


def test_compilers_that_do_not_fit(tmp_path):
    plan, commands = make_plan(tmp_path, NVCC), []
    with pytest.raises(EngineError) as caught:
        Installer(plan, fake_run(plan, commands, fail_at=4)).install()
    assert str(caught.value) == "proving the compilers failed: first / last words; the lock pins nvidia-cuda-nvcc 13.0.88, nvidia-cuda-runtime 13.0.96"
    assert not Installer(plan, fake_run(plan, [])).complete
    assert Installer(plan, fake_run(plan, [])).install()["changed"] is True, "the second run starts from nothing"


def test_an_interrupted_directory_is_removed_first(tmp_path):
    plan, steps = make_plan(tmp_path), []
    (plan.path / "lib").mkdir(parents=True)
    (plan.path / "lib" / "half").write_text("")
    Installer(plan, fake_run(plan, []), lambda step, seconds: steps.append(step)).install()
    assert steps[0] == "removing an interrupted installation"
    assert not (plan.path / "lib" / "half").exists()


def test_an_exception_leaves_nothing_usable(tmp_path):
    plan = make_plan(tmp_path)

    def run(command):
        plan.path.mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Installer(plan, run).install()
    assert not Installer(plan, run).complete


def test_only_one_installs_at_a_time(tmp_path):
    plan, held = make_plan(tmp_path / "engines"), []
    fake = fake_run(plan, [])

    def run(command):
        with open(plan.root / ".lock") as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(True)
        return fake(command)

    Installer(plan, run).install()
    assert len(held) == 4
    with open(plan.root / ".lock") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def make_engines(root, names, incomplete=()):
    """Engines from the oldest to the newest."""
    for age, name in enumerate(names):
        (root / name).mkdir()
        if name not in incomplete:
            (root / name / "engine.json").write_text("{}")
        os.utime(root / name, (1000 + age, 1000 + age))


@pytest.mark.parametrize(
    "keep, used, current, removed",
    [
        pytest.param(4, set(), "d", [], id="few"),
        pytest.param(2, set(), "d", ["a", "b"], id="oldest-first"),
        pytest.param(2, set(), "a", ["b", "c"], id="current-is-the-oldest"),
        pytest.param(2, {"a", "b"}, "d", ["c"], id="used"),
        pytest.param(1, {"a", "b"}, "d", ["c"], id="more-used-than-kept"),
        pytest.param(0, {"a"}, "", ["b", "c", "d"], id="keep-none"),
        pytest.param(2, {"gone"}, "gone", ["a", "b"], id="names-that-are-not-there"),
    ],
)
def test_prune(tmp_path, keep, used, current, removed):
    make_engines(tmp_path, "abcd")
    assert prune(tmp_path, keep, used, current) == removed
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", *sorted(set("abcd") - set(removed))]


def test_prune_takes_remains_first(tmp_path):
    make_engines(tmp_path, ["a", "b", ".removed-old-7", "half"], incomplete=(".removed-old-7", "half"))
    assert prune(tmp_path, 2, set(), "b") == [".removed-old-7", "half"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "a", "b"]


def test_engines_in_use_by_units(tmp_path):
    root, units = tmp_path / "engines", tmp_path / "units"
    units.mkdir()
    (units / "sglang-main.service").write_text(f'[Service]\nExecStart={root}/one/bin/python -m x "{root}/two/flags.json"\nEnvironment=P={root}\n')
    (units / "sglang-b.service").write_text("[Service]\nExecStart=/elsewhere/three/bin/python\n")
    (units / "other.service").write_text(f"[Service]\nExecStart={root}/four/bin/python\n")
    assert engines_in_use(root, units) == {"one", "two"}


def test_engines_in_use_by_processes(tmp_path):
    script = "print('up', flush=True); input()"
    command = [sys.executable, "-c", script, f"{tmp_path}/live/bin/python"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert engines_in_use(tmp_path, tmp_path) == {"live"}
        process.communicate(b"\n")
    assert engines_in_use(tmp_path, tmp_path) == set()


@pytest.mark.parametrize(
    "needs, found, driver, start",
    [
        pytest.param({"cuda": "13.0"}, {}, "", None, id="nothing-known"),
        pytest.param({"cuda": "13.0"}, {}, "580", None, id="branch-to-come"),
        pytest.param({"cuda": "13.0"}, {}, "580.65.06", None, id="version-to-come"),
        pytest.param({"cuda": "13.0"}, {}, "575", "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer", id="branch-too-old"),
        pytest.param({"cuda": "13.0"}, {}, "580.65.05", "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06 or newer", id="version-too-old"),
        pytest.param({"cuda": "13.0"}, {"version": "535.261.03", "cuda": "12.2"}, "", "this engine's CUDA 13.0 needs NVIDIA driver 580.65.06", id="present"),
        pytest.param({"cuda": "13.0"}, {"version": "535.261.03", "cuda": "12.2"}, "580.159.04", None, id="the-one-to-come-counts"),
        pytest.param({}, {"version": "535.261.03", "cuda": "12.2"}, "", None, id="cpu"),
    ],
)
def test_a_host_that_cannot_run_an_engine(needs, found, driver, start):
    facts = {"driver": {"compatibility": "", **found}, "gpus": []} if found else {}
    reasons = unfit(Lock("sglang==1\n", needs), facts, driver)
    assert [reason[: len(start or "")] for reason in reasons] == ([start] if start else [])
