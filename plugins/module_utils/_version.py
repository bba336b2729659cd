# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The version of this collection, for what is stored: an installed collection has no ``galaxy.yml``."""

from __future__ import annotations

VERSION = "0.1.0"
