"""What the sources say of the binaries."""

import functools
import os
import pathlib
import re

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[1]
FOLDERS = {"gateway": "frontend", "worker": "worker", "tokenizer": "tokenizer_service"}
DEFINED_FLAG = re.compile(r"\bDEFINE_\w+\(\s*([a-z0-9_]+)")


@functools.cache
def flags_of(program):
    """The flags that are defined where a binary is made, and those that all may have."""
    folders = (ROOT / FOLDERS[program], ROOT / "common")
    sources = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.cc")]
    return set(DEFINED_FLAG.findall("".join(sources)))
