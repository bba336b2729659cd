# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the memory of a server's GPUs says about a candidate, and what to change.

The engine ends at no tokens (``MemoryPoolConfig.__post_init__``, ``model_executor/pool_configurator.py:52``, ``:63``, ``:95``), with 0.5.16 and newer
where weights leave nothing (``kv_cache_configurator.py:1553``), and with unequal GPUs (``distributed/bootstrap.py:441``, 0.5.23).
"""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._memory_budget import Budget, Draft, Gpu, facts_of_gpus, free_gb, fullest
from ansible_collections.llmops.inference.plugins.module_utils._memory_pool import DRAFT_FIRST, engine_version, request_groups

_POOL = "SGLang, mem_cache/kv_cache_configurator.py (_profile_available_bytes) and model_executor/pool_configurator.py"
_GRAPHS = "SGLang, arg_groups/memory_hook.py (reserve_for_graph_mb)"
# What an account can say, from the worst on.
_VERDICTS = ("weights_do_not_fit", "kv_pool_too_small", "unknown", "context_does_not_fit", "graphs_may_not_fit", "fits")


def judge_memory(candidate: Candidate, own_unit: str = "", draft: Draft | None = None) -> list[Finding]:
    """Returns what memory says about a candidate; nothing where model or memory are not known.

    Args:
        candidate: the server.
        own_unit: the unit that it replaces.
        draft: a draft model of its own.
    """
    gpus = facts_of_gpus(candidate)
    account = fullest(candidate, gpus, own_unit, draft)
    if account is None:
        return []
    unequal = _judge_balance(candidate, [free_gb(gpu, own_unit) for gpu in gpus])
    empty = fullest(candidate, [_emptied(gpu) for gpu in gpus], "", draft)
    if empty is None or _VERDICTS.index(empty.verdict) <= _VERDICTS.index(account.verdict):
        return [*_judge(candidate, account), *unequal]
    busy = _busy(account, gpus, own_unit)
    return [busy, *unequal] if busy.severity == "error" else [busy, *_judge(candidate, account), *unequal]


def _emptied(gpu: Gpu) -> Gpu:
    """A GPU as it would be without any process: 1 % is for the driver, unless more is free."""
    held = sum(process.get("memory_mib") or 0 for process in gpu.get("processes") or ())
    return {**gpu, "memory_free_mib": min(max(gpu["memory_free_mib"] + held, gpu["memory_total_mib"] * 0.99), gpu["memory_total_mib"]), "processes": []}


def _judge(candidate: Candidate, account: Budget) -> list[Finding]:
    verdict, fields = account.verdict, ("mem_fraction_static",)
    if verdict == "weights_do_not_fit":
        return [_no_room(candidate, account)]
    if verdict == "kv_pool_too_small":
        text = f"weights and states leave no room for a KV pool ({account.rest_gb:.1f} GB for both of {account.free_gb:.1f} GB free): {_last_words(candidate)}"
        hint = "raise mem_fraction_static, lower max_running_requests or the draft tokens, use more tp or quantised weights"
        return [Finding("kv_pool_too_small", "error", text, hint, _POOL, (*fields, "max_running_requests", "tp_size"))]
    return [_judge_context(account), *_judge_graphs(account), *_judge_requests(candidate, account)]


def _judge_context(account: Budget) -> Finding:
    if account.verdict != "context_does_not_fit":
        return Finding("memory_budget", "note", _summary(account), "", _POOL, ("mem_fraction_static",))
    text = f"the KV pool will hold about {account.kv_tokens:,} tokens, less than one context of {account.wanted_tokens:,}: longer requests will be refused"
    hint = f"set context_length to what is needed, raise mem_fraction_static (now {account.fraction:.3g}), use more tp, or an fp8 KV cache"
    return Finding("kv_pool_too_small", "warning", text, hint, _POOL, ("context_length", "mem_fraction_static", "kv_cache_dtype"))


def _judge_graphs(account: Budget) -> list[Finding]:
    """Case L02: the remedy is the opposite of L01's."""
    if account.reserve_gb >= account.graphs_gb:
        return []
    text = f"mem_fraction_static {account.fraction:.3g} leaves {max(0.0, account.reserve_gb):.1f} GB for graphs and activations, "
    text += f"which may need {account.graphs_gb:.1f} GB: CUDA can run out of memory while graphs are captured"
    hint = "lower mem_fraction_static, cuda_graph_max_bs or chunked_prefill_size"
    return [Finding("graphs_may_not_fit", "warning", text, hint, _GRAPHS, ("mem_fraction_static", "cuda_graph_max_bs", "chunked_prefill_size"))]


