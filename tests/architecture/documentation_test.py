#!/usr/bin/env python3
"""What the documents name is there: flags, links, files and Bazel's targets.

Their commands are run by tests/documentation, except Bazel's.
"""

import pathlib
import re
import shlex
import unittest

import checkout

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN_FOLDERS = {pathlib.Path("."), pathlib.Path("docs")}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
PATH = re.compile(r"`([a-z][a-z0-9_]*/[A-Za-z0-9_/.]*(?:\.(?:h|cc|py|sh|proto|bzl)|/))`")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9_]{2,})\b")
DEFINED_FLAG = re.compile(r"\bDEFINE_\w+\(\s*([a-z0-9_]+)")
RIVAL = re.compile(r'(?<=--rival )"[^"]*"')  # a command with flags of its own
OTHERS_FLAGS = {"config", "test_arg", "test_filter", "test_env", "test_output", "curses"}


def documents():
    return checkout.files("*.md")


def commands():
    """(document, words) of each command in a block of sh; comments are left out."""
    for document in documents():
        for block in BLOCK.findall(checkout.text(document)):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield document, words


class DocumentationTest(unittest.TestCase):
    def test_commands_stand_where_they_are_run(self):
        for document in documents():
            if document.parent not in RUN_FOLDERS:
                self.assertNotRegex(checkout.text(document), BLOCK, f"tests/documentation does not run {document}")

    def test_targets_and_configurations_exist(self):
        for document, words in commands():
            with self.subTest(document=str(document), command=" ".join(words)):
                if words[0] == "bazel":
                    self.assertIn(words[1], ("build", "test", "run"))
                for word in words[1:]:
                    if word.startswith("--config="):
                        self.assertIn(f":{word.partition('=')[2]} ", checkout.text(".bazelrc"))
                    elif word.startswith("//"):
                        self.check_label(word)

    def check_label(self, label):
        folder, _, target = label[2:].removesuffix("...").rstrip("/").partition(":")
        self.assertTrue((checkout.ROOT / folder).is_dir(), f"no folder {folder}")
        if target and target != "all":
            build_file = checkout.text(pathlib.Path(folder) / "BUILD.bazel")
            self.assertIn(f'"{target}"', build_file, f"{folder} has no target {target}")

    def test_flags_exist(self):
        known = set(OTHERS_FLAGS)
        for path in checkout.files("*.cc"):
            known.update(DEFINED_FLAG.findall(checkout.text(path)))
        known.update(FLAG.findall(checkout.text("lockstep")))
        for path in checkout.files("*.sh", "*.py"):
            if path.parts[0] in ("bench", "deploy", "tools"):
                known.update(FLAG.findall(checkout.text(path)))
        for document in documents():
            for flag in FLAG.findall(RIVAL.sub("", checkout.text(document))):
                # A switch may be turned off: --noNAME.
                self.assertIn(
                    flag.removeprefix("no") if flag not in known else flag,
                    known,
                    f"{document}: there is no flag --{flag}",
                )

    def test_links_lead_somewhere(self):
        for document in documents():
            for link in LINK.findall(checkout.text(document)):
                target = checkout.ROOT / document.parent / link
                self.assertTrue(target.exists(), f"{document}: {link} is not there")

    def test_paths_named_exist(self):
        for document in documents():
            for path in PATH.findall(checkout.text(document)):
                places = (checkout.ROOT / path, checkout.ROOT / document.parent / path)
                self.assertTrue(any(p.exists() for p in places), f"{document}: {path} is not there")

    def test_readme_is_short(self):
        self.assertLessEqual(checkout.text("README.md").count("\n"), 150)


if __name__ == "__main__":
    unittest.main()
