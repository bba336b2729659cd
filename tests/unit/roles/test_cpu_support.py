# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a stock engine start on a CPU: the import finders and the stand-ins, without torch."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "roles" / "sglang_engine" / "files" / "cpu_support" / "src"
FOREIGN = ("vllm", "sgl_kernel", "torchvision", "llmops_cpu_engine")


@pytest.fixture(name="activate")
def fixture_activate(monkeypatch):
    """The module that the .pth file imports, with its finders added; the interpreter is as before when the test ends."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(SOURCE))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = dict(sys.modules)
    yield importlib.import_module("llmops_cpu_engine.activate")
    for name in [name for name in sys.modules if name.split(".")[0] in FOREIGN and name not in before]:
        del sys.modules[name]


def finders(activate, kind):
    return [finder for finder in sys.meta_path if isinstance(finder, getattr(activate, kind))]


def test_the_finders_are_added_once(activate):
    activate.activate()
    assert len(finders(activate, "StandInFinder")) == len(finders(activate, "TorchvisionFinder")) == 1
    assert isinstance(sys.meta_path[0], activate.TorchvisionFinder), "before the path finder: it replaces a module that exists"
    assert isinstance(sys.meta_path[-1], activate.StandInFinder), "behind the path finder: an installed package wins"


def test_operators_of_a_missing_kernel_library_can_be_imported(activate):
    namespace = {}
    exec("import sgl_kernel\nfrom sgl_kernel import a, b\nfrom sgl_kernel.deep.er import c\nimport sgl_kernel.flash as f", namespace)
    assert namespace["sgl_kernel"].__version__ == "0.0.0+stub"
    for stub, name in ((namespace["a"], "sgl_kernel.a"), (namespace["c"], "sgl_kernel.deep.er.c"), (namespace["f"].g.h, "sgl_kernel.flash.g.h")):
        with pytest.raises(NotImplementedError, match=f"^{name} needs the CUDA kernel library, which a cpu engine does not have$"):
            stub(1, key=2)


@pytest.mark.parametrize("name", ["__all__", "__wrapped__"])
def test_stubs_have_no_special_attributes(activate, name):
    """inspect and copy would take a stub for what it is not."""
    import sgl_kernel

    for stub in (sgl_kernel, sgl_kernel.a):
        with pytest.raises(AttributeError):
            getattr(stub, name)


def test_rotary_embedding_stands_in_for_vllms(activate):
    assert importlib.util.find_spec("vllm").origin == str(SOURCE / "llmops_cpu_engine" / "vllm.py")
    assert importlib.util.find_spec("vllm._custom_ops").origin == str(SOURCE / "llmops_cpu_engine" / "rotary.py")
    assert importlib.util.find_spec("vllm.other") is None
    specs = [activate.StandInFinder().find_spec(name) for name in ("vllm", "sgl_kernel", "vllm._custom_ops")]
    assert [spec.submodule_search_locations is None for spec in specs] == [False, False, True], "two packages and a module"


@pytest.mark.parametrize("package", ["vllm", "sgl_kernel"])
def test_an_installed_package_wins(activate, tmp_path, monkeypatch, package):
    (tmp_path / f"{package}.py").write_text("real = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module(package).real is True


@pytest.mark.parametrize("name", ["sgl_kernels", "not_there", "vllms._custom_ops", "torchvision._meta_registrations"])
def test_other_modules_are_none_of_its_business(activate, name):
    assert activate.StandInFinder().find_spec(name) is None


@pytest.mark.parametrize("has_ops", [True, False])
def test_torchvision_without_operators_registers_none(activate, monkeypatch, has_ops):
    extension = ModuleType("torchvision.extension")
    extension._has_ops = lambda: has_ops
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.extension", extension)
    finder = activate.TorchvisionFinder()
    assert finder.find_spec("torchvision.other") is None
    spec = finder.find_spec("torchvision._meta_registrations")
    if has_ops:
        assert spec is None
    else:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert [name for name in vars(module) if not name.startswith("__")] == []


def test_every_interpreter_of_the_engine_activates_it(tmp_path):
    """As a .pth file does: in a fresh interpreter, before anything else, and without torch."""
    line = (SOURCE.parent / "activate" / "llmops_cpu_engine.pth").read_text()
    assert line == "import llmops_cpu_engine.activate\n"
    script = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{line}import sgl_kernel; print(sgl_kernel.x.__name__, 'torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-I", "-B", "-c", script], text=True, capture_output=True, check=True, cwd=tmp_path)
    assert answer.stdout == "sgl_kernel.x False\n"
