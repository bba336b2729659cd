#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model without weights, of the shape of an 8B one (for load_format dummy): its configuration, and a tokenizer that tells prompts apart.

benchmark_model.py FOLDER

A word like "w4711" is the token of that number, so that token ids at random come back as they were sent. Other text is a token for each character: two
different prompts are different ones for the prefix cache as well.
"""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

VOCABULARY = 151936
SPECIAL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
CHARACTERS = sorted(string.digits + string.ascii_letters + string.punctuation)
TEMPLATE = (
    "{% for message in messages %}<|im_start|> {{ message['role'] }} {{ message['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}"
)
CONFIGURATION = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "torch_dtype": "bfloat16",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": VOCABULARY,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "rope_scaling": None,
    "max_position_embeddings": 40960,
    "max_window_layers": 36,
    "use_sliding_window": False,
    "sliding_window": None,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "initializer_range": 0.02,
    "use_cache": True,
    "bos_token_id": SPECIAL["<|endoftext|>"],
    "eos_token_id": SPECIAL["<|im_end|>"],
}
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "model_max_length": 131072,
    "clean_up_tokenization_spaces": False,
    "chat_template": TEMPLATE,
}


def tokenizer() -> Tokenizer:
    """Returns the tokenizer: whole words where the vocabulary has them, single characters otherwise; decoded tokens have spaces between them."""
    special = {number: word for word, number in SPECIAL.items()}
    vocabulary = {special.get(number, f"w{number}"): number for number in range(len(CHARACTERS), VOCABULARY)}
    vocabulary.update({character: number for number, character in enumerate(CHARACTERS)})
    found = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=f"w{len(CHARACTERS)}", ignore_merges=True))
    found.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIGURATION, indent=1))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER, indent=1))
    tokenizer().save(str(folder / "tokenizer.json"))
    for path in (folder, *folder.iterdir()):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o644))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
