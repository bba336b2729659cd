# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotary position embedding (Su et al., 2021, arXiv:2104.09864) in plain torch, under the signature SGLang calls."""

from __future__ import annotations

import torch


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, is_neox: bool) -> torch.Tensor:
    """Rotates pairs of components: halves of the head (NeoX layout) or neighbours (GPT-J layout)."""
    if is_neox:
        first, second = heads.chunk(2, dim=-1)
    else:
        first, second = heads[..., ::2], heads[..., 1::2]
    rotated = (first * cos - second * sin, second * cos + first * sin)
    return torch.cat(rotated, dim=-1) if is_neox else torch.stack(rotated, dim=-1).flatten(-2)


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> None:
    """Rotates query and key in place.

    Args:
        positions: token positions, any shape, as many as there are tokens.
        query: ``[tokens, heads * head_size]`` (or already split into heads).
        key: the same with the KV heads, or None.
        head_size: components per head.
        cos_sin_cache: ``[max_position, rotary_dim]``, cosines in the first half, sines in the second.
        is_neox: layout of the rotated pairs.
    """
    rotary_dim = cos_sin_cache.shape[-1]
    cos, sin = cos_sin_cache.index_select(0, positions.flatten().long()).float().unsqueeze(1).chunk(2, dim=-1)
    for states in (query, key):
        if states is None:
            continue
        heads = states.view(positions.numel(), -1, head_size)
        rotated = _rotate(heads[..., :rotary_dim].float(), cos, sin, is_neox)
        heads[..., :rotary_dim] = rotated.to(states.dtype)
