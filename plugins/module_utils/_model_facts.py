# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a model's directory says that an engine needs to judge flags for it: its small configuration files, and how many bytes of weights of which type.

The header of a safetensors file is eight bytes with its length, little-endian, and JSON of that length: name -> ``dtype``, ``shape``, ``data_offsets``
(https://github.com/safetensors/safetensors#format).
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

FORMAT = 1
MARKER = ".llmops-model.json"
# What an engine reads to resolve its arguments; tokenizers are large and decide nothing.
CONFIGS = (
    "config.json",
    "generation_config.json",
    "hf_quant_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "quantize_config.json",
)
_INDEX = "model.safetensors.index.json"
_LARGEST_HEADER = 100_000_000
_LARGEST_INDEX = 100_000_000
_LARGEST_CONFIG = 1_000_000


class ModelFactsError(ValueError):
    """The directory holds no model that can be described; the message is for the operator."""


def model_facts(folder: Path) -> dict[str, t.Any]:
    """Describes a model.

    Args:
        folder: directory with ``config.json``.

    Returns:
        ``format``, ``path``, ``repository`` and ``revision`` (the resolved commit; empty for a model that no hub sent), ``files`` (name -> content of the
        configuration files), ``weights`` with ``files`` (their number), ``bytes`` and ``by_dtype`` (name of the type -> bytes).

    Raises:
        ModelFactsError: there is no ``config.json``, or a file is damaged.
        OSError: a file cannot be read.
    """
    if not (folder / "config.json").is_file():
        raise ModelFactsError(f"{folder} holds no config.json")
    marker = _json(folder / MARKER)
    files = {name: _json(folder / name) for name in CONFIGS if (folder / name).is_file()}
    weights = _weights(folder)
    by_dtype: dict[str, int] = {}
    for path in weights:
        for dtype, count in header_bytes(path).items():
            by_dtype[dtype] = by_dtype.get(dtype, 0) + count
    return {
        "format": FORMAT,
        "path": str(folder),
        "repository": str(marker.get("repository") or ""),
        "revision": str(marker.get("revision") or ""),
        "files": files,
        "weights": {"files": len(weights), "bytes": sum(by_dtype.values()), "by_dtype": dict(sorted(by_dtype.items()))},
    }


def header_bytes(path: Path) -> dict[str, int]:
    """Returns the bytes of tensors of each type in a safetensors file.

    Raises:
        ModelFactsError: it is none.
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= _LARGEST_HEADER:
            raise ModelFactsError(f"{path} is no safetensors file: its header would be {length} bytes long")
        text = stream.read(length)
    if len(text) < length:
        raise ModelFactsError(f"{path} is no safetensors file: it ends within its header")
    found: dict[str, int] = {}
    try:
        for name, tensor in json.loads(text).items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                found[str(tensor["dtype"])] = found.get(str(tensor["dtype"]), 0) + _length(begin, end)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        raise ModelFactsError(f"{path} is no safetensors file: its header cannot be read") from None
    return found


def _length(begin: t.Any, end: t.Any) -> int:
    if not isinstance(begin, int) or not isinstance(end, int) or not 0 <= begin <= end:
        raise ValueError("no two offsets")
    return end - begin


def _weights(folder: Path) -> list[Path]:
    """The files that an engine loads: some models bring the same weights a second time, and their index names one of the two sets."""
    there = sorted(folder.glob("*.safetensors"))
    named = _json(folder / _INDEX, _LARGEST_INDEX).get("weight_map")
    if not isinstance(named, dict):
        return there
    names = {str(name) for name in named.values()}
    return [path for path in there if path.name in names]


def _json(path: Path, largest: int = _LARGEST_CONFIG) -> dict[str, t.Any]:
    """The object in a file; empty where there is none."""
    if not path.is_file():
        return {}
    if path.stat().st_size > largest:
        raise ModelFactsError(f"{path} is larger than such a file can be ({path.stat().st_size} bytes)")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFactsError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ModelFactsError(f"{path} is no JSON object")
    return found
