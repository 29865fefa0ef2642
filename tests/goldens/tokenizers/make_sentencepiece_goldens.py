#!/usr/bin/env python3
"""Makes sentencepiece/: a tiny model of SentencePiece's BPE with byte fallback,
as Llama 2 has it, the tokenizer.json that transformers makes of one, and what
SentencePiece itself computes with it.

    make_sentencepiece_goldens.py FOLDER

It is trained on the awkward strings and this repository's LICENSE. In ids.json
are a row for each awkward string, with <s> before it, and rows of random ids
with what they decode to.
"""

import io
import json
import pathlib
import random
import sys

import sentencepiece
from tokenizers import Tokenizer

from awkward_strings import STRINGS
from make_small_tokenizer import added_token, tokenizer_json

VOCABULARY = 640
SEED = 20250302
RANDOM_ROWS, RANDOM_IDS = 30, 12
LICENSE = pathlib.Path(__file__).resolve().parents[3] / "LICENSE"
USER_DEFINED = ["<tool_call>", "[INST]"]


def train():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(STRINGS + LICENSE.read_text().splitlines()),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCABULARY,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        user_defined_symbols=USER_DEFINED,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def merges(model, vocabulary):
    """Which two pieces become one, the best first: each way to cut each piece."""
    found = []
    for i in range(model.get_piece_size()):
        if model.is_control(i) or model.is_unknown(i) or model.is_byte(i):
            continue
        piece = model.id_to_piece(i)
        for at in range(1, len(piece)):
            left, right = piece[:at], piece[at:]
            if left in vocabulary and right in vocabulary:
                found.append((-model.get_score(i), vocabulary[left], vocabulary[right], left, right))
    return [[left, right] for *_, left, right in sorted(found)]


def convert(model):
    """Its tokenizer.json."""
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    special = [i for i in range(len(pieces)) if model.is_control(i) or model.is_unknown(i)]
    added = special + [vocabulary[piece] for piece in USER_DEFINED]
    tokens = [added_token(i, pieces[i], i in special) for i in sorted(added)]
    return tokenizer_json(vocabulary, merges(model, vocabulary), tokens)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    model = train()
    converted = convert(model)
    tokenizer = Tokenizer.from_str(json.dumps(converted))
    rows, kept = [], 0
    for text in STRINGS:
        ids = tokenizer.encode(text).ids
        # Texts of its special tokens are none to SentencePiece, and a text goes on behind one.
        if not any(token in text for token in ["<s>", "</s>", "<unk>", *USER_DEFINED]):
            assert ids == [model.bos_id(), *model.encode(text)], text
            assert model.decode(ids) == tokenizer.decode(ids), text
            kept += 1
        rows.append(ids)
    print(f"{kept} of {len(STRINGS)} strings are SentencePiece's own")
    numbers = random.Random(SEED)
    drawn = [[numbers.randrange(VOCABULARY) for _ in range(RANDOM_IDS)] for _ in range(RANDOM_ROWS)]
    random_rows = [{"ids": row, "text": tokenizer.decode(row, skip_special_tokens=False)} for row in drawn]
    config = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCABULARY,
        "bos_token_id": model.bos_id(),
        "eos_token_id": model.eos_id(),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 0,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
    }
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    rest = json.dumps(random_rows, separators=(",", ":"))
    (folder / "ids.json").write_text(f'{{"random":{rest},"ids":[\n{lines}\n]}}\n')
    (folder / "tokenizer.json").write_text(json.dumps(converted, separators=(",", ":")) + "\n")
    (folder / "config.json").write_text(json.dumps(config) + "\n")


if __name__ == "__main__":
    main()
