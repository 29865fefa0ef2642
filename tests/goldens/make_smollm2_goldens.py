#!/usr/bin/env python3
"""Makes smollm2_goldens.json: what Hugging Face computes for the default model.

    make_smollm2_goldens.py SmolLM2-135M-Instruct.Q4_1.gguf > smollm2_goldens.json

The Q4_1 weights are dequantized and everything is computed in float32, as in
Lockstep's strict arithmetic. README.md describes the fields.
"""

import hashlib
import json
import pathlib
import sys

import torch
import transformers
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

LIKELIEST = 20
GREEDY_STEPS = 64


def user(text):
    return [{"role": "user", "content": text}]


def ledger(lines):
    """Many similar, yet different lines: a long prompt that needs no file."""
    goods = ("barley", "copper", "salt", "wool", "amber", "tar")
    ports = ("Lübeck", "Riga", "Bergen", "Gdańsk", "Tallinn")
    return "\n".join(
        f"{n:03d}. {n * n * 7 % 911} sacks of {goods[n * 5 % 6]} from "
        f"{ports[n * n % 5]}, paid on day {n * 37 % 365}."
        for n in range(1, lines + 1)
    )


PROMPTS = {
    "raw_france": "The capital of France is",
    "raw_digits": "0, 1, 1, 2, 3, 5, 8, 13, 21,  34,\t55\n\n1024 + 2048 =",
    "raw_code": "#include <vector>\n\nint Sum(const std::vector<int>& v) {\n  int s = 0;\n",
    "raw_unicode": "Ångström, Žižek und 北京 🚲: e\u0301 = é, ½ + ¼ = ",
    "chat_plain": user("Name three colours of the rainbow."),
    "chat_history": [
        {"role": "system", "content": "You are a terse harbour master."},
        {"role": "user", "content": "My boat is called Gudrun."},
        {"role": "assistant", "content": "Noted. Berth seven."},
        {"role": "user", "content": "Which berth is mine, and what is my boat called?"},
    ],
    "chat_unicode": user("Translate 'good night' 🌙 into español, ελληνικά and 日本語."),
    "chat_long": user(ledger(28) + "\n\nWhich port is named most often?"),
}


def load(path):
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    # transformers does not read tokenizer.ggml.pre. Its value here, "smollm",
    # stands for: every digit alone, then GPT-2's rule.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    )
    return tokenizer, model.eval()


def render(tokenizer, prompt):
    if isinstance(prompt, str):
        return prompt
    return tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)


@torch.no_grad()
def golden(tokenizer, model, name, prompt):
    rendered = render(tokenizer, prompt)
    ids = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    cache = transformers.DynamicCache()
    logits = model(torch.tensor([ids]), past_key_values=cache).logits[0, -1]
    likeliest = logits.double().log_softmax(-1).topk(LIKELIEST)
    greedy, margins = [], []
    while len(greedy) < GREEDY_STEPS:
        best = logits.topk(2)
        greedy.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 5))
        logits = model(best.indices[None, :1], past_key_values=cache).logits[0, -1]
    end = greedy.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in greedy else None
    return {
        "name": name,
        "raw" if isinstance(prompt, str) else "messages": prompt,
        "rendered": rendered,
        "ids": ids,
        "top20": [
            [int(i), round(float(p), 5)] for i, p in zip(likeliest.indices, likeliest.values)
        ],
        "greedy": greedy,
        "margin": margins,
        "first_eos": end,
        "text": tokenizer.decode(greedy[:end]),
    }


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(sys.argv[1])
    tokenizer, model = load(path)
    made = {
        "model": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "by": f"transformers {transformers.__version__}, "
        f"torch {torch.__version__.split('+')[0]}, float32",
    }
    lines = []
    for name, prompt in PROMPTS.items():
        entry = golden(tokenizer, model, name, prompt)
        print(f"{name}: {len(entry['ids'])} ids, {entry['text'][:70]!r}", file=sys.stderr)
        lines.append(json.dumps(entry, ensure_ascii=False))
    print(f'{{"made": {json.dumps(made)}, "prompts": [\n' + ",\n".join(lines) + "\n]}")


if __name__ == "__main__":
    main()
