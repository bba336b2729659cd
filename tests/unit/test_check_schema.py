# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The published schema of checks: what the code makes fits it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import FORMAT, check_document
from ansible_collections.llmops.inference.tests.unit import check_changes as made
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs" / "check.schema.json").read_text())
CASES = {
    "nothing": (made.changes(), {}),
    **{name: getattr(made, name)() for name in ("rejected", "not_honoured", "useful", "upgrade", "hostile", "mixed")},
}


def test_the_version_of_the_schema_is_that_of_the_code():
    assert SCHEMA["properties"]["format"] == {"const": FORMAT} and f"format {FORMAT}" in SCHEMA["title"]


@pytest.mark.parametrize("name", CASES)
def test_documents_fit(name):
    assert problems(json.loads(json.dumps(check_document(*CASES[name]))), SCHEMA, path="check") == []


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_nothing_may_be_missing(key):
    document = check_document(*CASES["mixed"])
    del document[key]
    assert problems(document, SCHEMA, path="check") == [f"check has no {key}"]


@pytest.mark.parametrize("changed", [{"verdict": "fine"}, {"unchanged": -1}, {"hosts": [{}]}, {"head": {"commit": "x", "dirty": False}}, {"more": 1}])
def test_what_does_not_fit(changed):
    assert problems({**check_document(*CASES["mixed"]), **changed}, SCHEMA, path="check")


def test_it_says_all_that_a_document_may_hold():
    document = check_document(*CASES["mixed"])
    assert set(SCHEMA["properties"]) == set(SCHEMA["required"]) == set(document)
    assert set(SCHEMA["$defs"]["host"]["properties"]) == set(document["hosts"][0])


def test_the_checker_agrees_with_a_whole_one():
    jsonschema = pytest.importorskip("jsonschema")
    whole = jsonschema.Draft202012Validator(SCHEMA)
    whole.check_schema(SCHEMA)
    assert all(whole.is_valid(json.loads(json.dumps(check_document(*case)))) for case in CASES.values())
