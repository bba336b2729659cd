# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The probe of the preflight: what one installed engine makes of an argument vector.

It runs inside the engine's own interpreter, alone: the standard library and the engine, nothing of Ansible. ``_engine_probe_run`` copies these files
to the host's temporary directory and starts ``run.main``. It starts no server, opens no device and asks no network.
"""
