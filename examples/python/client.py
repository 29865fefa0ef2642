#!/usr/bin/env python3
"""Streams an answer: client.py HOST:PORT PROMPT. Ctrl-C cancels it; ../README.md says more."""

import os
import pathlib
import sys
import time

import grpc

from proto import inference_pb2, inference_pb2_grpc

ATTEMPTS = 4
RETRYABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


def connect(address):
    """TLS where $LOCKSTEP_CA names a file of certificates."""
    authority = os.environ.get("LOCKSTEP_CA")
    if not authority:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(pathlib.Path(authority).read_bytes()))


def stream(call):
    """Prints an answer as it comes. Returns what ended it too soon, and whether it had begun."""
    begun = False
    try:
        for response in call:
            begun = True
            print(response.delta.text, end="", flush=True)
    except grpc.RpcError as error:
        return error, begun
    except KeyboardInterrupt:
        call.cancel()
        sys.exit("\ncancelled")
    return None, begun


def main(address, prompt):
    request = inference_pb2.GenerateRequest(text=prompt)
    request.sampling.temperature = 0
    request.sampling.max_tokens = 64
    key = os.environ.get("LOCKSTEP_API_KEY")
    metadata = [("authorization", f"Bearer {key}")] if key else []
    end = time.monotonic() + float(os.environ.get("LOCKSTEP_DEADLINE_S", "60"))
    stub = inference_pb2_grpc.InferenceStub(connect(address))
    for attempt in range(ATTEMPTS):
        error, begun = stream(stub.Generate(request, timeout=end - time.monotonic(), metadata=metadata))
        if error is None or begun or error.code() not in RETRYABLE:
            break
        time.sleep(0.1 * 2**attempt)
    sys.exit(error and f"\n{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
