# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for the CUDA-only parts a stock SGLang wheel imports on a machine without an accelerator."""
