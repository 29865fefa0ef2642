#!/usr/bin/env python3
"""Today's protos mean what those of every release meant, number by number."""

import copy
import os
import pathlib
import re
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool

import listing
import wire

HERE = pathlib.Path(__file__).resolve().parent
RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
RELEASED = sorted((HERE / "released").glob("*.txt"))
# "## 0.2.0, 3 May 2027"; one that is not released yet says so.
VERSION = re.compile(r"^## (\d+\.\d+)\.\d+, (.*)$", re.MULTILINE)


def today():
    written = (RUNFILES / "proto/lockstep.protoset").read_bytes()
    return listing.of(descriptor_pb2.FileDescriptorSet.FromString(written).file)


class WireTest(unittest.TestCase):
    def setUp(self):
        self.today = today()

    def test_no_release_is_broken(self):
        self.assertTrue(RELEASED)
        for path in RELEASED:
            older = listing.from_text(path.read_text(encoding="utf-8"))
            self.assertIn("Worker", older)
            self.assertEqual(wire.breaks(older, self.today), [], f"since {path.stem}")

    def test_every_release_is_kept(self):
        versions = VERSION.findall((RUNFILES / "CHANGELOG.md").read_text(encoding="utf-8"))
        self.assertTrue(versions)
        kept = {path.stem for path in RELEASED}
        for version, when in versions:
            if when != "not released yet":
                self.assertIn(version, kept, "tests/compatibility/list_protos.py was not run")
            elif version in kept:
                path = next(path for path in RELEASED if path.stem == version)
                self.assertEqual(listing.from_text(path.read_text(encoding="utf-8")), self.today, f"{path.name} is old")

    def test_a_listing_says_it_all(self):
        read = listing.from_text(listing.to_text(self.today))
        self.assertEqual(read, self.today)
        file = listing.to_file(read)
        descriptor_pool.DescriptorPool().Add(file)
        made = listing.of([file])
        for entry in (*made.values(), *read.values()):
            entry.reserved_numbers, entry.reserved_names = [], set()
        self.assertEqual(made, read)


class BreaksTest(unittest.TestCase):
    """Each kind of break is found, and named; what is none is not."""

    def broken(self, change):
        older = today()
        newer = copy.deepcopy(older)
        change(newer)
        return wire.breaks(older, newer)

    def assert_found(self, change, sentence):
        self.assertEqual(self.broken(change), [sentence])

    def test_what_is_gone(self):
        self.assert_found(lambda n: n.pop("Accepted"), "message Accepted is gone")
        self.assert_found(
            lambda n: n["Worker"].lines.pop("Undrain"), "Worker.Undrain, UndrainRequest -> DrainResponse, is gone"
        )
        for message, number, line in (
            ("Accepted", 2, "one uint32 prompt_tokens"),
            ("ServingState", 3, "DRAINING"),
            ("SamplingParams.LogitBiasEntry", 2, "one float value"),
        ):
            self.assert_found(
                lambda n, message=message, number=number: n[message].lines.pop(number),
                f"{message}.{number}, {line}, is gone, and its number and name are not both reserved",
            )

    def test_what_is_another(self):
        for message, key, was, now in (
            ("Accepted", 2, "one uint32 prompt_tokens", "one sint32 prompt_tokens"),
            ("Accepted", 2, "one uint32 prompt_tokens", "one uint32 tokens_of_prompt"),
            ("Accepted", 2, "one uint32 prompt_tokens", "repeated uint32 prompt_tokens"),
            ("DrainRequest", 1, "optional uint32 timeout_ms", "one uint32 timeout_ms"),
            ("WorkerGenerateResponse", 4, "one Summary summary in event", "one Summary summary"),
            ("ServingState", 3, "DRAINING", "LEAVING"),
            ("Worker", "WatchLoad", "WatchLoadRequest -> stream Load", "WatchLoadRequest -> Load"),
        ):
            self.assert_found(
                lambda n, message=message, key=key, now=now: n[message].lines.update({key: now}),
                f"{message}.{key} was {was}, and is {now}",
            )

    def test_a_number_that_is_given_to_another_field(self):
        def renumber(newer):
            lines = newer["Accepted"].lines
            lines[2], lines[3] = lines[3], lines[2]

        self.assertEqual(len(self.broken(renumber)), 2)

    def test_what_is_reserved_may_go_and_what_is_new_may_come(self):
        def reserve(newer):
            entry = newer["Accepted"]
            entry.lines.pop(2)
            entry.reserved_numbers.append((2, 2))
            entry.reserved_names.add("prompt_tokens")

        def add(newer):
            newer["Accepted"].lines[4] = "one uint64 of_a_later_version"
            newer["Accepted"].reserved_numbers = [(5, 10)]
            newer["Worker"].lines["Profile"] = "DrainRequest -> DrainResponse"
            newer["OfALaterVersion"] = listing.Entry("message")

        self.assertEqual(self.broken(reserve), [])
        self.assertEqual(self.broken(add), [])

    def test_a_number_alone_does_not_reserve_a_name(self):
        def reserve_number(newer):
            newer["Accepted"].lines.pop(2)
            newer["Accepted"].reserved_numbers.append((2, 2))

        self.assertEqual(len(self.broken(reserve_number)), 1)


if __name__ == "__main__":
    unittest.main()