def _judge_requests(candidate: Candidate, account: Budget) -> list[Finding]:
    asked = whole(candidate.asked.get("max_running_requests"), 0)
    if account.requests is None or account.requests >= asked // request_groups(candidate):
        return []
    text = f"max_running_requests {asked} will be lowered to about {account.requests}: there is no memory for more"
    hint = "raise mamba_full_memory_ratio or max_mamba_cache_size" if any(row.name == "states" for row in account.rows) else ""
    return [Finding("fewer_requests", "warning", text, hint, _POOL, ("max_running_requests", "mem_fraction_static"))]


def _summary(account: Budget) -> str:
    if account.kv_tokens is None:
        return f"of {account.free_gb:.1f} GB free per GPU weights take {account.weights_gb:.1f}, states and KV pool {account.rest_gb:.1f}: tokens are not told"
    times = account.kv_tokens / account.wanted_tokens
    text = f"of {account.free_gb:.1f} GB free per GPU weights take {account.weights_gb:.1f}; the KV pool will hold about {account.kv_tokens:,} tokens"
    return f"{text}: {times:.1f} times the context of {account.wanted_tokens:,}, at most {account.requests} requests at once"


def _last_words(candidate: Candidate) -> str:
    fraction = candidate.value("mem_fraction_static")
    return f"the engine will stop with 'Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static={fraction}'"


def _no_room(candidate: Candidate, account: Budget) -> Finding:
    """Case L01: the remedy is to raise the fraction, unless the weights are larger than the GPU."""
    context = next(row.gb for row in account.rows if row.name == "CUDA context")
    before = account.free_gb - context
    least = account.weights_gb / before if before > 0 else 2.0
    fields = ("mem_fraction_static", "tp_size", "quantization")
    text = f"weights take {account.weights_gb:.1f} GB of {before:.1f} GB free per GPU"
    if least >= 1:
        return Finding("weights_do_not_fit", "error", f"{text}: they do not fit", "use more tp, quantised weights or larger GPUs", _POOL, fields)
    new = engine_version(candidate) >= DRAFT_FIRST
    words = "the engine will stop with 'Loaded weights leave no GPU memory for the KV cache'" if new else _last_words(candidate)
    text += f"; mem_fraction_static {account.fraction:.3g} leaves {account.fraction * before:.1f} GB: {words}"
    hint = f"raise mem_fraction_static well above {least:.3f}, or use more tp or quantised weights"
    return Finding("weights_do_not_fit", "error", text, hint, _POOL, fields)


def _busy(account: Budget, gpus: t.Sequence[Gpu], own_unit: str) -> Finding:
    """Memory that others hold is what makes the difference."""
    severity = "error" if account.verdict in ("weights_do_not_fit", "kv_pool_too_small") else "warning"
    names = [
        f"{process.get('unit') or process.get('name') or 'a process'} (pid {process.get('pid')}, {(process.get('memory_mib') or 0) / 1024:.1f} GB"
        f" on GPU {gpu.get('index', number)})"
        for number, gpu in enumerate(gpus)
        for process in gpu.get("processes") or ()
        if not (own_unit and process.get("unit") == own_unit)
    ]
    text = f"{account.free_gb:.1f} GB are free on the fullest GPU and about {account.needed_gb:.1f} GB are needed for one whole context: the rest is held by "
    text += ", ".join(names) or "something that nvidia-smi does not list"
    return Finding("gpu_busy", severity, text, "stop what holds it, or choose other GPUs", _POOL, ("base_gpu_id",))


def _judge_balance(candidate: Candidate, frees: t.Sequence[float]) -> list[Finding]:
    """The engine refuses ranks of which one has less than 90 % of another's free memory (0.5.12 ``model_runner.py:1312``, 0.5.23 ``bootstrap.py:444``)."""
    if candidate.whole("tp_size", 1) < 2 or not frees or min(frees) >= max(frees) * 0.9:
        return []
    text = f"free memory differs between the GPUs ({min(frees):.1f} and {max(frees):.1f} GB): the engine stops with 'The memory capacity is unbalanced'"
    hint = "free the fullest GPU, or set SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0 to run with the least"
    return [Finding("gpus_unbalanced", "error", text, hint, "SGLang, distributed/bootstrap.py (_check_tp_memory_balance)", ("tp_size",))]
