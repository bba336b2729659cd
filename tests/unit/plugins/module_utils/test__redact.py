# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._redact import MASK, holds_password, is_secret_variable, redact, redact_data, redact_environment

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"


@pytest.mark.parametrize(
    "text, shown",
    [
        pytest.param(
            "server_args=ServerArgs(model_path='/m', api_key='s3cret', port=30000)",
            f"server_args=ServerArgs(model_path='/m', api_key='{MASK}', port=30000)",
            id="U09-server-args",
        ),
        pytest.param("server_args={'api_key': 's3cret', 'port': 1}", f"server_args={{'api_key': '{MASK}', 'port': 1}}", id="U09-server-args-dict"),
        pytest.param("admin_api_key='s3', ssl_keyfile_password='t4'", f"admin_api_key='{MASK}', ssl_keyfile_password='{MASK}'", id="other-fields"),
        pytest.param("api_key=None, admin_api_key=None, port=1", "api_key=None, admin_api_key=None, port=1", id="no-secret"),
        pytest.param("api_key='None1', a='b'", f"api_key='{MASK}', a='b'", id="secret-begins-like-none"),
        pytest.param("api_key='a\\'b\"c', a='b'", f"api_key='{MASK}', a='b'", id="quotes-in-the-secret"),
        pytest.param("api_key=\"a'b\", a='b'", f"api_key=\"{MASK}\", a='b'", id="apostrophe-in-the-secret"),
        pytest.param('{"api_key": "k 1", "port": 2}', f'{{"api_key": "{MASK}", "port": 2}}', id="json"),
        pytest.param("sglang serve --api-key s3cret --port 1", f"sglang serve --api-key {MASK} --port 1", id="command-line"),
        pytest.param("--api-key=s3cret --port 1", f"--api-key={MASK} --port 1", id="command-line-equals"),
        pytest.param("--api-key 's3 cret' --port 1", f"--api-key '{MASK}' --port 1", id="command-line-quoted"),
        pytest.param("--admin-api-key s3cret --ssl-keyfile-password pw", f"--admin-api-key {MASK} --ssl-keyfile-password {MASK}", id="longer-names"),
        pytest.param("['--api-key', 's3cret', '--port', '1']", f"['--api-key', '{MASK}', '--port', '1']", id="argv"),
        pytest.param("Authorization: Bearer abc.DEF-1/2+3=", f"Authorization: Bearer {MASK}", id="header"),
        pytest.param("token hf_AbCdEfGhIjKl was refused", f"token {MASK} was refused", id="hub-token"),
        pytest.param("HF_TOKEN='x'", f"HF_TOKEN='{MASK}'", id="hub-variable"),
        pytest.param("proxy http://user:p%40s@192.0.2.1:3128/x", f"proxy http://user:{MASK}@192.0.2.1:3128/x", id="password-in-a-url"),
        pytest.param("http://:p@s:w'o@proxy, http://b", f"http://:{MASK}@proxy, http://b", id="odd-password-in-a-url"),
        pytest.param("http://[::1]:1/a@b tcp://h:1 a@b, git@h:/x", "http://[::1]:1/a@b tcp://h:1 a@b, git@h:/x", id="URLs-without-a-password"),
        pytest.param("max_new_tokens=4, monkey='see', hf_model", "max_new_tokens=4, monkey='see', hf_model", id="nothing-alike"),
    ],
)
def test_redact_by_pattern(text, shown):
    assert redact(text) == shown


@pytest.mark.parametrize(
    "secrets, shown",
    [
        pytest.param(["s3cret"], f"x {MASK} y {MASK}z", id="known"),
        pytest.param(["s3cret", "s3cretz"], f"x {MASK} y {MASK}", id="longest-first"),
        pytest.param(["y s3"], f"x s3cret {MASK}cretz", id="four-characters"),
        pytest.param(["x", "y", "ret", ""], "x s3cret y s3cretz", id="too-short"),
        pytest.param([], "x s3cret y s3cretz", id="none"),
    ],
)
def test_redact_known_secrets(secrets, shown):
    assert redact("x s3cret y s3cretz", secrets) == shown


def test_known_secrets_with_special_characters():
    assert redact("a [.*]( b", ["[.*]("]) == f"a {MASK} b"


def test_a_real_log_line():
    line = next(line for line in (LOGS / "cpu-0.5.23.log").read_text().splitlines() if "server_args=" in line)
    assert "'api_key': 'not-a-real-key'" in line
    assert redact(line) == line.replace("not-a-real-key", MASK)


def test_long_lines_cost_nothing():
    for text in ("-" * 40000, "a" * 40000, "api_key='" * 3000, "--a-" * 10000, "://a:" * 8000, f"://{'a' * 40000}"):
        assert len(redact(text)) >= 40000 * 0.6


def test_redact_data():
    data = {
        "api_key": "k",
        "admin-api-key": "k",
        "API_KEY": 7,
        "ssl_keyfile_password": None,
        "secrets": ["api_key"],
        "nested": [{"hf_token": "t", "line": "api_key='k' and s3cret"}, ("s3cret", 1, 2.5, True, None)],
    }
    assert redact_data(data, iter(["s3cret"])) == {
        "api_key": MASK,
        "admin-api-key": MASK,
        "API_KEY": MASK,
        "ssl_keyfile_password": None,
        "secrets": ["api_key"],
        "nested": [{"hf_token": MASK, "line": f"api_key='{MASK}' and {MASK}"}, [MASK, 1, 2.5, True, None]],
    }
    assert data["api_key"] == "k", "the original stays"


@pytest.mark.parametrize(
    "name, secret",
    [
        ("HF_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("SGLANG_API_KEY", True),
        ("DB_PASSWORD", True),
        ("token", True),
        ("GOOGLE_CREDENTIALS", True),
        ("HF_TOKEN_PATH", False),
        ("SSL_KEY_FILE", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("SGLANG_MAX_NEW_TOKENS", False),
        ("MONKEY", False),
        ("NCCL_P2P_LEVEL", False),
    ],
)
def test_is_secret_variable(name, secret):
    assert is_secret_variable(name) is secret


@pytest.mark.parametrize(
    "value, secret",
    [("http://u:p@h:3128", True), ("http://u@h:3128", False), ("http://h:3128", False), ("u:p@h", False), ("", False)],
)
def test_holds_password(value, secret):
    assert holds_password(value) is secret


@pytest.mark.parametrize(
    "environment, masked",
    [
        ({}, {}),
        ({"NCCL_DEBUG": "INFO", "NCCL_IB_DISABLE": 1}, {"NCCL_DEBUG": "INFO", "NCCL_IB_DISABLE": "1"}),
        ({"HF_TOKEN": "t", "AWS_SECRET_ACCESS_KEY": ""}, {"HF_TOKEN": MASK, "AWS_SECRET_ACCESS_KEY": MASK}),
        ({"HF_TOKEN_PATH": "/t", "ARGUMENTS": "--api-key s3cret --port 1"}, {"HF_TOKEN_PATH": "/t", "ARGUMENTS": f"--api-key {MASK} --port 1"}),
        ({"URL": "hf_abcdefghijkl"}, {"URL": MASK}),
        ({"https_proxy": "http://u:p@h"}, {"https_proxy": f"http://u:{MASK}@h"}),
    ],
)
def test_redact_environment(environment, masked):
    """U09"""
    before = dict(environment)
    assert redact_environment(environment) == masked and environment == before
