#!/usr/bin/env python3
"""compose.yaml holds together with the binaries, and names files that are there."""

import re
import unittest

import binaries
import manifests

DOCKER = binaries.ROOT / "deploy/docker"


class ComposeTest(unittest.TestCase):
    def setUp(self):
        (compose,) = manifests.load(DOCKER / "compose.yaml")
        self.services = compose["services"]
        self.ours = {
            name: service for name, service in self.services.items() if service["image"] == "lockstep"
        }

    def flags(self, service):
        return manifests.given_flags(service["command"][1:])

    def test_there_are_two_groups_and_a_gateway_that_knows_them(self):
        self.assertEqual(set(self.ours), {"group-a", "group-b", "gateway"})
        workers = self.flags(self.ours["gateway"])["workers"].split(",")
        self.assertEqual(workers, ["group-a:50052", "group-b:50052"])

    def test_flags_exist(self):
        for name, service in self.ours.items():
            program = manifests.program_of(service["command"])
            self.assertLessEqual(set(self.flags(service)), binaries.flags_of(program), name)

    def test_nothing_is_killed_that_could_still_end(self):
        for name, service in self.ours.items():
            grace_s = int(re.fullmatch(r"(\d+)s", service["stop_grace_period"])[1])
            drain_s = int(self.flags(service)["drain_timeout"])
            self.assertGreaterEqual(grace_s, drain_s + manifests.LEAST_MARGIN_S, name)

    def test_programs_can_do_no_more_than_they_must(self):
        for service in self.ours.values():
            self.assertTrue(service["read_only"])
            self.assertEqual(service["cap_drop"], ["ALL"])

    def test_what_is_mounted_is_there(self):
        for name, service in self.services.items():
            for volume in service["volumes"]:
                if not volume["source"].startswith("$"):
                    self.assertTrue((DOCKER / volume["source"]).exists(), f"{name}: {volume['source']}")
                self.assertTrue(volume["read_only"], name)

    def test_prometheus_asks_each_program(self):
        (configuration,) = manifests.load(DOCKER / "prometheus.yaml")
        asked = {
            target.partition(":")[0]
            for job in configuration["scrape_configs"]
            for targets in job["static_configs"]
            for target in targets["targets"]
        }
        self.assertEqual(asked, set(self.ours))

    def test_images_are_pinned(self):
        images = [service["image"] for service in self.services.values() if service["image"] != "lockstep"]
        containerfile = (DOCKER / "Containerfile").read_text(encoding="utf-8")
        images += re.findall(r"^ARG BASE=(.*)", containerfile, re.MULTILINE)
        for image in images:
            self.assertRegex(image, r":v?\d+\.\d+", image)


if __name__ == "__main__":
    unittest.main()
