# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe import machine
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import write_probe

GPUS = [
    {"name": "NVIDIA H200", "memory_mib": 143771, "capability": [9, 0]},
    {"name": "NVIDIA RTX A6000", "memory_mib": 49140, "capability": [8, 6]},
]


@pytest.fixture(name="pretended")
def fixture_pretended():
    """The machine, and a torch and an engine that it has been put into."""
    found = machine.Machine(GPUS, "13.0", "580.95.05")
    cuda = SimpleNamespace(**dict.fromkeys((*machine.CUDA_SEAMS, *machine.UNKNOWABLE), lambda *args: "real"))
    torch = SimpleNamespace(version=SimpleNamespace(cuda=None), cuda=cuda)
    common = SimpleNamespace(**dict.fromkeys(machine.ENGINE_SEAMS, lambda: "real"))
    found.pretend_torch(torch)
    found.pretend_engine(common)
    return found, torch, common


def test_what_torch_answers(pretended):
    found, torch, _common = pretended
    cuda = torch.cuda
    assert (torch.version.cuda, found.missing, found.asked) == ("13.0", [], {})
    assert (cuda.is_available(), cuda.device_count(), cuda.current_device()) == (True, 2, 0)
    assert (cuda.get_device_capability(), cuda.get_device_name()) == ((9, 0), "NVIDIA H200")
    properties = cuda.get_device_properties("cuda:1")
    assert (properties.name, properties.major, properties.minor) == ("NVIDIA RTX A6000", 8, 6)
    assert found.asked == dict.fromkeys(machine.CUDA_SEAMS, 1)
    assert cuda.get_device_name.__name__ == "get_device_name"
    cuda.get_device_name.cache_clear()
    assert found.asked["get_device_name"] == 1, "which asks nothing"


@pytest.mark.parametrize(
    "device, index",
    [
        (None, 0),
        (0, 0),
        (1, 1),
        ("cuda", 0),
        ("cuda:0", 0),
        ("cuda:1", 1),
        (SimpleNamespace(index=1), 1),
        (SimpleNamespace(index=None), 0),
        (object(), 0),
    ],
)
def test_each_device_answers_for_itself(pretended, device, index):
    _found, torch, _common = pretended
    assert torch.cuda.get_device_name(device) == GPUS[index]["name"]
    assert torch.cuda.get_device_capability(device=device) == tuple(GPUS[index]["capability"])


def test_what_the_engine_asks_nvidia_smi_for(pretended):
    found, _torch, common = pretended
    assert common.get_nvgpu_memory_capacity() == 49140.0, "the smallest"
    assert common.get_nvidia_driver_version() == (580, 95, 5)
    assert common.get_nvidia_driver_version() and found.asked == {"get_nvgpu_memory_capacity": 1, "get_nvidia_driver_version": 2}


def test_properties_that_facts_do_not_hold(pretended):
    _found, torch, _common = pretended
    properties = torch.cuda.get_device_properties(0)
    with pytest.raises(machine.CannotKnow, match=r"torch\.cuda\.get_device_properties, multi_processor_count\)"):
        print(properties.multi_processor_count)
    assert not hasattr(properties, "__cuda__"), "what Python asks by itself is no question to the GPU"


@pytest.mark.parametrize("name", machine.UNKNOWABLE)
def test_what_nobody_can_know(pretended, name):
    found, torch, _common = pretended
    with pytest.raises(machine.CannotKnow, match=rf"torch\.cuda\.{name}\)"):
        getattr(torch.cuda, name)(0)
    assert found.asked == {name: 1}


def test_names_that_are_missing():
    found = machine.Machine(GPUS, "13.0", "580.95.05")
    torch = SimpleNamespace(version=SimpleNamespace(), cuda=SimpleNamespace(is_available=lambda: False))
    common = SimpleNamespace(get_nvidia_driver_version=lambda: None)
    found.pretend_torch(torch)
    found.pretend_engine(common)
    assert found.missing == [*machine.CUDA_SEAMS[1:], *machine.UNKNOWABLE, "get_nvgpu_memory_capacity"]
    assert torch.cuda.is_available() and list(vars(torch.cuda)) == ["is_available"] and list(vars(common)) == ["get_nvidia_driver_version"]


