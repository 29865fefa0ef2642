#!/usr/bin/env python3
"""Writes the seeds of safetensors_file_fuzz_test into this folder."""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(header, size):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(size)


SEEDS = {
    "empty": file({}, 0),
    "metadata": file({"__metadata__": {"format": "pt"}, "a": entry("F32", [2], 0, 8)}, 8),
    "three": file(
        {
            "a": entry("F32", [2, 3], 0, 24),
            "b": entry("BF16", [4], 24, 32),
            "c": entry("F16", [], 32, 34),
        },
        34,
    ),
    "overlap": file({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, 12),
}

for name, data in SEEDS.items():
    (HERE / f"{name}.safetensors").write_bytes(data)
