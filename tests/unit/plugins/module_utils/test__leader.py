# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._leader import leader_url

SECOND = ["--nnodes", "2", "--node-rank", "1"]
WHERE = ["--dist-init-addr", "10.0.0.1:5000"]


@pytest.mark.parametrize(
    "argv, url",
    [
        pytest.param([*SECOND, *WHERE, "--port", "30001"], "http://10.0.0.1:30001", id="another-rank"),
        pytest.param([*SECOND, *WHERE], "http://10.0.0.1:30000", id="the-engine-s-own-port"),
        pytest.param([*SECOND, "--nccl-init-addr", "10.0.0.1:5000"], "http://10.0.0.1:30000", id="the-old-name"),
        pytest.param(["--nnodes=4", "--node-rank=3", "--dist-init-addr=10.0.0.1:5000", "--port=30001"], "http://10.0.0.1:30001", id="in-one-word"),
        pytest.param([*SECOND, "--dist-init-addr", "node-a.lan:5000"], "http://node-a.lan:30000", id="name"),
        pytest.param([*SECOND, "--dist-init-addr", "[fd00::1]:5000"], "http://[fd00::1]:30000", id="ipv6"),
        pytest.param([*SECOND, *WHERE, "--ssl-certfile", "/a.pem"], "https://10.0.0.1:30000", id="tls"),
        pytest.param([*SECOND, *WHERE, "--ssl-certfile=/a.pem"], "https://10.0.0.1:30000", id="tls-in-one-word"),
        pytest.param([*SECOND, *WHERE, "--node-rank", "0"], "", id="the-last-one-counts"),
        pytest.param(["--node-rank=0", *SECOND, *WHERE], "http://10.0.0.1:30000", id="the-last-one-counts-however-written"),
        pytest.param(["--nnodes", "2", "--node-rank", "0", *WHERE], "", id="rank-0"),
        pytest.param(["--nnodes", "2", *WHERE], "", id="rank-0-by-default"),
        pytest.param(["--nnodes", "1", "--node-rank", "1", *WHERE], "", id="one-node"),
        pytest.param(["--node-rank", "1", *WHERE], "", id="one-node-by-default"),
        pytest.param(SECOND, "", id="no-address"),
        pytest.param([*SECOND, "--dist-init-addr", "10.0.0.1"], "", id="an-address-without-port-that-the-engine-refuses"),
        pytest.param([*WHERE, "--nnodes", "2", "--node-rank"], "", id="no-value"),
        pytest.param(["--nnodes", "two", "--node-rank", "1", *WHERE], "", id="no-number"),
        pytest.param(["--model-path", "/srv/--node-rank=1"], "", id="a-value-that-holds-the-name"),
        pytest.param([], "", id="nothing"),
    ],
)
def test_leader_url(argv, url):
    assert leader_url(argv) == url
