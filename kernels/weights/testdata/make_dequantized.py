#!/usr/bin/env python3
"""Writes dequantized.txt, the vectors dtype_test.cc checks decoding against.

They come from the `gguf` Python package (numpy), so from an implementation that
shares nothing with ours:

    python3 -m venv venv && venv/bin/pip install gguf
    venv/bin/python kernels/weights/testdata/make_dequantized.py > kernels/weights/testdata/dequantized.txt

Types that gguf has not are computed here, as dtype.h defines them.

Each line: type, the bytes of two blocks as hex, the decoded values as hex of
their fp32 bits, little-endian.
"""

import gguf
import numpy as np

BLOCKS = 2

# Bytes of a block, and where its fp16 numbers lie.
FORMATS = {
    "Q8_0": (34, [0]),
    "Q4_0": (18, [0]),
    "Q4_1": (20, [0, 2]),
    "Q4_K": (144, [0, 2]),
    "Q5_K": (176, [0, 2]),
    "Q6_K": (210, [208]),
    "Q5_0": (22, [0]),
    "Q5_1": (24, [0, 2]),
    "Q2_K": (84, [80, 82]),
    "Q3_K": (110, [108]),
    "IQ4_NL": (18, [0]),
    "IQ4_XS": (136, [0]),
    "MXFP4": (17, []),
}

# Of a scale: none, the least subnormal, the largest subnormal, the largest.
EXTREMES = [0x0000, 0x0001, 0x83FF, 0x7BFF]


def half(rng):
    """A finite fp16 of moderate size, as two bytes."""
    return np.float16(rng.normal() * 0.05).tobytes()


def block(name, rng):
    size, halves = FORMATS[name]
    data = bytearray(rng.integers(0, 256, size, dtype=np.uint8).tobytes())
    for at in halves:
        data[at : at + 2] = half(rng)
    return bytes(data)


def extreme_block(name, scale, fill):
    """All integers at one end, all scales extreme."""
    size, halves = FORMATS[name]
    data = bytearray([fill]) * size
    for at in halves:
        data[at : at + 2] = scale.to_bytes(2, "little")
    return bytes(data)


def line(name, stored, values):
    print(name, stored.hex(), np.asarray(values, "<f4").tobytes().hex())


def e4m3(bits):
    """By the definition of FP8 E4M3: sign, 4 bits of exponent, 3 of mantissa."""
    exponent, mantissa = bits >> 3 & 15, bits & 7
    magnitude = mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return -magnitude if bits & 128 else magnitude


def others(rng):
    """Types that are not ggml's."""
    for d in (0.0371, -0.0021, 6e-8):
        d = np.float16(d)
        zero, nibbles = int(rng.integers(0, 16)), rng.integers(0, 256, 16, dtype=np.uint8)
        quants = np.concatenate([nibbles & 15, nibbles >> 4]).astype(np.float32)
        line("Q4_Z", d.tobytes() + bytes([zero]) + nibbles.tobytes(), np.float32(d) * (quants - zero))
        d = np.float32(rng.normal() * 0.01)
        quants = rng.integers(-128, 128, 32).astype(np.int8)
        line("Q8_F", d.tobytes() + quants.tobytes(), d * quants.astype(np.float32))
    bits = [b for b in range(256) if b & 127 != 127]  # but NaN
    line("F8_E4M3", bytes(bits), [e4m3(b) for b in bits])
    for name, dtype in (("I8", "<i1"), ("I32", "<i4"), ("I64", "<i8")):
        limits = np.iinfo(dtype)
        values = np.array([0, 1, -1, 77, limits.min, limits.max], dtype)
        line(name, values.tobytes(), values.astype(np.float32))


def main():
    rng = np.random.default_rng(1)
    for name in FORMATS:
        rows = [b"".join(block(name, rng) for _ in range(BLOCKS)) for _ in range(4)]
        rows += [extreme_block(name, scale, 0) + extreme_block(name, scale, 255) for scale in EXTREMES]
        for data in rows:
            kind = gguf.GGMLQuantizationType[name]
            with np.errstate(over="ignore"):
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
    others(rng)


if __name__ == "__main__":
    main()
