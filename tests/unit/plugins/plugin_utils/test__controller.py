# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._controller import asker, utc_now


@pytest.fixture(autouse=True)
def fixture_laptop(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")


def test_who_runs_this(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    assert asker() == "alice@laptop"


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no name")])
def test_a_user_without_a_name(monkeypatch, error):
    def nameless():
        raise error

    monkeypatch.setattr("getpass.getuser", nameless)
    assert asker() == f"{os.getuid()}@laptop"


def test_the_time_is_utc_to_the_second():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", utc_now())
