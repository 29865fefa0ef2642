#!/usr/bin/env python3
"""The plain manifests hold together, with each other and with the binaries."""

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
FOLDERS = sorted(path.parent for path in (DEPLOY / "kustomize").glob("*/manifests.yaml"))

# Where ./lockstep test has fetched helm and kubectl to.
os.environ["PATH"] += f":{os.environ.get('LOCKSTEP_TEST_DATA', '')}/kubernetes"

HEALTH_SERVICES = {
    "gateway": {"liveness", "readiness"},
    "worker": {"liveness", "readiness"},
    "tokenizer": {"liveness", "readiness"},
}
FILE_FLAGS = {
    "api_keys_file", "tls_certificate", "tls_key", "tls_client_ca", "worker_tls_ca", "tokenizer_tls_ca",
    "client_tls_certificate", "client_tls_key",
}
# What --worker_discovery=kubernetes:… needs; frontend/discovery says so when it is refused.
ENDPOINTS_RULE = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}
# What a tokenizer's running calls get; a constant of its main.cc.
TOKENIZER_GRACE = re.compile(r"kGraceMs = ([0-9']+);")
DRAIN_DEFAULT = re.compile(r"DEFINE_int32\(drain_timeout, (\d+),")
LOOKUP_INTERVAL = re.compile(r"interval = absl::Seconds\((\d+)\)")
NAMES_LAST_S = 5  # the TTL that CoreDNS gives Services' names
CONNECTING_S = 3  # to a group that has been found, and to check what it is
# Of the endpoint picker, which is not the chart's.
PICKER = {"app": "picker"}


def drain_s(pod):
    if pod.program != "tokenizer":
        return int(pod.flags["drain_timeout"])
    source = (binaries.ROOT / "tokenizer_service/main.cc").read_text()
    return int(TOKENIZER_GRACE.search(source)[1].replace("'", "")) / 1000


def place_of_leaders(gateway):
    """The Service that a gateway follows, and the port: a name where it asks the API server."""
    how, _, where = gateway.flags["worker_discovery"].partition(":")
    if how == "dns":
        name, _, port = where.partition(":")
        return name, int(port)
    return where.partition("/")[2], "grpc"


def asks_api_server(pod):
    return pod.flags.get("worker_discovery", "").startswith("kubernetes:")


