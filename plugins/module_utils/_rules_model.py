# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether an engine has the model's architecture, and whether its quantization is what was asked for."""

from __future__ import annotations

import ast
import difflib
import functools
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding

_UNKNOWN = "sglang models/registry.py import_model_classes, model_loader/utils.py:108 / :108 / :111 resolve_transformers_arch"
_QUANTIZATION = "sglang configs/model_config.py:1117 _verify_quantization (0.5.12): Quantization method ... does not match"
# What may be asked for instead of what the checkpoint says: compatible_quantization_methods, and what override_quantization_method turns it into.
_MODELOPT = ("modelopt", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed", "petit_nvfp4", "w4afp8")
_FAMILIES = (
    _MODELOPT,
    ("compressed-tensors", "compressed_tensors", "w8a8_int8", "w8a8_fp8"),
    ("gptq", "gptq_marlin", "gptq_marlin_24", "marlin", "moe_wna16", "auto-round"),
    ("awq", "awq_marlin", "moe_wna16", "auto-round"),
    ("fp8", "w4afp8", "quark_int4fp8_moe", "mxfp8"),
    ("mxfp4", "quark", "mxfp8", "quark_int4fp8_moe"),
)
_PLAIN = ("fp8", "awq", "gptq", "compressed-tensors", "modelopt_fp8", "modelopt_fp4")


@functools.lru_cache(maxsize=8)
def known_architectures(models_folder: str) -> frozenset[str]:
    """Returns the architectures that an engine has models for, without importing it.

    Args:
        models_folder: ``sglang/srt/models`` of an installed engine. A file that cannot be read or parsed is passed over, as the engine does.
    """
    return frozenset(name for path in sorted(Path(models_folder).glob("*.py")) for name in _entry_classes(path))


def _entry_classes(path: Path) -> list[str]:
    """Names that a module assigns to EntryClass; only that statement is parsed, for a file may have thousands of lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        start = text.find("\nEntryClass")
        if start < 0:
            return []
        statements = ast.parse(text[start + 1 :]).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        node.id
        for statement in statements
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None and _is_entry(statement)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Name)
    ]


def _is_entry(statement: t.Union[ast.Assign, ast.AnnAssign]) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(isinstance(target, ast.Name) and target.id == "EntryClass" for target in targets)


def architecture(candidate: Candidate, known: t.AbstractSet[str]) -> list[Finding]:
    """An architecture that the engine has no model for runs through the transformers library, where that has it.

    Args:
        candidate: the server.
        known: what the engine has models for; empty where that is not known.
    """
    asked = [str(name) for name in candidate.config.get("architectures") or ()]
    chosen = candidate.value("model_impl", "auto") not in ("auto", "sglang")
    if not asked or not known or chosen or candidate.environment.get("SGLANG_EXTERNAL_MODEL_PACKAGE") or any(name in known for name in asked):
        return []
    near = difflib.get_close_matches(asked[0], sorted(known), 3)
    text = f"sglang {candidate.engine} has no model for the architecture {asked[0]}".replace("  ", " ")
    text += f"; the nearest that it has: {', '.join(near)}" if near else ""
    hint = "use an engine that has it; otherwise it runs through the transformers library if that has it, slower and with fewer features, or does not start"
    return [Finding("architecture_unknown", "warning", text, hint, _UNKNOWN, ("model_path",))]


def quantization(candidate: Candidate) -> list[Finding]:
    """A quantization that is not the checkpoint's is refused; pairs that the engine may reconcile are left to it."""
    asked = str(candidate.asked.get("quantization") or "").lower()
    config = candidate.config.get("quantization_config")
    found = str(config.get("quant_method") or "").lower() if isinstance(config, t.Mapping) else ""
    if asked not in _PLAIN or found not in _PLAIN or asked == found or any(asked in family and found in family for family in _FAMILIES):
        return []
    text = f"quantization {asked} is not what the model is quantized with, {found}"
    return [Finding("quantization", "error", text, "leave quantization out: the engine reads it from the model", _QUANTIZATION, ("quantization",))]


FALLBACK_RULES = (quantization,)
