"""The parts of a kubelet and of the controllers that groups need, through the API server."""

import itertools

import manifests
from control_plane import api

NODE = "node-1"
MERGE = "application/merge-patch+json"


def pod_object(kind: manifests.Pod, name, extra_labels=None, node=NODE):
    """What makes the Pods of a workload would make."""
    labels = {**kind.labels, **(extra_labels or {})}
    object_ = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": dict(kind.spec)}
    if node:
        object_["spec"]["nodeName"] = node
    return object_


class Pods:
    """Those of a Service; after each change its EndpointSlice is made what a controller would make it."""

    def __init__(self, server: api.Api, namespace, service, kind: manifests.Pod):
        self.server = server
        self.namespace = namespace
        self.service = server.must("GET", f"/api/v1/namespaces/{namespace}/services/{service}")
        self.kind = kind
        self.slice_name = None
        self.groups = itertools.count()

    @property
    def root(self):
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def slices(self):
        return f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"

    def create(self, name):
        labels = {"leaderworkerset.sigs.k8s.io/group-index": str(next(self.groups))}
        self.server.must("POST", f"{self.root}?fieldValidation=Strict", pod_object(self.kind, name, labels))
        self.sync()

    def set_status(self, name, address, is_ready):
        """As a kubelet says it: of a Pod whose containers run, or, without an address, are being made."""
        status = {"phase": "Running" if address else "Pending"}
        status["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "False"}]
        if address:
            status |= {"podIP": address, "podIPs": [{"ip": address}]}
        self.server.must("PATCH", f"{self.root}/{name}/status", {"status": status}, MERGE)
        self.sync()

    def set_label(self, name, key, value):
        self.server.must("PATCH", f"{self.root}/{name}", {"metadata": {"labels": {key: value}}}, MERGE)
        self.sync()

    def ask_to_end(self, name):
        """It is there until its grace period is over, or the kubelet says that it has ended."""
        self.server.must("DELETE", f"{self.root}/{name}")
        self.sync()

    def has_ended(self, name):
        self.server.must("DELETE", f"{self.root}/{name}?gracePeriodSeconds=0")
        self.sync()

    def sync(self):
        selector = ",".join(f"{key}={value}" for key, value in self.service["spec"]["selector"].items())
        found = self.server.must("GET", f"{self.root}?labelSelector={selector}")["items"]
        slice_ = self._slice([pod for pod in found if pod["status"].get("podIP")])
        if self.slice_name is None:
            slice_["metadata"]["generateName"] = f"{self.service['metadata']['name']}-"
            self.slice_name = self.server.must("POST", self.slices, slice_)["metadata"]["name"]
            return
        slice_["metadata"]["name"] = self.slice_name
        self.server.must("PUT", f"{self.slices}/{self.slice_name}", slice_)

    def _slice(self, pods):
        service = self.service["metadata"]
        labels = {
            "kubernetes.io/service-name": service["name"],
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            "service.kubernetes.io/headless": "",
        }
        ports = self.service["spec"]["ports"]
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"labels": labels},
            "addressType": "IPv4",
            "ports": [
                {"name": port["name"], "port": self.kind.port(port["targetPort"]), "protocol": "TCP"} for port in ports
            ],
            "endpoints": [_endpoint(pod) for pod in pods],
        }


def _endpoint(pod):
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"]["conditions"])
    is_terminating = "deletionTimestamp" in pod["metadata"]
    name = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": is_ready and not is_terminating, "serving": is_ready, "terminating": is_terminating},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", **name},
    }
