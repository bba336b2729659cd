# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._toolkit import (
    OPTIONS,
    SOURCE,
    judge_compilers,
    judge_packages,
    make_home,
    read_packages,
    toolchain,
)

ROOT = Path(__file__).resolve().parents[4]
CASES = ROOT / "tests" / "unit" / "fixtures" / "cases"
LOCKS = sorted((ROOT / "roles" / "sglang_engine" / "files" / "locks").glob("*-py*.txt"))
# What a lock for CUDA 13 pins: nobody's suffix and version say the same thing in the same way.
CUDA13 = {
    "nvidia-cublas": "13.1.0.3",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-cudnn-cu13": "9.19.0.56",
    "nvidia-cufft": "12.0.0.61",
    "nvidia-cusolver": "12.0.4.66",
    "nvidia-cusparselt-cu13": "0.8.0",
    "nvidia-cutlass-dsl-libs-cu12": "4.8.0",
    "nvidia-cutlass-dsl-libs-cu13": "4.8.0",
    "nvidia-nccl-cu13": "2.28.9",
    "torch": "2.11.0",
}
CUDA12 = {"nvidia-cuda-runtime-cu12": "12.9.79", "nvidia-cublas-cu12": "12.9.1.4", "nvidia-nccl-cu12": "2.27.3", "torch": "2.9.1+cu129"}


@pytest.mark.parametrize(
    "text, packages",
    [
        ("torch==2.11.0 \\\n    --hash=sha256:aa\n# nvidia-x==1\nsglang==0.5.23\n", {"torch": "2.11.0", "sglang": "0.5.23"}),
        ("Package      Version\n------------ -------\nsgl_kernel   0.4.7\nTorch        2.11.0+cu129\n", {"sgl-kernel": "0.4.7", "torch": "2.11.0+cu129"}),
        ("cuda-toolkit[cublas,nvcc]==13.0.2 ; sys_platform == 'linux'\nx==1;y\n", {"cuda-toolkit": "13.0.2", "x": "1"}),
        ("sglang>=0.5\n-r other.txt\nx @ https://example.org/x.whl\n", {}),
        ("", {}),
    ],
    ids=["lock", "pip-list", "extras-and-markers", "no-pins", "nothing"],
)
def test_read_packages(text, packages):
    assert read_packages(text) == packages


def test_a_lock_with_two_cuda_majors():
    """I01: what pip list printed."""
    (finding,) = judge_packages(read_packages((CASES / "i01_pip_list_cu_mix.txt").read_text()))
    assert (finding.code, finding.severity) == ("cuda_major_mix", "error")
    assert finding.text == (
        "the packages mix CUDA 12 (flashinfer-jit-cache 0.6.13+cu129, nvidia-cuda-runtime-cu12 12.9.79, nvidia-nccl-cu12 2.29.3, torch 2.11.0+cu129) "
        "and CUDA 13 (nvidia-cuda-runtime 13.0.96, nvidia-nccl-cu13 2.29.7); nvidia-nccl-cu12 and nvidia-nccl-cu13 overwrite each other's files"
    )
    assert finding.hint


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_the_shipped_locks_fit(path):
    packages = read_packages(path.read_text())
    assert (judge_packages(packages), judge_compilers(packages)) == ([], [])
    assert len(packages) > 100, "all of it was read"


def test_there_are_shipped_locks_with_compilers():
    assert len([path for path in LOCKS if "nvidia-cuda-nvcc" in read_packages(path.read_text())]) >= 3


@pytest.mark.parametrize(
    "packages",
    [
        pytest.param(CUDA13, id="13"),
        pytest.param(CUDA12, id="12"),
        pytest.param({**CUDA13, "torch": "2.11.0+cu130", "sgl-kernel": "1.0+cu13"}, id="tags"),
        pytest.param({"torch": "2.13.0+cpu", "sglang": "0.5.23"}, id="cpu"),
        pytest.param({**CUDA13, "nvidia-cuda-nvrtc-cu12": "12.9.86"}, id="files-of-its-own"),
        pytest.param({**CUDA12, "nvidia-cublas": "0.0.1"}, id="placeholder"),
        pytest.param({**CUDA12, "nvidia-nccl": "2.30.0"}, id="no-major"),
        pytest.param({}, id="nothing"),
    ],
)
def test_packages_of_one_major(packages):
    assert judge_packages(packages) == []


