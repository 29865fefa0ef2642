#!/usr/bin/env python3
"""Writes the seeds of frame_codec_fuzz_test beside itself.

Headers are encoded by hand: epoch 7 (field 1), step (2), message count (3),
failure (4); see proto/group.proto.
"""

import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def sized(data):
    return struct.pack("<I", len(data)) + data


def header(step, count, epoch=7):
    return sized(bytes([0x08, epoch, 0x10, step, 0x18, count]))


def frame(step, messages, digest=0xAA):
    body = b"".join(sized(message) for message in messages)
    return header(step, len(messages)) + body + bytes([digest] * 16)


def failure(rank, reason):
    inner = bytes([0x08, rank, 0x12, len(reason)]) + reason
    return sized(bytes([0x08, 7, 0x22, len(inner)]) + inner)


SEEDS = {
    "empty_frame": frame(1, []),
    "two_frames": frame(1, [b"one", b"", b"three"]) + frame(2, [b"x" * 200]),
    "failure": frame(1, [b"one"]) + failure(1, b"it left."),
    "failure_before_digest": header(1, 0) + bytes(16) + failure(0, b"broke."),
    "other_epoch": header(1, 0, epoch=8),
    "step_out_of_order": frame(1, []) + frame(3, []),
    "size_too_large": b"\xff\xff\xff\xff",
    "cut_off": frame(1, [b"one"])[:-5],
}

for name, data in SEEDS.items():
    (HERE / f"{name}.frames").write_bytes(data)
