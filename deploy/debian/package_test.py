#!/usr/bin/env python3
"""The Debian package: what is in it, and that its parts fit each other and the programs."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DEBIAN = pathlib.Path(os.path.realpath(__file__)).parent
sys.path.insert(0, str(DEBIAN.parent))

import binaries  # noqa: E402

BUILT = pathlib.Path(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
PROGRAMS = ("chat", "gateway", "tokenizer", "worker")
LEAST_MARGIN_S = 10
LINE = re.compile(r"^([a-z_]+): (\S+)$", re.MULTILINE)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "dpkg-dev is not installed")
class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.package = pathlib.Path(cls.folder.name, "lockstep.deb")
        cls.root = pathlib.Path(cls.folder.name, "root")
        run(DEBIAN / "build.sh", BUILT, cls.package)
        run("dpkg-deb", "--extract", cls.package, cls.root)

    def units(self):
        for path in sorted((self.root / "usr/lib/systemd/system").iterdir()):
            unit = configparser.ConfigParser(strict=False, interpolation=None)
            unit.optionxform = str
            unit.read(path)
            with self.subTest(unit=path.name):
                yield path.name, unit

    def test_programs_run_and_say_their_version(self):
        version = run("dpkg-deb", "--field", self.package, "Version").strip()
        for name in PROGRAMS:
            said = run(self.root / f"usr/bin/lockstep-{name}", "--version")
            if name != "chat":
                self.assertIn(f"version {version}", said)

    def test_it_depends_on_the_libraries_of_the_programs(self):
        depends = run("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libgrpc++", "libprotobuf", "libssl"):
            self.assertIn(library, depends)

    def test_what_is_configuration_is_kept(self):
        kept = run("dpkg-deb", "--info", self.package, "conffiles").split()
        self.assertEqual(kept, sorted(f"/{path.relative_to(self.root)}" for path in (self.root / "etc").rglob("*.yaml")))

    def test_units_start_programs_with_files_that_they_take(self):
        for name, unit in self.units():
            program, config = unit["Service"]["ExecStart"].split()
            self.assertTrue((self.root / program[1:]).exists(), program)
            path = self.root / config.removeprefix("--config=/").replace("%i", "main")
            flags = dict(LINE.findall(path.read_text()))
            kind = program.rpartition("-")[2]
            self.assertLessEqual(set(flags), binaries.flags_of(kind))
            printed = run(self.root / program[1:], f"--config={path}", "--print_config")
            for flag, value in flags.items():
                self.assertRegex(printed, rf"(?m)^{flag}: {re.escape(value)} ")
            drain_s = int(flags.get("drain_timeout", 10))
            self.assertGreaterEqual(int(unit["Service"]["TimeoutStopSec"]), drain_s + LEAST_MARGIN_S, name)

    def test_only_leaders_are_told_to_end(self):
        for name, unit in self.units():
            self.assertEqual(unit["Service"].get("KillMode"), "mixed" if "worker" in name else None)

    def test_units_can_do_no_more_than_they_must(self):
        for _, unit in self.units():
            service = unit["Service"]
            self.assertEqual(service["User"], "lockstep")
            self.assertEqual(service["ProtectSystem"], "strict")
            self.assertEqual(service["NoNewPrivileges"], "true")
            self.assertEqual(service["CapabilityBoundingSet"], "")

    def test_manual_pages_have_every_flag(self):
        for name in PROGRAMS:
            page = run("zcat", self.root / f"usr/share/man/man8/lockstep-{name}.8.gz").replace("\\-", "-")
            if name in binaries.FOLDERS:
                for flag in ("listen", "config", "v"):
                    self.assertIn(f"--{flag}=", page, name)
            self.assertNotIn("alsologtoemail", page)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_pages_are_well_formed(self):
        for name in PROGRAMS:
            page = run("zcat", self.root / f"usr/share/man/man8/lockstep-{name}.8.gz")
            made = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, check=True)
            self.assertEqual(made.stderr, "")
            self.assertIn("OPTIONS", re.sub(".\b", "", made.stdout))  # bold is typed twice

    def test_flags_are_completed(self):
        source = self.root / "usr/share/bash-completion/completions/lockstep-gateway"
        script = f"source {source}; COMP_WORDS=(lockstep-gateway --http_l); COMP_CWORD=1; _lockstep_gateway; echo ${{COMPREPLY[@]}}"
        self.assertEqual(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout, "--http_listen=\n")


if __name__ == "__main__":
    unittest.main()
