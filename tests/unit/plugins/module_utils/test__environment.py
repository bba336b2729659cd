# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._environment import (
    VariableError,
    keep_loopback_direct,
    merge,
    split_secrets,
    warnings,
)

PROXY = "http://192.0.2.10:3128"
LOOPBACK = "localhost,127.0.0.1,0.0.0.0,::1"


@pytest.mark.parametrize(
    "layers, merged",
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([{"A": "1"}, {"B": "2"}], {"A": "1", "B": "2"}, id="side-by-side"),
        pytest.param([{"A": "1"}, {"A": "2"}, {"A": "3"}], {"A": "3"}, id="later-wins"),
        pytest.param([{"A": "1"}, {"A": None}], {}, id="null-takes-away"),
        pytest.param([{"A": "1"}, {"A": None}, {"A": "3"}], {"A": "3"}, id="set-again"),
        pytest.param([{"A": None}], {}, id="null-of-nothing"),
        pytest.param([{"A": ""}], {"A": ""}, id="empty-is-a-value"),
        pytest.param([{"A": 1, "B": 0.5, "C": 0}], {"A": "1", "B": "0.5", "C": "0"}, id="numbers"),
    ],
)
def test_merge(layers, merged):
    assert merge([(f"layer{n}", values) for n, values in enumerate(layers)]) == merged


@pytest.mark.parametrize(("value", "kind"), [(True, "a boolean"), (False, "a boolean"), (["1"], "a list"), ({"a": 1}, "a mapping")])
def test_merge_refuses_what_is_no_text(value, kind):
    with pytest.raises(VariableError) as caught:
        merge([("sglang_server_model_env", {"A": "1"}), ("sglang_server_env", {"NCCL_DEBUG": value})])
    assert str(caught.value) == (f"sglang_server_env.NCCL_DEBUG: {value!r} is {kind}; an environment variable is text: write it in quotes")


@pytest.mark.parametrize(("name", "secret"), [("HF_TOKEN", False), ("OTHER", True)])
def test_merge_refuses_a_secret_without_showing_it(name, secret):
    """U09"""
    with pytest.raises(VariableError) as caught:
        merge([("sglang_server_env", {name: ["s3cret"]})], secret=secret)
    assert str(caught.value) == f"sglang_server_env.{name}: ******** is a list; an environment variable is text: write it in quotes"


@pytest.mark.parametrize(
    "environment, no_proxy",
    [
        pytest.param({"http_proxy": PROXY}, LOOPBACK, id="N03-no-list"),
        pytest.param({"http_proxy": PROXY, "no_proxy": "example.org"}, f"example.org,{LOOPBACK}", id="N03-a-list"),
        pytest.param({"HTTPS_PROXY": PROXY, "NO_PROXY": "example.org"}, f"example.org,{LOOPBACK}", id="upper-case"),
        pytest.param({"all_proxy": PROXY, "no_proxy": "a", "NO_PROXY": "b,a"}, f"a,b,{LOOPBACK}", id="both-lists"),
        pytest.param({"Http_Proxy": PROXY, "no_proxy": " a , ,127.0.0.1"}, "a,127.0.0.1,localhost,0.0.0.0,::1", id="blanks-and-doubles"),
    ],
)
def test_loopback_never_goes_through_a_proxy(environment, no_proxy):
    """N03"""
    assert keep_loopback_direct(environment) == {**environment, "no_proxy": no_proxy, "NO_PROXY": no_proxy}


def test_the_own_address_never_goes_through_a_proxy():
    """N03"""
    assert keep_loopback_direct({"http_proxy": PROXY}, ["10.0.0.5", "127.0.0.1"])["no_proxy"] == f"{LOOPBACK},10.0.0.5"


@pytest.mark.parametrize("environment", [{}, {"A": "1"}, {"no_proxy": "example.org"}, {"proxy": PROXY}])
def test_without_a_proxy_nothing_is_added(environment):
    assert keep_loopback_direct(environment, ["10.0.0.5"]) == environment


def test_secrets_are_told_apart():
    environment = {"HF_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": "k", "NCCL_DEBUG": "INFO", "SSL_KEY_FILE": "/k", "OTHER": "given", "http_proxy": PROXY}
    plain, secret = split_secrets({**environment, "https_proxy": "http://user:pass@192.0.2.10:3128"}, {"OTHER": "declared", "MORE": "m"})
    assert plain == {"NCCL_DEBUG": "INFO", "SSL_KEY_FILE": "/k", "http_proxy": PROXY}
    assert secret == {
        "HF_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "k",
        "https_proxy": "http://user:pass@192.0.2.10:3128",
        "OTHER": "declared",
        "MORE": "m",
    }


@pytest.mark.parametrize(
    "environment, count",
    [
        pytest.param({"XDG_CACHE_HOME": "/x"}, 1, id="U05-xdg-alone"),
        pytest.param({"XDG_CACHE_HOME": "/x", "FLASHINFER_WORKSPACE_BASE": "/x"}, 0, id="U05-both"),
        pytest.param({}, 0, id="neither"),
    ],
)
def test_warnings(environment, count):
    assert warnings(environment) == ["XDG_CACHE_HOME does not move FlashInfer's workspace: set FLASHINFER_WORKSPACE_BASE as well"] * count
