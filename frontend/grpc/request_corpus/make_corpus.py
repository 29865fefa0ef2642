#!/usr/bin/env python3
"""Writes the seeds of request_parser_fuzz_test into this folder, with protoc."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]

SEEDS = {
    "GenerateRequest": {
        "text": 'model: "m" text: "hello"',
        "chat": """request_id: "a.b-c_1" chat { messages { role: "user" content: "hi" }
            messages { role: "assistant" content: "" } add_generation_prompt: false }
            sampling { n: 2 temperature: 0 } stop: ["a", "bc"] include_stop_str_in_output: true
            skip_special_tokens: false priority: 3""",
        "tools": """chat { messages { role: "assistant" name: "a" reasoning: "hm"
            tool_calls { id: "c1" name: "f" arguments: "{}" } } messages { role: "tool" content: "7" tool_call_id: "c1" }
            tools { name: "f" description: "d" parameters: "{\\"a\\": 1}" } template_arguments: "{\\"z\\": 1}"
            documents: "[1]" continue_final_message: true } tool_choice: AUTO parallel_tool_calls: false
            include_reasoning: false""",
        "ids": "token_ids { ids: [1, 99, 100] }",
    },
    "TokenizeRequest": {"tokenize": 'text: "hello" add_special_tokens: false'},
    "DetokenizeRequest": {"detokenize": "token_ids: [1, 2, 3] skip_special_tokens: true"},
}

for message, seeds in SEEDS.items():
    encode = ["protoc", f"--encode=lockstep.v1.{message}", "proto/inference.proto"]
    for name, text in seeds.items():
        with open(HERE / f"{name}.request", "wb") as out:
            subprocess.run(encode, input=text.encode(), stdout=out, cwd=ROOT, check=True)