class ManifestsTest(unittest.TestCase):
    def each(self):
        """Every folder's objects and Pods, in a sub-test of its own."""
        self.assertTrue(FOLDERS)
        for folder in FOLDERS:
            objects = manifests.load(folder / "manifests.yaml")
            with self.subTest(folder=folder.name):
                yield objects, list(manifests.pods(objects))

    def test_nothing_is_killed_that_could_still_end(self):
        for _, pods in self.each():
            for pod in pods:
                ends_s = pod.pre_stop_s + drain_s(pod) + sum(map(drain_s, pod.sidecars))
                self.assertGreaterEqual(pod.grace_s, ends_s + manifests.LEAST_MARGIN_S, pod.name)

    def test_gateways_know_that_a_group_goes_before_it_refuses_them(self):
        source = (binaries.ROOT / "frontend/discovery/dns_discovery.h").read_text()
        interval_s = int(LOOKUP_INTERVAL.search(source)[1])
        for _, pods in self.each():
            for pod in pods:
                if pod.role == "leader":
                    self.assertGreaterEqual(pod.pre_stop_s, interval_s + NAMES_LAST_S + CONNECTING_S, pod.name)

    def test_groups_have_time_to_form_and_load(self):
        for _, pods in self.each():
            for pod in pods:
                if pod.program == "worker":
                    probe = pod.container["startupProbe"]
                    limit_s = probe["periodSeconds"] * probe["failureThreshold"]
                    self.assertGreater(limit_s, int(pod.flags["group_timeout"]), pod.name)
                    # A leader says which rank does not load before its Pod is restarted for it.
                    self.assertGreater(limit_s, int(pod.flags["load_timeout"]), pod.name)

    def test_followers_outlive_their_leader(self):
        for _, pods in self.each():
            graces = {pod.name: pod.grace_s for pod in pods}
            for pod in pods:
                if pod.role == "follower":
                    self.assertGreater(pod.grace_s, graces[f"{pod.owner['metadata']['name']} leader"])

    def test_several_gateways_agree_on_the_group_of_a_prompt(self):
        for objects, pods in self.each():
            scaled = [each["spec"]["scaleTargetRef"]["name"] for each in manifests.of_kind(objects, "HorizontalPodAutoscaler")]
            for pod in pods:
                if pod.program != "gateway" or pod.owner["kind"] != "Deployment":
                    continue
                is_one = pod.owner["spec"].get("replicas") == 1 and pod.owner["metadata"]["name"] not in scaled
                # Each of several would learn alone what groups have cached.
                self.assertEqual(pod.flags.get("routing_policy"), None if is_one else "prefix_hash", pod.name)

    def test_defaults_are_those_of_the_programs(self):
        """Of the drain, which the chart's grace periods are made for."""
        for program, folder in (("gateway", "frontend"), ("worker", "worker")):
            source = (binaries.ROOT / folder / "options.cc").read_text()
            default = DRAIN_DEFAULT.search(source)[1]
            for _, pods in self.each():
                for pod in pods:
                    if pod.program == program:
                        self.assertEqual(pod.flags["drain_timeout"], default, pod.name)

    def test_flags_exist(self):
        for _, pods in self.each():
            for pod in manifests.with_sidecars(pods):
                self.assertLessEqual(set(pod.flags), binaries.flags_of(pod.program), pod.name)

    def test_ports_are_those_that_programs_listen_on(self):
        for _, pods in self.each():
            for pod in pods:
                for flag, name in (("listen", "grpc"), ("http_listen", "http"), ("health_listen", "health")):
                    if flag in pod.flags:
                        self.assertEqual(pod.flags[flag], f"0.0.0.0:{pod.port(name)}", pod.name)
                if pod.role == "follower":
                    self.assertTrue(pod.flags["leader_address"].endswith(f":{pod.port('rendezvous')}"))
                for sidecar in pod.sidecars:
                    for flag, name in (("http_listen", "http"), ("health_listen", "gateway-health")):
                        self.assertEqual(sidecar.flags[flag], f"0.0.0.0:{sidecar.port(name)}", sidecar.name)
                    # Nobody else in the Pod has it; the gateway's gRPC is for nobody.
                    self.assertEqual(sidecar.flags["listen"], "127.0.0.1:50051")

    def test_containers_of_a_pod_share_no_port(self):
        for _, pods in self.each():
            for pod in pods:
                ports = [port for each in (pod, *pod.sidecars) for port in each.container["ports"]]
                for key in ("name", "containerPort"):
                    self.assertEqual(len({port[key] for port in ports}), len(ports), pod.name)

    def test_probes_ask_for_what_health_knows(self):
        for _, pods in self.each():
            for pod in manifests.with_sidecars(pods):
                for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                    probe = pod.container[kind]["grpc"]
                    self.assertIsNotNone(pod.port(probe["port"]), pod.name)
                    self.assertIn(probe["service"], HEALTH_SERVICES[pod.program], pod.name)
                # While it starts a gateway has no group, and a group that drains is not ready.
                self.assertNotEqual(pod.container["livenessProbe"]["grpc"]["service"], "readiness", pod.name)

    def test_services_lead_to_pods_and_their_ports(self):
        for objects, pods in self.each():
            for service in manifests.of_kind(objects, "Service"):
                chosen = [pod for pod in pods if pod.is_selected_by(service["spec"]["selector"])]
                self.assertTrue(chosen, service["metadata"]["name"])
                for port in service["spec"]["ports"]:
                    for pod in chosen:
                        self.assertEqual(pod.port(port["targetPort"]), port["port"], pod.name)

    def test_gateways_find_leaders_alone(self):
        for objects, pods in self.each():
            services = {each["metadata"]["name"]: each["spec"] for each in manifests.of_kind(objects, "Service")}
            for gateway in (pod for pod in pods if pod.program == "gateway"):
                name, port = place_of_leaders(gateway)
                chosen = [pod for pod in pods if pod.is_selected_by(services[name]["selector"])]
                self.assertEqual(services[name]["clusterIP"], "None")
                self.assertEqual({pod.role for pod in chosen}, {"leader"})
                self.assertEqual({pod.port(port) for pod in chosen}, {50052})
                self.assertEqual(len(chosen), len(manifests.of_kind(objects, "LeaderWorkerSet")))

    def test_pools_are_of_leaders_that_have_a_gateway(self):
        pools = 0
        for objects, pods in self.each():
            for pool in manifests.of_kind(objects, "InferencePool"):
                pools += 1
                chosen = [pod for pod in pods if pod.is_selected_by(pool["spec"]["selector"]["matchLabels"])]
                self.assertEqual({pod.role for pod in chosen}, {"leader"})
                self.assertEqual(len(chosen), len(manifests.of_kind(objects, "LeaderWorkerSet")))
                (target,) = pool["spec"]["targetPorts"]
                for pod in chosen:
                    (gateway,) = pod.sidecars
                    self.assertEqual(gateway.program, "gateway")
                    self.assertEqual(gateway.container["restartPolicy"], "Always")
                    self.assertEqual(gateway.port(target["number"]), target["number"])
                    # Of this group alone: which one it is the picker has chosen.
                    self.assertEqual(gateway.flags["workers"], f"127.0.0.1:{pod.port('grpc')}")
                    self.assertNotIn("worker_discovery", gateway.flags)
                (route,) = manifests.of_kind(objects, "HTTPRoute")
                (reference,) = (ref for rule in route["spec"]["rules"] for ref in rule["backendRefs"])
                self.assertEqual(
                    reference,
                    {"group": "inference.networking.k8s.io", "kind": pool["kind"], "name": pool["metadata"]["name"]},
                )
        self.assertGreater(pools, 0)

    def test_every_pod_has_one_disruption_budget(self):
        for objects, pods in self.each():
            for pod in pods:
                budgets = [
                    each["metadata"]["name"]
                    for each in manifests.of_kind(objects, "PodDisruptionBudget")
                    if pod.is_selected_by(each["spec"]["selector"]["matchLabels"])
                ]
                self.assertEqual(len(budgets), 1, pod.name)

    def test_every_pod_has_one_network_policy_and_its_peers_exist(self):
        for objects, pods in self.each():
            policies = manifests.of_kind(objects, "NetworkPolicy")
            for pod in pods:
                chosen = [p for p in policies if pod.is_selected_by(p["spec"]["podSelector"]["matchLabels"])]
                self.assertEqual(len(chosen), 1, pod.name)
                for rule in chosen[0]["spec"]["ingress"]:
                    for port in rule.get("ports", []):
                        found = [each.port(port["port"]) for each in (pod, *pod.sidecars)]
                        self.assertTrue(any(found), f"{pod.name} {port}")
            for policy in policies:
                for rule in policy["spec"]["ingress"] + policy["spec"]["egress"]:
                    for peer in rule.get("from", []) + rule.get("to", []):
                        if set(peer) == {"podSelector"} and peer["podSelector"]["matchLabels"] != PICKER:
                            labels = peer["podSelector"]["matchLabels"]
                            self.assertTrue(any(pod.is_selected_by(labels) for pod in pods), labels)

    def test_pods_are_guaranteed_their_resources(self):
        for _, pods in self.each():
            for pod in manifests.with_sidecars(pods):
                resources = pod.container["resources"]
                self.assertEqual(resources["requests"], resources["limits"], pod.name)
                self.assertTrue(resources["limits"]["cpu"].isdigit(), pod.name)

    def test_pods_can_do_no_more_than_they_must(self):
        for _, pods in self.each():
            for pod in manifests.with_sidecars(pods):
                self.assertTrue(pod.spec["securityContext"]["runAsNonRoot"])
                self.assertEqual(pod.spec["automountServiceAccountToken"], asks_api_server(pod))
                container = pod.container["securityContext"]
                self.assertTrue(container["readOnlyRootFilesystem"])
                self.assertFalse(container["allowPrivilegeEscalation"])
                self.assertEqual(container["capabilities"], {"drop": ["ALL"]})

    def test_roles_are_for_what_asks_and_allow_just_that(self):
        for objects, pods in self.each():
            bindings = manifests.of_kind(objects, "RoleBinding")
            asking = {pod.spec["serviceAccountName"] for pod in pods if asks_api_server(pod)}
            self.assertEqual({subject["name"] for each in bindings for subject in each["subjects"]}, asking)
            self.assertEqual(
                [(role["metadata"]["name"], role["rules"]) for role in manifests.of_kind(objects, "Role")],
                [(each["roleRef"]["name"], [ENDPOINTS_RULE]) for each in bindings],
            )

    def test_volumes_are_mounted_and_models_only_read(self):
        for _, pods in self.each():
            for pod in pods:
                mounted = set()
                for each in (pod, *pod.sidecars):
                    mounts = {mount["name"]: mount for mount in each.container.get("volumeMounts", [])}
                    mounted |= set(mounts)
                    if "model" in each.flags:
                        is_file = each.flags["model"].startswith(f"{mounts['models']['mountPath']}/")
                        self.assertEqual(mounts["models"]["readOnly"], is_file, each.name)
                self.assertEqual(mounted, {volume["name"] for volume in pod.spec.get("volumes", [])}, pod.name)

    def test_models_of_a_hub_are_kept_in_the_volume(self):
        hubs = 0
        for objects, pods in self.each():
            for pod in pods:
                environment = {each["name"]: each for each in pod.container.get("env", [])}
                if "model" not in pod.flags or pod.flags["model"].startswith("/"):
                    self.assertFalse([name for name in environment if name.startswith("HF_")], pod.name)
                    continue
                hubs += 1
                self.assertEqual(environment["HF_HOME"]["value"], "/models", pod.name)
                self.assertIn("secretKeyRef", environment["HF_TOKEN"]["valueFrom"], pod.name)
                (models,) = (volume for volume in pod.spec["volumes"] if volume["name"] == "models")
                self.assertNotIn("image", models, pod.name)
                (policy,) = (
                    each
                    for each in manifests.of_kind(objects, "NetworkPolicy")
                    if pod.is_selected_by(each["spec"]["podSelector"]["matchLabels"])
                )
                self.assertIn({"ports": [{"port": 443}]}, policy["spec"]["egress"], pod.name)
        self.assertGreater(hubs, 0)

    def test_files_of_tls_and_keys_are_mounted_for_the_group_alone(self):
        for _, pods in self.each():
            for pod in manifests.with_sidecars(pods):
                mounts = {mount["mountPath"]: mount["name"] for mount in pod.container.get("volumeMounts", [])}
                volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
                for flag in FILE_FLAGS & set(pod.flags):
                    folder = pod.flags[flag].rpartition("/")[0]
                    self.assertEqual(volumes[mounts[folder]]["secret"]["defaultMode"], 0o440, f"{pod.name} {flag}")

    def test_gateways_speak_tls_where_it_is_spoken_and_know_the_names(self):
        for objects, pods in self.each():
            by_program = {pod.program: pod for pod in pods}
            certificates = manifests.of_kind(objects, "Certificate")
            names = {each["spec"]["secretName"]: each["spec"]["dnsNames"] for each in certificates}
            gateway = by_program["gateway"].flags
            for program in ("worker", "tokenizer"):
                server = by_program.get(program)
                if server is None:
                    continue
                self.assertEqual("tls_certificate" in server.flags, f"{program}_tls_ca" in gateway)
                if "tls_client_ca" not in server.flags:
                    continue
                self.assertIn("client_tls_certificate", gateway)
                (secret,) = (v["secret"]["secretName"] for v in server.spec["volumes"] if v["name"] == "tls")
                expected = gateway["worker_tls_name"] if program == "worker" else gateway["tokenizer_address"].split(":")[0]
                self.assertEqual(secret, f"{expected}-tls")
                if names:
                    self.assertEqual(names[secret], [expected])

    def test_services_say_which_ports_are_without_tls(self):
        for objects, pods in self.each():
            for service in manifests.of_kind(objects, "Service"):
                (pod, *_) = (each for each in pods if each.is_selected_by(service["spec"]["selector"]))
                for port in service["spec"]["ports"]:
                    if port["name"] == "grpc":
                        self.assertEqual("appProtocol" in port, "tls_certificate" not in pod.flags, pod.name)

    def test_groups_start_and_end_as_one(self):
        for objects, _ in self.each():
            for group in manifests.of_kind(objects, "LeaderWorkerSet"):
                self.assertEqual(group["spec"]["startupPolicy"], "LeaderCreated")
                template = group["spec"]["leaderWorkerTemplate"]
                self.assertEqual(template["restartPolicy"], "RecreateGroupAfterStart")
                self.assertEqual("leaderTemplate" in template, template["size"] > 1)

    def test_names_are_given_once(self):
        for objects, _ in self.each():
            names = [manifests.key(each) for each in objects]
            self.assertEqual(len(names), len(set(names)))

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
    def test_kustomize_takes_them(self):
        for folder in FOLDERS:
            made = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)


