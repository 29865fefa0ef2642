#!/usr/bin/env python3
"""Prints which GPUs each object of nvcc's holds code for: "norm.cuda.o: 80 89 90".

    tools/cuda_architectures.py --expect 80,89,90 OBJECT...

With --expect it fails where an object holds other code.
"""

import argparse
import pathlib
import struct
import sys

# An object holds fat binaries: a header, then entries of a header and code each.
MAGIC = struct.pack("<I", 0xBA55ED50)
BINARY = struct.Struct("<IHHQ")  # magic, version, bytes of header, of entries
ENTRY = struct.Struct("<HHIQIIHHI")  # kind, …, bytes of header, of code, …, architecture
KIND_OF_CODE = 2  # 1 is PTX


def architectures(data):
    found = set()
    at = data.find(MAGIC)
    while at >= 0:
        _, _, header, size = BINARY.unpack_from(data, at)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, header, size, *_, architecture = ENTRY.unpack_from(data, entry)
            if kind == KIND_OF_CODE:
                found.add(architecture)
            entry += header + size
        at = data.find(MAGIC, end)
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--expect", default="", help="numbers, such as 80,89,90")
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    expected = [int(number) for number in arguments.expect.split(",") if number]
    wrong = False
    for path in arguments.objects:
        found = architectures(path.read_bytes())
        print(f"{path.name}:", *found)
        wrong |= bool(expected) and found != expected
    if wrong:
        sys.exit(f"expected {arguments.expect}")


if __name__ == "__main__":
    main()
