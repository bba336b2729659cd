# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the collection's own plugins known to Ansible also where pytest runs without ansible-test."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

try:
    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.collection_loader import AnsibleCollectionConfig
except ImportError:
    # ansible-test gives tests of modules and module_utils what modules have: no plugins.
    pass
else:
    if AnsibleCollectionConfig.collection_finder is None:
        # Before the configured paths, where an installed build may be.
        init_plugin_loader([entry for entry in sys.path if (Path(entry) / "ansible_collections/llmops/inference").resolve() == ROOT])
