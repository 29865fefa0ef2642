#!/usr/bin/env python3
"""Writes a GGUF file of a known model's shape with random weights.

  bench/make_model.py qwen3-0.6b Q8_0 OUT.gguf
  bench/make_model.py smollm2-135m Q4_1 OUT.gguf --tokenizer_from REAL.gguf

Types: BF16, Q8_0, Q4_0, Q4_1, Q4_K. Matrices are of the type, but where their rows
are no whole blocks of it (Q4_K and 576 columns): these are Q4_0. The embedding, which
is the head too, is Q8_0 where the others are smaller, norms are F32. What such a model
says means nothing; how fast it is depends on shapes and types alone.

The tokenizer knows the 256 bytes and nothing else, unless it is another file's.
"""

import argparse
import array
import math
import random
import struct
import sys

SHAPES = {
    "smollm2-135m": dict(
        arch="llama", layers=30, hidden=576, heads=9, kv_heads=3, head_dim=64,
        ffn=1536, vocab=49152, context=8192, theta=1e5, eps=1e-5, pre="smollm",
    ),
    "qwen3-0.6b": dict(
        arch="qwen3", layers=28, hidden=1024, heads=16, kv_heads=8, head_dim=128,
        ffn=3072, vocab=151936, context=40960, theta=1e6, eps=1e-6, pre="qwen2",
    ),
}
# ggml's number, values of a block and its bytes.
TYPES = {
    "F32": (0, 1, 4), "BF16": (30, 1, 2), "Q8_0": (8, 32, 34),
    "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q4_K": (12, 256, 144),
}
FILE_TYPES = {"BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q4_K": 14}
SMALLER_THAN_Q8_0 = ("Q4_0", "Q4_1", "Q4_K")
ALIGNMENT = 32
POOL_BLOCKS = 1 << 12
DEVIATION = 0.02
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
NORMAL, CONTROL, UNUSED = 1, 3, 5


# --- Values of the metadata -------------------------------------------------

UINT, INT, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", UINT: "<I", INT: "<i", FLOAT: "<f", BOOL: "<?",
    10: "<Q", 11: "<q", 12: "<d",
}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return string(value) if kind == STRING else struct.pack(SCALARS[kind], value)


def entry(key, kind, value):
    return string(key) + struct.pack("<I", kind) + scalar(kind, value)


