# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which ports a server listens on besides its own, by the engine's version, and whether they exist and differ.

Sources: sglang server_args.py PortArgs.init_new (0.5.12 :7786, 0.5.16 :8270, 0.5.23 :780), server_args.py:1147 and 3316 and
arg_groups/serving_hook.py:360 (gRPC), managers/disagg_service.py, managers/data_parallel_controller.py:322 / :445 / :505, entrypoints/engine.py:781.
Whether a port is free is the host's state and no rule here.
"""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, whole
from ansible_collections.llmops.inference.plugins.module_utils._compat import numbers
from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._rules_parallel import attention_data_parallelism

HIGHEST = 65535
_DEFAULT_PORT = 30000
_ATTENTION_DELTA, _HANDSHAKE_DELTA, _GRPC_DELTA = 233, 13, 10000
# From the first version seen that keeps derived ports in range, and that gives gRPC a port only when it is asked for.
_GUARDED = (0, 5, 16)
# The only version seen that always derives a port for gRPC.
_ALWAYS_GRPC = (0, 5, 12)
_GRPC = "https://github.com/sgl-project/sglang/issues/29416; sglang server_args.py:1147 (0.5.12)"
_RANGE = "https://github.com/sgl-project/sglang/pull/2826 (bind(): port must be 0-65535)"
_COLLISION = "sglang server_args.py PortArgs.init_new, wait_port_available; check_server_args (--grpc-port must differ from --port)"


class Port(t.NamedTuple):
    """A port that a server listens on.

    Attributes:
        purpose: what for.
        number: the port.
        field: the engine's field that it comes from.
    """

    purpose: str
    number: int
    field: str


def derived_ports(candidate: Candidate) -> list[Port]:
    """Returns the ports that a server listens on or demands, its own first. Ports that the engine picks where it finds one free are not among them."""
    own = candidate.whole("port", _DEFAULT_PORT)
    ports = [Port("the server", own, "port")]
    fixed = (
        ("NCCL", "nccl_port", 0, not candidate.value("dist_init_addr")),
        ("the bootstrap of disaggregation", "disaggregation_bootstrap_port", 8998, candidate.value("disaggregation_mode") == "prefill"),
        (
            "the bootstrap of weights",
            "engine_info_bootstrap_port",
            6789,
            candidate.value("remote_instance_weight_loader_start_seed_via_transfer_engine") and candidate.whole("node_rank", 0) == 0,
        ),
        ("the bootstrap of encoders", "encoder_bootstrap_port", 8997, candidate.value("language_only") and _guarded(candidate)),
    )
    ports += [Port(purpose, candidate.whole(name, default), name) for purpose, name, default, used in fixed if used and candidate.whole(name, default)]
    return ports + _grpc_ports(candidate, own) + _distributed_ports(candidate, own)


def _guarded(candidate: Candidate) -> bool:
    return numbers(candidate.engine) >= _GUARDED


def _on(candidate: Candidate, variable: str) -> bool:
    return candidate.environment.get(variable, "").lower() in ("true", "1", "yes", "y")


def _grpc_ports(candidate: Candidate, own: int) -> list[Port]:
    asked = whole(candidate.environment.get("SGLANG_GRPC_PORT"), 0)
    if not _guarded(candidate):
        return [Port("gRPC", asked or own + _GRPC_DELTA, "port")] if _on(candidate, "SGLANG_ENABLE_GRPC") else []
    if candidate.value("smg_grpc_mode") or candidate.value("grpc_mode"):
        return [Port("HTTP beside gRPC", candidate.whole("smg_http_sidecar_port", own + 1), "smg_http_sidecar_port")]
    number = candidate.whole("grpc_port", asked)
    return [Port("gRPC", number, "grpc_port")] if number else []


def _distributed_ports(candidate: Candidate, own: int) -> list[Port]:
    meeting = _port_of(str(candidate.value("dist_init_addr", "")))
    several, first = candidate.whole("nnodes", 1) > 1, candidate.whole("node_rank", 0) == 0
    ports = [Port("the meeting of ranks", meeting, "dist_init_addr")] if meeting and first else []
    if attention_data_parallelism(candidate) < 2 or not first or (several and not meeting):
        return ports
    field = "dist_init_addr" if meeting else "port"
    if not meeting:
        # On one node this port itself is not listened on.
        meeting = own + _ATTENTION_DELTA
        if meeting > HIGHEST and _guarded(candidate):
            meeting = own - _ATTENTION_DELTA
    purposes = ["tokens", "text", "calls", "metrics", "requests"]
    purposes += ["load"] if several and _guarded(candidate) else []
    base = meeting + 1
    if _guarded(candidate) and meeting + _reserved(candidate) > HIGHEST:
        base = meeting - _reserved(candidate) - 1
    ports += [Port(f"attention groups' {purpose}", base + place, field) for place, purpose in enumerate(purposes)]
    return ports + ([Port("the handshake of nodes", meeting + _HANDSHAKE_DELTA, field)] if several else [])


def _reserved(candidate: Candidate) -> int:
    """NUM_DERIVED_PORTS: 5 in 0.5.16, 6 in 0.5.23."""
    return 6 if numbers(candidate.engine) >= (0, 5, 23) else 5


def _port_of(address: str) -> int:
    return whole(address.rpartition(":")[2], 0) if ":" in address else 0


def port_range(candidate: Candidate) -> list[Finding]:
    """Each port, also a derived one, must exist (case F07)."""
    findings = []
    for port in derived_ports(candidate):
        if 0 <= port.number <= HIGHEST:
            continue
        derived = port.number != candidate.whole(port.field, -1)
        text = f"the port of {port.purpose}, {port.number}" + (f" (from {port.field})" if derived else "") + f", is not between 1 and {HIGHEST}"
        findings.append(Finding("port_out_of_range", "error", text, f"set {port.field} to a lower port that is free", _RANGE, (port.field,)))
    return findings


def grpc_range(candidate: Candidate) -> list[Finding]:
    """gRPC's port must exist, also where nobody asked for gRPC (case F07): 0.5.12 takes 10000 above its own, 0.5.16 only in the old gRPC mode."""
    own = candidate.whole("port", _DEFAULT_PORT)
    asked = candidate.environment.get("SGLANG_GRPC_PORT") or (candidate.value("grpc_port") if _guarded(candidate) else None)
    legacy = bool(candidate.value("smg_grpc_mode") or candidate.value("grpc_mode"))
    number = own + _GRPC_DELTA if asked is None else whole(asked, 0)
    if 1 <= number <= HIGHEST or own > HIGHEST or (asked is None and _guarded(candidate) and not legacy):
        return []
    if asked is not None:
        text = f"the port of gRPC, {asked}, is not between 1 and {HIGHEST}"
        return [Finding("grpc_port_out_of_range", "error", text, "set SGLANG_GRPC_PORT or grpc_port to a port that is free", _GRPC, ("grpc_port",))]
    certain = _guarded(candidate) or numbers(candidate.engine) == _ALWAYS_GRPC
    text = f"port {own} gives gRPC the port {number}, which is not between 1 and {HIGHEST}; sglang 0.5.12 demands it even without gRPC"
    hint = f"set port to {HIGHEST - _GRPC_DELTA} or lower, or SGLANG_GRPC_PORT in the server's environment"
    return [Finding("grpc_port_out_of_range", "error" if certain else "warning", text, hint, _GRPC, ("port",))]


def port_collisions(candidate: Candidate) -> list[Finding]:
    """Two purposes cannot share a port."""
    # The Rust server serves the bootstrap of disaggregation on its own port (arg_groups/pd_disaggregation_hook.py:245).
    shared = _on(candidate, "SGLANG_RUST_SERVER")
    taken: t.Dict[int, Port] = {}
    findings = []
    for port in derived_ports(candidate):
        other = taken.setdefault(port.number, port)
        if other is port or (shared and port.field == "disaggregation_bootstrap_port"):
            continue
        fields = tuple(dict.fromkeys((other.field, port.field)))
        text = f"port {port.number} is wanted by {other.purpose} ({other.field}) and by {port.purpose} ({port.field})"
        findings.append(Finding("port_collision", "error", text, f"set {port.field} to another port", _COLLISION, fields))
    return findings


RULES = (port_range, port_collisions)
FALLBACK_RULES = (grpc_range,)
