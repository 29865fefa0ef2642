#!/usr/bin/env python3
"""What holds for every file: its size, what it may name, how its target is made."""

import collections
import re
import unittest

import checkout

MOST_LINES = 400
MOST_KERNEL_LINES = 500
MOST_HEADERS_IN_A_FOLDER = 20

CODE = ("*.h", "*.cc", "*.cu", "*.cuh", "*.rs", "*.py", "*.sh", "*.bzl", "*.bazel", "lockstep")
TEXT = CODE + ("*.md", "*.proto", "*.json", "*.toml", "run", ".bazelrc", "WORKSPACE")
THIS = "tests/architecture/files_test.py"

# Packages come by name, through clients as the machine has them set up.
REGISTRIES = {"pypi": "org", "pythonhosted": "org", "crates": "io", "npmjs": "org"}
REGISTRIES |= {"golang": "org", "maven": "org", "debian": "org"}
HOSTS = re.compile("|".join(rf"\b{name}\.{end}\b" for name, end in REGISTRIES.items()))
PATHS = re.compile(r"(?<![\w./$}])/(root|work|home|Users)/")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|DISABLED_\w+)\b")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|SleepFor)\b")
# Absl's, which end when the clock on the wall says so.
TIMED_WAIT = re.compile(r"\b(Await|LockWhen|WaitForNotification|Wait)With(Timeout|Deadline)\b")
SANITIZERS = re.compile(r"\b__SANITIZE_\w+")
# Their order follows addresses and hashes, which may not reach a plan: docs/group_protocol.md. What iterates none of
# them may be named here, by its path and why.
UNORDERED = re.compile(r"\b(unordered_(?:multi)?(?:map|set)|(?:flat|node)_hash_(?:map|set))\b")
UNORDERED_ALLOWED = {}
RAW_RULE = re.compile(r"^(?:native\.)?(cc_library|cc_binary|cc_test|sh_test|py_test)\(", re.MULTILINE)


class FilesTest(unittest.TestCase):
    def assert_nowhere(self, pattern, paths, why):
        for path in paths:
            if str(path) == THIS:
                continue
            for number, line in enumerate(checkout.text(path).splitlines(), 1):
                found = pattern.search(line)
                self.assertIsNone(found, f"{path}:{number}: {why}: {line.strip()}")

    def test_files_are_short(self):
        for path in checkout.files(*CODE):
            most = MOST_KERNEL_LINES if path.parts[0] == "kernels" else MOST_LINES
            lines = checkout.text(path).count("\n")
            self.assertLessEqual(lines, most, f"{path} has {lines} lines: find its seam")

    def test_folders_are_small(self):
        headers = collections.Counter(str(path.parent) for path in checkout.files("*.h"))
        for folder, number in headers.items():
            if not folder.startswith("tests"):
                self.assertLessEqual(number, MOST_HEADERS_IN_A_FOLDER, f"{folder} wants a subfolder")

    def test_headers_are_included_once(self):
        for path in checkout.files("*.h"):
            self.assertIn("#pragma once\n", checkout.text(path), path)

    def test_every_kernel_is_compiled_for_gpus(self):
        listed = re.findall(r'"//(.*):(.*)"', checkout.text("kernels/cuda/kernels.bzl"))
        sources = [str(path) for path in checkout.files("*.cu.cc")]
        self.assertEqual(sorted(f"{folder}/{name}.cu.cc" for folder, name in listed), sources)

    def test_no_file_names_a_registry(self):
        self.assert_nowhere(HOSTS, checkout.files(*TEXT), "names a host of packages")

    def test_no_file_names_a_place_of_one_machine(self):
        self.assert_nowhere(PATHS, checkout.files(*TEXT), "names a path of one machine")

    def test_nothing_is_unfinished(self):
        self.assert_nowhere(UNFINISHED, checkout.files(*CODE), "is unfinished")

    def test_no_test_sleeps(self):
        tests = [path for path in checkout.files("*.h", "*.cc") if checkout.is_test(path)]
        self.assert_nowhere(SLEEP, tests, "sleeps instead of waiting for something")

    def test_no_wait_of_a_worker_follows_the_wall_clock(self):
        ours = [path for path in checkout.files("*.h", "*.cc") if path.parts[0] == "worker"]
        self.assert_nowhere(TIMED_WAIT, ours, "follows a clock that is set: take common/time/steady_wait.h")

    def test_sanitizers_are_asked_for_as_every_compiler_tells_them(self):
        ours = checkout.files("*.h", "*.cc")
        self.assert_nowhere(SANITIZERS, ours, "is gcc's alone: take ABSL_HAVE_…_SANITIZER")

    def test_nothing_of_a_rank_is_in_the_order_of_a_hash(self):
        ours = [path for path in checkout.files("*.h", "*.cc") if path.parts[0] in ("worker", "common")]
        self.assertGreater(len(ours), 300)
        checked = [path for path in ours if str(path) not in UNORDERED_ALLOWED]
        self.assert_nowhere(UNORDERED, checked, "has an order that may differ from rank to rank: take std::map")
        for path in UNORDERED_ALLOWED:
            self.assertRegex(checkout.text(path), UNORDERED, f"{path} needs no exception")

    def test_what_is_unordered_is_found(self):
        for name in ("std::unordered_map<int, int> a", "absl::flat_hash_set<int> b", "<absl/container/node_hash_map.h>"):
            self.assertRegex(name, UNORDERED)

    def test_targets_are_made_by_our_macros(self):
        for path in checkout.files("BUILD.bazel"):
            if path.parts[0] != "third_party":
                self.assertIsNone(RAW_RULE.search(checkout.text(path)), f"{path} goes past //bazel:defs.bzl")

    def test_a_library_is_one_pair(self):
        for path in checkout.files("BUILD.bazel"):
            for rule, arguments in checkout.targets(path):
                if rule != "lockstep_cc_library" or path.parts[0] == "kernels":
                    continue
                name = arguments["name"][0]
                for kind in ("hdrs", "srcs"):
                    named = [f for f in arguments.get(kind, []) if f.endswith((".h", ".cc"))]
                    self.assertLessEqual(len(named), 2, f"{path}: {name} has {kind} of more than one idea")

    def test_scripts_can_be_run(self):
        for path in checkout.files("*.sh", "lockstep", "run", "*_test.py"):
            self.assertTrue((checkout.ROOT / path).stat().st_mode & 0o100, f"{path} is not executable")


if __name__ == "__main__":
    unittest.main()
