#!/usr/bin/env python3
"""Writes the seeds of frame_codec_fuzz_test beside itself.

Headers are encoded by hand: epoch 7 (field 1), step (2), message count (3),
failure (4), message bytes (5), digest (6), heartbeat (7), message
digest (8); see proto/group.proto.
"""

import hashlib
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def sized(data):
    return struct.pack("<I", len(data)) + data


def varint(value):
    return bytes([value & 0x7F | 0x80, value >> 7]) if value > 127 else bytes([value])


def header(step, count, size=0, epoch=7, tail=b""):
    fields = bytes([0x08, epoch, 0x10, step, 0x18, count, 0x28]) + varint(size)
    return sized(fields + tail)


def digest(step, byte=0xAA):
    return sized(bytes([0x08, 7, 0x10, step, 0x32, 16] + [byte] * 16))


def frame(step, messages):
    body = b"".join(sized(message) for message in messages)
    counted = b"".join(struct.pack("<Q", len(m)) + m for m in messages)
    digest = bytes([0x42, 16]) + hashlib.sha256(counted).digest()[:16]
    tail = digest if messages else b""
    return header(step, len(messages), sum(map(len, messages)), tail=tail) + body


def step(number, messages):
    return frame(number, messages) + digest(number)


def heartbeat(number, stage, collectives):
    inner = bytes([0x08, number, 0x10, stage, 0x18, collectives])
    return sized(bytes([0x08, 7, 0x3A, len(inner)]) + inner)


def failure(rank, reason):
    inner = bytes([0x08, rank, 0x12, len(reason)]) + reason + bytes([0x18, 1])
    return sized(bytes([0x08, 7, 0x22, len(inner)]) + inner)


SEEDS = {
    "empty_frame": step(1, []),
    "two_frames": step(1, [b"one", b"", b"three"]) + step(2, [b"x" * 200]),
    "heartbeats": heartbeat(0, 4, 0) + frame(1, [b"one"]) + heartbeat(1, 1, 9) + digest(1),
    "failure": step(1, [b"one"]) + failure(1, b"it left."),
    "failure_before_digest": frame(1, []) + failure(0, b"broke."),
    "other_epoch": header(1, 0, epoch=8),
    "step_out_of_order": step(1, []) + step(3, []),
    "frame_twice": step(1, [b"one"]) + frame(1, [b"one"]),
    "digest_twice": step(1, [b"one"]) + digest(1),
    "digest_missing": frame(1, [b"one"]) + step(2, []),
    "message_too_large": header(1, 1, 2) + sized(b"one"),
    "message_too_small": header(1, 1, 4) + sized(b"one"),
    "message_changed": frame(1, [b"one"])[:-1] + b"y",
    "size_too_large": b"\xff\xff\xff\xff",
    "cut_off": step(1, [b"one"])[:-5],
}

for name, data in SEEDS.items():
    (HERE / f"{name}.frames").write_bytes(data)
