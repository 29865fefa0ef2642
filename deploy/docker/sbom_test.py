#!/usr/bin/env python3
"""The image's SBOM is an SPDX 2.3 document of all that is in the programs."""

import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import sbom

PACKAGES = """\
libssl3 3.0.17-1~deb12u2 openssl https://www.openssl.org/
libstdc++6 12.2.0-14+deb12u1 gcc-12 http://gcc.gnu.org/
libzstd1 1.5.4+dfsg2-5 libzstd
"""
COMPILED_IN = "nlohmann-json3-dev 3.11.2-2 nlohmann-json3 https://github.com/nlohmann/json\n"
LOCK = (sbom.ROOT / "third_party/text/Cargo.lock").read_text(encoding="utf-8")

# What the specification of SPDX 2.3 requires, and of what form; sections 6, 7 and 11.
DOCUMENT = {
    "spdxVersion": r"SPDX-2\.3",
    "dataLicense": r"CC0-1\.0",
    "SPDXID": r"SPDXRef-DOCUMENT",
    "name": r".+",
    "documentNamespace": r"https://[^#\s]+",
}
PACKAGE = {
    "SPDXID": r"SPDXRef-[A-Za-z0-9.-]+",
    "name": r".+",
    "versionInfo": r".+",
    "downloadLocation": r"NOASSERTION|NONE|\w+://.+",
}
PURL = re.compile(r"pkg:(deb/debian|cargo|generic)/[a-z0-9._+-]+@[A-Za-z0-9.%~_-]+(\?[a-z0-9&=_.-]+)?", re.IGNORECASE)
CREATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def made(packages=PACKAGES, at="1700000000"):
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("image", "compiled_in")]
        for path, text in zip(paths, (packages, COMPILED_IN)):
            path.write_text(text)
        return subprocess.run(
            [sbom.__file__, *paths], stdout=subprocess.PIPE, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": at}
        ).stdout


class SbomTest(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(made())
        self.packages = self.document["packages"]

    def assert_has(self, each, wanted):
        for key, form in wanted.items():
            self.assertRegex(each[key], f"^({form})$", key)

    def test_it_has_what_spdx_requires(self):
        self.assert_has(self.document, DOCUMENT)
        self.assertRegex(self.document["creationInfo"]["created"], CREATED)
        self.assertRegex(self.document["creationInfo"]["creators"][0], r"^Tool: \S+$")
        for each in self.packages:
            self.assert_has(each, PACKAGE)
            self.assertFalse(each["filesAnalyzed"])
            (reference,) = each["externalRefs"]
            self.assertEqual(reference["referenceCategory"], "PACKAGE-MANAGER")
            self.assertRegex(reference["referenceLocator"], PURL)
            for sum_ in each.get("checksums", []):
                self.assertEqual(sum_["algorithm"], "SHA256")
                self.assertRegex(sum_["checksumValue"], "^[0-9a-f]{64}$")

    def test_ids_are_given_once_and_relationships_lead_to_them(self):
        ids = [each["SPDXID"] for each in self.packages]
        self.assertEqual(len(ids), len(set(ids)))
        related = collections.Counter(each["relatedSpdxElement"] for each in self.document["relationships"])
        self.assertEqual(related, collections.Counter(ids))
        sources = {each["spdxElementId"] for each in self.document["relationships"]}
        self.assertEqual(sources, {"SPDXRef-DOCUMENT", sbom.LOCKSTEP})

    def test_everything_is_in_it(self):
        told = {(each["name"], each["versionInfo"]) for each in self.packages}
        for line in (PACKAGES + COMPILED_IN).splitlines():
            self.assertIn(tuple(line.split()[:2]), told)
        # Counted another way: ours alone has no source.
        crates = [each for each in self.packages if each["externalRefs"][0]["referenceLocator"].startswith("pkg:cargo/")]
        self.assertEqual(len(crates), LOCK.count("[[package]]") - 1)
        self.assertTrue(all(each["checksums"] for each in crates))

    def test_the_same_gives_the_same(self):
        self.assertEqual(made(), made())
        names = [json.loads(text)["documentNamespace"] for text in (made(), made(at="1800000000"), made(PACKAGES[60:]))]
        self.assertEqual(names[0], names[1])
        self.assertNotEqual(names[0], names[2])


if __name__ == "__main__":
    unittest.main()
