# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What is other in a start than in the last good one: vital signs against vital signs (see ``_vitals`` for their keys and units).

A sign that one of the two logs does not tell is compared with nothing: it may have been there.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.llmops.inference.plugins.module_utils._vitals import graph_kinds

# Two starts of one release differ by less: no change.
_SAME_MEMORY, _SAME_MEMORY_GB = 0.02, 0.1
_SAME_SECONDS, _SAME_SECONDS_S = 0.1, 2.0
# What matters.
_FEWER_TOKENS = 0.9
_SLOWER, _SLOWER_S = 2.0, 10.0
_LITTLE_GB = 1.0
_WITH_PERCENT = ("kv_cache_tokens", "weights_gb", "available_memory_gb", "seconds", "weights_seconds")

_Pair = t.Tuple[t.Any, t.Any]


@dataclass(frozen=True)
class Change:
    """A difference between two starts.

    Attributes:
        name: key of the vital sign; ``seconds`` for the whole start, ``graphs`` for all of them, ``graphs.decode`` and so on for a kind.
        before, after: its values.
        ratio: after / before, of numbers that are not 0.
        flagged: whether it matters.
        text: one sentence for a person.
    """

    name: str
    before: t.Any
    after: t.Any
    ratio: float | None
    flagged: bool
    text: str


