# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Pretends the hardware that ``gpu_facts`` describes, in the few places where the engine asks the machine.

All that SGLang asks during import and resolution comes down to these names (counted on 0.5.10 to 0.5.23). They are replaced before the engine is
imported, since it freezes answers such as ``is_cuda()`` in module constants. What cannot be answered from the facts raises, so that the probe says
"not known" instead of a wrong answer. Every name that an engine no longer has is reported as ``missing``, which a test reads.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
import typing as t
from collections import Counter

CUDA_SEAMS = ("is_available", "device_count", "current_device", "get_device_capability", "get_device_name", "get_device_properties")
UNKNOWABLE = ("mem_get_info", "_lazy_init")
ENGINE_SEAMS = ("get_nvgpu_memory_capacity", "get_nvidia_driver_version")


class CannotKnow(RuntimeError):
    """The engine asked the device for something that recorded facts do not hold."""


class Machine:
    """The pretended hardware.

    Args:
        gpus: visible GPUs: ``name``, ``memory_mib``, ``capability`` as [major, minor].
        cuda: CUDA version of the engine's torch, ``13.0``.
        driver: version of the driver, ``580.95.05``.

    Attributes:
        asked: how often the engine asked, by name.
        missing: names that this engine does not have.
    """

    def __init__(self, gpus: t.Sequence[t.Mapping[str, t.Any]], cuda: str, driver: str) -> None:
        self.gpus = gpus
        self.cuda = cuda
        self.driver = driver
        self.asked: Counter[str] = Counter()
        self.missing: list[str] = []

    def pretend_torch(self, torch: t.Any) -> None:
        """Before the engine's first import."""
        torch.version.cuda = self.cuda
        answers: dict[str, t.Callable[..., t.Any]] = {
            "is_available": lambda: True,
            "device_count": lambda: len(self.gpus),
            "current_device": lambda: 0,
            "get_device_capability": lambda device=None: tuple(self._gpu(device)["capability"]),
            "get_device_name": lambda device=None: self._gpu(device)["name"],
            "get_device_properties": lambda device=None: _Properties(self._gpu(device)),
        }
        for name in CUDA_SEAMS:
            self._replace(torch.cuda, name, answers[name])
        for name in UNKNOWABLE:
            self._replace(torch.cuda, name, _cannot_know(name))

    def pretend_engine(self, common: types.ModuleType) -> None:
        """After ``sglang.srt.utils.common``, which asks ``nvidia-smi`` for these."""
        answers: dict[str, t.Callable[..., t.Any]] = {
            "get_nvgpu_memory_capacity": lambda: float(min(gpu["memory_mib"] for gpu in self.gpus)),
            "get_nvidia_driver_version": lambda: tuple(int(part) for part in self.driver.split(".")),
        }
        for name in ENGINE_SEAMS:
            self._replace(common, name, answers[name])

    def _gpu(self, device: t.Any) -> t.Mapping[str, t.Any]:
        if isinstance(device, str):
            device = int(device.partition(":")[2] or 0)
        index = device if isinstance(device, int) else getattr(device, "index", None)
        return self.gpus[index or 0]

    def _replace(self, owner: t.Any, name: str, answer: t.Callable[..., t.Any]) -> None:
        if not hasattr(owner, name):
            self.missing.append(name)
            return

        def pretended(*args: t.Any, **kwargs: t.Any) -> t.Any:
            self.asked[name] += 1
            return answer(*args, **kwargs)

        pretended.__name__ = name
        pretended.cache_clear = lambda: None  # type: ignore[attr-defined]
        setattr(owner, name, pretended)


class _Properties:
    """What facts hold of ``torch.cuda.get_device_properties``: kernel packages pick their library by it when they are imported."""

    def __init__(self, gpu: t.Mapping[str, t.Any]) -> None:
        self.name: str = gpu["name"]
        self.major, self.minor = gpu["capability"]

    def __getattr__(self, name: str) -> t.NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CannotKnow(f"the engine asked the GPU itself (torch.cuda.get_device_properties, {name}), which recorded facts cannot answer")


def _cannot_know(name: str) -> t.Callable[..., t.NoReturn]:
    def refuse(*args: t.Any, **kwargs: t.Any) -> t.NoReturn:
        raise CannotKnow(f"the engine asked the GPU itself (torch.cuda.{name}), which recorded facts cannot answer")

    return refuse


class _Name:
    """A name that can be imported, inherited from and used as a decorator, and not called for a result."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __mro_entries__(self, bases: tuple[t.Any, ...]) -> tuple[()]:
        return ()

    def __call__(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        raise CannotKnow(f"{self.__name__} is not installed with this engine")

    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name(f"{self.__name__}.{name}")


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name(f"{self.__name__}.{name}")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of packages that the pretended host's engine has and this one has not; the last to be asked, so an installed one wins.

    A cuda engine always has flashinfer (it is a requirement of it), a cpu engine never; the engine looks for it with ``find_spec`` and picks its
    default attention backend by that.
    """

    def __init__(self, packages: t.Sequence[str]) -> None:
        self._packages = packages

    def find_spec(self, fullname: str, path: t.Any = None, target: t.Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".", maxsplit=1)[0] in self._packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _Module(spec.name)
        module.__version__ = "0.0.0"  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run: names appear when they are asked for."""


class Touched:
    """Notes what of the machine was really used: device files, connections, processes. An audit hook cannot be taken away again."""

    def __init__(self) -> None:
        self.events: list[str] = []
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[t.Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            self.events.append(f"process {args[1] if len(args) > 1 else args[0]}"[:200])
        elif event in ("socket.connect", "socket.sendto"):
            self.events.append(f"{event} {args[-1]}"[:200])
        elif event == "socket.getaddrinfo":
            self.events.append(f"{event} {args[:2]}"[:200])
        elif event == "open" and isinstance(args[0], (str, bytes, os.PathLike)) and os.fsdecode(args[0]).startswith("/dev/nvidia"):
            self.events.append(f"open {os.fsdecode(args[0])}")
