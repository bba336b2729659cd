# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes shared by the modules of this collection."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  platform:
    description: Target OS families that can be operated against.
    support: full
    platforms: linux
  async:
    description: Supports being used with the C(async) keyword.
"""

    PROBE = r"""
options:
  host:
    description: Address the server is bound to; V(0.0.0.0) and V(::) are probed through loopback.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the server.
    type: int
    required: true
  api_key:
    description: Key that the server asks for; sent as a bearer token. Proxies are never used.
    type: str
    default: ""
  model_name:
    description: Name that C(/v1/models) must list.
    type: str
    required: true
  tls:
    description: Whether the server speaks HTTPS.
    type: bool
    default: false
  ca_path:
    description: CA bundle for HTTPS, for a private CA.
    type: path
  timeout:
    description: Seconds that a whole start may take, however much it progresses.
    type: float
    default: 1800
  stall_timeouts:
    description:
      - Seconds that a phase of the start may go on without progress (a line in the journal, bytes from disk, memory or GPU memory that is filled, a compiler
        at work), by phase.
      - The phases and their defaults are process 180, arguments 180, distributed 300, weights 300, kv_cache 300, decode_graphs 900, draft_graphs 900,
        prefill_graphs 900, http 300, warm_up 900, ready 300.
    type: dict
    default: {}
  leader:
    description:
      - Base URL of rank 0, for a further node of a server on several nodes. Such a node is ready when its unit runs, its own health check answers and
        rank 0 is healthy.
    type: str
    default: ""
"""