def changes(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> list[Change]:
    """Returns what changed, what matters first.

    Args:
        before: the last good start as it was stored: ``phases``, ``vitals``, ``seconds``.
        after: the start to look at.
    """
    old, new = before.get("vitals", {}), after.get("vitals", {})
    found = [*_tokens(old, new), *_graphs(old, new), *_settings(old, new), *_available(old, new), *_start(before, after), *_amounts(old, new)]
    return sorted(found, key=lambda change: not change.flagged)


def lines(found: t.Iterable[Change]) -> list[str]:
    """Returns the changes for the summary: what matters first, and with a mark."""
    return [f"! {change.text}" if change.flagged else change.text for change in sorted(found, key=lambda change: not change.flagged)]


def speculation(vitals: t.Mapping[str, t.Any]) -> str:
    """Returns the speculation in a few words, for example "EAGLE with 3 steps, top 1, 4 draft tokens"; empty where it is not known."""
    amounts = (("speculative_num_steps", "{} steps"), ("speculative_eagle_topk", "top {}"), ("speculative_num_draft_tokens", "{} draft tokens"))
    told = ", ".join(words.format(vitals[name]) for name, words in amounts if name in vitals)
    return f"{vitals.get('speculative_algorithm', '')} with {told}" if told else str(vitals.get("speculative_algorithm", ""))


def attention(vitals: t.Mapping[str, t.Any]) -> str:
    """Returns the attention backend, or those of prefill and decode; empty where they are not known."""
    stages = [f"{stage} {vitals[f'{stage}_attention_backend']}" for stage in ("prefill", "decode") if f"{stage}_attention_backend" in vitals]
    return ", ".join(stages) or str(vitals.get("attention_backend", ""))


def _change(name: str, title: str, pair: _Pair, flagged: bool = False, unit: str = "") -> Change:
    """A change of two values; numbers with their ratio."""
    before, after = pair
    numbers = all(isinstance(value, (int, float)) for value in pair)
    ratio = round(after / before, 3) if numbers and before else None
    shown = [f"{value:,}" if numbers else str(value) for value in pair]
    percent = f" ({100 * (after / before - 1):+.0f} %)" if ratio and name in _WITH_PERCENT else ""
    return Change(name, before, after, ratio, flagged, f"{title} {shown[0]} -> {shown[1]}{unit}{percent}")


def _both(name: str, old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> _Pair | None:
    """The two values of a sign that both have, and that are not equal."""
    return (old[name], new[name]) if name in old and name in new and old[name] != new[name] else None


def _near(pair: _Pair, ratio: float, amount: float) -> bool:
    return bool(abs(pair[1] - pair[0]) <= max(ratio * abs(pair[0]), amount))


def _tokens(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> list[Change]:
    both = _both("kv_cache_tokens", old, new)
    if both is None or _near(both, _SAME_MEMORY, 0.0):
        return []
    return [_change("kv_cache_tokens", "KV cache", both, flagged=both[1] <= _FEWER_TOKENS * both[0], unit=" tokens")]


def _graphs(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> list[Change]:
    kinds = [graph_kinds(vitals) for vitals in (old, new)]
    before, after = kinds
    if not all(found or vitals.get("graphs_enabled") is False for found, vitals in zip(kinds, (old, new))):
        return []
    if before and not after:
        return [Change("graphs", before, after, None, True, f"no graphs are captured any more (before: {', '.join(before)})")]
    reasons = new.get("graphs_disabled_because", {})
    found = []
    for kind in sorted({*before, *after}):
        if kind not in after:
            because = f": {reasons[kind]}" if kind in reasons else ""
            found.append(Change(f"graphs.{kind}", True, False, None, True, f"{kind} graphs are no longer captured{because}"))
        elif kind not in before:
            found.append(Change(f"graphs.{kind}", False, True, None, False, f"{kind} graphs are captured now"))
        else:
            counts = _both("count", *(vitals.get("graphs", {}).get(kind, {}) for vitals in (old, new)))
            found += [_change(f"graphs.{kind}", f"{kind} graphs", counts)] if counts is not None else []
    return found


def _settings(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> list[Change]:
    """Settings that change what the server does, or how well."""
    values = [
        ("weights_dtype", "type of the weights", *(vitals.get("weights_dtype", "") for vitals in (old, new))),
        ("quantization", "quantization of the weights", *(vitals.get("quantization", "") for vitals in (old, new))),
        ("kv_cache_dtype", "type of the KV cache", *(vitals.get("kv_cache_dtype", "") for vitals in (old, new))),
        ("attention_backend", "attention backend", attention(old), attention(new)),
        ("speculative_algorithm", "speculation", speculation(old), speculation(new)),
        ("context_length", "context", old.get("context_length", 0), new.get("context_length", 0)),
    ]
    return [_change(name, title, (before, after), flagged=True) for name, title, before, after in values if before and after and before != after]


def _available(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> list[Change]:
    both = _both("available_memory_gb", old, new)
    little = both is not None and both[1] < _LITTLE_GB <= both[0]
    if both is None or (not little and _near(both, _SAME_MEMORY, _SAME_MEMORY_GB)):
        return []
    return [_change("available_memory_gb", "memory left", both, flagged=little, unit=" GB")]


def _start(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> list[Change]:
    both = _both("seconds", before, after)
    if both is None or _near(both, _SAME_SECONDS, _SAME_SECONDS_S):
        return []
    slow = both[1] >= _SLOWER * both[0] and both[1] - both[0] >= _SLOWER_S
    change = _change("seconds", "start", both, flagged=slow, unit=" s")
    return [replace(change, text=f"{change.text}{_where(before, after) if slow else ''}")]


def _where(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> str:
    """The phase that takes most of the time more."""
    old, new = (by_phase(start) for start in (before, after))
    longer = {phase: seconds - old.get(phase, 0.0) for phase, seconds in new.items()}
    if not old or not longer:
        return ""
    phase = max(longer, key=lambda name: longer[name])
    return f", most of it {phase.replace('_', ' ')}: {old.get(phase, 0.0)} -> {new[phase]} s"


def by_phase(start: t.Mapping[str, t.Any]) -> dict[str, float]:
    """Returns the seconds of each phase of a start; one that came twice is one entry."""
    seconds: dict[str, float] = {}
    for entry in start.get("phases", []):
        seconds[entry["phase"]] = round(seconds.get(entry["phase"], 0.0) + entry["seconds"], 1)
    return seconds


def _amounts(old: t.Mapping[str, t.Any], new: t.Mapping[str, t.Any]) -> list[Change]:
    """Amounts that are good to know and decide nothing by themselves."""
    found = []
    for name, title, unit, ratio, amount in (
        ("weights_gb", "weights", " GB", _SAME_MEMORY, _SAME_MEMORY_GB),
        ("weights_seconds", "loading weights", " s", _SAME_SECONDS, _SAME_SECONDS_S),
        ("max_running_requests", "requests at once", "", 0.0, 0.0),
        ("chunked_prefill_size", "chunk of prefill", " tokens", 0.0, 0.0),
    ):
        both = _both(name, old, new)
        if both is not None and not _near(both, ratio, amount):
            found.append(_change(name, title, both, unit=unit))
    ranks = [len(vitals.get("ranks", {})) for vitals in (old, new)]
    if all(ranks) and ranks[0] != ranks[1]:
        found.append(_change("ranks", "ranks", (ranks[0], ranks[1])))
    return found
