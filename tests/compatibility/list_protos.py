#!/usr/bin/env python3
"""Prints what today's protos say on the wire: tests/compatibility/list_protos.py > tests/compatibility/released/VERSION.txt

To be done, and committed, with each release; what it prints stays as it is from then on.
"""

import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

import listing

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Between programs that may be of two versions; group.proto is between ranks of one build.
PUBLIC = ["embedding", "grammar", "inference", "sampling", "tokenizer", "worker"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "set"
        subprocess.run(
            ["protoc", f"--proto_path={ROOT}", f"--descriptor_set_out={made}"]
            + [f"{ROOT}/proto/{name}.proto" for name in PUBLIC],
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    sys.stdout.write(listing.to_text(listing.of(files)))


if __name__ == "__main__":
    main()
