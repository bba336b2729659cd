# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_figures import clean_cuda_home, higher_fraction, lower_fraction, single_flag

CASES = ("L01", "L02", "L07")
ARGUMENTS = "server_args=ServerArgs(device='cuda', tp_size=2, mem_fraction_static=%s)"
LOADED = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=%s GB, mem usage=%s GB."
NO_POOL = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=%s"
NO_GRAPH = ["Capture cuda graph begin. avail mem=1.98 GB", "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB."]


@pytest.mark.parametrize(
    "after, used, fraction, tp, higher, lower",
    [
        # 47.1 GB are free before the weights; the engine keeps 0.5 + 6 + 2/8 + 0.5 GB free of that.
        pytest.param([11.2], [35.9], 0.7, 2, 0.84, None, id="L01-raise"),
        pytest.param([11.2], [35.9], 0.95, 2, None, 0.84, id="L02-lower"),
        pytest.param([11.2], [35.9], 0.84, 2, None, None, id="it-is-what-the-engine-chooses"),
        pytest.param([8.0], [39.1], 0.7, 2, None, None, id="L01-no-fraction-leaves-a-pool"),
        pytest.param([11.2, 7.9], [35.9, 3.3], 0.7, 2, None, None, id="L01-a-draft-model-takes-the-rest"),
        pytest.param([100.0], [38.0], 0.2, 1, 0.9, None, id="a-large-gpu-keeps-12-GB"),
        pytest.param([], [], 0.7, 2, None, None, id="not-told"),
    ],
)
def test_fractions(after, used, fraction, tp, higher, lower):
    values = {"after_gb": after, "used_gb": used, "mem_fraction_static": fraction, "tp_size": tp}
    assert (higher_fraction(values).get("fraction"), lower_fraction(values).get("fraction")) == (higher, lower)
    assert higher_fraction({**values, "device": "cpu"}) == lower_fraction({**values, "device": "cpu"}) == {}


def test_without_the_fraction_in_force_none_is_proposed():
    values = {"after_gb": [11.2], "used_gb": [35.9]}
    assert higher_fraction(values) == lower_fraction(values) == {}


@pytest.mark.parametrize(
    "lines, remedy",
    [
        pytest.param([ARGUMENTS % 0.7, LOADED % (11.2, 35.9), NO_POOL % 0.7], "sglang_server_flags: {mem_fraction_static: 0.84}", id="L01"),
        pytest.param([ARGUMENTS % 0.7, LOADED % ("8.00", 39.1), NO_POOL % 0.7], "", id="L01-too-large"),
        pytest.param([NO_POOL % 0.7], "", id="L01-nothing-known"),
        pytest.param([ARGUMENTS % 0.95, LOADED % (11.2, 35.9), *NO_GRAPH], "sglang_server_flags: {mem_fraction_static: 0.84}", id="L02"),
        pytest.param([ARGUMENTS % "0.80", LOADED % (11.2, 35.9), *NO_GRAPH], "", id="L02-the-graphs-are-too-many"),
        pytest.param(["error: unrecognized arguments: --enable-x 3"], "sglang_server_flags: {enable_x: null}", id="one-flag"),
        pytest.param(["error: unrecognized arguments: --enable-x --y"], "", id="two-flags"),
        pytest.param(["/bin/sh: 1: :/opt/cuda/bin/nvcc: not found"], "sglang_server_env: {CUDA_HOME: /opt/cuda}", id="L07"),
    ],
)
def test_the_line_of_the_inventory(lines, remedy):
    assert diagnose(lines).remedy == remedy


@pytest.mark.parametrize(
    "function, values, found",
    [
        (single_flag, {"arguments": "--enable-x"}, {"flag": "enable_x"}),
        (single_flag, {"arguments": "--enable_x=1 a b"}, {"flag": "enable_x"}),
        (single_flag, {"arguments": "word"}, {}),
        (single_flag, {}, {}),
        (clean_cuda_home, {"cuda_home": ":/a:"}, {"directory": "/a"}),
        (clean_cuda_home, {"cuda_home": ":/a:/b"}, {}),
        (clean_cuda_home, {"cuda_home": ":"}, {}),
        (clean_cuda_home, {}, {}),
    ],
)
def test_names(function, values, found):
    assert function(values) == found