@pytest.fixture(name="absent")
def fixture_absent(monkeypatch):
    """A package that is not there, and a real one that says it is not."""
    finder = machine.Absent(["flashabsent", "json"])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    yield importlib.import_module("flashabsent")
    for name in [name for name in sys.modules if name.split(".")[0] == "flashabsent"]:
        del sys.modules[name]


def test_an_absent_package_can_be_imported(absent):
    deep = importlib.import_module("flashabsent.one.two")
    assert (absent.__version__, deep.__name__) == ("0.0.0", "flashabsent.one.two")
    assert importlib.util.find_spec("flashabsent") is not None
    assert absent.prefill.run.__name__ == "flashabsent.prefill.run"


def test_others_stay_absent(absent):
    for name in ("flashother", "flashabsent_too"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_a_real_package_wins(absent, monkeypatch):
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    assert importlib.import_module("json.tool").__file__
    assert machine.Absent(["json"]).find_spec("json.tool") is not None, "and only since it was asked first"


def test_an_absent_name_is_inherited_from(absent):
    class Backend(absent.Base, absent.Other):
        answer = 1

    assert Backend().answer == 1 and Backend.__mro__ == (Backend, object)


def test_an_absent_name_decorates(absent):
    @absent.jit
    def kernel():
        return 5

    assert kernel() == 5


@pytest.mark.parametrize("args, options", [((), {}), ((1,), {}), ((len, len), {}), ((len,), {"fast": True})])
def test_an_absent_name_has_no_result(absent, args, options):
    with pytest.raises(machine.CannotKnow, match=r"^flashabsent\.plan is not installed with this engine$"):
        absent.plan(*args, **options)


def test_what_python_itself_asks_is_not_made_up(absent):
    for thing in (absent, absent.name):
        assert not hasattr(thing, "__path_of_nothing__") and not hasattr(thing, "__wrapped__")


def test_what_was_touched(tmp_path):
    """An audit hook stays, so it is put into a process of its own."""
    write_probe(tmp_path)
    text = """
    import os, pathlib, socket, subprocess, sys
    sys.path.insert(0, sys.argv[1])
    from llmops_engine_probe.machine import Touched
    touched = Touched()

    def attempt(function, *args):
        try:
            function(*args)
        except OSError:
            pass

    attempt(open, "/dev/nvidia-none")
    attempt(open, b"/dev/nvidia-bytes")
    attempt(os.open, pathlib.Path("/dev/nvidia-path"), os.O_RDONLY)
    attempt(open, "/dev/null")
    attempt(open, "/proc/driver/nvidia/none")
    attempt(os.fdopen, 0)
    attempt(subprocess.run, ["/none/smi", "x" * 300])
    attempt(os.system, "true")
    attempt(os.execv, "/none/exec", ["one", "two"])
    attempt(os.posix_spawn, "/none/spawn", ["three"], {})
    attempt(socket.getaddrinfo, "127.0.0.1", 80)
    attempt(socket.socket(socket.AF_UNIX).connect, "/none/socket")
    attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"", ("127.0.0.1", 9))
    # Python 3.13 starts processes with posix_spawn, which is told as well.
    print(*dict.fromkeys(touched.events), sep="\\n")
    """
    done = subprocess.run([sys.executable, "-s", "-c", textwrap.dedent(text), str(tmp_path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [
        "open /dev/nvidia-none",
        "open /dev/nvidia-bytes",
        "open /dev/nvidia-path",
        ("process ['/none/smi', '" + "x" * 300)[:200],
        "process b'true'",
        "process ['one', 'two']",
        "process ['three']",
        "socket.getaddrinfo ('127.0.0.1', 80)",
        "socket.connect /none/socket",
        "socket.sendto ('127.0.0.1', 9)",
    ]
