# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Not vLLM: the package name under which SGLang looks for ``_custom_ops`` on a CPU."""
