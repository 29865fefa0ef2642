#!/usr/bin/env python3
"""The descriptor set holds every public service, whole and with its comments."""

import pathlib
import os
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool

SET = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"] / "proto/lockstep.protoset"


class DescriptorSetTest(unittest.TestCase):
    def setUp(self):
        self.files = descriptor_pb2.FileDescriptorSet.FromString(SET.read_bytes()).file

    def test_files_need_no_others(self):
        pool = descriptor_pool.DescriptorPool()
        for file in self.files:
            pool.Add(file)
        for service in ("Inference", "Worker", "Tokenizer"):
            self.assertTrue(pool.FindServiceByName(f"lockstep.v1.{service}").methods)

    def test_comments_are_kept(self):
        for file in self.files:
            self.assertTrue(any(place.leading_comments for place in file.source_code_info.location), file.name)


if __name__ == "__main__":
    unittest.main()
