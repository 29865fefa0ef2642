#!/usr/bin/env python3
"""Writes dequantized.txt, the vectors dtype_test.cc checks decoding against.

They come from the `gguf` Python package (numpy), so from an implementation that
shares nothing with ours:

    python3 -m venv venv && venv/bin/pip install gguf
    venv/bin/python kernels/weights/testdata/make_dequantized.py > kernels/weights/testdata/dequantized.txt

Each line: type, the bytes of two blocks as hex, the decoded values as hex of
their fp32 bits, little-endian.
"""

import gguf
import numpy as np

BLOCKS = 2


def half(rng):
    """A finite fp16 of moderate size, as two bytes."""
    return np.float16(rng.normal() * 0.05).tobytes()


def block(name, rng):
    size = {"Q8_0": 32, "Q4_0": 16, "Q4_1": 16, "Q4_K": 140, "Q5_K": 172,
            "Q6_K": 208}[name]
    quants = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
    if name == "Q6_K":
        return quants + half(rng)
    has_min = name in ("Q4_1", "Q4_K", "Q5_K")
    return half(rng) + (half(rng) if has_min else b"") + quants


def main():
    rng = np.random.default_rng(1)
    for name in ("Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K"):
        for _ in range(4):
            data = b"".join(block(name, rng) for _ in range(BLOCKS))
            kind = gguf.GGMLQuantizationType[name]
            values = gguf.quants.dequantize(np.frombuffer(data, np.uint8), kind)
            print(name, data.hex(), values.astype("<f4").tobytes().hex())
    for name, dtype in (("F16", np.float16), ("F32", np.float32)):
        special = [0.0, -0.0, 1.0, -2.5, 6e-8, -6.1e-5, 65504.0, np.inf, -np.inf]
        values = np.array(special + list(rng.normal(size=23)), dtype)
        print(name, values.tobytes().hex(),
              values.astype("<f4").tobytes().hex())
    bits = rng.integers(0, 0x7f80, 32, dtype=np.uint16)
    words = (bits.astype(np.uint32) << 16).astype("<u4")
    print("BF16", bits.tobytes().hex(), words.tobytes().hex())


if __name__ == "__main__":
    main()
