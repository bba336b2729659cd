# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendered
from ansible_collections.llmops.inference.plugins.plugin_utils._deployed import DeployedError, document, path_of, read, reason
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, as_text
from ansible_collections.llmops.inference.tests.unit import gitops_repository

SECRETS = {"PROXY_PASSWORD": "plain text", "api_key": "vaulted 1a2b3c4d"}
RENDERED = gitops_repository.document()
ID = RENDERED["release"]["id"]


def last(**more):
    return {**document("ct129", ID, "deployed", secrets=SECRETS, boot=True), **more}


def test_what_is_written_is_read(tmp_path):
    found = document("ct129", ID, "deployed", secrets=SECRETS, boot=True, commit=None, dirty=None, at="2026-11-30T10:00:00Z", by="alice@laptop")
    path_of(tmp_path, "ct129").write_text(as_text(found))
    assert read(tmp_path, "ct129") == found and read(tmp_path, "ct130") == {}
    assert as_text(found).endswith("}\n") and list(json.loads(as_text(found))) == sorted(found)


def test_a_host_with_dots(tmp_path):
    assert path_of(tmp_path, "ct129.example.com") == tmp_path / "ct129.example.com.json"


@pytest.mark.parametrize("host", ["a/b", "../a", "", ".a", "a\nb"])
def test_names_that_are_none_of_files(tmp_path, host):
    with pytest.raises(RecordFileError) as raised:
        path_of(tmp_path, host)
    assert repr(host) in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged: "),
        (b"\xff", "is damaged: "),
        (b"[" * 100_000, "is damaged: "),
        (b"[]", "does not say what was deployed"),
        (b"{}", "does not say what was deployed"),
        (json.dumps(last(format=2)).encode(), "does not say what was deployed (format 1)"),
        (json.dumps(last(kind="render")).encode(), "does not say what was deployed"),
        (json.dumps(last(release="")).encode(), "does not say what was deployed"),
        (json.dumps(last(release=3)).encode(), "does not say what was deployed"),
        (json.dumps(last(secrets=["a"])).encode(), "does not say what was deployed"),
    ],
)
def test_a_damaged_file(tmp_path, content, message):
    (tmp_path / "ct129.json").write_bytes(content)
    with pytest.raises(DeployedError) as raised:
        read(tmp_path, "ct129")
    assert message in str(raised.value) and str(raised.value).endswith("without it the host counts as never deployed")


@pytest.mark.parametrize(
    ("rendered", "was", "expected"),
    [
        pytest.param({}, last(), "", id="it-has-what-is-asked-for"),
        pytest.param({}, {}, f"nothing was deployed to it yet: {ID}", id="never"),
        pytest.param({}, last(release="3494591af2ee"), f"3494591af2ee -> {ID}", id="another-release"),
        pytest.param({}, last(secrets={**SECRETS, "api_key": "vaulted ffffffff"}), "a secret changed: api_key", id="another-ciphertext"),
        pytest.param({}, last(secrets={"api_key": "vaulted 1a2b3c4d"}), "a secret changed: PROXY_PASSWORD", id="a-new-secret"),
        pytest.param({}, last(secrets=None), "its secrets were not compared when it was deployed", id="secrets-not-compared"),
        pytest.param({"secret_flags": {}, "secret_environment": {}}, None, "", id="no-secrets-to-compare"),
        pytest.param({"enabled": False}, last(), "it is no longer to start with the machine", id="not-at-boot"),
        pytest.param({}, last(boot=False), "it is to start with the machine", id="at-boot"),
        pytest.param({}, last(boot=None), "", id="boot-not-looked-at"),
        pytest.param({}, {name: value for name, value in last().items() if name != "boot"}, "", id="a-file-without-boot"),
        pytest.param({"gate": {}}, last(), "", id="the-gate"),
    ],
)
def test_why_a_host_is_deployed(rendered, was, expected):
    asked = gitops_repository.document(**rendered)
    assert reason(asked, last(release=asked["release"]["id"], secrets=None) if was is None else was) == expected


def test_a_host_that_cannot_be_rendered():
    found = _rendered.unrendered("ct129", "its snapshot is gone")
    assert reason(found, last()) == "its release could not be rendered here: its snapshot is gone"


def test_a_draw_of_two_merges():
    """Between two deployments main may have moved on by several merges: each host is compared with its own last release."""
    assert [bool(reason(gitops_repository.document(argv=[str(number)]), last())) for number in range(3)] == [True] * 3
