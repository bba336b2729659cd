# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""CUDA as an engine's own wheels bring it: whether the packages fit each other, and a CUDA_HOME of links into them."""

from __future__ import annotations

import os
import platform
import re
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

COMPILER = "nvidia-cuda-nvcc"
RUNTIME = "nvidia-cuda-runtime"
HOME = "cuda"
# What a compilation needs to be of one CUDA version.
TOOLCHAIN = ("nvidia-cuda-cccl", "nvidia-cuda-crt", COMPILER, RUNTIME, "nvidia-nvvm")
# What kernels that are compiled at run time include: the runtime, a number format, a library of templates that checks its compiler.
SOURCE = """\
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cub/block/block_reduce.cuh>

__global__ void sum(__nv_bfloat16 *values) {
  using Reduce = cub::BlockReduce<float, 32>;
  __shared__ typename Reduce::TempStorage scratch;
  const float total = Reduce(scratch).Sum(__bfloat162float(values[threadIdx.x]));
  if (threadIdx.x == 0) values[0] = __float2bfloat16(total);
}

extern "C" int launch(__nv_bfloat16 *values) {
  sum<<<1, 32>>>(values);
  return cudaDeviceSynchronize();
}
"""
OPTIONS = ("--shared", "--cudart=shared", "-gencode=arch=compute_80,code=sm_80", "-Xcompiler=-fPIC")

_PACKAGE = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:==|[ \t]+)(?P<version>\d[^\s;\\]*)", re.MULTILINE)
# The libraries of which torch and its kernels use one CUDA major. Others (nvidia-cutlass-dsl-libs-cu12 beside -cu13) keep their majors apart.
_LIBRARY = re.compile(r"nvidia-(?:cuda-runtime|cublas|cudnn|cusparselt|nccl|nvshmem)(?:-cu(?P<major>\d+))?")
# Of these, packages for two majors bring the same files: whichever is installed last has them.
_SAME_FILES = ("nvidia-cudnn", "nvidia-cusparselt", "nvidia-nccl", "nvidia-nvshmem")
_LOCAL_TAG = re.compile(r"\+cu(?P<major>\d\d)\d?(?:\D|$)")
# Packages without a suffix came with CUDA 13; an older version of such a name is a placeholder.
_FIRST_WITHOUT_SUFFIX = 13


def read_packages(text: str) -> dict[str, str]:
    """Returns name -> version of a lock, or of what ``pip list`` prints."""
    return {re.sub(r"[-_.]+", "-", found["name"]).lower(): found["version"] for found in _PACKAGE.finditer(text)}


def _major(name: str, version: str) -> int:
    """Returns the CUDA major that a package is for, 0 where it has no say."""
    tag = _LOCAL_TAG.search(version)
    if tag:
        return int(tag["major"])
    library = _LIBRARY.fullmatch(name)
    if not library:
        return 0
    major = int(library["major"] or numbers(version)[0])
    return major if library["major"] or major >= _FIRST_WITHOUT_SUFFIX else 0


def judge_packages(packages: t.Mapping[str, str]) -> list[Finding]:
    """Returns what is wrong with the CUDA libraries of one environment (I01).

    Args:
        packages: name -> version.
    """
    majors: dict[int, list[str]] = {}
    for name, version in sorted(packages.items()):
        majors.setdefault(_major(name, version), []).append(f"{name} {version}")
    majors.pop(0, None)
    if len(majors) < 2:
        return []
    text = "the packages mix " + " and ".join(f"CUDA {major} ({', '.join(named)})" for major, named in sorted(majors.items()))
    for library in _SAME_FILES:
        rivals = sorted(name for name in packages if re.fullmatch(rf"{library}-cu\d+", name))
        text += f"; {' and '.join(rivals)} overwrite each other's files" if len(rivals) > 1 else ""
    return [Finding("cuda_major_mix", "error", text, "make a lock with those of torch's CUDA only, and install it into a new environment")]


def judge_compilers(packages: t.Mapping[str, str]) -> list[Finding]:
    """Returns why an environment's compiler cannot build against its headers: CUDA's C++ library refuses another minor version.

    Args:
        packages: name -> version.
    """
    compiler, runtime = packages.get(COMPILER, ""), packages.get(RUNTIME, "")
    if not (compiler and runtime) or numbers(compiler)[:2] == numbers(runtime)[:2]:
        return []
    text = f"the compiler {COMPILER} {compiler} does not build against the headers of {RUNTIME} {runtime}: their minor versions differ"
    return [Finding("cuda_compiler_mismatch", "error", text, "make the lock anew with `make lock`, which keeps them together")]


def toolchain(packages: t.Mapping[str, str]) -> str:
    """Returns the packages that a compilation uses, with their versions."""
    return ", ".join(f"{name} {packages[name]}" for name in TOOLCHAIN if name in packages)


def make_home(engine: Path, system: Path | None = None) -> Path:
    """Makes ``<engine>/cuda``: the layout that build systems expect of a CUDA toolkit, of links into the engine's packages.

    The packages lack ``lib64``, names without a version (``libcudart.so``), and a stub of the driver's library to link with. ``bin`` and ``lib64`` are
    directories of links, since nvcc looks for its libraries beside the path by which it was called.

    Args:
        engine: directory of the engine.
        system: where the driver's libraries are or will be.

    Raises:
        FileNotFoundError: the packages are laid out in another way.
    """
    compilers = sorted(engine.glob("lib/python*/site-packages/nvidia/cu[0-9]*/bin/nvcc"))
    if len(compilers) != 1:
        raise FileNotFoundError(f"{COMPILER} brought {len(compilers)} compilers below {engine}, one was expected")
    toolkit, home = compilers[0].parent.parent, engine / HOME
    home.mkdir()
    for name in ("include", "nvvm"):
        _link(home / name, toolkit / name)
    for name, source in (("bin", "bin"), ("lib64", "lib")):
        (home / name).mkdir()
        for path in sorted((toolkit / source).iterdir()):
            _link(home / name / path.name, path)
    for path in sorted((home / "lib64").glob("lib*.so.*")):
        plain = path.with_name(path.name.partition(".so.")[0] + ".so")
        if not plain.is_symlink():
            plain.symlink_to(path.name)
    _link(home / "lib", home / "lib64")
    # No package has a stub so far. The driver may come later: the linker passes a link that leads nowhere by.
    stub = home / "lib64" / "stubs" / "libcuda.so"
    if not stub.parent.is_symlink():
        stub.parent.mkdir()
        stub.symlink_to((system or _system_libraries()) / "libcuda.so.1")
    return home


def _system_libraries() -> Path:
    of_debian = Path("/usr/lib") / f"{platform.machine()}-linux-gnu"
    return of_debian if of_debian.is_dir() else Path("/usr/lib64")


def _link(place: Path, target: Path) -> None:
    place.symlink_to(os.path.relpath(target, place.parent))
