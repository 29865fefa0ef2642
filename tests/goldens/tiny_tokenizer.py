#!/usr/bin/env python3
"""Trains the tokenizer of the tiny checkpoints: byte-level BPE, 480 entries, ChatML.

    tiny_tokenizer.py FOLDER      writes tokenizer.json and tokenizer_config.json

Ids 0, 1 and 2 are <|endoftext|>, <|im_start|> and <|im_end|>; the 256 bytes
follow, so any text can be encoded. It is trained on this repository's LICENSE,
which does not change.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 480
PAD, BEGIN, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}"""


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(
        [str(TEXT)],
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=[PAD, BEGIN, END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train()
    assert tokenizer.get_vocab_size() == VOCABULARY
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 512,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