@pytest.mark.parametrize(
    "more, words",
    [
        ({"nvidia-cuda-runtime-cu12": "12.9.79"}, "CUDA 12 (nvidia-cuda-runtime-cu12 12.9.79) and CUDA 13 (nvidia-cublas 13.1.0.3, "),
        ({"nvidia-cublas-cu12": "12.9.1.4"}, "CUDA 12 (nvidia-cublas-cu12 12.9.1.4) and "),
        ({"torch": "2.11.0+cu129"}, "CUDA 12 (torch 2.11.0+cu129) and "),
        ({"sgl-kernel": "0.3.9+cu124.post1"}, "CUDA 12 (sgl-kernel 0.3.9+cu124.post1) and "),
        ({"nvidia-nccl-cu12": "2.27.3"}, "nvidia-nccl-cu12 and nvidia-nccl-cu13 overwrite each other's files"),
        ({"nvidia-cudnn-cu12": "9.1"}, "nvidia-cudnn-cu12 and nvidia-cudnn-cu13 overwrite each other's files"),
        ({"nvidia-cusparselt-cu12": "0.7.1"}, "nvidia-cusparselt-cu12 and nvidia-cusparselt-cu13 overwrite each other's files"),
        ({"nvidia-nvshmem-cu12": "3.3.9"}, "CUDA 12 (nvidia-nvshmem-cu12 3.3.9) and CUDA 13 ("),
        ({"nvidia-nvshmem-cu12": "3", "nvidia-nvshmem-cu13": "3"}, "nvidia-nvshmem-cu12 and nvidia-nvshmem-cu13 overwrite each other's files"),
    ],
    ids=["runtime", "cublas", "torch", "kernels", "nccl", "cudnn", "cusparselt", "nvshmem-alone", "nvshmem"],
)
def test_packages_of_two_majors(more, words):
    (finding,) = judge_packages({**CUDA13, **more})
    assert (finding.code, finding.severity) == ("cuda_major_mix", "error")
    assert words in finding.text
    assert "cutlass" not in finding.text


@pytest.mark.parametrize(
    "compiler, runtime, fits",
    [
        ("13.0.88", "13.0.96", True),
        ("13.5.37", "13.0.96", False),
        ("13.0.88", "13.1.80", False),
        ("", "13.0.96", True),
        ("13.0.88", "", True),
    ],
)
def test_a_compiler_and_its_headers(compiler, runtime, fits):
    packages = {name: version for name, version in (("nvidia-cuda-nvcc", compiler), ("nvidia-cuda-runtime", runtime)) if version}
    findings = judge_compilers(packages)
    assert [finding.code for finding in findings] == ([] if fits else ["cuda_compiler_mismatch"])
    for finding in findings:
        assert finding.severity == "error"
        assert f"nvidia-cuda-nvcc {compiler} does not build against the headers of nvidia-cuda-runtime {runtime}" in finding.text


def test_toolchain():
    packages = {"nvidia-nvvm": "13.0.88", "nvidia-cuda-nvcc": "13.0.88", "nvidia-cuda-cupti": "13.0.85", "torch": "2.11.0"}
    assert toolchain(packages) == "nvidia-cuda-nvcc 13.0.88, nvidia-nvvm 13.0.88"


def make_wheels(engine, major=13):
    """What the packages leave in an engine, as far as the layout matters."""
    packages = engine / "lib" / "python3.12" / "site-packages" / "nvidia" / f"cu{major}"
    for name in (
        "bin/nvcc",
        "bin/nvcc.profile",
        "bin/crt/link.stub",
        "include/cuda_runtime.h",
        "nvvm/bin/cicc",
        f"lib/libcudart.so.{major}",
        f"lib/libnvrtc.so.{major}",
        f"lib/libnvrtc-builtins.so.{major}.0",
        "lib/libcudart_static.a",
        "lib/cmake/x.cmake",
    ):
        path = packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return packages


