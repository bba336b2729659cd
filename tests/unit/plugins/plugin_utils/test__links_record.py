# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._links_record import LinksError, brief, is_links, last_links
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import read_host
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

ROOT = Path(__file__).resolve().parents[4]
SCHEMA = json.loads((ROOT / "docs" / "benchmark.schema.json").read_text())
HARDWARE = SCHEMA["properties"]["hardware"]["properties"]["links_measured"]


def row(size, **modes):
    """A message; of each way of calling the microseconds."""
    return {"bytes": size, "phase": "decode", "tokens": 1, **{mode: {"median_us": us, "bus_gb_per_s": round(size / us / 1e3, 2)} for mode, us in modes.items()}}


def links(*messages, **changes):
    found = {
        "format": 1,
        "kind": "links",
        "messages": list(messages) or [row(10240, eager=38.2, graph=12.8, engine=4.1), row(83886080, eager=318.1, graph=303.8)],
    }
    found.update(backend="nccl", ranks=2, transports=["P2P/CUMEM"], unavailable={}, nccl_tests=[], conditions={}, measured_at="2026-11-29T22:32:45Z")
    return {**found, **changes}


def put(folder, content, name="links.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_in_brief():
    found = brief(links())
    assert found["messages"] == [
        {"bytes": 10240, "mode": "engine", "median_us": 4.1, "bus_gb_per_s": 2.5},
        {"bytes": 83886080, "mode": "graph", "median_us": 303.8, "bus_gb_per_s": 276.12},
    ]
    assert found["text"] == "2 ranks (nccl via P2P/CUMEM), 10 KiB in 4.1 us, 80 MiB at 276.1 GB/s, measured 2026-11-29T22:32:45Z"
    assert problems(found, HARDWARE, SCHEMA) == []
    assert brief(links(unavailable={"engine": "no kernels"}))["digest"] != found["digest"]


def test_what_was_measured_on_two_h200(tmp_path):
    """Before a record of links said its kind."""
    put(tmp_path, (ROOT / "tests" / "gpu" / "records" / "h200-x2" / "links.json").read_text())
    found = last_links(tmp_path)
    assert found["text"] == "2 ranks (nccl via P2P/CUMEM), 10 KiB in 4.1 us, 80 MiB at 276.2 GB/s, measured 2026-11-29T22:32:45Z"
    assert problems(found, HARDWARE, SCHEMA) == []


def test_little_was_measured():
    alone = brief(links(row(512, eager=3.0), row(64), transports=[], backend="gloo"))
    assert alone["text"] == "2 ranks (gloo), 512 B in 3.0 us, 512 B at 0.2 GB/s, measured 2026-11-29T22:32:45Z"
    assert brief(links(row(64)))["text"] == "2 ranks (nccl via P2P/CUMEM), measured 2026-11-29T22:32:45Z"


def test_the_newest_counts(tmp_path):
    assert last_links(tmp_path) is None and last_links(tmp_path / "none") is None
    put(tmp_path, links())
    put(tmp_path, links(ranks=4, measured_at="2026-11-30T08:00:00Z"), "links-nodes.json")
    assert last_links(tmp_path)["ranks"] == 4
    put(tmp_path, links(ranks=8, measured_at="2026-12-01T08:00:00Z"))
    assert last_links(tmp_path)["ranks"] == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("{", "links.json is damaged: Expecting property name", id="cut"),
        pytest.param("[" * 100000, "links.json is damaged: ", id="deep"),
        pytest.param([], "links.json is no record of links: write them with the playbook links", id="a-list"),
        pytest.param(links(kind="benchmark"), "links.json is no record of links", id="another-kind"),
        pytest.param(links(format=2), "links.json has format 2, this collection reads records of links of format 1", id="newer"),
        pytest.param(links(messages={}), "links.json is damaged: messages cannot be read", id="messages"),
        pytest.param(links(7), "links.json is damaged: messages cannot be read", id="a-message"),
        pytest.param(links({**row(8), "bytes": None}), "links.json is damaged: messages cannot be read", id="no-size"),
        pytest.param(links({**row(8), "graph": {"median_us": "fast"}}), "links.json is damaged: messages cannot be read", id="no-number"),
        pytest.param(links({**row(8), "graph": 7}), "links.json is damaged: messages cannot be read", id="no-mode"),
        pytest.param(links(transports=None, backend=1), "links.json is damaged: transports, backend cannot be read", id="parts"),
    ],
)
def test_what_cannot_be_read(tmp_path, content, message):
    put(tmp_path, content)
    with pytest.raises(LinksError, match=f"^{tmp_path}/{message}"):
        last_links(tmp_path)


def test_no_record_of_a_benchmark(tmp_path):
    put(tmp_path, links())
    assert read_host(tmp_path).records == {}
    assert is_links(links()) and not is_links({"kind": "links"}) and not is_links([])
