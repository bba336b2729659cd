# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._drift_report import MARKER, document, markdown, sentences, verdict

AT = "2026-11-30T14:30:00Z"
COMMIT = {"commit": "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "dirty": False}


def entry(host="ct129", status="same", *found, **more):
    findings = [{"kind": kind, "text": text, "hint": hint, "repairable": repairable} for kind, text, hint, repairable in found]
    repairable = any(one["repairable"] for one in findings)
    base = {"host": host, "status": status, "asked": "3494591af2ee", "there": "3494591af2ee", "findings": findings, "remarks": []}
    return {**base, "repairable": repairable, "repaired": [], "repair": {}, **more}


STOPPED = ("server", "the server is not running", "", True)
RECORD = ("records", "there is no record", "ansible-playbook llmops.inference.benchmark -l ct129", False)


def test_no_drift():
    report = document([entry("b"), entry("a")], COMMIT, AT)
    assert [one["host"] for one in report["hosts"]] == ["a", "b"]
    assert (report["format"], report["kind"], report["at"], report["inventory"]) == (1, "drift", AT, COMMIT)
    text = markdown(report)
    assert text.startswith(f"{MARKER}\n# Drift: no drift: 2 hosts are what the inventory says\n\nCommit `1c34fe0f2c0a`; looked at {AT}.\n")
    assert "| a | same | `3494591af2ee` | `3494591af2ee` | 0 | 0 |" in text and "##" not in text


@pytest.mark.parametrize(
    "statuses, told",
    [
        (["same"], "no drift: 1 host is what the inventory says"),
        (["drift", "same", "same"], "1 host of 3 differs from the inventory"),
        (["drift", "drift"], "2 hosts of 2 differ from the inventory"),
        (["unreachable", "same"], "1 host could not be reached"),
        (["drift", "unreachable", "not judged"], "1 host of 3 differs from the inventory, 1 host could not be reached, 1 host could not be judged"),
        (["repaired", "repaired"], "2 hosts differed and are repaired"),
        (["repaired"], "1 host differed and is repaired"),
        ([], "no drift: 0 hosts are what the inventory says"),
    ],
)
def test_verdict(statuses, told):
    assert verdict(document([entry(f"h{i}", status) for i, status in enumerate(statuses)], COMMIT, AT)["counts"]) == told


def test_what_is_worst_comes_first():
    statuses = ["same", "repaired", "drift", "not judged", "unreachable"]
    report = document([entry(status, status) for status in statuses], COMMIT, AT)
    assert [one["status"] for one in report["hosts"]] == statuses[::-1]


def test_a_host_that_differs():
    text = markdown(document([entry("ct129", "drift", STOPPED, RECORD)], {"commit": None, "dirty": None}, AT))
    assert "An inventory without a commit; looked at" in text
    assert "| ct129 | **drift** | `3494591af2ee` | `3494591af2ee` | 2 | 0 |" in text
    assert "\n## ct129: drift\n\n- **server**: the server is not running\n- **records**: there is no record. Run: ansible-playbook llmops.inference" in text
    assert text.endswith("of the server or the engine: `ansible-playbook llmops.inference.deploy -l ct129`\n")


def test_nothing_of_a_host_becomes_structure():
    evil = ("host", "the host cannot be reached: | <img src=x> [a](http://b)\n# no", "look | again", False)
    text = markdown(document([entry("h", "unreachable", evil, asked="", there="")], COMMIT, AT))
    assert "<img" not in text and "](" not in text and "\n# no" not in text and "| - | - | 1 | 0 |" in text


def test_uncommitted_changes():
    assert "with changes that are not committed" in markdown(document([], {"commit": "a" * 40, "dirty": True}, AT))


@pytest.mark.parametrize(
    "repair, told",
    [
        ({"action": "repaired", "restarted": False, "msg": ""}, "Repaired, and the server was not restarted:\n\n- a drop-in\n"),
        ({"action": "deployed", "restarted": True, "msg": ""}, "Repaired, and the server was restarted:\n\n- a drop-in\n"),
        ({"action": "failed", "restarted": None, "msg": "it died"}, "The repair failed: it died\n"),
    ],
)
def test_a_repair(repair, told):
    repaired = [] if repair["msg"] else ["a drop-in"]
    text = markdown(document([entry("ct129", "drift" if repair["msg"] else "repaired", repair=repair, repaired=repaired)], COMMIT, AT))
    assert told in text and "\n\n\n" not in text


def test_a_repair_that_did_nothing():
    one = entry("ct129", "drift", RECORD, repair={"action": "unchanged", "restarted": False, "msg": ""})
    assert markdown(document([one], COMMIT, AT)).endswith("\n\nA deployment (unchanged) repaired nothing.\n")


@pytest.mark.parametrize(
    "one, told",
    [
        (entry(), ""),
        (entry("a", "repaired", repair={"action": "started", "restarted": True, "msg": ""}), ""),
        (entry("a", "drift", STOPPED, RECORD), "the server is not running; there is no record"),
        (entry("a", "drift", STOPPED, repair={"action": "failed", "restarted": None, "msg": "no"}), "the server is not running; the repair failed: no"),
    ],
)
def test_sentences(one, told):
    assert sentences(one) == told
