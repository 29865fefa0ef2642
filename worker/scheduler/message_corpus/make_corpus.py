#!/usr/bin/env python3
"""Writes the seeds of scheduler_fuzz_test into this folder, with protoc."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
STEP = b"\0"


def message(text):
    encode = ["protoc", "--encode=lockstep.v1.RankMessage", "proto/group.proto"]
    done = subprocess.run(encode, input=text.encode(), stdout=subprocess.PIPE, cwd=ROOT, check=True)
    return bytes([len(done.stdout)]) + done.stdout


def add(number, prompt, sampling, more=""):
    ids = "".join(f"prompt_token_ids: {i} " for i in prompt)
    return message(f"add {{ request: {number} {ids} sampling {{ {sampling} }} {more} }}")


def abort(number, choices=()):
    chosen = "".join(f"choices: {choice} " for choice in choices)
    return message(f"abort {{ request: {number} {chosen} cause: DEADLINE }}")


PROMPT = range(1, 11)
SEEDS = {
    "one": add(1, PROMPT, "n: 1 max_tokens: 5") + STEP * 3,
    "shared": add(1, PROMPT, "n: 3 max_tokens: 30") + STEP * 2 + add(2, PROMPT, "n: 1 max_tokens: 9") + STEP,
    "priorities": add(1, PROMPT, "n: 1 max_tokens: 30", "priority: 100") + STEP
    + add(2, range(30, 55), "n: 1 max_tokens: 9", "priority: -100 bypass_prefix_cache: true") + STEP * 4,
    "aborts": add(1, PROMPT, "n: 2 max_tokens: 30") + abort(1, [1]) + STEP * 3 + abort(1) + abort(7) + STEP,
    "choices_resumed": add(1, PROMPT, "n: 3 max_tokens: 5", "resume_token_ids: [8, 9, 7] resume_token_counts: [1, 0, 2] ended_choices: 1") + STEP,
    "resumed": add(1, PROMPT, "n: 1 max_tokens: 5 stop_token_ids: 7", "resume_token_ids: 8 resume_token_ids: 9") + STEP,
    "logprobs": add(1, PROMPT, "n: 1 max_tokens: 4 logprobs_plus_one: 3 prompt_logprobs_plus_one: 1") + STEP * 5,
    "stop": message("stop {}") + STEP,
}

for name, data in SEEDS.items():
    (HERE / f"{name}.messages").write_bytes(data)
