# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError, parse_unit
from ansible_collections.llmops.inference.plugins.module_utils._unit_options import render_options


@pytest.mark.parametrize(
    "options, lines",
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"PrivateTmp": True}, ["PrivateTmp=yes"], id="U06-private-tmp"),
        pytest.param({"PrivateTmp": False, "Nice": 5}, ["PrivateTmp=no", "Nice=5"], id="bool-and-number"),
        pytest.param({"ReadWritePaths": ["/a", "/b c"]}, ["ReadWritePaths=/a", "ReadWritePaths=/b c"], id="a-line-per-item"),
        pytest.param({"ReadWritePaths": ""}, ["ReadWritePaths="], id="an-empty-value-resets"),
        pytest.param({"SupplementaryGroups": []}, [], id="an-empty-list"),
        pytest.param({"MemoryDenyWriteExecute": False}, ["MemoryDenyWriteExecute=no"], id="U06-mdwe-off"),
        pytest.param({"DevicePolicy": "closed", "DeviceAllow": ["char-nvidia rw"]}, ["DevicePolicy=closed", "DeviceAllow=char-nvidia rw"], id="U06-devices"),
        pytest.param({"PrivateDevices": False}, ["PrivateDevices=no"], id="U06-private-devices-off"),
        pytest.param({"ProtectSystem": "strict"}, ["ProtectSystem=strict"], id="strict-elsewhere"),
        pytest.param({"IPAddressAllow": "any"}, ["IPAddressAllow=any"], id="U06-ip-all-allowed"),
        pytest.param({"DevicePolicy": "auto"}, ["DevicePolicy=auto"], id="U06-devices-open"),
        pytest.param(
            {"RestrictAddressFamilies": ["AF_UNIX", "AF_NETLINK", "AF_INET"]},
            ["RestrictAddressFamilies=AF_UNIX", "RestrictAddressFamilies=AF_NETLINK", "RestrictAddressFamilies=AF_INET"],
            id="U06-families",
        ),
        pytest.param(
            {"IPAddressDeny": "any", "IPAddressAllow": "localhost 10.0.0.0/8"},
            ["IPAddressDeny=any", "IPAddressAllow=localhost 10.0.0.0/8"],
            id="U06-ip",
        ),
        pytest.param({"IPAddressDeny": ["10.0.0.0/8"]}, ["IPAddressDeny=10.0.0.0/8"], id="U06-ip-others"),
    ],
)
def test_render_options(options, lines):
    assert render_options(options, needs_gpu=True) == lines


BREAKS_ALL = [
    pytest.param({"MemoryDenyWriteExecute": True}, "writable and executable", id="U06-mdwe"),
    pytest.param({"MemoryDenyWriteExecute": "Yes"}, "writable and executable", id="U06-mdwe-text"),
    pytest.param({"RestrictAddressFamilies": ["AF_INET", "AF_INET6"]}, "needs AF_UNIX and AF_NETLINK", id="U06-families"),
    pytest.param({"RestrictAddressFamilies": "AF_UNIX AF_INET"}, "needs AF_NETLINK", id="U06-families-text"),
    pytest.param({"IPAddressDeny": "any"}, "IPAddressAllow=localhost", id="U06-ip"),
    pytest.param({"IPAddressDeny": ["any"], "IPAddressAllow": ["10.0.0.0/8"]}, "IPAddressAllow=localhost", id="U06-ip-others-allowed"),
]
BREAKS_GPU = [
    pytest.param({"PrivateDevices": True}, "hides /dev/nvidia", id="U06-private-devices"),
    pytest.param({"PrivateDevices": "on"}, "hides /dev/nvidia", id="U06-private-devices-text"),
    pytest.param({"DevicePolicy": "closed", "DeviceAllow": []}, "device nodes are not allowed", id="U06-closed"),
    pytest.param({"DevicePolicy": "strict"}, "device nodes are not allowed", id="U06-strict"),
]


@pytest.mark.parametrize("options, why", BREAKS_ALL + BREAKS_GPU)
def test_what_breaks_a_gpu_server_is_refused(options, why):
    key, value = next(iter(options.items()))
    with pytest.raises(SystemdError, match=why) as caught:
        render_options(options, needs_gpu=True)
    assert str(caught.value).startswith(f"sglang_server_unit_options.{key}: {value!r} breaks the server: ")


@pytest.mark.parametrize("options, why", BREAKS_ALL)
def test_what_breaks_every_server_is_refused(options, why):
    with pytest.raises(SystemdError, match=why):
        render_options(options, needs_gpu=False)


@pytest.mark.parametrize("options, why", BREAKS_GPU)
def test_a_server_without_a_gpu_needs_no_devices(options, why):
    assert render_options(options, needs_gpu=False)


@pytest.mark.parametrize(
    "key, variable",
    [
        ("ExecStart", "the flags"),
        ("Environment", "sglang_server_env"),
        ("EnvironmentFile", "sglang_server_env"),
        ("User", "sglang_server_user"),
        ("LoadCredential", "sglang_server_secret_flags"),
        ("LimitMEMLOCK", "sglang_server_limit_memlock"),
        ("StartLimitBurst", "sglang_server_start_limit_burst"),
    ],
)
def test_what_a_variable_sets_is_refused(key, variable):
    with pytest.raises(SystemdError, match=rf"^sglang_server_unit_options\.{key}: set {variable} instead$"):
        render_options({key: "x"}, needs_gpu=True)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"Nice": "5\nUser=root"}, id="newline"),
        pytest.param({"ReadWritePaths": ["/a", "/b\nUser=root"]}, id="newline-in-a-list"),
        pytest.param({"Nice\nUser": "root"}, id="newline-in-the-name"),
        pytest.param({"[Install]": "x"}, id="a-section"),
        pytest.param({"": "x"}, id="no-name"),
        pytest.param({"Nice": "5\\"}, id="continuation"),
        pytest.param({"Nice": "5\0"}, id="control-character"),
        pytest.param({"Nice": None}, id="null"),
        pytest.param({"ReadWritePaths": ["/a", None]}, id="null-in-a-list"),
        pytest.param({"ReadWritePaths": {"a": "b"}}, id="mapping"),
    ],
)
def test_what_is_no_line_is_refused(options):
    with pytest.raises(SystemdError, match="is no directive of one line"):
        render_options(options, needs_gpu=True)


def test_the_lines_are_directives_of_a_unit():
    options = {"Nice": 5, "ReadWritePaths": ["/a", "/b"], "PrivateTmp": True}
    unit = parse_unit("[Service]\n" + "\n".join(render_options(options, needs_gpu=True)) + "\nType=exec\n")
    assert unit["Service"] == [("Nice", "5"), ("ReadWritePaths", "/a"), ("ReadWritePaths", "/b"), ("PrivateTmp", "yes"), ("Type", "exec")]
