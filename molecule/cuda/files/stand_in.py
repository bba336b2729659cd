# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays recorded commands: the record whose first line is this call answers; its last line is the status."""

from __future__ import annotations

import os
import sys
from pathlib import Path

RECORDS = Path("/srv/stand-in/commands")

call = " ".join(["$", os.path.basename(sys.argv[0]), *sys.argv[1:]])
for path in sorted(RECORDS.iterdir()):
    first, _newline, rest = path.read_text().partition("\n")
    if first == call:
        text, _mark, status = rest.rpartition("rc=")
        sys.stdout.write(text)
        sys.exit(int(status))
sys.exit(f"stand-in: there is no record of {call}")
