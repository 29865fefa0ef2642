#!/usr/bin/env python3
"""Writes the seeds of gguf_file_fuzz_test into this folder."""
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    return string(key) + struct.pack("<I", kind) + value


def array(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def tensor(name, shape, kind, offset):
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return string(name) + dims + struct.pack("<IQ", kind, offset)


def file(version, entries, tensors, data):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries))
    head += b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


ARCHITECTURE = entry("general.architecture", 8, string("llama"))
NUMBERS = [
    entry(f"n{kind}", kind, struct.pack("<" + code, 1))
    for kind, code in enumerate("BbHhIif?")
] + [entry("n10", 10, struct.pack("<Q", 1)), entry("n11", 11, struct.pack("<q", -1)),
     entry("n12", 12, struct.pack("<d", 0.5))]
ARRAYS = [
    entry("words", 9, array(8, [string("a"), string(""), string("bc")])),
    entry("bytes", 9, array(0, [b"\1", b"\2"])),
    entry("ints", 9, array(5, [struct.pack("<i", -1)])),
    entry("floats", 9, array(6, [struct.pack("<f", 0.5)])),
    entry("bools", 9, array(7, [b"\1"])),
]
TENSORS = [tensor("one", [3, 2], 0, 0), tensor("two", [32], 8, 32)]

SEEDS = {
    "empty": file(3, [], [], b""),
    "numbers": file(3, [ARCHITECTURE, *NUMBERS], [], b""),
    "arrays": file(2, ARRAYS, [], b""),
    "tensors": file(3, [ARCHITECTURE, entry("general.alignment", 4, struct.pack("<I", 32))],
                    TENSORS, bytes(66)),
}

for name, data in SEEDS.items():
    (HERE / f"{name}.gguf").write_bytes(data)
