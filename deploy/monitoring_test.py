#!/usr/bin/env python3
"""Alerts, dashboards, scalers and runbooks name metrics that the binaries have.

docs/metrics.md lists those, and a test of theirs holds it to the binaries.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import binaries
import manifests

DEPLOY = binaries.ROOT / "deploy"
RUNBOOKS = binaries.ROOT / "docs/runbooks"

# Where ./lockstep test has fetched promtool to.
os.environ["PATH"] += f":{os.environ.get('LOCKSTEP_TEST_DATA', '')}/prometheus"

ROW = re.compile(r"^\| `([a-z0-9_:]+)` \|([^|]*)\|([^|]*)\|", re.MULTILINE)
METRIC = re.compile(r"(?<![\w:])((?:vllm:|lockstep_|process_|exposer_)[a-z0-9_:]+)(\{[^}]*\})?")
GROUPING = re.compile(r"\b(?:by|on) \(([^)]*)\)")
MATCHED = re.compile(r"(\w+)\s*(?:=~|!=|!~|=)")
SERIES = re.compile(r"_(bucket|sum|count)$")
# Which a scrape adds; the last two the chart's PodMonitor.
OF_THE_TARGET = {"namespace", "pod", "instance", "job", "le", "group_set", "group_index"}


def known_metrics():
    """Name -> labels, of the tables of docs/metrics.md."""
    page = (binaries.ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels in ROW.findall(page)}


def rules():
    (alerts,) = manifests.load(DEPLOY / "prometheus/alerts.yaml")
    return [rule for group in alerts["groups"] for rule in group["rules"]]


def expressions():
    """(where, expression) of everything that asks Prometheus."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    for path in (DEPLOY / "grafana").glob("*.json"):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"{path.name}: {panel['title']}", target["expr"]
        for variable in dashboard["templating"]["list"]:
            if isinstance(variable["query"], dict):
                yield f"{path.name}: {variable['name']}", variable["query"]["query"]
    for folder in (DEPLOY / "kustomize").glob("*/manifests.yaml"):
        for scaler in manifests.of_kind(manifests.load(folder), "ScaledObject"):
            for trigger in scaler["spec"]["triggers"]:
                yield f"{folder.parent.name}: {scaler['metadata']['name']}", trigger["metadata"]["query"]


class MonitoringTest(unittest.TestCase):
    def setUp(self):
        self.known = known_metrics()
        self.assertGreater(len(self.known), 40)

    def resolve(self, name):
        """The metric that a series is of; None where there is none."""
        if name in self.known:
            return name
        return SERIES.sub("", name) if SERIES.sub("", name) in self.known else None

    def test_expressions_name_metrics_and_labels_that_are_there(self):
        recorded = {rule["record"] for rule in rules() if "record" in rule}
        for where, expression in expressions():
            with self.subTest(where=where, expression=expression):
                metrics = METRIC.findall(expression)
                self.assertTrue(metrics or any(name in expression for name in recorded))
                labels = set(OF_THE_TARGET)
                for name, matchers in metrics:
                    metric = self.resolve(name)
                    self.assertIsNotNone(metric, f"there is no {name}")
                    labels |= self.known[metric]
                    self.assertLessEqual(set(MATCHED.findall(matchers)), self.known[metric] | OF_THE_TARGET, name)
                for grouping in GROUPING.findall(expression):
                    self.assertLessEqual({each.strip() for each in grouping.split(",")}, labels)

    def test_runbooks_name_metrics_that_are_there(self):
        for page in RUNBOOKS.glob("*.md"):
            for name, _ in METRIC.findall(page.read_text(encoding="utf-8")):
                self.assertIsNotNone(self.resolve(name), f"{page.name}: there is no {name}")

    def test_each_alert_has_a_runbook_and_each_runbook_an_alert(self):
        alerts = [rule for rule in rules() if "alert" in rule]
        pages = {page.name: page.read_text(encoding="utf-8") for page in RUNBOOKS.glob("*.md")}
        for alert in alerts:
            page = pathlib.Path(alert["annotations"]["runbook"])
            self.assertEqual(page.parent, pathlib.Path("docs/runbooks"))
            self.assertIn(alert["alert"], pages[page.name].partition("\n")[0])
        named = {pathlib.Path(alert["annotations"]["runbook"]).name for alert in alerts}
        self.assertEqual(named, set(pages))

    def test_dashboards_are_what_their_script_makes(self):
        with tempfile.TemporaryDirectory() as made:
            subprocess.run([DEPLOY / "grafana/make_dashboards.py", made], check=True)
            for path in (DEPLOY / "grafana").glob("*.json"):
                self.assertEqual(path.read_text(), (pathlib.Path(made) / path.name).read_text(), path.name)

    def test_each_alert_is_tried_when_it_should_come(self):
        (tried,) = manifests.load(DEPLOY / "prometheus/alerts_test.yaml")
        cases = [case for test in tried["tests"] for case in test["alert_rule_test"]]
        coming = {case["alertname"] for case in cases if case.get("exp_alerts")}
        self.assertEqual(coming, {rule["alert"] for rule in rules() if "alert" in rule})

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_alerts_come_when_they_should(self):
        for arguments in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]):
            ran = subprocess.run(
                ["promtool", *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
            )
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
