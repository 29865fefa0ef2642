#!/usr/bin/env python3
"""The commands of the pages do what the pages say: each is run, in their order.

A block of "sh" holds commands, a line each. A block without a language after it
shows what they print; "…" stands for what is left out. `./lockstep up` serves
what follows it on its page, at addresses the system chooses.
"""

import fnmatch
import json
import pathlib
import re
import tempfile
import unittest

from machine import RUNFILES, Machine

PAGES = sorted([*RUNFILES.glob("*.md"), *RUNFILES.glob("docs/*.md")])

NOT_RUN = {
    "bazel *": "Bazel in a test of its own would wait for itself; tests/architecture looks up its targets.",
    "./lockstep fuzz*": "It looks for BUILD files and builds with another compiler; tests/way_in runs it.",
}

# What is typed into a command that reads, with a word of the answer.
TYPED = {"./lockstep chat": ("What is the capital of France?\n/exit\n", "Paris")}

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?:^|\s+)#\s*(.*)")
ENDING = re.compile(r'ends with "(.*?)"')
# Differs from run to run, or from processor to processor.
UNSTABLE = re.compile(
    r'(?<="request_id": ")[^"]*|(?<="seed": ")\d+|(?<="timing": \{)[^}]*|(?<=difference )\S+ \(p\d\)'
    r'|(?<="id":")[^"]*|(?<="system_fingerprint":")[^"]*|(?<="created":)\d+|(?<="cached_tokens":)\d+'
)


class Block:
    """Commands, as (command, comment), and what the page shows of their output."""

    def __init__(self, text):
        self.commands, self.output = [], None
        for line in text.replace("\\\n", " ").splitlines():
            comment = COMMENT.search(line)
            command = COMMENT.sub("", line).strip()
            if command:
                self.commands.append((command, comment[1] if comment else ""))


def blocks(page):
    """The blocks of commands of a page."""
    found = []
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "sh":
            found.append(Block(text))
        elif language == "" and found and found[-1].output is None:
            found[-1].output = text
        elif language not in ("", "text"):
            raise ValueError(f'{page.name}: a block of "{language}"; commands stand in blocks of "sh"')
    return found


def stable(text):
    """A text without what differs from run to run; a number stays one."""
    return UNSTABLE.sub(lambda found: "0" if found[0].isdigit() else "", text)


def split_events(text):
    """The JSON objects of a stream, and the other lines."""
    events, lines, decoder = [], [], json.JSONDecoder()
    while text:
        if text.startswith("{"):
            event, end = decoder.raw_decode(text)
            events.append(event)
            text = text[end:].lstrip()
        else:
            line, _, text = text.partition("\n")
            lines.append(line)
    return events, lines


def join_deltas(events):
    """A stream's text, its ids and its other events: how tokens fall into deltas is open."""
    text, ids, others = "", [], []
    for event in events:
        text += event.get("delta", {}).get("text", "")
        ids += event.get("delta", {}).get("token_ids", [])
        if "delta" not in event:
            others.append(event)
    return text, ids, others


def without_number(words):
    """A pattern for what ends a command: "N passed" with any number."""
    return re.sub(r"\bN\b", "[0-9]+", words)


class CommandsTest(unittest.TestCase):
    def test_commands_do_what_the_pages_say(self):
        for page in PAGES:
            with tempfile.TemporaryDirectory() as folder, Machine(pathlib.Path(folder)) as machine:
                for block in blocks(page):
                    with self.subTest(page=page.name, output=block.output):
                        self.run_block(machine, block)

    def test_what_is_not_run_is_there(self):
        commands = [command for page in PAGES for block in blocks(page) for command, _ in block.commands]
        for pattern in NOT_RUN:
            self.assertTrue(fnmatch.filter(commands, pattern), f"no page has a command {pattern}")

    def run_block(self, machine, block):
        output = ""
        for command, comment in block.commands:
            if not any(fnmatch.fnmatch(command, pattern) for pattern in NOT_RUN):
                with self.subTest(command=command):
                    output += self.run_command(machine, command, comment)
        if block.output is not None:
            self.check_output(machine.with_addresses(block.output), output)

    def run_command(self, machine, command, comment):
        if command.startswith("./lockstep up"):
            output = machine.start_up(command)
            self.assertIn("Lockstep is ready.", output)
            return output
        typed, answer = TYPED.get(command, ("", ""))
        status, output = machine.run(command, typed)
        # It fails where something is missing: packages at first, perhaps memory.
        is_missing = command == "./lockstep doctor" and re.search(r"^missing .*\n +\S", output, re.MULTILINE)
        self.assertEqual(status, 1 if is_missing else 0, output)
        self.assertIn(answer, output)
        ending = ENDING.search(comment)
        if ending:
            self.assertRegex(output.splitlines()[-1], f"^{without_number(ending[1])}$")
        return output

    def check_output(self, shown, output):
        shown_events, shown_lines = split_events(stable(shown))
        events, lines = split_events(stable(output))
        shown_text, shown_ids, shown_others = join_deltas(shown_events)
        text, ids, others = join_deltas(events)
        self.assertEqual(shown_others, others)
        self.assertEqual(shown_text, text[: len(shown_text)])
        self.assertEqual(shown_ids, ids[: len(shown_ids)])
        rest = "\n".join(["", *lines, ""])
        for passage in "\n".join(["", *shown_lines, ""]).split("…"):
            self.assertIn(passage, rest)
            rest = rest[rest.index(passage) + len(passage) - 1 :]


if __name__ == "__main__":
    unittest.main()
