# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_ports as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

A, B, C = "0.5.12", "0.5.16", "0.5.23"
GROUPS = {"enable_dp_attention": True, "dp_size": 2}
SEED = "remote_instance_weight_loader_start_seed_via_transfer_engine"


def candidate(engine, asked, environment=None):
    return Candidate(engine=engine, asked=asked, environment=environment or {})


# What each version listens on, as its PortArgs.init_new and its bootstrap servers have it.
@pytest.mark.parametrize(
    "engine, asked, environment, numbers",
    [
        (C, {}, {}, [30000]),
        (C, {"port": "31000", "nccl_port": 28000}, {}, [31000, 28000]),
        (C, {"nccl_port": 28000, "dist_init_addr": "10.0.0.1:5000"}, {}, [30000, 5000]),
        (C, {"dist_init_addr": "10.0.0.1:5000", "node_rank": 1}, {}, [30000]),
        (C, {"dist_init_addr": "[fe80::1]:5000"}, {}, [30000, 5000]),
        (C, {"dist_init_addr": "head"}, {}, [30000]),
        (C, {"disaggregation_mode": "prefill"}, {}, [30000, 8998]),
        (C, {"disaggregation_mode": "prefill", "disaggregation_bootstrap_port": 9000}, {}, [30000, 9000]),
        (C, {"disaggregation_mode": "decode"}, {}, [30000]),
        (C, {SEED: True}, {}, [30000, 6789]),
        (C, {SEED: True, "node_rank": 1}, {}, [30000]),
        (C, {"language_only": True}, {}, [30000, 8997]),
        (A, {"language_only": True}, {}, [30000]),
        # gRPC
        (A, {}, {"SGLANG_ENABLE_GRPC": "1"}, [30000, 40000]),
        (A, {}, {"SGLANG_ENABLE_GRPC": "True", "SGLANG_GRPC_PORT": "41000"}, [30000, 41000]),
        (A, {}, {"SGLANG_ENABLE_GRPC": "0"}, [30000]),
        (A, {}, {"SGLANG_GRPC_PORT": "41000"}, [30000]),
        (B, {}, {"SGLANG_GRPC_PORT": "41000"}, [30000, 41000]),
        (B, {"grpc_port": 42000}, {"SGLANG_GRPC_PORT": "41000"}, [30000, 42000]),
        (C, {"smg_grpc_mode": True}, {}, [30000, 30001]),
        (C, {"grpc_mode": True, "smg_http_sidecar_port": 33000}, {}, [30000, 33000]),
        # attention data parallelism
        (A, GROUPS, {}, [30000, *range(30234, 30239)]),
        (C, {"attn_dp_size": 2}, {}, [30000, *range(30234, 30239)]),
        (C, {"attn_dp_size": 1}, {}, [30000]),
        (C, {"dp_size": 2}, {}, [30000]),
        (C, {"attn_dp_size": 2, "node_rank": 1, "nnodes": 2, "dist_init_addr": "h:5000"}, {}, [30000]),
        (C, {"attn_dp_size": 2, "nnodes": 2}, {}, [30000]),
        (A, {**GROUPS, "nnodes": 2, "dist_init_addr": "h:5000"}, {}, [30000, 5000, *range(5001, 5006), 5013]),
        (C, {"attn_dp_size": 2, "nnodes": 2, "dist_init_addr": "h:5000"}, {}, [30000, 5000, *range(5001, 5007), 5013]),
        # near the end of the range
        (A, {**GROUPS, "port": 65302}, {}, [65302, *range(65536, 65541)]),
        (B, {**GROUPS, "port": 65297}, {}, [65297, *range(65531, 65536)]),
        (B, {**GROUPS, "port": 65298}, {}, [65298, *range(65525, 65530)]),
        (C, {**GROUPS, "port": 65296}, {}, [65296, *range(65530, 65535)]),
        (C, {**GROUPS, "port": 65297}, {}, [65297, *range(65523, 65528)]),
        (B, {**GROUPS, "port": 65302}, {}, [65302, *range(65529, 65534)]),
        (B, {**GROUPS, "port": 65303}, {}, [65303, *range(65071, 65076)]),
    ],
)
def test_derived_ports(engine, asked, environment, numbers):
    assert [port.number for port in rules.derived_ports(candidate(engine, asked, environment))] == numbers


