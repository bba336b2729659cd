# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether the GPUs have what an attention backend is written for.

Sources are lines of sglang's ``srt`` in the versions 0.5.12 / 0.5.16 / 0.5.23.
"""

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._rules_gpus import used_gpus

_FIELDS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
# Up to which version (seen) trtllm_mha prefills on compute capability 10 only, and from which (seen) also on 9 and 12.
_LAST_NARROW, _FIRST_WIDE = (0, 5, 16), (0, 5, 23)
_FA3 = "sglang layers/attention/attention_registry.py:152 / :201 / :243: FlashAttention v3 Backend requires SM>=80 and SM<=90"
_TRTLLM_MHA = "sglang server_args.py:2754 (0.5.12) / :5024 (0.5.16), arg_groups/attention_hook.py:199 (0.5.23)"
_TRTLLM_MLA = "sglang server_args.py:2717 (0.5.12), arg_groups/overrides.py:1210 (0.5.23): TRTLLM MLA backend is only supported on Blackwell GPUs"
_FP8 = "https://github.com/vllm-project/vllm/pull/43914 (Triton has no fp8e4nv below compute capability 8.9)"


def flash_attention(candidate: Candidate) -> list[Finding]:
    """fa3 runs on compute capability 8 and 9, for MLA on 9 only; the engine asserts it after loading."""
    found = _with_backend(candidate, "fa3")
    if not found:
        return []
    field, name, capability = found
    hint = f"set {field} to flashinfer or triton, or leave it out"
    if capability[0] not in (8, 9):
        text = f"{field} fa3 runs on compute capability 8 and 9, {name} has {capability[0]}.{capability[1]}"
        return [Finding("attention_backend", "error", text, hint, _FA3, (field,))]
    if capability[0] == 8 and "kv_lora_rank" in candidate.text_config:
        text = f"{field} fa3 runs models with MLA on compute capability 9 only, {name} has {capability[0]}.{capability[1]}"
        return [Finding("attention_backend", "warning", text, hint, _FA3, (field,))]
    return []


def fp8_cache(candidate: Candidate) -> list[Finding]:
    """Triton cannot read an fp8_e4m3 cache on GPUs older than 8.9; fp8_e5m2 it can."""
    found = _with_backend(candidate, "triton")
    if not found or candidate.value("kv_cache_dtype") != "fp8_e4m3" or found[2] >= (8, 9):
        return []
    text = f"kv_cache_dtype fp8_e4m3 with {found[0]} triton needs compute capability 8.9, {found[1]} has {found[2][0]}.{found[2][1]}"
    hint = "set kv_cache_dtype to fp8_e5m2 or auto"
    return [Finding("fp8_cache", "warning", text, hint, _FP8, ("kv_cache_dtype", found[0]))]


def trtllm_mha(candidate: Candidate) -> list[Finding]:
    """trtllm_mha runs on compute capability 9, 10 and 12, in older versions prefill on 10 only."""
    found = _with_backend(candidate, "trtllm_mha")
    if not found:
        return []
    field, name, capability = found
    engine = numbers(candidate.engine)
    narrow = field != "decode_attention_backend" and bool(engine) and engine < _FIRST_WIDE
    if narrow and field == "attention_backend" and candidate.value("prefill_attention_backend") not in (None, "trtllm_mha"):
        narrow = False
    if capability[0] in ((10,) if narrow else (9, 10, 12)):
        return []
    certain = capability[0] not in (9, 12) or engine <= _LAST_NARROW
    wanted = "10" if narrow else "9, 10 and 12"
    text = f"{field} trtllm_mha runs on compute capability {wanted} in sglang {candidate.engine}, {name} has {capability[0]}.{capability[1]}"
    hint = f"set {field} to flashinfer, or leave it out"
    return [Finding("attention_backend", "error" if certain else "warning", text, hint, _TRTLLM_MHA, (field,))]


def trtllm_mla(candidate: Candidate) -> list[Finding]:
    """trtllm_mla runs on Blackwell; the engine does not look at it as a backend of prefill only."""
    found = _with_backend(candidate, "trtllm_mla", ("attention_backend", "decode_attention_backend"))
    if not found or found[2][0] in (10, 11, 12):
        return []
    text = f"{found[0]} trtllm_mla runs on compute capability 10 to 12, {found[1]} has {found[2][0]}.{found[2][1]}"
    return [Finding("attention_backend", "error", text, f"set {found[0]} to flashinfer, or leave it out", _TRTLLM_MLA, (found[0],))]


def _with_backend(candidate: Candidate, backend: str, fields: tuple[str, ...] = _FIELDS) -> tuple[str, str, tuple[int, ...]] | None:
    """(field, GPU, its compute capability) where a field names the backend and the weakest GPU's capability is known."""
    field = next((name for name in fields if candidate.value(name) == backend), None)
    known = [(numbers(device.compute_capability)[:2], device.name) for device in used_gpus(candidate)]
    known = [(capability, name) for capability, name in known if len(capability) == 2]
    if field is None or not known:
        return None
    capability, name = min(known)
    return field, name, capability


RULES = (flash_attention, fp8_cache)
FALLBACK_RULES = (trtllm_mha, trtllm_mla)
