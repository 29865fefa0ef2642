"""The checkout as these tests see it: all of it, not the few files of a target.

Bazel runs a test among links to its own files. Following one of them leads to
the checkout itself, where the files lie that no target names.
"""

import ast
import os
import pathlib
import re

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[2]

# Not ours to write, or not written by hand.
SKIPPED = re.compile(r"^(bazel-|\.git$|\.git/|\.lockstep|compile_commands\.json)|__pycache__")


def files(*patterns):
    """Paths of the checkout that match a pattern such as *.cc, relative and sorted."""
    found = set()
    for folder, subfolders, names in os.walk(ROOT):
        here = pathlib.Path(folder).relative_to(ROOT)
        subfolders[:] = [s for s in subfolders if not SKIPPED.search(str(here / s))]
        found.update(
            here / name
            for name in names
            if not SKIPPED.search(str(here / name))
            and any((here / name).match(pattern) for pattern in patterns)
        )
    return sorted(found)


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def is_test(path):
    """Whether a C++ file is of a test and so may include what tests include."""
    return path.stem.endswith(("_test", "_test_fixture")) or path.parts[0] == "tests"


def targets(build_file):
    """The rules a BUILD file calls, as (rule, arguments that are literals)."""
    for node in ast.walk(ast.parse(text(build_file))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, {
                argument.arg: _literals(argument.value) for argument in node.keywords
            }


def _literals(node):
    """The strings in an expression: of a list, a select, a sum of both."""
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
