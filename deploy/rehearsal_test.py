#!/usr/bin/env python3
"""A rehearsal of the plain manifests, with a few streams."""

import os
import pathlib
import subprocess
import sys
import unittest

import binaries
import own_namespace

DATA = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", ""), "models")
MODELS = sorted(DATA.glob("*.gguf"))
RUNFILES = pathlib.Path(os.environ.get("TEST_SRCDIR", ""), os.environ.get("TEST_WORKSPACE", ""))


def may_mount():
    return subprocess.run([*own_namespace.unshare("--mount"), "true"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(MODELS, f"there is no model in {DATA}; ./lockstep test fetches one")
@unittest.skipUnless(may_mount(), "no mount namespaces can be made here")
class RehearsalTest(unittest.TestCase):
    def test_no_stream_is_cut(self):
        rehearsed = subprocess.run(
            [sys.executable, binaries.ROOT / "deploy/rehearsal.py", f"--model={MODELS[0]}", f"--binaries={RUNFILES}"]
            + ["--streams=8", "--tokens=60", "--hurry=4", "--worker_flag=--threads=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print(rehearsed.stdout)
        self.assertEqual(rehearsed.returncode, 0)


if __name__ == "__main__":
    unittest.main()
