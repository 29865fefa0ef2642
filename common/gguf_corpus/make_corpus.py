#!/usr/bin/env python3
"""Writes the seeds of the GGUF fuzz tests into this folder."""
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



def model(architecture):
    """One layer, hidden 4, two heads of 2: each tensor in a slot of 64 bytes."""
    sizes = {"block_count": 1, "context_length": 8, "embedding_length": 4,
             "feed_forward_length": 4, "attention.head_count": 2, "vocab_size": 4}
    entries = [entry("general.architecture", 8, string(architecture))]
    entries += [entry(f"{architecture}.{key}", 4, struct.pack("<I", value))
                for key, value in sizes.items()]
    entries.append(entry(f"{architecture}.attention.layer_norm_rms_epsilon", 6,
                         struct.pack("<f", 1e-5)))
    matrices = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    shapes = {"token_embd": [4, 4], "output_norm": [4], "rope_freqs": [1],
              "blk.0.attn_norm": [4], "blk.0.ffn_norm": [4],
              **{f"blk.0.{name}": [4, 4] for name in matrices}}
    tensors = [tensor(f"{name}.weight", shape, 0, 64 * i)
               for i, (name, shape) in enumerate(shapes.items())]
    return file(3, entries, tensors, struct.pack("<f", 1) * (16 * len(shapes)))


def tokenizer():
    """Byte-level BPE of five tokens, the last of them special."""
    words = ["a", "b", "ab", "\u0120", "<s>"]
    return file(3, [
        entry("tokenizer.ggml.model", 8, string("gpt2")),
        entry("tokenizer.ggml.pre", 8, string("gpt-2")),
        entry("tokenizer.ggml.tokens", 9, array(8, [string(word) for word in words])),
        entry("tokenizer.ggml.token_type", 9, array(5, [struct.pack("<i", t) for t in [1, 1, 1, 1, 3]])),
        entry("tokenizer.ggml.merges", 9, array(8, [string("a b")])),
        entry("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 4)),
        entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 4)),
        entry("tokenizer.ggml.add_bos_token", 7, b"\1"),
        entry("tokenizer.chat_template", 8, string("{{ bos_token }}{{ messages[0].content }}")),
    ], [], b"")


SEEDS = {
    "empty": file(3, [], [], b""),
    "numbers": file(3, [ARCHITECTURE, *NUMBERS], [], b""),
    "arrays": file(2, ARRAYS, [], b""),
    "tensors": file(3, [ARCHITECTURE, entry("general.alignment", 4, struct.pack("<I", 32))],
                    TENSORS, bytes(66)),
    "llama": model("llama"),
    "qwen3": model("qwen3"),
    "tokenizer": tokenizer(),
}

for name, data in SEEDS.items():
    (HERE / f"{name}.gguf").write_bytes(data)
