# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of ``sgl_kernel`` that can be imported and not called: engines before 0.5.2x import them on every platform."""

from __future__ import annotations

import sys
from types import ModuleType


class Stub:
    """Any operator of the missing kernel library."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(f"{self.__name__} needs the CUDA kernel library, which a cpu engine does not have")

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__dict__['__name__']}.{name}")


class StubModule(ModuleType):
    """A module all of whose public names are stubs."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")


if __name__ == "sgl_kernel":
    sys.modules[__name__].__class__ = StubModule
    __version__ = "0.0.0+stub"
