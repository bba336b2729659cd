# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a server says it runs with against what the preflight promised: ``/server_info`` (``/get_server_info``) and ``preflight.json``.

Only what the preflight claims is compared, and only where the server tells it. The resolved arguments are the server's top level; what its schedulers report
(``internal_states``, one per data-parallel rank) goes on changing at run time (``pp_max_micro_batch_size`` None -> 4096 on 0.5.17) and is asked only for
fields that the top level does not have.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.llmops.inference.plugins.module_utils._outcome import flatten, shown
from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK, redact_data

# Drawn at every start.
_RUN_TIME = ("random_seed",)
_ARGUMENTS = ("server_args", "args")
_RANKS = "internal_states"
POOL_TOLERANCE = 0.05
# What 0.5.23 tells of a field that may be a secret, whether or not it is set.
_REDACTED = "<redacted>"


@dataclass(frozen=True)
class Difference:
    """A value that is other than promised.

    Attributes:
        name: the engine's field, dotted inside a record; ``max_total_num_tokens`` for the KV pool.
        promised: by the preflight; of the pool the memory budget's estimate.
        effective: what the server says.
        text: one sentence for a person.
    """

    name: str
    promised: t.Any
    effective: t.Any
    text: str


def ask_server_info(ask: t.Callable[..., t.Any]) -> t.Mapping[str, t.Any]:
    """Returns ``/server_info``, or ``/get_server_info`` of older engines; empty where neither answers, as on a further node.

    Args:
        ask: a request to the server (path, timeout), as :meth:`_http.Client.request`.
    """
    for path in ("/server_info", "/get_server_info"):
        reply = ask(path, timeout=10.0)
        answer = reply.json() if reply.status == 200 else None
        if isinstance(answer, dict):
            return answer
    return {}


def differences(preflight: t.Mapping[str, t.Any], server_info: t.Mapping[str, t.Any]) -> list[Difference]:
    """Returns where the server does not run as promised: flags that were asked for first, then the others by name, the KV pool last.

    The pool differs when it is more than 5 % (:data:`POOL_TOLERANCE`) away from the memory budget, which was 0.4 % off at most on the servers measured.

    Args:
        preflight: result of sglang_preflight; empty promises nothing.
        server_info: answer of the server; empty where it gave none.
    """
    tellers = _tellers(server_info)
    flags = {flag["field"]: flag for flag in preflight.get("flags") or [] if flag.get("field")}
    found = []
    for name, promised in _parts(preflight.get("effective") or {}).items():
        told = _told(_names(name, flags.get(name, {})), tellers)
        if name not in _RUN_TIME and not any(_is_masked(name, value) for value in (promised, *told.values())):
            found += _judge(name, promised, told, flags.get(name, {}).get("flag", ""))
    found.sort(key=lambda difference: (difference.name not in flags, difference.name))
    return found + _pool(preflight, tellers)


def _parts(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The fields by one spelling of their names; of records their parts (an empty record is a value)."""
    return {name.replace("-", "_"): value for name, value in flatten(values).items() if not (isinstance(value, t.Mapping) and value)}


def _names(field: str, flag: t.Mapping[str, t.Any]) -> list[str]:
    """The names under which a server may tell a field: the engine's, then the flag's old and new spelling."""
    spellings = [str(flag.get(key) or "").partition("=")[0] for key in ("flag", "successor")]
    return [field, *(spelling.lstrip("-").replace("-", "_") for spelling in spellings if spelling)]


def _tellers(server_info: t.Mapping[str, t.Any]) -> list[dict[str, dict[str, t.Any]]]:
    """Who tells the fields of a server, what counts most first: the arguments, flat or below a key, then the data-parallel ranks."""
    ranks = server_info.get(_RANKS) or []
    states = list(ranks.values()) if isinstance(ranks, t.Mapping) else list(ranks)
    below = [server_info[key] for key in _ARGUMENTS if isinstance(server_info.get(key), t.Mapping)]
    by_rank = {f"on data-parallel rank {i}" if len(states) > 1 else "": _parts(state) for i, state in enumerate(states) if isinstance(state, t.Mapping)}
    return [*({"": _parts(source)} for source in (server_info, *below)), by_rank]


def _told(names: t.Sequence[str], tellers: t.Sequence[t.Mapping[str, t.Mapping[str, t.Any]]]) -> dict[str, t.Any]:
    """What is told of a field, by who tells it; under another than the engine's name only a value counts."""
    for i, name in enumerate(names):
        for teller in tellers:
            told = {who: fields[name] for who, fields in teller.items() if name in fields and (i == 0 or fields[name] is not None)}
            if told:
                return told
    return {}


def _is_masked(name: str, value: t.Any) -> bool:
    """Whether a value is a secret, or was one: then it is neither compared nor shown."""
    return value == _REDACTED or MASK in str(redact_data({name.rpartition(".")[2]: value}))


def _judge(name: str, promised: t.Any, told: t.Mapping[str, t.Any], flag: str) -> list[Difference]:
    """At most one difference: of the first who tells another value."""
    for who, effective in told.items():
        if _value(effective) != _value(promised):
            where = f" {who}" if who else ""
            asked = f" ({flag})" if flag else ""
            return [Difference(name, promised, effective, f"{name}{asked}: preflight said {shown(promised)}, the server runs with {shown(effective)}{where}")]
    return []


def _value(value: t.Any) -> t.Any:
    """A value as both sides have it: what came through JSON has no tuples."""
    return [_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def _pool(preflight: t.Mapping[str, t.Any], tellers: t.Sequence[t.Mapping[str, t.Mapping[str, t.Any]]]) -> list[Difference]:
    """The KV pool against the memory budget; a smaller one is found on the rank that has least."""
    expected = (preflight.get("memory") or {}).get("kv_tokens")
    told = _told(["max_total_num_tokens", "memory_usage.token_capacity"], tellers)
    tokens = [value for value in told.values() if isinstance(value, int)]
    if not expected or not tokens:
        return []
    there = min(tokens)
    if abs(there - expected) <= POOL_TOLERANCE * expected:
        return []
    text = f"KV pool: the memory budget expected {expected:,} tokens, the server has {there:,} ({100 * (there / expected - 1):+.0f} %)"
    return [Difference("max_total_num_tokens", expected, there, text)]
