"""The objects of a manifest, and what Kubernetes would make of them."""

import copy
import functools

import yaml

LEADER = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
FOLLOWER = {"leaderworkerset.sigs.k8s.io/worker-index": "1"}

# From the end of a drain to the signal that kills, at least.
LEAST_MARGIN_S = 5


@functools.cache
def load(path):
    with open(path, encoding="utf-8") as stream:
        return [document for document in yaml.load_all(stream, yaml.CSafeLoader) if document]


def key(each):
    return each["kind"], each["metadata"]["name"]


def of_kind(objects, *kinds):
    return [each for each in objects if each["kind"] in kinds]


def program_of(command):
    """The binary's name, of a command that begins with its path."""
    return command[0].rpartition("/")[2]


def given_flags(arguments):
    return dict(argument.removeprefix("--").split("=", 1) for argument in arguments)


class Pod:
    """A kind of Pod that an object makes: its template, with the labels it would have."""

    def __init__(self, owner, role, template, extra_labels=()):
        self.name = f"{owner['metadata']['name']} {role}"
        self.owner = owner
        self.role = role
        self.spec = template["spec"]
        self.labels = {**template["metadata"]["labels"], **dict(extra_labels)}
        (self.container,) = self.spec["containers"]

    @property
    def sidecars(self):
        """Each as this Pod seen from it: they start before the container, and end after it."""
        for container in self.spec.get("initContainers", []):
            seen = copy.copy(self)
            seen.name = f"{self.name} {container['name']}"
            seen.container = container
            yield seen

    @property
    def program(self):
        return program_of(self.container["command"])

    @property
    def flags(self):
        return given_flags(self.container["args"])

    @property
    def grace_s(self):
        return self.spec["terminationGracePeriodSeconds"]

    @property
    def pre_stop_s(self):
        return self.container["lifecycle"]["preStop"]["sleep"]["seconds"]

    def port(self, name):
        """Its number; None where there is no port of that name or number."""
        for port in self.container["ports"]:
            if name in (port["name"], port["containerPort"]):
                return port["containerPort"]
        return None

    def is_selected_by(self, labels):
        return labels.items() <= self.labels.items()


def with_sidecars(pods_):
    return [each for pod in pods_ for each in (pod, *pod.sidecars)]


def pods(objects):
    """Each kind of Pod once: of a group both its leader and its follower."""
    for owner in of_kind(objects, "Deployment"):
        yield Pod(owner, owner["metadata"]["labels"]["app.kubernetes.io/component"], owner["spec"]["template"])
    for owner in of_kind(objects, "LeaderWorkerSet"):
        group = owner["spec"]["leaderWorkerTemplate"]
        name = {"leaderworkerset.sigs.k8s.io/name": owner["metadata"]["name"]}
        yield Pod(owner, "leader", group.get("leaderTemplate", group["workerTemplate"]), {**name, **LEADER})
        if group["size"] > 1:
            yield Pod(owner, "follower", group["workerTemplate"], {**name, **FOLLOWER})
