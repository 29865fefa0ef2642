#!/usr/bin/env python3
"""Writes the seeds of peer_messages_fuzz_test beside itself.

Messages are encoded by hand, their fields as in proto/group.proto. Before them
a byte that says what they are taken for (0 a Hello, 1 a HelloReply, 2 reports)
and one for where they are cut.
"""

import pathlib
import struct

HERE = pathlib.Path(__file__).parent
HELLO, REPLY, REPORTS = 0, 1, 2


def sized(data):
    return struct.pack("<I", len(data)) + data


def number(field, value):
    return bytes([field << 3, value])


def run(field, data):
    return bytes([field << 3 | 2, len(data)]) + data


def hello(rank, address, size=4, build=b"build"):
    names = run(3, build) + run(4, b"model")
    host = number(6, 100) + number(7, 42) + run(8, b"boot") + run(9, b"pid:[1]")
    return sized(number(1, rank) + number(2, size) + names + host + run(10, address) + run(11, b"node-b"))


def report(field, data):
    return sized(run(field, data))


GLOO = b"".join(run(2, b"address") for _ in range(4))
MEMORY = run(1, number(1, 42) + number(2, 7))
WELCOME = number(1, 9) + number(2, 100) + run(3, MEMORY)
HEARTBEAT = number(1, 5) + number(2, 3) + number(3, 60)
FAILURE = number(1, 2) + run(2, b"its engine broke.") + number(3, 5)

SEEDS = {
    "hello_of_memory": (HELLO, hello(1, b"")),
    "hello_over_tcp": (HELLO, hello(2, GLOO)),
    "hello_of_another_build": (HELLO, hello(2, GLOO, build=b"other")),
    "hello_of_no_rank": (HELLO, hello(0, GLOO)),
    "hello_too_few_addresses": (HELLO, hello(3, run(2, b"address"))),
    "hello_cut_off": (HELLO, hello(1, b"")[:-9]),
    "hello_negative_process": (HELLO, sized(bytes([0x38] + [0xFF] * 9 + [1]))),
    "welcome": (REPLY, sized(run(1, WELCOME))),
    "refusal": (REPLY, sized(run(2, run(1, b"rank 1 has another build.")))),
    "reply_of_nothing": (REPLY, sized(b"")),
    "reply_too_large": (REPLY, struct.pack("<I", 16385) + b"x"),
    "reports": (REPORTS, report(1, HEARTBEAT) * 3 + report(3, b"")),
    "failure": (REPORTS, report(1, HEARTBEAT) + report(2, FAILURE)),
    "report_of_nothing": (REPORTS, report(1, HEARTBEAT) + sized(b"") + report(3, b"")),
    "report_of_an_unknown_kind": (REPORTS, sized(run(9, b"news"))),
    "report_is_none": (REPORTS, sized(b"\xff") + report(1, HEARTBEAT)),
}

for name, (kind, data) in SEEDS.items():
    (HERE / f"{name}.peer").write_bytes(bytes([kind, 7]) + data)
