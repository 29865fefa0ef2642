#!/usr/bin/env python3
"""Each barrier of the kernels is one that a test misses when it is taken away.

    barriers_test.py TEST...

The programs are tests of kernels. Those of their cases that take barriers away
say which ones made a difference: see ExpectNeedsEachBarrier.
"""

import os
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(os.path.realpath(__file__)).parent
BARRIER = re.compile(r"\b__sync(threads|warp)\(\)")
NEEDED = re.compile(r"^barrier (?:\./)?(kernels/cuda/\S+:\d+) is needed$", re.MULTILINE)

# The only ones that may be left, and why nothing misses them on the emulation.
ORDER_MEMORY_ALONE = {
    # The shuffles before it have brought the lanes together already, but order
    # no memory for the model of CUDA. ThreadSanitizer reports it when it is gone.
    "kernels/cuda/rotary.cu.cc": 1,
}


def barriers():
    """PATH:LINE of each in a source."""
    found = set()
    for path in sorted([*FOLDER.rglob("*.h"), *FOLDER.rglob("*.cu.cc")]):
        name = pathlib.Path("kernels/cuda") / path.relative_to(FOLDER)
        if "emulation" in name.parts:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if BARRIER.search(line.split("//")[0]):
                found.add(f"{name}:{number}")
    return found


def needed(program):
    done = subprocess.run(
        [program, "--gtest_filter=*Need*Barrier*"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{program} failed")
    if "ThreadSanitizer itself" in done.stdout:
        print("ThreadSanitizer reports what lacks a barrier.")
        sys.exit(0)
    found = set(NEEDED.findall(done.stdout))
    if not found:
        sys.exit(f"{done.stdout}{program} takes no barrier away")
    return found


def main():
    all_barriers = barriers()
    left = all_barriers.difference(*[needed(program) for program in sys.argv[1:]])
    print(len(all_barriers), "barriers;", "nothing misses", *sorted(left) or ["none"])
    alone = {}
    for barrier in left:
        path = barrier.rsplit(":", 1)[0]
        alone[path] = alone.get(path, 0) + 1
    if alone != ORDER_MEMORY_ALONE:
        sys.exit("Take a barrier that nothing needs out of its kernel, or see to it that a test takes it away.")


if __name__ == "__main__":
    main()
