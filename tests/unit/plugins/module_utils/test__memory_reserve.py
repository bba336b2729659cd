# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._memory_reserve import activations_gb, graphs_gb, static_fraction
from ansible_collections.llmops.inference.plugins.module_utils._model_shape import Split
from ansible_collections.llmops.inference.tests.unit.memory import EIGHT, candidate

H200_GB, A6000_GB = 143771 / 1024, 49140 / 1024


@pytest.mark.parametrize(
    "more, total, fraction",
    [
        ({}, H200_GB, 0.91),
        ({"chunked_prefill_size": 2048}, H200_GB, 0.929),
        ({"chunked_prefill_size": 2048}, A6000_GB, 0.924),
        ({"tp_size": 2}, A6000_GB, 0.859),
    ],
)
def test_a_fraction_that_nobody_knows_is_the_engines_rule(more, total, fraction):
    assert static_fraction(Candidate("0.5.17", {}, more, EIGHT), total, 0.0) == (pytest.approx(fraction, abs=0.002), ", estimated")


@pytest.mark.parametrize("told, fraction", [(0.88, 0.88), (0, 0.01), (1, 0.999)])
def test_a_fraction_that_is_told_is_taken(told, fraction):
    assert static_fraction(candidate(mem_fraction_static=told), H200_GB, 0.0) == (fraction, "")


@pytest.mark.parametrize(
    "more, gb",
    [
        pytest.param({}, 0, id="not-told"),
        pytest.param({"cuda_graph_max_bs": 512}, 1.0, id="graphs-of-0.5.12"),
        pytest.param({"cuda_graph_max_bs": 512, "disable_cuda_graph": True}, 0, id="no-graphs"),
        pytest.param({"cuda_graph_max_bs": 0, "disable_piecewise_cuda_graph": False, "piecewise_cuda_graph_tokens": [4] * 64}, 0.5, id="piecewise"),
        pytest.param(
            {"cuda_graph_config": {"decode": {"backend": "full", "max_bs": 256}, "prefill": {"backend": "piecewise", "bs": [4] * 64}}}, 1.0, id="both-phases"
        ),
        pytest.param({"cuda_graph_config": {"decode": {"backend": "full", "max_bs": 256}, "prefill": {"backend": "disabled"}}}, 0.5, id="decode-only"),
    ],
)
def test_graphs(more, gb):
    assert graphs_gb(candidate(**more)) == gb


@pytest.mark.parametrize(
    "more, total, gb",
    [
        pytest.param({"chunked_prefill_size": -1, "max_prefill_tokens": 16384}, H200_GB, 2.875, id="no-chunks"),
        pytest.param({"chunked_prefill_size": 8192}, H200_GB, 1.9375, id="chunks"),
        pytest.param({"chunked_prefill_size": 8192, "speculative_algorithm": "EAGLE"}, H200_GB, 2.4375, id="with-a-draft"),
        pytest.param({}, 24, 1.234375, id="chunks-of-a-small-gpu"),
        pytest.param({}, A6000_GB, 1.46875, id="chunks-of-an-a6000"),
        pytest.param({}, H200_GB, 1.9375, id="chunks-of-an-h200"),
        pytest.param({}, 180, 2.875, id="chunks-of-a-larger-one"),
    ],
)
def test_activations(more, total, gb):
    server = candidate(**more)
    assert activations_gb(server, server.text_config, Split(1, 1, 1), total) == gb
