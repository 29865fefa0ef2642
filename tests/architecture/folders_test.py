#!/usr/bin/env python3
"""Folders depend on each other as ARCHITECTURE.md says, and in no circle.

The table is the block below "## Folders" there: a folder a line, in an order in
which each names only folders of earlier lines. #include lines and the deps of
BUILD files are held against it.
"""

import pathlib
import re
import unittest

import checkout

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
TABLE = re.compile(r"## Folders.*?```text\n(.*?)```", re.DOTALL)


def allowed():
    """Folder -> the folders it may depend on, in the order of the table."""
    block = TABLE.search(checkout.text("ARCHITECTURE.md"))
    table = {}
    for line in block[1].strip().splitlines():
        folder, _, others = line.partition(":")
        table[folder.strip()] = others.split()
    return table


def sources():
    return [p for p in checkout.files("*.h", "*.cc") if p.parts[0] != "tests"]


def dependencies():
    """(file, folder) of each #include and each dep; those of tests are left out."""
    for path in sources():
        if not checkout.is_test(path):
            for header in INCLUDE.findall(checkout.text(path)):
                yield path, str(pathlib.Path(header).parent)
    for build_file in checkout.files("BUILD.bazel"):
        if build_file.parts[0] == "tests":
            continue
        for rule, arguments in checkout.targets(build_file):
            if rule in ("lockstep_cc_library", "lockstep_cc_binary") and "testonly" not in arguments:
                for label in arguments.get("deps", []):
                    if label.startswith("//") and not label.startswith("//third_party/system"):
                        yield build_file, label[2:].partition(":")[0]


class FoldersTest(unittest.TestCase):
    def setUp(self):
        self.table = allowed()

    def test_table_has_no_circle(self):
        earlier = set()
        for folder, others in self.table.items():
            self.assertLessEqual(set(others), earlier, f"{folder} names a folder of a later line")
            earlier.add(folder)

    def test_table_has_every_folder_and_no_other(self):
        folders = {str(path.parent) for path in sources()}
        self.assertEqual(folders, set(self.table) - {"proto"})

    def test_folders_depend_as_the_table_says(self):
        for path, other in dependencies():
            folder = str(path.parent)
            if other != folder:
                self.assertIn(other, self.table.get(folder, ()), f"{path} depends on {other}")

    def test_table_allows_only_what_is_needed(self):
        needed = {(str(path.parent), other) for path, other in dependencies()}
        for folder, others in self.table.items():
            for other in others:
                self.assertIn((folder, other), needed, f"nothing in {folder} depends on {other}")

    def test_tests_include_their_own_layer(self):
        """The worker's tests know nothing of the gateway, and the other way round."""
        strangers = {"frontend": ("worker", "kernels"), "worker": ("frontend", "tokenizer_service")}
        for path in sources():
            for header in INCLUDE.findall(checkout.text(path)):
                self.assertNotIn(
                    header.partition("/")[0],
                    strangers.get(path.parts[0], ()),
                    f"{path} includes {header}",
                )


if __name__ == "__main__":
    unittest.main()
