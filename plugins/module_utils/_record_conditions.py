# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What of a benchmark's record is a condition, and what is its subject.

Conditions must be equal for two numbers to be compared (:data:`CONDITIONS`). The subject is what a change of the inventory or of the engine changes, and what
the comparison is about: requested flags, environment, engine, and what they make of the effective flags. Some facts are only told (:data:`TOLD`): the engine's
own client comes with the engine, so that its version cannot be held against an engine's upgrade.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter
from dataclasses import asdict, dataclass

GOODPUT = "goodput_per_s"
_EACH = "*"
_POINTS = ("starts", _EACH, "points", _EACH)
_NOT_SET = "not set"
# Drawn at every start.
_NOISE = ("random_seed",)


@dataclass(frozen=True)
class Condition:
    """One row of the table.

    Attributes:
        name: in words.
        path: keys in the record; ``*`` is each entry of a list.
        unit: of the value, for the words.
        absent: the word for no value.
        metrics: the metrics that depend on it; empty for all.
        implied_by: names of conditions that explain this one: where one of them differs, this one is not told as well.
        shared: a record has several values (a sweep), and two records need one in common; never ignored, for numbers are matched by it.
    """

    name: str
    path: tuple[str, ...]
    unit: str = ""
    absent: str = "none"
    metrics: tuple[str, ...] = ()
    implied_by: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True)
class Difference:
    """A condition that two records do not share.

    Attributes:
        name: of the condition, in words.
        baseline: its value in the one record, in words.
        current: in the other.
    """

    name: str
    baseline: str
    current: str

    @property
    def text(self) -> str:
        """Both values in a few words: "cache policy: flushed, now warm"."""
        return f"{self.name}: {self.baseline}, now {self.current}"

    def data(self) -> dict[str, str]:
        """Returns the fields and the text."""
        return {**asdict(self), "text": self.text}


# In the order in which differences are told.
CONDITIONS = (
    Condition("model", ("model", "name")),
    Condition("model revision", ("model", "revision"), implied_by=("model",)),
    Condition("GPUs", ("hardware", "gpus", _EACH, "name")),
    Condition("GPU memory", ("hardware", "gpus", _EACH, "memory_mib"), unit=" MiB", implied_by=("GPUs",)),
    Condition("GPU power limit", ("hardware", "gpus", _EACH, "power_limit_w"), unit=" W", implied_by=("GPUs",)),
    Condition("GPU links", ("hardware", "links"), implied_by=("GPUs",)),
    Condition("driver", ("hardware", "driver")),
    Condition("kernel", ("hardware", "kernel")),
    Condition("CPU", ("hardware", "cpu")),
    Condition("CPUs", ("hardware", "cpus"), implied_by=("CPU",)),
    Condition("client", ("client", "name")),
    Condition("API", ("client", "api"), implied_by=("client",)),
    Condition("measured from", ("client", "where")),
    Condition("workload", ("workload", "name")),
    Condition("requests", ("workload", "requests"), implied_by=("workload",)),
    Condition("input length", ("workload", "input_tokens"), unit=" tokens", absent="as the prompts are", implied_by=("workload",)),
    Condition("output length", ("workload", "output_tokens"), unit=" tokens", absent="as the answers are", implied_by=("workload",)),
    Condition("cache policy", ("workload", "cache")),
    Condition("seed", ("workload", "seed"), implied_by=("workload",)),
    # Last of the workload: whatever differs above may be in the hash as well.
    Condition("prompts", ("workload", "hash"), implied_by=("workload", "requests", "input length", "output length", "cache policy", "seed")),
    Condition("SLO", ("workload", "slo"), metrics=(GOODPUT,)),
    Condition("concurrency", (*_POINTS, "concurrency"), absent="unlimited", shared=True),
    Condition("request rate", (*_POINTS, "request_rate"), unit=" per s", absent="unlimited", shared=True),
)
TOLD = (
    Condition("host", ("host",)),
    Condition("instance", ("instance",)),
    Condition("client module", ("client", "module")),
    Condition("client version", ("client", "version")),
    Condition("collection", ("collection",)),
    # Measured by another playbook at another time: no two such measurements are alike to the last digit.
    Condition("measured links", ("hardware", "links_measured", "text"), absent="not known"),
)


def key_of(name: str) -> str:
    """Returns a condition's name as an inventory writes it: ``gpu_power_limit``."""
    return name.strip().lower().replace(" ", "_")


# The conditions that an inventory may ignore.
KEYS = tuple(key_of(condition.name) for condition in CONDITIONS if not condition.shared)


def differing(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any], *, metric: str = "", ignore: t.Iterable[str] = ()) -> list[Difference]:
    """Returns the conditions that differ, in the order of the table.

    Args:
        baseline: one record.
        current: the other.
        metric: what is compared; an SLO counts for goodput only.
        ignore: names or keys of conditions that may differ (:data:`KEYS`).
    """
    ignored = {key_of(name) for name in ignore}
    held = [row for row in CONDITIONS if (row.shared or key_of(row.name) not in ignored) and (not row.metrics or metric in row.metrics)]
    return _differences(held, baseline, current)


