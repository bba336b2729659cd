# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_verdict as verdict
from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import CheckInputError, check_document
from ansible_collections.llmops.inference.tests.unit import check_changes as made
from ansible_collections.llmops.inference.tests.unit.check_changes import changes, render, row


def one(case):
    document = check_document(*case)
    (host,) = document["hosts"]
    return document, host


def test_nothing_differs():
    document = check_document(changes(), {})
    assert (document["verdict"], document["sentence"], document["unchanged"], document["hosts"]) == ("nothing", "", 17, [])
    assert document["base"] == {"ref": "origin/main", "commit": made.BASE} and document["head"] == {"commit": made.HEAD, "dirty": False}


def test_a_flag_that_the_engine_refuses():
    document, host = one(made.rejected())
    assert (document["verdict"], host["verdict"], host["change"]) == ("rejected", "rejected", "changed")
    assert document["sentence"].startswith(
        "1 rejected of the one server that this change touches; ct129: sglang_server_flags.language_only: the engine refuses: "
    )
    assert host["flags"] == [
        {"flag": "language_only", "fields": ["language_only"], "layer": "host", "variable": "sglang_server_flags.language_only", "before": None, "after": True},
    ]
    assert [found["code"] for found in host["findings"]["new"]] == ["engine_rejects"] and host["effective"] == []
    assert "silently_disabled" in [found["code"] for found in host["findings"]["before"]]
    assert document["preflights"] == {"distinct": 2, "cached": 1}


def test_a_flag_that_does_nothing():
    document, host = one(made.not_honoured())
    assert (document["verdict"], host["verdict"]) == ("not honoured", "not honoured")
    (told,) = [found for found in host["outcomes"] if found["outcome"] == "not honoured"]
    assert (told["flag"], told["changed"]) == ("--enable-piecewise-cuda-graph", True) and told["why"]


def test_a_useful_change():
    document, host = one(made.useful())
    assert (document["verdict"], document["sentence"]) == ("passed", "")
    assert host["release"] == {"before": made.BEFORE, "after": made.AFTER}
    assert [found["field"] for found in host["effective"]] == ["max_running_requests", "mem_fraction_static"]
    assert host["memory"]["kv_tokens"] == {"before": 240652, "after": 272000}
    assert "+    --mem-fraction-static 0.9" in host["unit"].split("\n")
    assert host["baseline"]["state"] == "off"


def test_another_engine():
    document, host = one(made.upgrade())
    assert document["verdict"] == "passed" and host["upgrade"]["verdict"] == "rejected"
    assert [host["engine"][side]["version"] for side in ("before", "after")] == ["0.5.16", "0.5.23"]


def test_only_a_secret_changes():
    after = render(secrets={"api_key": "vaulted 99999999"})
    _document, host = one((changes(row(render(), after, requests={"before": None, "after": None})), {}))
    assert (host["verdict"], host["secrets"]) == ("passed", ["api_key: its vaulted value changes"])


def test_a_secret_in_plain_text_is_a_finding():
    plain = {"api_key": "plain text"}
    for before, side, judged in ((render(), "new", "warned"), (render(secrets=plain), "before", "passed")):
        host = one((changes(row(before, render(secrets=plain))), made.answers(head=made.made({"a": 1}))))[1]
        assert host["verdict"] == judged and [found["code"] for found in host["findings"][side]] == ["secret_in_plain_text"]


@pytest.mark.parametrize(
    "after, restarts, judged, words",
    [
        pytest.param({"boot": False}, False, "passed", "1 server changes without a restart", id="boot"),
        pytest.param({"instance": "blue"}, True, "warned", "1 server will be restarted", id="instance"),
    ],
)
def test_what_is_asked_of_the_unit_beside_the_release(after, restarts, judged, words):
    (before, other) = (render(boot=True, instance="main"), render(**{"boot": True, "instance": "main", **after}))
    document, host = one((changes(row(before, other)), made.answers(base=made.made({"a": 1}), head=made.made({"a": 1}))))
    assert [entry["after"] for entry in host["settings"]] == list(after.values())
    assert (host["restarts"], host["verdict"]) == (restarts, judged)
    assert words in verdict.headline(document["hosts"])


