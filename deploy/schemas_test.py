#!/usr/bin/env python3
"""Every object that the chart makes is of its kind's schema, strictly: kubeconform says so."""

import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import binaries
import manifests

FOLDERS = sorted((binaries.ROOT / "deploy/kustomize").glob("*/manifests.yaml"))
# Where ./lockstep test has fetched them to; on a machine without Go it does not.
FETCHED = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", ""), "schemas")
# Whose names are anyone's.
OPEN = {"labels", "annotations", "matchLabels", "limits", "requests", "nodeSelector"}


def complaints(objects):
    """What kubeconform says of them; empty where all is well."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("\n---\n".join(map(json.dumps, objects)))
        file.flush()
        checked = subprocess.run(
            [FETCHED / "kubeconform", "-strict", "-schema-location"]
            + [f"{FETCHED}/schemas/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", file.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return checked.stdout or ("" if checked.returncode == 0 else f"status {checked.returncode}")


def places(value, place=()):
    """Where in an object there are objects, itself first."""
    if isinstance(value, dict):
        yield place
        for key, each in value.items():
            yield from places(each, (*place, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from places(each, (*place, number))


def with_field_at(each, place, name):
    changed = copy.deepcopy(each)
    inner = changed
    for key in place:
        inner = inner[key]
    inner[name] = "x"
    return changed


@unittest.skipUnless((FETCHED / "kubeconform").exists(), f"there is no kubeconform in {FETCHED}")
class SchemasTest(unittest.TestCase):
    def test_objects_are_of_their_schemas(self):
        self.assertTrue(FOLDERS)
        for path in FOLDERS:
            with self.subTest(folder=path.parent.name):
                self.assertEqual(complaints(manifests.load(path)), "")

    def test_every_kind_is_held_to_it(self):
        """An object of a kind without a schema, of no version, and one with a field too many in its specification."""
        kinds = {}
        for path in FOLDERS:
            for each in manifests.load(path):
                kinds.setdefault((each["apiVersion"], each["kind"]), each)
        self.assertGreater(len(kinds), 15)
        wrong = [{**each, "apiVersion": each["apiVersion"] + "9"} for each in kinds.values()]
        wrong += [with_field_at(each, (), "unheardOf") for each in kinds.values()]
        wrong += [with_field_at(each, ("spec",), "unheardOf") for each in kinds.values() if "spec" in each]
        said = complaints(wrong)
        self.assertEqual(len(said.splitlines()), len(wrong), said)

    def test_fields_are_known_wherever_they_stand(self):
        """In a Pod's template, too, of one kind of Kubernetes' own and one that is not."""
        objects = [each for path in FOLDERS for each in manifests.load(path)]
        wrong = []
        for kind in ("Deployment", "LeaderWorkerSet"):
            (each, *_) = manifests.of_kind(objects, kind)
            within = [place for place in places(each["spec"]) if not OPEN & set(place)]
            self.assertGreater(len(within), 20)
            wrong += [with_field_at(each, ("spec", *place), "unheardOf") for place in within]
        said = complaints(wrong)
        self.assertEqual(len(said.splitlines()), len(wrong), said)


if __name__ == "__main__":
    unittest.main()
