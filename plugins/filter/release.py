# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn inventory values into what a server's release is made of. Each is one call into module_utils."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.llmops.inference.plugins.module_utils import _engine, _environment, _leader, _systemd, _unit_options
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagError, FlagTable, Layer, build_argv, flag_sources
from ansible_collections.llmops.inference.plugins.module_utils._requested import requested_flags
from ansible_collections.llmops.inference.plugins.module_utils._variables import kind_of
from ansible_collections.llmops.inference.plugins.plugin_utils._vaulted import is_placeholder


def _layers(value: t.Any, name: str) -> list[tuple[str, dict[str, t.Any]]]:
    for variable, mapping in dict(value).items():
        if mapping is not None and not isinstance(mapping, t.Mapping):
            # Text in place of environment variables may hold a secret in any form.
            shown = f": {mapping!r}" if name == "flags" else ""
            raise AnsibleFilterError(f"{variable} must be a mapping of {name} to values, not {kind_of(mapping)}{shown}")
    return [(variable, dict(mapping or {})) for variable, mapping in dict(value).items()]


def sglang_argv(layers: t.Any, table: t.Any, extra_args: t.Any = (), reserved: t.Any = None, others: t.Any = ()) -> list[str]:
    """Turns layers of flag variables into the server's arguments."""
    try:
        flag_layers = [Layer(variable, mapping) for variable, mapping in _layers(layers, "flags")]
        return build_argv(flag_layers, list(extra_args), FlagTable(table, others), reserved or {})
    except FlagError as error:
        raise AnsibleFilterError(str(error)) from None


def sglang_flag_sources(layers: t.Any, table: t.Any, extra_args: t.Any = (), reserved: t.Any = None) -> dict[str, str]:
    """Returns which inventory variable sets which field of the engine."""
    try:
        flag_layers = [Layer(variable, mapping) for variable, mapping in _layers(layers, "flags")]
        return flag_sources(flag_layers, list(extra_args), FlagTable(table), reserved or {})
    except FlagError as error:
        raise AnsibleFilterError(str(error)) from None


def sglang_requested_flags(layers: t.Any, table: t.Any, extra_args: t.Any = (), reserved: t.Any = None) -> list[dict[str, t.Any]]:
    """Returns the flags that the inventory asks for, each with its layer."""
    try:
        flag_layers = [Layer(variable, mapping) for variable, mapping in _layers(layers, "flags")]
        return requested_flags(flag_layers, list(extra_args), FlagTable(table), reserved or {})
    except FlagError as error:
        raise AnsibleFilterError(str(error)) from None


def sglang_leader(argv: t.Any) -> str:
    """Returns where rank 0 of a server on several nodes answers; empty for rank 0 itself."""
    return _leader.leader_url([str(word) for word in argv])


def sglang_problems(checks: t.Any, table: t.Any, reserved: t.Any, needs_gpu: bool, others: t.Any = ()) -> list[str]:
    """Returns one sentence for each input of a release that is wrong; empty when all are right."""
    attempts: list[t.Callable[[], t.Any]] = [
        lambda: sglang_argv(checks["flags"], table, checks["extra_args"], reserved, others),
        lambda: sglang_environment(checks["environment"], checks["secret_environment"]),
        lambda: systemd_options(checks["unit_options"], needs_gpu),
    ]
    problems = []
    for attempt in attempts:
        try:
            attempt()
        except AnsibleFilterError as error:
            problems.append(str(error) if str(error).endswith("?") else f"{error}.")
    return problems


def sglang_environment(layers: t.Any, secret: t.Any = None, own_hosts: t.Any = ()) -> dict[str, t.Any]:
    """Merges layers of environment variables and tells secrets apart."""
    try:
        merged = _environment.merge(_layers(layers, "environment variables"))
        declared = _environment.merge(_layers({"sglang_server_secret_env": secret}, "environment variables"), secret=True)
    except _environment.VariableError as error:
        raise AnsibleFilterError(str(error)) from None
    # Where a release is rendered without the vault, whether the value has a password in it cannot be seen.
    declared = {**{name: value for name, value in merged.items() if is_placeholder(value)}, **declared}
    plain, secrets = _environment.split_secrets(merged, declared)
    # A proxy with a password is among the secrets.
    direct = _environment.keep_loopback_direct({**plain, **secrets}, own_hosts)
    plain = {name: value for name, value in direct.items() if name not in secrets}
    return {"plain": plain, "secret": secrets, "warnings": _environment.warnings(merged)}


def systemd_exec(argv: t.Any) -> str:
    """Quotes an argument vector for ExecStart=."""
    try:
        return _systemd.exec_line([str(word) for word in argv])
    except _systemd.SystemdError as error:
        raise AnsibleFilterError(str(error)) from None


def systemd_environment(variables: t.Any) -> list[str]:
    """Quotes variables for Environment=, one assignment each."""
    try:
        return [_systemd.environment_assignment(name, str(value)) for name, value in dict(variables).items()]
    except _systemd.SystemdError as error:
        raise AnsibleFilterError(str(error)) from None


def systemd_options(options: t.Any, needs_gpu: bool = True) -> list[str]:
    """Renders an operator's own directives, refusing those that break a server."""
    try:
        return _unit_options.render_options(dict(options), needs_gpu)
    except _systemd.SystemdError as error:
        raise AnsibleFilterError(str(error)) from None


def sglang_engine_name(lock: str, version: str, flavour: str, python: str, architecture: str) -> str:
    """Returns the directory name of the engine that a lock describes."""
    try:
        return _engine.engine_name(version, flavour, _engine.parse_lock(lock), python, architecture)
    except _engine.EngineError as error:
        raise AnsibleFilterError(str(error)) from None


def sglang_engine_unfit(lock: str, facts: t.Any = None, driver: str = "") -> list[str]:
    """Returns why a host cannot run the engine of a lock."""
    return _engine.unfit(_engine.parse_lock(lock), facts or {}, str(driver))


class FilterModule:
    """Registers the filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "sglang_argv": sglang_argv,
            "sglang_environment": sglang_environment,
            "sglang_engine_name": sglang_engine_name,
            "sglang_engine_unfit": sglang_engine_unfit,
            "sglang_flag_sources": sglang_flag_sources,
            "sglang_leader": sglang_leader,
            "sglang_problems": sglang_problems,
            "sglang_requested_flags": sglang_requested_flags,
            "systemd_exec": systemd_exec,
            "systemd_environment": systemd_environment,
            "systemd_options": systemd_options,
        }
