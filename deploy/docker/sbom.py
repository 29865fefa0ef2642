#!/usr/bin/env python3
"""Prints what the programs are made of, as an SPDX 2.3 document in JSON:

deploy/docker/sbom.py PACKAGES COMPILED_IN

Files of lines of "NAME VERSION SOURCE HOMEPAGE", as dpkg-query shows packages
of Debian: those whose files are in the image, and those that were compiled into
the programs. Cargo.lock adds the Rust crates, with their hashes.

What is the same gives the same document, but for its time, which is that of
SOURCE_DATE_EPOCH where it is set.
"""

import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.compile(r'kVersion\[\] = "(.*)"')
CRATE = re.compile(r'\[\[package\]\]\nname = "(.*)"\nversion = "(.*)"\n(?:source = ".*"\nchecksum = "(.*)"\n)?')
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
NOT_SAID = "NOASSERTION"
LOCKSTEP = "SPDXRef-lockstep"


def package(kind, name, version, purl, **more):
    """An id may have letters, digits, dots and hyphens alone."""
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}-{version}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": NOT_SAID,
        "filesAnalyzed": False,
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
        **more,
    }


def debian(path):
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    for line in sorted(path.read_text(encoding="utf-8").splitlines()):
        name, version, source, *homepage = line.split()
        purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}&distro=debian-12"
        more = {"homepage": homepage[0]} if homepage else {}
        yield package("deb", name, version, purl, sourceInfo=f"built from the source package {source}", **more)


def crates(lock):
    for name, version, checksum in CRATE.findall(lock):
        if checksum:  # Ours has none.
            sums = [{"algorithm": "SHA256", "checksumValue": checksum}]
            yield package("crate", name, version, f"pkg:cargo/{name}@{version.replace('+', '%2B')}", checksums=sums)


def document(image, compiled_in, lock, version, created):
    ours = package("program", "lockstep", version, f"pkg:generic/lockstep@{version}", licenseDeclared="Apache-2.0")
    ours["SPDXID"] = LOCKSTEP
    parts = [("DYNAMIC_LINK", each) for each in image]
    parts += [("STATIC_LINK", each) for each in (*compiled_in, *crates(lock))]
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", LOCKSTEP)]
    relationships += [(LOCKSTEP, how, each["SPDXID"]) for how, each in parts]
    packages = [ours, *(each for _, each in parts)]
    digest = hashlib.sha256(json.dumps(packages).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"lockstep-{version}",
        "documentNamespace": f"https://lockstep.invalid/spdx/lockstep-{version}-{digest}",
        "creationInfo": {"created": f"{created:%Y-%m-%dT%H:%M:%SZ}", "creators": ["Tool: lockstep-deploy-docker-sbom"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other} for one, how, other in relationships
        ],
    }


def main():
    image, compiled_in = map(pathlib.Path, sys.argv[1:])
    at = os.environ.get("SOURCE_DATE_EPOCH")
    utc = datetime.timezone.utc
    made = document(
        list(debian(image)),
        list(debian(compiled_in)),
        (ROOT / "third_party/text/Cargo.lock").read_text(encoding="utf-8"),
        VERSION.search((ROOT / "common/program/version.h").read_text(encoding="utf-8"))[1],
        datetime.datetime.fromtimestamp(int(at), utc) if at else datetime.datetime.now(utc),
    )
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