def entry_of_many(key, kind, values):
    head = string(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    return head + b"".join(scalar(kind, value) for value in values)


class Reader:
    """Walks over a GGUF file's metadata without understanding it."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def take_string(self):
        size = self.take("<Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.take_string()
        elif kind == ARRAY:
            inner, count = self.take("<I"), self.take("<Q")
            for _ in range(count):
                self.skip(inner)
        else:
            self.take(SCALARS[kind])


def copied_tokenizer(path):
    """The entries "tokenizer.…" of a GGUF file, byte for byte, and its tokens' number."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    if reader.take("<4s") != b"GGUF":
        sys.exit(f"make_model.py: {path} is no GGUF file")
    reader.take("<I"), reader.take("<Q")
    entries, tokens = [], 0
    for _ in range(reader.take("<Q")):
        begin = reader.at
        key, kind = reader.take_string(), reader.take("<I")
        if key == "tokenizer.ggml.tokens":
            (tokens,) = struct.unpack_from("<Q", reader.data, reader.at + 4)
        reader.skip(kind)
        if key.startswith("tokenizer."):
            entries.append(reader.data[begin : reader.at])
    return entries, tokens


def byte_characters():
    """The characters by which byte-level BPE names the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    names = {byte: chr(byte) for byte in shown}
    names.update({byte: chr(256 + i) for i, byte in enumerate(hidden)})
    return [names[byte] for byte in range(256)]


def byte_tokenizer(shape):
    known = SPECIAL + byte_characters()
    unused = [f"<unused{i}>" for i in range(shape["vocab"] - len(known))]
    kinds = [CONTROL] * len(SPECIAL) + [NORMAL] * 256 + [UNUSED] * len(unused)
    return [
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, shape["pre"]),
        entry_of_many("tokenizer.ggml.tokens", STRING, known + unused),
        entry_of_many("tokenizer.ggml.token_type", INT, kinds),
        entry_of_many("tokenizer.ggml.merges", STRING, ["t h", "i n"]),
        entry("tokenizer.ggml.bos_token_id", UINT, 1),
        entry("tokenizer.ggml.eos_token_id", UINT, 2),
        entry("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def model_entries(name, type_name):
    shape = SHAPES[name]
    arch = shape["arch"]
    sizes = {
        "context_length": "context", "embedding_length": "hidden", "block_count": "layers",
        "feed_forward_length": "ffn", "attention.head_count": "heads",
        "attention.head_count_kv": "kv_heads", "attention.key_length": "head_dim",
        "attention.value_length": "head_dim", "rope.dimension_count": "head_dim",
        "vocab_size": "vocab",
    }
    return [
        entry("general.architecture", STRING, arch),
        entry("general.name", STRING, f"{name} with random weights"),
        entry("general.file_type", UINT, FILE_TYPES[type_name]),
        *(entry(f"{arch}.{key}", UINT, shape[size]) for key, size in sizes.items()),
        entry(f"{arch}.rope.freq_base", FLOAT, shape["theta"]),
        entry(f"{arch}.attention.layer_norm_rms_epsilon", FLOAT, shape["eps"]),
    ]


# --- Tensors ------------------------------------------------------------------


def type_of(type_name, columns, is_embedding):
    if is_embedding and type_name in SMALLER_THAN_Q8_0:
        return "Q8_0"
    return type_name if columns % TYPES[type_name][1] == 0 else "Q4_0"


def tensors(shape, type_name):
    """(name, (rows, columns), type) of each; a norm has one row."""
    hidden, ffn, head_dim = shape["hidden"], shape["ffn"], shape["head_dim"]
    q, kv = shape["heads"] * head_dim, shape["kv_heads"] * head_dim

    def matrix(name, rows, columns):
        kind = type_of(type_name, columns, name.startswith("token_embd"))
        return f"{name}.weight", (rows, columns), kind

    def norm(name, columns):
        return f"{name}.weight", (1, columns), "F32"

    yield matrix("token_embd", shape["vocab"], hidden)
    for i in range(shape["layers"]):
        layer = f"blk.{i}."
        yield norm(layer + "attn_norm", hidden)
        yield matrix(layer + "attn_q", q, hidden)
        yield matrix(layer + "attn_k", kv, hidden)
        yield matrix(layer + "attn_v", kv, hidden)
        if shape["arch"] == "qwen3":
            yield norm(layer + "attn_q_norm", head_dim)
            yield norm(layer + "attn_k_norm", head_dim)
        yield matrix(layer + "attn_output", hidden, q)
        yield norm(layer + "ffn_norm", hidden)
        yield matrix(layer + "ffn_gate", ffn, hidden)
        yield matrix(layer + "ffn_up", ffn, hidden)
        yield matrix(layer + "ffn_down", hidden, ffn)
    yield norm("output_norm", hidden)


def half(value):
    return struct.pack("<e", value)


def nibbles(values):
    """ggml's order: the first half of a block in the low nibbles."""
    middle = len(values) // 2
    return bytes(low | high << 4 for low, high in zip(values, values[middle:]))


def q4_k_scales(scales, mins):
    """Eight 6-bit scales and minima in 12 bytes, as ggml packs them."""
    packed = bytearray(12)
    for i in range(4):
        packed[i] = scales[i] | (scales[i + 4] >> 4) << 6
        packed[i + 4] = mins[i] | (mins[i + 4] >> 4) << 6
        packed[i + 8] = scales[i + 4] & 15 | (mins[i + 4] & 15) << 4
    return bytes(packed)


def block(type_name, rng):
    """One block whose values have about DEVIATION, by drawing its integers."""
    if type_name == "BF16":
        return struct.pack("<f", rng.gauss(0, DEVIATION))[2:]
    if type_name == "Q8_0":
        values = [max(-127, min(127, round(rng.gauss(0, 42)))) for _ in range(32)]
        return half(DEVIATION / 42) + struct.pack("<32b", *values)
    four_bits = [max(0, min(15, round(rng.gauss(7.5, 3)))) for _ in range(TYPES[type_name][1])]
    step = DEVIATION / 3
    if type_name == "Q4_0":
        return half(step) + nibbles(four_bits)
    if type_name == "Q4_1":
        return half(step) + half(-7.5 * step) + nibbles(four_bits)
    # w = d·scale·q - dmin·min, in eight groups of 32.
    scales = [rng.randrange(24, 40) for _ in range(8)]
    packed = q4_k_scales(scales, scales)
    quants = b"".join(nibbles(four_bits[i : i + 64]) for i in range(0, 256, 64))
    return half(step / 32) + half(7.5 * step / 32) + packed + quants


def write_blocks(file, pools, type_name, blocks, rng):
    """Runs of a few random blocks of the pool, till there are enough."""
    if type_name not in pools:
        pools[type_name] = b"".join(block(type_name, rng) for _ in range(POOL_BLOCKS))
    pool, size = pools[type_name], TYPES[type_name][2]
    run = POOL_BLOCKS // 2
    while blocks > 0:
        count = min(run, blocks)
        begin = rng.randrange(POOL_BLOCKS - count + 1) * size
        file.write(pool[begin : begin + count * size])
        blocks -= count


def tensor_bytes(shape, type_name):
    _, values, size = TYPES[type_name]
    return math.prod(shape) // values * size


def padding(size):
    return b"\0" * (-size % ALIGNMENT)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=FILE_TYPES)
    parser.add_argument("out")
    parser.add_argument("--tokenizer_from", metavar="GGUF", help="copy the tokenizer of this file")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    shape = SHAPES[arguments.shape]
    tokenizer = byte_tokenizer(shape)
    if arguments.tokenizer_from:
        tokenizer, tokens = copied_tokenizer(arguments.tokenizer_from)
        if tokens != shape["vocab"]:
            sys.exit(
                f"make_model.py: {arguments.tokenizer_from} has {tokens} tokens, "
                f"{arguments.shape} has {shape['vocab']}"
            )
    entries = model_entries(arguments.shape, arguments.type) + tokenizer
    all_tensors = list(tensors(shape, arguments.type))

    rng, pools = random.Random(arguments.seed), {}
    with open(arguments.out, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(all_tensors), len(entries)))
        file.write(b"".join(entries))
        offset = 0
        for name, (rows, columns), kind in all_tensors:
            sizes = [columns] if kind == "F32" else [columns, rows]
            file.write(string(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
            file.write(struct.pack("<IQ", TYPES[kind][0], offset))
            size = tensor_bytes((rows, columns), kind)
            offset += size + len(padding(size))
        file.write(padding(file.tell()))
        for _, sizes, kind in all_tensors:
            if kind == "F32":
                file.write(array.array("f", [1.0] * math.prod(sizes)).tobytes())
            else:
                write_blocks(file, pools, kind, math.prod(sizes) // TYPES[kind][1], rng)
            file.write(padding(tensor_bytes(sizes, kind)))


if __name__ == "__main__":
    main()