def tree(path):
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


@pytest.mark.parametrize("major", [13, 14])
def test_the_home_is_a_toolkit(tmp_path, major):
    packages = make_wheels(tmp_path / "engine", major)
    before = tree(packages)
    home = make_home(tmp_path / "engine", tmp_path)
    assert home == tmp_path / "engine" / "cuda"
    assert tree(packages) == before, "other packages are left alone"
    for name in ("bin/nvcc", "bin/nvcc.profile", "bin/crt/link.stub", "include/cuda_runtime.h", "nvvm/bin/cicc"):
        assert (home / name).read_text() == name
    for folder in ("lib64", "lib"):
        for name in ("libcudart.so", "libnvrtc.so"):
            assert (home / folder / name).read_text() == f"lib/{name}.{major}"
        assert (home / folder / "libcudart_static.a").read_text() == "lib/libcudart_static.a"
        assert (home / folder / "libnvrtc-builtins.so").read_text() == f"lib/libnvrtc-builtins.so.{major}.0"
    assert not (home / "bin").is_symlink() and not (home / "lib64").is_symlink(), "nvcc looks beside the path by which it was called"


def test_the_home_holds_links_that_move_with_the_engine(tmp_path):
    make_wheels(tmp_path / "engine")
    home = make_home(tmp_path / "engine", tmp_path)
    entries = [entry for entry in home.rglob("*") if not entry.is_dir() or entry.is_symlink()]
    assert len(entries) > 10 and all(entry.is_symlink() for entry in entries)
    assert [str(entry.relative_to(home)) for entry in entries if os.path.isabs(os.readlink(entry))] == ["lib64/stubs/libcuda.so"]
    (tmp_path / "engine").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "cuda" / "lib" / "libcudart.so").read_text() == "lib/libcudart.so.13"


def test_the_stub_is_the_drivers_library_once_there_is_one(tmp_path):
    make_wheels(tmp_path / "engine")
    stub = make_home(tmp_path / "engine", tmp_path) / "lib64" / "stubs" / "libcuda.so"
    assert stub.is_symlink() and not stub.exists()
    (tmp_path / "libcuda.so.1").write_text("driver")
    assert stub.read_text() == "driver"


def test_the_stub_is_where_the_system_keeps_libraries(tmp_path):
    make_wheels(tmp_path / "engine")
    place = Path(os.readlink(make_home(tmp_path / "engine") / "lib64" / "stubs" / "libcuda.so"))
    assert place.name == "libcuda.so.1" and place.parent in (Path(f"/usr/lib/{os.uname().machine}-linux-gnu"), Path("/usr/lib64"))


def test_names_without_a_version_that_the_packages_have_are_kept(tmp_path):
    packages = make_wheels(tmp_path / "engine")
    (packages / "lib" / "libcudart.so").write_text("their own")
    (packages / "lib" / "stubs").mkdir()
    (packages / "lib" / "stubs" / "libcuda.so").write_text("their own stub")
    home = make_home(tmp_path / "engine", tmp_path)
    assert (home / "lib64" / "libcudart.so").read_text() == "their own"
    assert (home / "lib64" / "stubs" / "libcuda.so").read_text() == "their own stub"
    assert tree(packages / "lib" / "stubs") == ["libcuda.so"]


@pytest.mark.parametrize("majors", [(), (13, 14)])
def test_packages_that_are_laid_out_in_another_way(tmp_path, majors):
    for major in majors:
        make_wheels(tmp_path, major)
    with pytest.raises(FileNotFoundError, match=f"nvidia-cuda-nvcc brought {len(majors)} compilers below .*, one was expected"):
        make_home(tmp_path)


def test_the_proof_is_what_kernels_include():
    for header in ("cuda_runtime.h", "cuda_bf16.h", "cub/"):
        assert f"#include <{header}" in SOURCE
    assert {"--shared", "--cudart=shared"} <= set(OPTIONS)
