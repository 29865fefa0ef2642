"""Whether a gateway follows the Pods of groups through an API server, whatever becomes of its watches."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

import manifests
from control_plane import acceptance, cluster, forwarder, server

NAMESPACE = "lockstep"
SERVICE = "lockstep-leaders"
NETWORK = "10.64.0.0/16"  # of the network namespace, all of it this machine's
SERVER_ADDRESS = "10.64.0.1"
GATEWAY_ADDRESS = "10.64.2.1"
GROUP_ADDRESSES = ["10.64.1.1", "10.64.1.2"]
METRICS_PORT = 19090
LIMIT_S = 120  # more than the longest pause, twice
TOKEN_S = 3600
GROUP = re.compile(r'^lockstep_gateway_group_ready\{group="([0-9.]+):\d+"\} (\d)', re.MULTILINE)
UP = re.compile(r"^lockstep_gateway_discovery_up (\d)", re.MULTILINE)
WATCHES = "watch=true&labelSelector=kubernetes.io%2Fservice-name%3D" + SERVICE


class Gateway:
    """The one of the manifests as a process, with a Pod's environment and its account's files."""

    def __init__(self, pod: manifests.Pod, binaries, model, folder):
        self.account = folder / "account"
        self.account.mkdir()
        self.process = server.Process("gateway", folder)
        flags = {name: value.replace("0.0.0.0", GATEWAY_ADDRESS) for name, value in pod.flags.items()}
        flags |= {"model": model, "service_account": self.account, "metrics_port": METRICS_PORT}
        self.command = [binaries / "frontend/gateway", *(f"--{name}={value}" for name, value in flags.items())]

    def start(self, control_plane, port):
        (self.account / "ca.crt").write_bytes(control_plane.ca.read_bytes())
        self.process.start(
            self.command,
            {
                **os.environ,
                "KUBERNETES_SERVICE_HOST": control_plane.address,
                "KUBERNETES_SERVICE_PORT": str(port),
            },
        )
        self.process.await_(lambda: self._page() is not None, "there")

    def known(self):
        """The addresses that discovery has told, ready or not."""
        return {address for address, _ in GROUP.findall(self._page() or "")}

    def ready(self):
        return {address for address, is_ready in GROUP.findall(self._page() or "") if is_ready == "1"}

    def is_up(self):
        found = UP.search(self._page() or "")
        return bool(found) and found[1] == "1"

    def ask(self):
        """The status of an answer."""
        connection = http.client.HTTPConnection(GATEWAY_ADDRESS, 8080, timeout=LIMIT_S)
        try:
            body = json.dumps({"prompt": "Once upon a time", "max_tokens": 4, "temperature": 0})
            connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()

    def _page(self):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://{GATEWAY_ADDRESS}:{METRICS_PORT}/metrics", timeout=10) as page:
                return page.read().decode()
        return None


class Trial:
    def __init__(self, control_plane: server.ControlPlane, objects, options, say):
        self.control_plane = control_plane
        self.say = say
        self.num_failures = 0
        kinds = list(manifests.pods(objects))
        (self.leader,) = (pod for pod in kinds if pod.role == "leader")
        (gateway,) = (pod for pod in kinds if pod.program == "gateway")
        self.gateway = Gateway(gateway, options.binaries, options.model, control_plane.folder)
        self.workers = [self._worker(address, options) for address in GROUP_ADDRESSES]
        (self.role,) = manifests.of_kind(objects, "Role")
        self.way = forwarder.Forwarder(control_plane.address, control_plane.ports)
        self.pods = cluster.Pods(control_plane.api(), NAMESPACE, SERVICE, self.leader)

    def _worker(self, address, options):
        process = server.Process(f"worker-{address}", self.control_plane.folder)
        flags = {name: value.replace("0.0.0.0", address) for name, value in self.leader.flags.items()}
        flags |= {"model": options.model, "threads": 1, "metrics_port": 0}
        process.start([options.binaries / "worker/worker", *(f"--{name}={value}" for name, value in flags.items())])
        health = f"{address}:{self.leader.port('health')}"
        await_serving = [options.binaries / "tools/await_serving", health, "1", "readiness"]
        process.await_(
            lambda: subprocess.run(await_serving, check=False, stderr=subprocess.DEVNULL).returncode == 0, "ready"
        )
        return process

    def stop(self):
        for each in (self.gateway.process, *self.workers):
            each.stop()

    def bring_token(self, path_of_account):
        """As a kubelet does for a Pod that asks for one."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": TOKEN_S}}
        made = self.control_plane.api().must("POST", f"{path_of_account}/token", request)
        (self.gateway.account / "token").write_text(made["status"]["token"])

    def expect(self, what, is_so):
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > LIMIT_S:
                self.num_failures += 1
                self.say(f"NOT within {LIMIT_S} s: {what}; the gateway knows {sorted(self.gateway.known())}")
                return
            time.sleep(0.05)
        self.say(f"{what}: after {time.monotonic() - began:.1f} s")

    def expect_known(self, what, *addresses):
        self.expect(f"{what}: the gateway knows {', '.join(addresses) or 'none'}", lambda: self.gateway.known() == set(addresses))

    def expect_answer(self, while_):
        self.expect(f"a request is answered {while_}", lambda: self.gateway.ask() == 200)

    def run(self):
        for part in (
            self.without_its_role,
            self.created_and_ready,
            self.unready_and_ending,
            self.other_labels,
            self.watch_cut,
            self.server_away,
            self.version_forgotten,
            self.server_set_back,
        ):
            self.say(f"-- {part.__doc__}")
            part()
        return self.num_failures

    def without_its_role(self):
        """the chart's rules are what it takes"""
        roles = self.control_plane.api()
        path = roles.path_of(self.role, NAMESPACE)
        role = f"{path}/{self.role['metadata']['name']}"
        roles.must("DELETE", role)
        self.bring_token(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.gateway_account}")
        self.gateway.start(self.control_plane, self.way.port)
        self.expect("without the Role its log names the rule", lambda: "endpointslices], verbs" in self.gateway.process.log.read_text())
        roles.must("POST", path, self.role)
        self.expect("with it discovery is up", self.gateway.is_up)

    @property
    def gateway_account(self):
        return self.role["metadata"]["name"]

    def created_and_ready(self):
        """Pods are created, and get ready"""
        first, second = GROUP_ADDRESSES
        self.pods.create("lockstep-default-0")
        self.pods.set_status("lockstep-default-0", "", is_ready=False)
        self.pods.create("lockstep-default-1")
        self.pods.set_status("lockstep-default-1", second, is_ready=False)
        self.pods.set_status("lockstep-default-0", first, is_ready=True)
        self.expect_known("one of two is ready", first)
        self.pods.set_status("lockstep-default-1", second, is_ready=True)
        self.expect_known("both are", first, second)
        self.expect("both groups take requests", lambda: self.gateway.ready() == {first, second})
        self.expect_answer("by them")

    def unready_and_ending(self):
        """Pods get unready, end, and others come in their place"""
        first, second = GROUP_ADDRESSES
        self.pods.set_status("lockstep-default-0", first, is_ready=False)
        self.expect_known("the first is unready", second)
        self.expect_answer("by the second")
        self.pods.set_status("lockstep-default-0", first, is_ready=True)
        self.expect_known("it is ready again", first, second)
        self.pods.ask_to_end("lockstep-default-1")
        self.expect_known("the second is told to end", first)
        self.pods.has_ended("lockstep-default-1")
        self.pods.create("lockstep-default-1")
        self.pods.set_status("lockstep-default-1", second, is_ready=True)
        self.expect_known("one of its name is ready", first, second)

    def other_labels(self):
        """a Pod is no longer one of the Service, and is again"""
        first, second = GROUP_ADDRESSES
        self.pods.set_label("lockstep-default-0", "app.kubernetes.io/component", "retired")
        self.expect_known("it is no leader", second)
        self.pods.set_label("lockstep-default-0", "app.kubernetes.io/component", "worker")
        self.expect_known("it is one", first, second)

    def watch_cut(self):
        """its watches are cut, and what they would have brought is not lost"""
        first, second = GROUP_ADDRESSES
        for is_ready in (False, True):
            self.way.stall()
            self.pods.set_status("lockstep-default-0", first, is_ready)
            self.way.cut()
            self.expect_known("a change that was on its way", *([first] if is_ready else []), second)
        self.way.lead_to(1)
        self.way.cut()
        self.pods.set_status("lockstep-default-0", first, is_ready=False)
        self.expect_known("a change when it is led to another API server", second)
        self.pods.set_status("lockstep-default-0", first, is_ready=True)
        self.expect_known("and one more", first, second)
        self.way.lead_to(0)
        self.way.cut()

    def server_away(self):
        """the API server goes, and comes back"""
        first, second = GROUP_ADDRESSES
        self.control_plane.stop(0)
        self.expect("discovery is down", lambda: not self.gateway.is_up())
        self.expect_known("and all as it was", first, second)
        self.expect_answer("meanwhile")
        self.control_plane.start(0)
        self.expect("discovery is up", self.gateway.is_up)
        self.pods.set_status("lockstep-default-0", first, is_ready=False)
        self.expect_known("a change after that", second)

    def version_forgotten(self):
        """what a watch would go on from is forgotten"""
        first, second = GROUP_ADDRESSES
        version = self.version()
        self.way.stall()
        self.pods.set_status("lockstep-default-0", first, is_ready=True)
        self.pods.set_status("lockstep-default-1", second, is_ready=False)
        self.control_plane.compact()
        self.control_plane.stop(1)
        self.control_plane.start(1)
        event = self.control_plane.api(1).first_event(f"{self.pods.slices}?{WATCHES}&resourceVersion={version}")
        self.say(f"a watch from {version} gets {json.dumps(event)}")
        self.expect("that is 410", lambda: event is not None and event["object"].get("code") == 410)
        self.expect_known("of what was changed it has not heard", second)
        self.way.lead_to(1)
        self.way.cut()
        self.expect_known("it has, by a list", first)

    def server_set_back(self):
        """the API server is set back to a backup"""
        first, second = GROUP_ADDRESSES
        versions = []

        def change():
            for is_ready in (True, False) * 20 + (True,):
                self.pods.set_status("lockstep-default-1", second, is_ready)
            self.expect_known("what is not in the backup", first, second)
            versions.append(self.version())

        self.way.lead_to(0)
        self.control_plane.set_back(change)
        self.expect("discovery is down", lambda: not self.gateway.is_up())
        self.control_plane.start(0)
        self.say(f"the version is {self.version()}, and was {versions[0]}")
        self.expect_known("what was ready in the backup", first)
        self.pods.set_status("lockstep-default-0", first, is_ready=False)
        self.expect_known("a change after that")

    def version(self):
        return self.control_plane.api().must("GET", self.pods.slices)["metadata"]["resourceVersion"]


def try_it(control_plane, helm, deploy: pathlib.Path, options, say):
    """How many of its expectations were not met."""
    admin = control_plane.api()
    values = deploy / "helm/lockstep/ci/single_node.yaml"
    objects = acceptance.rendered(
        helm, deploy / "helm/lockstep", NAMESPACE, values, "--set", "gateway.discovery=kubernetes"
    )
    acceptance.make_namespace(admin, NAMESPACE, "restricted")
    for each in objects:
        if each["kind"] in ("ServiceAccount", "Role", "RoleBinding", "Service"):
            admin.must("POST", admin.path_of(each, NAMESPACE), each)
    trial = Trial(control_plane, objects, options, say)
    try:
        return trial.run()
    finally:
        trial.stop()
