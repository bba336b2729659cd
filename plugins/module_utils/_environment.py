# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Environment variables of a server: layers merged, secrets told apart, loopback kept off proxies."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK, holds_password, is_secret_variable
from ansible_collections.llmops.inference.plugins.module_utils._variables import kind_of

_LOOPBACK = ("localhost", "127.0.0.1", "0.0.0.0", "::1")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class VariableError(ValueError):
    """An environment variable that cannot be rendered; the message is for the operator."""


def _text(variable: str, name: str, value: t.Any, secret: bool) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    shown = MASK if secret or is_secret_variable(name) else repr(value)
    raise VariableError(f"{variable}.{name}: {shown} is {kind_of(value)}; an environment variable is text: write it in quotes")


def merge(layers: t.Sequence[tuple[str, t.Mapping[str, t.Any]]], secret: bool = False) -> dict[str, str]:
    """Lets later layers win; ``None`` takes an inherited variable away.

    Args:
        layers: (name of the inventory variable, its mapping), lowest precedence first.
        secret: whether all of them are secrets, which no message shows.

    Raises:
        VariableError: a value that is neither text nor a number.
    """
    merged: dict[str, str] = {}
    for variable, values in layers:
        for name, value in values.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = _text(variable, name, value, secret)
    return merged


def keep_loopback_direct(environment: t.Mapping[str, str], own_hosts: t.Sequence[str] = ()) -> dict[str, str]:
    """Adds loopback and the server's own names to ``no_proxy`` when a proxy is set: its warm-up request must not leave the host (N03)."""
    result = dict(environment)
    if not any(name.lower() in _PROXIES for name in environment):
        return result
    given = [part.strip() for name in ("no_proxy", "NO_PROXY") for part in environment.get(name, "").split(",")]
    complete = ",".join(dict.fromkeys(part for part in (*given, *_LOOPBACK, *own_hosts) if part))
    return {**result, "no_proxy": complete, "NO_PROXY": complete}


def split_secrets(environment: t.Mapping[str, str], declared: t.Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns (plain, secret): declared secrets, every variable whose name says that it is one, and those with a URL that has a password."""
    secret = {name: value for name, value in environment.items() if is_secret_variable(name) or holds_password(value)}
    plain = {name: value for name, value in environment.items() if name not in secret and name not in declared}
    return plain, {**secret, **declared}


def warnings(environment: t.Mapping[str, str]) -> list[str]:
    """Returns sentences about settings that do not do what they seem to."""
    if "XDG_CACHE_HOME" in environment and "FLASHINFER_WORKSPACE_BASE" not in environment:
        return ["XDG_CACHE_HOME does not move FlashInfer's workspace: set FLASHINFER_WORKSPACE_BASE as well"]
    return []
