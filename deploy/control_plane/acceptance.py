"""Whether an API server takes what the chart and the plain manifests say, as strictly as it can."""

import pathlib
import subprocess
import time

import yaml

import manifests
from control_plane import api, cluster

# Each must be refused, or nothing is said by what is not.
WRONG = [
    ("an unknown field", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "wrong"}, "labels": {}}),
    (
        "an unknown field of a defined kind",
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "wrong"},
            "spec": {"replica": 1, "leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": []}}}},
        },
    ),
    (
        "a reference to a Service without a port",
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": "wrong"},
            "spec": {"rules": [{"backendRefs": [{"name": "gateway"}]}]},
        },
    ),
]


def rendered(helm, chart, namespace, values, *settings):
    """What `helm template` makes."""
    made = subprocess.run(
        [helm, "template", "lockstep", chart, "--namespace", namespace, "--values", values, *settings],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        raise api.Trouble(f"helm template of {values}: {made.stderr.decode()}")
    return [each for each in yaml.load_all(made.stdout, yaml.CSafeLoader) if each]


def install_definitions(server: api.Api, definitions):
    for each in definitions:
        server.must("POST", server.path_of(each), each)
    for each in definitions:
        await_established(server, each)
        for version in each["spec"]["versions"]:
            while version["served"] and server.ask("GET", f"/apis/{each['spec']['group']}/{version['name']}").status != 200:
                time.sleep(0.1)


def await_established(server, definition):
    path = f"{server.path_of(definition)}/{definition['metadata']['name']}"
    watch = f"{server.path_of(definition)}?watch=true&fieldSelector=metadata.name={definition['metadata']['name']}"
    while True:
        found = server.must("GET", path)
        conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
        if conditions.get("Established", {}).get("status") == "True":
            return
        refusal = conditions.get("NamesAccepted", {})
        if refusal.get("status") == "False":
            raise api.Trouble(f"{path}: {refusal['message']}")
        server.first_event(f"{watch}&resourceVersion={found['metadata']['resourceVersion']}")


def needs_privileges(objects):
    """Whether a Pod takes a folder of its node, which Pod Security restricts."""
    return any("hostPath" in volume for pod in manifests.pods(objects) for volume in pod.spec.get("volumes", []))


def make_namespace(server: api.Api, name, level):
    labels = {"pod-security.kubernetes.io/enforce": level}
    server.must(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )


def refusals(server: api.Api, namespace, objects):
    """A sentence for each object, and each Pod of it, that is refused or warned of."""
    for each in objects:
        yield from _complaints(" ".join(manifests.key(each)), server.create(each, namespace))
    # What no controller here makes, and a definition's schema does not check.
    for pod in manifests.pods(objects):
        object_ = cluster.pod_object(pod, pod.name.replace(" ", "-"), node=None)
        yield from _complaints(f"Pod {pod.name}", server.create(object_, namespace))


def _complaints(name, answer):
    if answer.status >= 300:
        yield f"{name} is refused: {answer.status} {api.message_of(answer)}"
    for warning in answer.warnings:
        yield f"{name}: warning: {warning}"


def try_all(server: api.Api, helm, deploy: pathlib.Path, say):
    """Creates all objects of each set of values, as the chart and as plain manifests have them; how many complaints there were."""
    num_complaints = 0
    make_namespace(server, "wrong", "restricted")
    for what, each in WRONG:
        answer = server.create(each, "wrong")
        if answer.status < 400:
            say(f"{what} is not refused")
            num_complaints += 1
    for values in sorted((deploy / "helm/lockstep/ci").glob("*.yaml")):
        name = values.stem.replace("_", "-")
        for way in ("helm", "kustomize"):
            namespace = f"{name}-by-{way}"
            if way == "helm":
                objects = rendered(helm, deploy / "helm/lockstep", namespace, values)
            else:
                objects = manifests.load(deploy / "kustomize" / values.stem / "manifests.yaml")
            level = "privileged" if needs_privileges(objects) else "restricted"
            make_namespace(server, namespace, level)
            complaints = list(refusals(server, namespace, objects))
            kinds = {each["kind"] for each in objects}
            pods = sum(1 for _ in manifests.pods(objects))
            say(
                f"{values.stem} by {way}: {len(objects)} objects of {len(kinds)} kinds and {pods} kinds of Pods,"
                f" {level}: {len(complaints)} complaints"
            )
            for complaint in complaints:
                say(f"  {complaint}")
            num_complaints += len(complaints)
    return num_complaints
