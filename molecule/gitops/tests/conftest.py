# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The generated repository with three hosts, and its forge."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from forge import FILES, Site


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The generated repository with three hosts, pushed."""
    made = Site(tmp_path_factory.mktemp("gitops"), Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "site")
    inventory = made.work / "inventory"
    shutil.copy(FILES / "hosts.yml", inventory / "hosts.yml")
    (inventory / "group_vars" / "cpu").mkdir()
    shutil.copy(FILES / "cpu.yml", inventory / "group_vars" / "cpu" / "sglang.yml")
    return made
