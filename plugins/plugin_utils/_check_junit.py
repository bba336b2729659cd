# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A check as JUnit's XML, which forges show as a list of tests: one test for each host."""

from __future__ import annotations

import re
import typing as t
from xml.etree import ElementTree

from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import on_one_line
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_verdict as verdict

# XML 1.0, production "Char": nothing else may stand in a document, not even as a reference.
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KIND = {verdict.REJECTED: "failure", verdict.NOT_HONOURED: "failure", verdict.UNJUDGED: "error"}


def check_junit(document: t.Mapping[str, t.Any]) -> bytes:
    """Returns the XML.

    Args:
        document: see ``_check_document``.
    """
    hosts = document["hosts"]
    counts = {kind: sum(1 for host in hosts if _KIND.get(host["verdict"]) == kind) for kind in ("failure", "error")}
    numbers = {"tests": str(len(hosts)), "failures": str(counts["failure"]), "errors": str(counts["error"]), "skipped": "0"}
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": "llmops.inference check", **numbers})
    for host in hosts:
        case = ElementTree.SubElement(suite, "testcase", {"classname": f"check.{host['verdict'].replace(' ', '_')}", "name": _text(host["host"])})
        kind = _KIND.get(host["verdict"])
        if kind:
            found = ElementTree.SubElement(case, kind, {"message": _text(host["sentence"]), "type": host["verdict"]})
            found.text = _text("\n".join(_lines(host)))
    body: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body + b"\n"


def _lines(host: t.Mapping[str, t.Any]) -> list[str]:
    findings = [*host["findings"]["new"], *host["findings"]["before"]]
    return [*host["problems"], *(on_one_line(row) for row in findings if row["severity"] == "error")] or [host["sentence"]]


def _text(value: str) -> str:
    return _NO_CHARACTER.sub("\ufffd", value)
