# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds the import finder that supplies the stand-ins. Imported by the ``.pth`` file at every interpreter start, so it stays small."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType

_STAND_INS = {
    "vllm": "llmops_cpu_engine.vllm",
    "vllm._custom_ops": "llmops_cpu_engine.rotary",
    "sgl_kernel": "llmops_cpu_engine.kernel_stub",
}


class _EmptyLoader(importlib.abc.Loader):
    """Loads a module without content."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        return None


class _StubLoader(importlib.abc.Loader):
    """Loads any submodule of ``sgl_kernel`` as names that raise when called."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        from llmops_cpu_engine.kernel_stub import StubModule

        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


class TorchvisionFinder(importlib.abc.MetaPathFinder):
    """Replaces ``torchvision._meta_registrations`` where torchvision's operators cannot load.

    It stands before the path finder, because the module it replaces exists.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != "torchvision._meta_registrations":
            return None
        from torchvision.extension import _has_ops

        return None if _has_ops() else importlib.machinery.ModuleSpec(name, _EmptyLoader())


class StandInFinder(importlib.abc.MetaPathFinder):
    """Supplies packages that are not installed. It stands behind the path finder: an installed package always wins."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        source = _STAND_INS.get(name)
        if source is not None:
            found = importlib.util.find_spec(source)
            if found is None or found.origin is None:
                return None
            locations = [] if "." not in name else None
            return importlib.util.spec_from_file_location(name, found.origin, submodule_search_locations=locations)
        if name.startswith("sgl_kernel."):
            return importlib.machinery.ModuleSpec(name, _StubLoader(), is_package=True)
        return None


def activate() -> None:
    """Adds both finders once per interpreter."""
    if not any(isinstance(finder, StandInFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchvisionFinder())
        sys.meta_path.append(StandInFinder())


activate()
