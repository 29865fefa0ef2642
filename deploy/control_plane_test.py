#!/usr/bin/env python3
"""What the trial on a real API server makes of Pods and connections, without one."""

import socket
import threading
import unittest

import binaries
import manifests
from control_plane import acceptance, api, cluster, forwarder

OBJECTS = manifests.load(binaries.ROOT / "deploy/kustomize/single_node/manifests.yaml")
ADDRESS = "127.0.0.1"


class FakeApi:
    """Keeps the Pods that it is given, and the last slice."""

    def __init__(self):
        self.pods = []
        self.written = []

    def must(self, method, path, body=None, *_):
        if "/services/" in path:
            return next(s for s in manifests.of_kind(OBJECTS, "Service") if path.endswith(s["metadata"]["name"]))
        if "/endpointslices" in path:
            self.written.append((method, path, body))
            return {"metadata": {"name": "slice"}}
        if method == "GET":
            return {"items": self.pods}
        raise AssertionError(f"{method} {path}")


def pod(address, is_ready=True, **metadata):
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    return {
        "metadata": {"name": "pod", "namespace": "prod", "uid": f"uid-{address}", **metadata},
        "spec": {"nodeName": cluster.NODE},
        "status": {"podIP": address, "conditions": conditions},
    }


class SlicesTest(unittest.TestCase):
    def setUp(self):
        self.server = FakeApi()
        (leader,) = (each for each in manifests.pods(OBJECTS) if each.role == "leader")
        self.pods = cluster.Pods(self.server, "prod", "lockstep-leaders", leader)

    def endpoints(self):
        self.pods.sync()
        return {
            each["targetRef"]["uid"]: tuple(each["conditions"][key] for key in ("ready", "serving", "terminating"))
            for each in self.server.written[-1][2]["endpoints"]
        }

    def test_conditions_are_a_controllers(self):
        self.server.pods = [
            pod("10.0.0.1"),
            pod("10.0.0.2", is_ready=False),
            pod("10.0.0.3", deletionTimestamp="2026-01-01T00:00:00Z"),
            pod(None),
        ]
        self.assertEqual(
            self.endpoints(),
            {
                "uid-10.0.0.1": (True, True, False),
                "uid-10.0.0.2": (False, False, False),
                "uid-10.0.0.3": (False, True, True),
            },
        )

    def test_a_slice_is_made_once_and_then_written_over(self):
        self.endpoints()
        self.endpoints()
        self.assertEqual([method for method, *_ in self.server.written], ["POST", "PUT"])
        slice_ = self.server.written[-1][2]
        self.assertEqual(slice_["metadata"]["labels"]["kubernetes.io/service-name"], "lockstep-leaders")
        self.assertEqual(slice_["ports"], [{"name": "grpc", "port": 50052, "protocol": "TCP"}])


class AcceptanceTest(unittest.TestCase):
    def test_refusals_and_warnings_are_told(self):
        class Server:
            def create(self, object_, namespace):
                if object_["kind"] == "Role":
                    return api.Answer(422, {"message": "no"}, [])
                return api.Answer(201, {}, ["old"] if object_["kind"] == "Pod" else [])

        self.assertEqual(
            list(acceptance.refusals(Server(), "prod", [*OBJECTS, {"kind": "Role", "metadata": {"name": "r"}}])),
            ["Role r is refused: 422 no"]
            + [f"Pod {name}: warning: old" for name in ("lockstep-gateway gateway", "lockstep-default leader")],
        )


class Echo:
    """Says its name, and then whatever it is told."""

    def __init__(self, name):
        self.listener = socket.create_server((ADDRESS, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(name,), daemon=True).start()

    def _serve(self, name):
        while True:
            connection, _ = self.listener.accept()
            connection.sendall(name)
            while piece := connection.recv(100):
                connection.sendall(piece)
            connection.close()


class ForwarderTest(unittest.TestCase):
    def setUp(self):
        self.way = forwarder.Forwarder(ADDRESS, [Echo(b"a").port, Echo(b"b").port])

    def connect(self):
        connection = socket.create_connection((ADDRESS, self.way.port), timeout=60)
        self.addCleanup(connection.close)
        return connection

    def test_leads_where_it_is_told(self):
        old = self.connect()
        self.assertEqual(old.recv(1), b"a")
        self.way.lead_to(1)
        self.assertEqual(self.connect().recv(1), b"b")
        old.sendall(b"x")
        self.assertEqual(old.recv(1), b"x")

    def test_what_was_held_back_is_lost_with_the_connection(self):
        connection = self.connect()
        self.assertEqual(connection.recv(1), b"a")
        self.way.stall()
        connection.sendall(b"x")
        self.way.cut()
        self.assertEqual(connection.recv(1), b"")
        self.assertEqual(self.connect().recv(1), b"a")

    def test_a_server_that_is_away_ends_the_connection(self):
        with socket.create_server((ADDRESS, 0)) as closed:
            self.way.ports[1] = closed.getsockname()[1]
        self.way.lead_to(1)
        self.assertEqual(self.connect().recv(1), b"")


if __name__ == "__main__":
    unittest.main()
