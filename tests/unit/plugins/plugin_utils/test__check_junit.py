# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import check_document
from ansible_collections.llmops.inference.plugins.plugin_utils._check_junit import check_junit
from ansible_collections.llmops.inference.tests.unit import check_changes as made


def suite(case):
    root = ElementTree.fromstring(check_junit(check_document(*case)))
    assert root.tag == "testsuites"
    (found,) = root
    return found


def test_one_test_for_each_host():
    found = suite(made.mixed())
    assert found.attrib == {"name": "llmops.inference check", "tests": "6", "failures": "2", "errors": "1", "skipped": "0"}
    assert [(case.get("name"), case.get("classname"), [one.tag for one in case]) for case in found] == [
        ("ct129", "check.rejected", ["failure"]),
        ("ct130", "check.not_honoured", ["failure"]),
        ("ct131", "check.passed", []),
        ("ct132", "check.passed", []),
        ("ct133", "check.unjudged", ["error"]),
        ("ct134", "check.passed", []),
    ]


def test_why_it_fails():
    failure = suite(made.rejected())[0][0]
    assert failure.get("message").startswith("sglang_server_flags.language_only: the engine refuses: ") and failure.get("type") == "rejected"
    assert failure.text == failure.get("message")
    (error,) = next(case for case in suite(made.mixed()) if case.get("name") == "ct133")
    assert error.get("message") == error.text


def test_nothing_changes():
    assert suite((made.changes(), {})).get("tests") == "0"


def test_a_sentence_without_findings():
    changes = made.changes(made.row(made.render(), made.render()))
    assert suite((changes, {"head": {"error": "no engine"}}))[0][0].text == "no engine"


@pytest.mark.parametrize("text, shown", [(made.HOSTILE, "\ufffd"), ("a\x08b\ud800\ufffe", "a\ufffdb\ufffd\ufffd"), ("\U0001f600 \u00e9", "\U0001f600 \u00e9")])
def test_it_is_valid_whatever_a_text_holds(text, shown):
    changes = made.changes(made.row(made.render(), made.render(problems=[text]), text))
    (case,) = suite((changes, {}))
    assert shown in case.get("name") and shown in case[0].text and shown in case[0].get("message")
