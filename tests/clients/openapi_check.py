#!/usr/bin/env python3
"""Holds a gateway to its own OpenAPI document: openapi_check.py --target HOST:PORT

Checks the document with openapi-spec-validator, then has schemathesis make
requests that fit it and requests that do not. Both come by pip. By hand, as it
takes minutes:

    pip install schemathesis openapi-spec-validator
    ./lockstep up --max_context=2048 --gateway_flag=--tool_call_parser=hermes
    tests/clients/openapi_check.py --target 127.0.0.1:8080 --max_examples 200

The worker should have a small model, whose template takes any role. What the
document can not know, as it differs from model to model, is narrowed first; what
it says in words alone, as JSON schema has no short ones for it, is in
openapi_check_hooks.py, and so is what would only take long.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

HOOKS = pathlib.Path(__file__).with_name("openapi_check_hooks.py")

def fetch(target, path):
    with urllib.request.urlopen(f"http://{target}{path}") as response:
        return json.load(response)


def vocabulary_size(target):
    """As the error names it that an id beyond it is."""
    body = json.dumps({"tokens": [2**32 - 1]}).encode()
    request = urllib.request.Request(f"http://{target}/detokenize", body, {"content-type": "application/json"})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        return int(re.search(r"vocabulary size (\d+)", json.load(error)["error"]["message"])[1])
    raise ValueError("every token id is taken")


def narrow(document, target):
    """To the model served: its name, and the ids it has."""
    schemas = document["components"]["schemas"]
    model = fetch(target, "/v1/models")["data"][0]["id"]
    schemas["TokenId"]["maximum"] = vocabulary_size(target) - 1
    for name in ("ChatRequest", "CompletionRequest", "TokenizeRequest", "DetokenizeRequest", "EmbeddingsRequest"):
        schemas[name]["properties"]["model"]["enum"] = [model, None]
    return document


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True, help="HOST:PORT of the gateway's HTTP")
    parser.add_argument("--max_examples", type=int, default=100, help="of each operation and kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    document = fetch(options.target, "/openapi.json")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "openapi.json")
        path.write_text(json.dumps(document), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "openapi_spec_validator", str(path)], check=True)
        path.write_text(json.dumps(narrow(document, options.target)), encoding="utf-8")
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(path), f"--url=http://{options.target}"]
        command += [f"--max-examples={options.max_examples}", f"--seed={options.seed}", "--continue-on-failure"]
        # A request says nothing of where a model could be had.
        command += ["--phases=examples,coverage,fuzzing", "--no-color"]
        command += ["--suppress-health-check=all", "--request-timeout=60", "--warnings=off"]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS.stem, "PYTHONPATH": str(HOOKS.parent)}
        return subprocess.run(command, env=environment, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
