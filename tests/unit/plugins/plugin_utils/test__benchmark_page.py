# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page import page, summary
from ansible_collections.llmops.inference.tests.unit.report_records import ATTACK, by_host, hostile, record

RECORDS = [record(1), record(2, rates={1: 60.0}), record(3, rates={1: 50.0})]


class Reader(HTMLParser):
    """Elements with their attributes, and the texts of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self._inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag == "script"

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts.append(data)


@pytest.fixture(scope="module", name="text")
def make_text():
    return page(by_host(RECORDS), {}, ["x.json: damaged"])


def test_the_page_is_one_file(text):
    elements = Reader(text).elements
    assert not [(tag, found) for tag, found in elements if {"src", "srcset", "style"} & found.keys() or any(name.startswith("on") for name in found)]
    assert not [tag for tag, _found in elements if tag in ("link", "img", "iframe", "object", "embed", "base", "form")]
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg|https://www\.gnu\.org/licenses/gpl-3\.0\.txt|http-equiv", "", text)
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [found for tag, found in elements if tag == "meta"]


def test_a_policy_lets_nothing_else_run(text):
    (policy,) = [found["content"] for tag, found in Reader(text).elements if found.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


def test_the_same_records_give_the_same_page(text):
    assert page(by_host(reversed(RECORDS)), {}, ["x.json: damaged"]) == text
    assert page(by_host(RECORDS[:2]), {}) != text


@pytest.mark.parametrize("attack", [ATTACK, "<!--<script>", "]]>", "@SCRIPT@ @DATA@", "\u2028\u2029", "&lt;/script&gt;"])
def test_texts_of_records_stay_texts(text, attack):
    made = hostile(attack)
    made["host"] = made["workload"]["name"] = attack
    attacked = page({**by_host(RECORDS), attack: {f"{attack}.json": made}}, {}, [attack])
    read, calm = Reader(attacked), Reader(text)
    assert [element for element in read.elements if element[0] != "meta"] == [element for element in calm.elements if element[0] != "meta"]
    assert len(read.scripts) == 2 and read.scripts[1] == calm.scripts[1]
    assert "<" not in read.scripts[0] and ">" not in read.scripts[0]
    shown = " ".join(attack.split())
    assert [one for one in json.loads(read.scripts[0])["records"] if shown in one["model"]] or not shown


def test_a_summary_has_a_line_for_each_record(text):
    lines = summary(text)
    assert lines[:3] == [
        "ct129/20261101T101500Z-decode-3494591af2ee, 55.5 tok/s, no record before",
        "ct129/20261102T101500Z-decode-3494591af2ee, 59.9 tok/s, faster",
        "ct129/20261103T101500Z-decode-3494591af2ee, 50.1 tok/s, slower",
    ]
    assert re.fullmatch("page [0-9a-f]{12}", lines[3]) and len(lines) == 4


@pytest.mark.parametrize(
    "text", ["", "<html>", '<script type="application/json" id="data">{"records": [{}]}</script>', '<script type="application/json" id="data">x</script>']
)
def test_a_summary_of_something_else(text):
    assert [line.split()[0] for line in summary(text)] == (["page"] if text else [])