CASES = (
    # F07: the port itself and what is derived of it
    (rules.port_range, C, {"port": 70000}, {}, "port_out_of_range", "error", "the port of the server, 70000, is not between 1 and 65535"),
    (rules.port_range, C, {"port": 65536}, {}, "port_out_of_range", "error", "set port to"),
    (rules.port_range, C, {"port": 65535}, {}, None, None, ""),
    (rules.port_range, C, {"port": -1}, {}, "port_out_of_range", "error", "-1"),
    (rules.port_range, C, {"port": 65438}, {}, None, None, ""),
    (rules.port_range, C, {"port": 0}, {}, None, None, ""),
    (rules.grpc_range, A, {}, {"SGLANG_GRPC_PORT": "1"}, None, None, ""),
    (rules.grpc_range, A, {}, {"SGLANG_GRPC_PORT": "port"}, "grpc_port_out_of_range", "error", "the port of gRPC, port"),
    (rules.port_range, C, {"nccl_port": 65536}, {}, "port_out_of_range", "error", "set nccl_port"),
    (rules.port_range, C, {"port": 65535, "smg_grpc_mode": True}, {}, "port_out_of_range", "error", "HTTP beside gRPC, 65536 (from smg_http_sidecar_port)"),
    (rules.grpc_range, A, {"port": 65438}, {}, "grpc_port_out_of_range", "error", "port 65438 gives gRPC the port 75438"),
    (rules.grpc_range, "0.5.13", {"port": 65438}, {}, "grpc_port_out_of_range", "warning", "set port to 55535 or lower"),
    (rules.grpc_range, "", {"port": 65438}, {}, "grpc_port_out_of_range", "warning", "SGLANG_GRPC_PORT"),
    (rules.grpc_range, A, {"port": 65438}, {"SGLANG_GRPC_PORT": "40000"}, None, None, ""),
    (rules.grpc_range, A, {"port": 65438}, {"SGLANG_GRPC_PORT": "70000"}, "grpc_port_out_of_range", "error", "the port of gRPC, 70000, is not"),
    (rules.grpc_range, A, {"port": 65438}, {"SGLANG_GRPC_PORT": "0"}, "grpc_port_out_of_range", "error", "the port of gRPC, 0"),
    (rules.grpc_range, A, {"port": 55535}, {}, None, None, ""),
    (rules.grpc_range, A, {"port": 55536}, {}, "grpc_port_out_of_range", "error", "65536"),
    (rules.grpc_range, A, {"port": 70000}, {}, None, None, ""),
    (rules.grpc_range, A, {}, {}, None, None, ""),
    (rules.grpc_range, B, {"port": 65438}, {}, None, None, ""),
    (rules.grpc_range, C, {"port": 65438, "smg_grpc_mode": True}, {}, "grpc_port_out_of_range", "error", "75438"),
    (rules.grpc_range, C, {"port": 65438, "smg_grpc_mode": True, "grpc_port": 1}, {}, None, None, ""),
    (rules.grpc_range, C, {"grpc_port": 65536}, {}, "grpc_port_out_of_range", "error", "65536"),
    (rules.grpc_range, C, {"grpc_port": 65535}, {}, None, None, ""),
    (rules.grpc_range, C, {}, {"SGLANG_GRPC_PORT": "65536"}, "grpc_port_out_of_range", "error", "65536"),
    # two purposes
    (rules.port_collisions, C, {"port": 5000, "nccl_port": 5000}, {}, "port_collision", "error", "by the server (port) and by NCCL (nccl_port)"),
    (rules.port_collisions, C, {"port": 5000, "nccl_port": 5001}, {}, None, None, ""),
    (rules.port_collisions, C, {"port": 5000, "nccl_port": 5000, "dist_init_addr": "h:5001"}, {}, None, None, ""),
    (rules.port_collisions, C, {"port": 5000, "dist_init_addr": "h:5000"}, {}, "port_collision", "error", "set dist_init_addr to another port"),
    (rules.port_collisions, C, {"port": 8998, "disaggregation_mode": "prefill"}, {}, "port_collision", "error", "bootstrap of disaggregation"),
    (rules.port_collisions, C, {"port": 8998, "disaggregation_mode": "prefill"}, {"SGLANG_RUST_SERVER": "1"}, None, None, ""),
    (rules.port_collisions, C, {"grpc_port": 30000}, {}, "port_collision", "error", "gRPC (grpc_port)"),
    (rules.port_collisions, C, {**GROUPS, "nccl_port": 30236}, {}, "port_collision", "error", "attention groups' calls (port)"),
    (rules.port_collisions, C, {**GROUPS, "nccl_port": 30233}, {}, None, None, ""),
)


@pytest.mark.parametrize("rule, engine, asked, environment, code, severity, words", CASES)
def test_rule(rule, engine, asked, environment, code, severity, words):
    found = rule(candidate(engine, asked, environment))
    assert [(finding.code, finding.severity) for finding in found] == ([(code, severity)] if code else [])
    assert all(words in f"{finding.text}; {finding.hint}" and finding.source and finding.fields for finding in found)


def test_old_engines_do_not_keep_attention_groups_in_range():
    found = rules.port_range(candidate(A, {**GROUPS, "port": 65298}))
    assert [finding.text for finding in found] == ["the port of attention groups' requests, 65536 (from port), is not between 1 and 65535"]
    assert not rules.port_range(candidate(A, {**GROUPS, "port": 65297}))


def test_all_rules_are_listed():
    assert list(rules.RULES) == [rules.port_range, rules.port_collisions]
    assert list(rules.FALLBACK_RULES) == [rules.grpc_range]
