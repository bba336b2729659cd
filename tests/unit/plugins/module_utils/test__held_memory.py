# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._held_memory import blame_holder

POOL = Diagnosis("kv_pool_too_small", "the weights leave no memory for the KV cache", hint="raise it", where="release", remedy="x: 1")


def free(**ranks):
    return {"ranks": {rank: {"available_gb": {"before_weights": gb}} for rank, gb in ranks.items()}}


def test_the_holder_is_blamed():
    found = blame_holder(POOL, free(TP0=4.6), free(TP0=138.9))
    assert (found.code, found.where, found.certainty, found.remedy) == ("gpu_busy", "host", "suspected", "")
    assert found.cause == (
        "something else held 134.3 GB of the GPU of rank TP0: 4.6 GB were free before the weights were loaded, 138.9 GB at the last good start; "
        "so the weights leave no memory for the KV cache"
    )
    assert found.captured == {"free_gb": 4.6, "free_at_last_good_start_gb": 138.9}


def test_the_shortest_rank_is_named():
    assert "rank TP1" in blame_holder(POOL, free(TP0=100.0, TP1=50.0), free(TP0=138.9, TP1=138.9)).cause


@pytest.mark.parametrize(
    "diagnosis, vitals, good",
    [
        pytest.param(POOL, free(TP0=138.2), free(TP0=138.9), id="as-free-as-before"),
        pytest.param(POOL, free(TP0=126.0), free(TP0=138.9), id="a-little-less"),
        pytest.param(POOL, free(TP0=4.6), {}, id="no-good-start"),
        pytest.param(POOL, {}, free(TP0=138.9), id="it-did-not-come-so-far"),
        pytest.param(POOL, free(TP1=4.6), free(TP0=138.9), id="other-ranks"),
        pytest.param(POOL, {"ranks": {"TP0": {}}}, free(TP0=138.9), id="nothing-logged"),
        pytest.param(replace(POOL, code="exception"), free(TP0=4.6), free(TP0=138.9), id="another-cause"),
        pytest.param(replace(POOL, where="host"), free(TP0=4.6), free(TP0=138.9), id="the-host-already"),
    ],
)
def test_nobody_is_blamed(diagnosis, vitals, good):
    assert blame_holder(diagnosis, vitals, good) == diagnosis