@unittest.skipUnless(shutil.which("helm"), "helm is not installed")
class ChartTest(unittest.TestCase):
    def test_plain_manifests_are_what_the_chart_makes(self):
        with tempfile.TemporaryDirectory() as made:
            subprocess.run([DEPLOY / "kustomize/render.sh", made], check=True)
            for folder in FOLDERS:
                self.assertEqual(
                    sorted(manifests.load(folder / "manifests.yaml"), key=manifests.key),
                    sorted(manifests.load(pathlib.Path(made) / folder.name / "manifests.yaml"), key=manifests.key),
                    "deploy/kustomize/render.sh was not run",
                )

    def test_lint_finds_nothing(self):
        for values in sorted((DEPLOY / "helm/lockstep/ci").iterdir()):
            linted = subprocess.run(
                ["helm", "lint", "--strict", DEPLOY / "helm/lockstep", "--values", values],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(linted.returncode, 0, linted.stdout)

    def test_values_that_cannot_be_are_refused(self):
        for setting, why in (
            ("gateway.replica=3", "replica"),
            ("gateway.discovery=consul", "discovery"),
            ("worker.resources.cpu=1500m", "cpu"),
            ("worker.nodes=2", "must divide tensorParallelSize"),
            ("model.volume.hostPath.path=/var/lib/models", "volume"),
            ("model.path=/models/m.gguf", "path"),
            ("model.path=", "exactly one of path and hub.name"),
            ("model.hub.name=owner/model", "exactly one of path and hub.name"),
            ("model.hub.name=model", "name"),
            ("routes.http.enabled=true", "parents"),
            ("inferencePool.enabled=true", "service"),
            ("tls.internal.issuer.kind=Issuer", "issuer"),
            ("tls.clients.secret=Not_One", "secret"),
        ):
            with self.subTest(setting=setting):
                made = subprocess.run(
                    ["helm", "template", "lockstep", DEPLOY / "helm/lockstep"]
                    + ["--values", DEPLOY / "helm/lockstep/ci/single_node.yaml", "--set-string" if "cpu" in setting else "--set", setting],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.assertNotEqual(made.returncode, 0)
                self.assertIn(why, made.stderr)


if __name__ == "__main__":
    unittest.main()
