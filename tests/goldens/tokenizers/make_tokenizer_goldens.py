#!/usr/bin/env python3
"""Makes what Hugging Face's tokenizers and transformers compute for the real
tokenizers and chat templates:

    make_tokenizer_goldens.py DATA FOLDER

DATA holds models/*.gguf and tokenizers/NAME/, as ./lockstep test fetches them.
Into FOLDER go ids/NAME.json and chat_goldens.json; README.md describes them.
"""

import json
import pathlib
import random
import sys

import jinja2
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import _compile_jinja_template

from awkward_strings import STRINGS
from conversations import CONVERSATIONS, FEATURES, VALUES

NAMES = ("qwen3", "llama3_1", "gemma3", "deepseek_v3", "gptoss")
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
SEED = 20250301
RANDOM_ROWS, RANDOM_IDS = 30, 12


def open_folder(folder):
    """The tokenizer, its special tokens and its chat template."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokens = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    return tokenizer, tokens, config.get("chat_template")


def open_gguf(path):
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    backend = tokenizer.backend_tokenizer
    # transformers ignores tokenizer.ggml.pre, which is "smollm": every digit
    # is split off before GPT-2's rule.
    backend.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    return backend, tokenizer.special_tokens_map, tokenizer.chat_template


def encoded(tokenizer):
    prefix = tokenizer.encode("", add_special_tokens=True).ids
    rows = []
    for text in STRINGS:
        rows.append(tokenizer.encode(text, add_special_tokens=False).ids)
        whole = tokenizer.encode(text, add_special_tokens=True).ids
        assert whole == prefix + rows[-1], text
    return prefix, rows


def random_rows(tokenizer):
    """Rows of random ids, one in four of them special, most no valid text."""
    numbers = random.Random(SEED)
    added = sorted(tokenizer.get_added_tokens_decoder())
    last = max(tokenizer.get_vocab(with_added_tokens=True).values())
    return [
        [
            numbers.choice(added) if numbers.random() < 0.25
            else numbers.randint(0, last)
            for _ in range(RANDOM_IDS)
        ]
        for _ in range(RANDOM_ROWS)
    ]


def ids_golden(tokenizer):
    def decode(row, skip):
        return tokenizer.decode(row, skip_special_tokens=skip)

    prefix, rows = encoded(tokenizer)
    return {
        "prefix": prefix,
        "ids": rows,
        # Only where it is not the string itself.
        "decoded": {
            n: decode(row, False)
            for n, row in enumerate(rows)
            if decode(row, False) != STRINGS[n]
        },
        "random": [
            {"ids": row, "text": decode(row, False), "skipped": decode(row, True)}
            for row in random_rows(tokenizer)
        ],
    }


def rendered(source, variables):
    """The text, or the words of raise_exception, or that it fails."""
    always = {"tools": None, "documents": None, "add_generation_prompt": False}
    try:
        template = _compile_jinja_template(source)
        return {"text": template.render(**{**always, **variables})}
    except (jinja2.TemplateSyntaxError, jinja2.UndefinedError):
        return {"fails": True}
    except jinja2.TemplateError as error:
        return {"raises": str(error)}
    except (TypeError, AttributeError, ValueError):
        return {"fails": True}


def dump_rows(golden, path):
    """JSON with a line for each row of ids."""
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in golden["ids"])
    rest = {key: value for key, value in golden.items() if key != "ids"}
    text = json.dumps(rest, separators=(",", ":"))
    path.write_text(f'{text[:-1]},"ids":[\n{lines}\n]}}\n')


def main():
    data, folder = map(pathlib.Path, sys.argv[1:])
    (folder / "ids").mkdir(exist_ok=True)
    opened = {name: open_folder(data / "tokenizers" / name) for name in NAMES}
    opened["smollm2"] = open_gguf(data / "models" / MODEL)
    chats = {"values": VALUES, "conversations": CONVERSATIONS, "rendered": {}}
    for name, (tokenizer, tokens, template) in opened.items():
        dump_rows(ids_golden(tokenizer), folder / "ids" / f"{name}.json")
        if template is not None:
            chats["rendered"][name] = {
                title: rendered(template, {**tokens, **context})
                for title, context in CONVERSATIONS.items()
            }
    chats["features"] = [
        {"source": source, **rendered(source, VALUES)} for source in FEATURES
    ]
    with open(folder / "chat_goldens.json", "w") as out:
        json.dump(chats, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
