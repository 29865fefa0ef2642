#!/usr/bin/env python3
"""Writes quantized.txt, the vectors encode_row_test.cc checks rounding against.

As make_dequantized.py, with the `gguf` Python package. Each line: type, two
blocks of fp32 values and the bytes they are rounded to, as hex.
"""

import gguf
import numpy as np


def main():
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=64) * scale for scale in (1, 0.02, 1e-4, 300)]
    rows.append(np.zeros(64))
    rows.append(np.full(64, -0.5))
    # Magnitudes that are there twice, halves between two integers.
    rows.append(np.tile([-8.0, 8.0, 0.5, -0.5, 1.5, -1.5, 7.5, -7.5], 8))
    rows.append(np.tile([127.0, -127.0, 63.5, -63.5, 0.5, -0.5, 126.5, 2.5], 8))
    for name in ("Q8_0", "Q4_0"):
        for row in rows:
            values = row.astype("<f4")
            with np.errstate(divide="ignore"):
                stored = gguf.quants.quantize(values, gguf.GGMLQuantizationType[name])
            print(name, values.tobytes().hex(), stored.tobytes().hex())


if __name__ == "__main__":
    main()
