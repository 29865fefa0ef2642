#!/usr/bin/env python3
"""Writes small/: a tokenizer as Llama 2 has it, with 285 entries, for tests
that need no download. Byte fallback, "\u2581" for a space, one space put before
the text and taken off again.

    make_small_tokenizer.py small
"""

import json
import pathlib
import sys

SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LETTERS = list("\u2581etaoinshrdlu")
MERGES = [
    "\u2581 t", "h e", "\u2581t he", "i n", "a n", "\u2581 a", "\u2581a n",
    "o n", "e r", "\u2581 \u2581", "\u2581\u2581 \u2581\u2581",
]
# Special for a model, but not to be skipped: as tool calls are.
USER_DEFINED = ["<tool_call>", "\u00e9t\u00e9"]

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role not in ('system', 'user', 'assistant') %}"
    "{{ raise_exception('unknown role ' + message.role) }}{% endif %}"
    "[{{ message.role }}] {{ message.content | trim }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def added_token(number, content, special):
    return {
        "id": number, "content": content, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False, "special": special,
    }


def tokenizer_json(vocabulary, merges, added_tokens):
    """As transformers makes it of one of SentencePiece's BPE with byte fallback."""
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    return {
        "version": "1.0",
        "added_tokens": added_tokens,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, space],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [bos, text],
            "pair": [bos, text],
            "special_tokens": {
                "<s>": {"id": "<s>", "ids": [vocabulary["<s>"]], "tokens": ["<s>"]}
            },
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": True,
            "byte_fallback": True, "vocab": vocabulary, "merges": merges,
        },
    }


def tokenizer():
    entries = SPECIAL + BYTES + LETTERS
    entries += [merge.replace(" ", "") for merge in MERGES] + USER_DEFINED
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    assert len(vocabulary) == len(entries)
    added = [
        added_token(vocabulary[entry], entry, entry in SPECIAL)
        for entry in SPECIAL + USER_DEFINED
    ]
    return tokenizer_json(vocabulary, MERGES, added)


CONFIG = {
    "bos_token": {"content": "<s>", "lstrip": False},
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": None,
    "add_bos_token": True,
    "chat_template": [
        {"name": "other", "template": "other"},
        {"name": "default", "template": CHAT_TEMPLATE},
    ],
}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=0) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    write(folder / "tokenizer.json", tokenizer())
    write(folder / "tokenizer_config.json", CONFIG)


if __name__ == "__main__":
    main()