def test_a_new_host_and_one_that_goes():
    document = check_document(changes(row(render(), None, "old"), row(None, render(), "new")), made.answers(head=made.made({"a": 1}), base=made.made({"a": 1})))
    new, old = document["hosts"]
    assert (new["change"], new["verdict"], new["release"]["before"], new["engine"]["before"]) == ("new", "passed", None, None)
    assert (old["change"], old["verdict"], old["baseline"], old["release"]["after"]) == ("removed", "passed", None, None)
    assert "this stops nothing" in old["remarks"][0] and new["secrets"] == []


@pytest.mark.parametrize(
    "entry, preflights, sentence",
    [
        pytest.param(row(render(), render(problems=["no snapshot."])), {}, "no snapshot.", id="not-rendered"),
        pytest.param(row(None, None), {}, "neither commit has a release of it.", id="neither"),
        pytest.param(row(render(), render(release="77ab01c4f3e9"), requests={"after": None}), {}, "the engine was not asked about it", id="not-asked"),
        pytest.param(row(render(), render()), {}, "no preflight of it was made", id="no-answer"),
        pytest.param(row(render(), render()), {"head": {"error": "there is no engine 0.5.12"}}, "there is no engine 0.5.12", id="error"),
    ],
)
def test_what_cannot_be_judged(entry, preflights, sentence):
    document, host = one((changes(entry), preflights))
    assert (document["verdict"], host["verdict"], host["sentence"]) == ("unjudged", "unjudged", sentence)
    assert document["sentence"] == f"1 not judged of the one server that this change touches; ct129: {sentence}"


def test_a_base_that_cannot_be_rendered_is_told():
    entry = row(render(problems=["no model."], release=None), render(), requests={"before": None})
    _document, host = one((changes(entry), made.answers(head=made.made({"a": 1}))))
    assert (host["change"], host["verdict"], len(host["flags"])) == ("changed", "passed", 3)
    assert host["remarks"] == ["its release of the base cannot be rendered, so all of it counts as new: no model."]


def test_errors_beside_the_candidate_are_told():
    preflights = {"base": {"error": "x"}, "other": {"error": "y"}, "head": {"preflight": made.made({"a": 1}), "cached": False}}
    _document, host = one((changes(row(render(), render(remarks=["old"]), requests={"upgrade": "other"})), preflights))
    assert host["remarks"] == [
        "old",
        "what the engine makes of the base is not known: x",
        "what the other engine makes of the base is not known: y",
    ]
    assert host["upgrade"] is None and host["verdict"] == "passed"


def test_no_secret_shows():
    after = render({"admin_api_key": ("hunter22", "extra")}, made.AFTER)
    after["release"]["environment"]["HF_TOKEN"] = "hunter22"
    after["release"]["unit"] += "Environment=X=hf_hunter22hunter22\nExecStartPre=/x --api-key hunter22\n"
    answers = made.answers(base=made.made({"api_key": "a"}), head=made.made({"api_key": "hunter22"}))
    assert "hunter22" not in json.dumps(check_document(changes(row(render(), after)), answers))


@pytest.mark.parametrize(
    "changed, preflights, message",
    [
        ({"hosts": None}, {}, r"changes\.hosts must be a list: None"),
        ({"base": "x"}, {}, r"changes\.base must be a dict: 'x'"),
        ({"hosts": [1]}, {}, r"changes\.hosts\[0\] must be a mapping: 1"),
        ({"hosts": [{"host": "a"}]}, {}, r"changes\.hosts\[0\]\.requests must be a dict: None"),
        ({}, {"k": {"cached": True}}, r"preflights\.k must have preflight, a document of sglang_preflight, or error, a sentence: \{'cached': True\}"),
        ({}, {"k": "x" * 200}, r"preflights\.k must have .*x\.\.\.$"),
        ({"unchanged": float("nan")}, {}, "changes is no plain data"),
        ({"remarks": [object()]}, {}, "changes is no plain data"),
    ],
)
def test_wrong_input(changed, preflights, message):
    with pytest.raises(CheckInputError, match=message):
        check_document(changes(**changed), preflights)


def test_no_mapping():
    with pytest.raises(CheckInputError, match="changes must be a mapping"):
        check_document([], {})
