# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the rules of the preflight look at: a candidate's flags, its model and the hardware."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

# Where multimodal configurations keep the language model's.
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


@dataclass(frozen=True)
class Candidate:
    """A server that is to be.

    Attributes:
        engine: version of the engine, ``0.5.23``.
        asked: what the operator asked for: field of the engine -> value.
        effective: the engine's own fields after its resolution; empty where they could not be told.
        config: the model's ``config.json``; empty where it is not known.
        weights_bytes: bytes of the weights on disk, by the safetensors index or the files; None where not known.
        gpus: the host's GPUs as ``gpu_facts`` lists them (``name``, ``uuid``, ``compute_capability``, ``memory_total_mib``, ``memory_free_mib``,
            ``mig``, ``mig_devices``, ``processes``); None where the hardware is not known.
        environment: environment variables of the server.
    """

    engine: str = ""
    asked: t.Mapping[str, t.Any] = field(default_factory=dict)
    effective: t.Mapping[str, t.Any] = field(default_factory=dict)
    config: t.Mapping[str, t.Any] = field(default_factory=dict)
    weights_bytes: int | None = None
    gpus: t.Sequence[t.Mapping[str, t.Any]] | None = None
    environment: t.Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str, default: t.Any = None) -> t.Any:
        """Returns what a field will be: effective, else asked, else ``default`` (also where it is None)."""
        value = self.effective.get(name, self.asked.get(name))
        return default if value is None else value

    def whole(self, name: str, default: int) -> int:
        """Returns a field that counts something; ``default`` where it is not set or no whole number."""
        return whole(self.value(name), default)

    @property
    def text_config(self) -> t.Dict[str, t.Any]:
        """The language model's configuration: nested ones over the outer one."""
        return flatten_config(self.config)


def flatten_config(config: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """Returns a model configuration with the language model's nested part laid over the outer one."""
    flat = dict(config)
    for name in _NESTED:
        inner = config.get(name)
        if isinstance(inner, t.Mapping):
            flat.update(flatten_config(inner))
    return flat


def whole(value: t.Any, default: int) -> int:
    """Returns a whole number, also one in a text (``"2"``); ``default`` for anything else."""
    text = "" if isinstance(value, bool) else str(value).strip()
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else default