def told_differences(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[Difference]:
    """Returns what differs and is not held against a comparison."""
    return _differences(TOLD, baseline, current)


@dataclass(frozen=True)
class Change:
    """What was changed on purpose.

    Attributes:
        kind: ``engine``, ``flag``, ``environment`` or ``arguments``.
        name: of the flag or variable; of an engine what of it differs.
        before: its value in words.
        after: alike.
        layer: of a flag, and both where it moved: "model", "hardware -> host".
    """

    kind: str
    name: str
    before: str
    after: str
    layer: str = ""

    @property
    def text(self) -> str:
        """The change in a few words, without the layer: "mem_fraction_static 0.85 -> 0.88"."""
        return f"{self.name} {self.before} -> {self.after}"


def changes(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[Change]:
    """Returns what was changed from one record's release to the other's: engine, flags by name, environment.

    Arguments that are no known flags are told only where nothing else explains that the subjects differ.
    """
    flags = [{flag["name"]: flag["value"] for flag in record.get("flags") or []} for record in (baseline, current)]
    layers = [{flag["name"]: str(flag.get("layer") or "") for flag in record.get("flags") or []} for record in (baseline, current)]
    environments = [dict(record.get("environment") or {}) for record in (baseline, current)]
    found = [
        *_engine(baseline, current),
        *(Change("flag", *one, layer=" -> ".join(dict.fromkeys(filter(None, (side.get(one[0]) for side in layers))))) for one in _changed(*flags)),
        *(Change("environment", *one) for one in _changed(*environments)),
    ]
    return found or _arguments(*(list((record.get("release") or {}).get("argv") or []) for record in (baseline, current)))


def subject_changes(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[str]:
    """Returns the :func:`changes` in words."""
    return [change.text for change in changes(baseline, current)]


def effective_changes(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[str]:
    """Returns what the engine runs with otherwise without having been asked to: "attention_backend fa3 -> triton"."""
    effective = [dict(record.get("effective") or {}) for record in (baseline, current)]
    asked = {flag["name"] for record in (baseline, current) for flag in record.get("flags") or []}
    names = effective[0].keys() & effective[1].keys() - asked - set(_NOISE)
    return [f"{name} {old} -> {new}" for name, old, new in _changed(*({name: values[name] for name in names} for values in effective))]


def shown(value: t.Any) -> str:
    """Returns a value of a record as a person writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, sort_keys=True)


def _differences(rows: t.Iterable[Condition], baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[Difference]:
    found: dict[str, Difference] = {}
    for row in rows:
        values = [_values(record, row.path) for record in (baseline, current)]
        if not found.keys() & set(row.implied_by) and not _agree(row, *values):
            found[row.name] = Difference(row.name, _words(row, values[0]), _words(row, values[1]))
    return list(found.values())


def _values(value: t.Any, path: tuple[str, ...]) -> list[t.Any]:
    """The values at the end of a path: one, or one of each entry of a list; what is empty or missing is None."""
    if not path:
        return [None if value in ("", [], {}) else value]
    if path[0] == _EACH:
        return [found for entry in value or [] for found in _values(entry, path[1:])]
    return _values(value.get(path[0]) if isinstance(value, t.Mapping) else None, path[1:])


def _agree(row: Condition, baseline: list[t.Any], current: list[t.Any]) -> bool:
    if row.shared:
        return any(value in current for value in baseline)
    # In no order: GPUs may be numbered otherwise after a boot.
    return sorted(map(shown, baseline)) == sorted(map(shown, current))


def _words(row: Condition, values: list[t.Any]) -> str:
    words = [row.absent if value is None else f"{shown(value)}{row.unit}" for value in values]
    if row.shared:
        return ", ".join(dict.fromkeys(words)) or "not measured"
    counts = Counter(words)
    return ", ".join(f"{counts[word]} x {word}" if _EACH in row.path else word for word in sorted(counts)) or row.absent


def _changed(before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> list[tuple[str, str, str]]:
    """Name and both values, in words, of what differs."""
    pairs = {name: [shown(values[name]) if name in values else _NOT_SET for values in (before, after)] for name in sorted({*before, *after})}
    return [(name, old, new) for name, (old, new) in pairs.items() if old != new]


def _engine(baseline: t.Mapping[str, t.Any], current: t.Mapping[str, t.Any]) -> list[Change]:
    """The engine by the first of these that differs: its name holds both others."""
    for key, title in (("version", "engine"), ("lock", "engine's lock"), ("name", "engine")):
        before, after = (str((record.get("engine") or {}).get(key) or "unknown") for record in (baseline, current))
        if before != after:
            return [Change("engine", title, before, after)]
    return []


def _arguments(before: list[str], after: list[str]) -> list[Change]:
    sides = [" ".join((Counter(one) - Counter(other)).elements()) or "none" for one, other in ((before, after), (after, before))]
    return [Change("arguments", "arguments", *sides)] if before != after else []
