#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a tiny model with random weights: a real safetensors file of a real architecture, so that the engine's loading code is exercised.

Usage: make_tiny_model.py DIRECTORY [--layers N]

Needs nothing but Python. The file format is described in the safetensors documentation, section "Format".
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "inventories" / "sandbox" / "model"


def shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """Tensor names and shapes of Qwen3ForCausalLM."""
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
        "lm_head.weight": (config["vocab_size"], hidden),
    }
    for layer in range(config["num_hidden_layers"]):
        parts = {
            "input_layernorm": (hidden,),
            "post_attention_layernorm": (hidden,),
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, queries),
            "self_attn.q_norm": (head,),
            "self_attn.k_norm": (head,),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
        }
        found.update({f"model.layers.{layer}.{name}.weight": shape for name, shape in parts.items()})
    return found


def bfloat16(values: list[float]) -> bytes:
    """The upper halves of the float32 representations."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def write_weights(config: dict, path: Path) -> None:
    """Writes all tensors: norms as ones, everything else normal with a standard deviation of 0.02 from a fixed seed."""
    source = random.Random(1)
    header, blobs, offset = {}, [], 0
    for name, shape in shapes(config).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        blob = bfloat16([1.0] * count if "norm" in name else [source.gauss(0, 0.02) for _index in range(count)])
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--layers", type=int, default=2)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    config = {**json.loads((SOURCE / "config.json").read_text()), "num_hidden_layers": options.layers}
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(SOURCE / name, options.directory / name)
    write_weights(config, options.directory / "model.safetensors")
    (options.directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")


if __name__ == "__main__":
    main()
