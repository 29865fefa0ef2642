#!/usr/bin/env python3
"""Writes the seeds of request_validator_fuzz_test into this folder, with protoc."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

SEEDS = {
    "plain": "prompt_token_ids: [1, 2, 3]",
    "all": """request_id: "a.b-c_1" prompt_token_ids: [1, 2, 3] resume_token_ids: [4] priority: -7
        bypass_prefix_cache: true sampling { temperature: 0.5 top_k: 40 top_p: 0.9 min_p: 0.1
        repetition_penalty: 1.1 presence_penalty: -1 frequency_penalty: 1 seed: 9 max_tokens: 20
        min_tokens: 2 stop_token_ids: [5, 6] ignore_eos: true logit_bias { key: 8 value: -3 } n: 1
        logprobs: 2 prompt_logprobs: 0 }""",
    "choices": "prompt_token_ids: 1 sampling { n: 16 max_tokens: 63 }",
    "resumed": """prompt_token_ids: 1 resume_token_ids: [3, 4, 5] resume_token_counts: [2, 0, 1]
        ended_choices: 1 sampling { n: 3 max_tokens: 9 }""",
    "embedding": "prompt_token_ids: [1, 2] embedding { pooling: MEAN normalize: false dimensions: 4 }",
    "nan": "prompt_token_ids: 1 sampling { temperature: nan top_p: inf }",
}
ABORTS = {"abort": 'request_ids: "a" choices: [0, 3]'}


def write(message, seeds):
    encode = ["protoc", f"--encode=lockstep.v1.{message}", "proto/worker.proto"]
    for name, text in seeds.items():
        with open(HERE / f"{name}.request", "wb") as out:
            subprocess.run(encode, input=text.encode(), stdout=out, cwd=ROOT, check=True)


write("WorkerGenerateRequest", SEEDS)
write("AbortRequest", ABORTS)
