# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Where rank 0 of a server on several nodes answers. Only that rank has the API; the health check of the others is a dummy (SGLang 0.5.10 to 0.5.23)."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._http import base_url


def _value(argv: t.Sequence[str], *names: str) -> str:
    found = ""
    for word, following in zip(argv, [*argv[1:], ""]):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else following
    return found


def leader_url(argv: t.Sequence[str]) -> str:
    """Returns the base URL of rank 0, or an empty string where these are the arguments of rank 0 itself or of a single node.

    The host is that of ``--dist-init-addr``, the port this server's own: the ranks of one server have the same.

    Args:
        argv: arguments of the server.
    """
    rank, nodes = _value(argv, "--node-rank"), _value(argv, "--nnodes")
    host, _colon, _port = _value(argv, "--dist-init-addr", "--nccl-init-addr").rpartition(":")
    if not rank.isdigit() or not nodes.isdigit() or int(rank) == 0 or int(nodes) < 2 or not host:
        return ""
    return base_url(host.strip("[]"), int(_value(argv, "--port") or 30000), bool(_value(argv, "--ssl-certfile")))
