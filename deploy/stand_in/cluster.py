"""As much of Kubernetes as a rolling update and the drain of a node need, in one process."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

import manifests

BINARIES = {"gateway": "frontend/gateway", "worker": "worker/worker", "tokenizer": "tokenizer_service/tokenizer"}
HOSTS_BYTES = 8192  # always written whole, so that no reader finds a part
PROXIES_LAG_S = 2  # until a client's node knows that a Pod is no longer there
START_LIMIT_S = 300
METRICS_PORT = {"gateway": 9090, "worker": 9091}
MS_BIND = 4096


class Trouble(Exception):
    """What ends a rehearsal early, in a sentence."""


class Names:
    """Services and the addresses of their Pods that are ready, in this namespace's /etc/hosts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.addresses = {}
        with tempfile.NamedTemporaryFile(prefix="hosts", delete=False) as file:
            self.path = pathlib.Path(file.name)
        self._write()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(os.fsencode(self.path), b"/etc/hosts", None, MS_BIND, None) != 0:
            raise Trouble(f"mounting a hosts file failed: {os.strerror(ctypes.get_errno())}")
        self.path.unlink()
        self.path = pathlib.Path("/etc/hosts")

    def set(self, service, addresses):
        with self.lock:
            if self.addresses.get(service) != addresses:
                self.addresses[service] = list(addresses)
                self._write()

    def _write(self):
        lines = ["127.0.0.1 localhost"]
        lines += [f"{address} {service}" for service, found in self.addresses.items() for address in found]
        with open(self.path, "r+b", buffering=0) as file:
            file.write(("\n".join(lines) + "\n").encode().ljust(HOSTS_BYTES, b"\n"))


class RunningPod:
    """A process with the Pod's flags, under its probes until it has ended."""

    numbers = itertools.count(1)

    def __init__(self, pod: manifests.Pod, options):
        self.pod = pod
        self.options = options
        self.number = next(self.numbers)
        self.address = f"127.64.0.{self.number}"
        self.name = f"{pod.name} {self.number}"
        self.is_ready = False
        self.is_ending = False
        self.left_at = None  # when it left its Services
        self.was_killed = False
        self.was_restarted = False
        log = subprocess.DEVNULL
        if options.logs:
            log = open(options.logs / f"{self.name.replace(' ', '-')}.log", "wb")  # the process has it
        self.process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        threading.Thread(target=self._probe, daemon=True).start()

    def _command(self):
        pod, options = self.pod, self.options
        flags = {name: value.replace("0.0.0.0", self.address) for name, value in pod.flags.items()}
        if "model" in flags:
            flags["model"] = options.model
        command = [options.binaries / BINARIES[pod.program]]
        command += [f"--{name}={value}" for name, value in flags.items()]
        command += options.worker_flag if pod.program == "worker" else []
        return command + ([f"--metrics_port={self.metrics_port}"] if pod.program in METRICS_PORT else [])

    @property
    def metrics_port(self):
        """All of this machine's addresses have it, so each has another."""
        return METRICS_PORT[self.pod.program] + 100 * self.number

    def end(self):
        """As a kubelet does, on a thread that is returned."""
        self.is_ending = True
        self.is_ready = False
        self.left_at = time.monotonic()
        thread = threading.Thread(target=self._end, daemon=True)
        thread.start()
        return thread

    def _end(self):
        deadline = time.monotonic() + self.pod.grace_s
        time.sleep(self.pod.pre_stop_s)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            self.was_killed = True
            self.process.kill()
            self.process.wait()

    def _probe(self):
        if not self._await("startupProbe"):
            self.was_restarted = True
            return
        failures = {"readinessProbe": 0, "livenessProbe": 0}
        last = dict.fromkeys(failures, 0.0)
        while not self.is_ending and self.process.poll() is None:
            for kind in failures:
                period = self.pod.container[kind]["periodSeconds"] / self.options.hurry
                if time.monotonic() - last[kind] < period:
                    continue
                last[kind] = time.monotonic()
                failures[kind] = 0 if self._succeeds(kind) else failures[kind] + 1
                has_failed = failures[kind] >= self.pod.container[kind]["failureThreshold"]
                if kind == "livenessProbe" and has_failed and not self.is_ending:
                    self.was_restarted = True
                    return
                if kind == "readinessProbe" and not self.is_ending:
                    self._set_ready(failures[kind] == 0 if not self.is_ready else not has_failed)
            time.sleep(0.05)

    def _set_ready(self, is_ready):
        if self.is_ready and not is_ready:
            self.left_at = time.monotonic()
        self.is_ready = is_ready

    def _await(self, kind):
        probe = self.pod.container[kind]
        for _ in range(probe["failureThreshold"]):
            if self.is_ending or self.process.poll() is not None:
                return False
            began = time.monotonic()
            if self._succeeds(kind):
                return True
            time.sleep(max(0, probe["periodSeconds"] / self.options.hurry - (time.monotonic() - began)))
        return False

    def _succeeds(self, kind):
        probe = self.pod.container[kind]["grpc"]
        command = [self.options.binaries / "tools/await_serving", f"{self.address}:{probe['port']}", "1", probe["service"]]
        return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


class Cluster:
    """The Pods of one set of manifests: gateways of a Deployment, and groups of one Pod."""

    def __init__(self, objects, options):
        self.options = options
        kinds = list(manifests.pods(objects))
        if any(pod.role == "follower" for pod in kinds):
            raise Trouble("groups of several Pods need several hosts: rehearse with manifests of groups of one")
        self.services = {s["metadata"]["name"]: s["spec"]["selector"] for s in manifests.of_kind(objects, "Service")}
        self.kinds = kinds
        self.names = Names()
        self.pods = []
        self.all = []  # those that have ended, too
        self.ending = []  # threads
        self.num_failovers = 0
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        """What endpoint controllers do."""
        while True:
            for service, selector in self.services.items():
                ready = [pod.address for pod in list(self.pods) if pod.is_ready and pod.pod.is_selected_by(selector)]
                self.names.set(service, ready)
            time.sleep(0.1)

    def start(self):
        for kind in self.kinds:
            spec = kind.owner["spec"]
            for _ in range(spec.get("replicas", 1)):
                self._create(kind)
        self._await_all_ready()

    def gateways(self):
        """As a client's node knows them: of those that went it hears late."""
        lag = PROXIES_LAG_S / self.options.hurry
        now = time.monotonic()
        return [
            pod.address
            for pod in list(self.all)
            if pod.pod.program == "gateway" and (pod.is_ready or (pod.left_at and now - pod.left_at < lag))
        ]

    def update_gateways(self):
        """maxSurge 1, maxUnavailable 0: one more, then one less."""
        with clock() as seconds:
            for old in self._of("gateway"):
                new = self._create(old.pod)
                self._await_ready(new)
                self._end(old)
            self._await_ended()
        return seconds()

    def update_groups(self):
        """maxUnavailable 1, maxSurge 0: one less, then one more."""
        with clock() as seconds:
            for old in self._of("worker"):
                self._end(old).join()
                self._await_ready(self._create(old.pod))
        return seconds()

    def drain_node(self):
        """Evicts a gateway and a group, each when its budget allows it."""
        with clock() as seconds:
            for program in ("gateway", "worker"):
                evicted = self._of(program)[0]
                self._await_all_ready()
                self._end(evicted)
                self._create(evicted.pod)
            self._await_all_ready()
            self._await_ended()
        return seconds()

    def end(self):
        """Of all; how many had to be killed, or would have been restarted."""
        for pod in list(self.pods):
            self._end(pod)
        self._await_ended()
        return sum(pod.was_killed or pod.was_restarted or pod.process.returncode != 0 for pod in self.all)

    def kill(self):
        for pod in self.all:
            if pod.process.poll() is None:
                pod.process.kill()
                pod.process.wait()

    def _of(self, program):
        return [pod for pod in self.pods if pod.pod.program == program]

    def _create(self, kind):
        pod = RunningPod(kind, self.options)
        self.all.append(pod)
        self.pods.append(pod)
        return pod

    def _end(self, pod):
        if pod.pod.program == "gateway":
            self.num_failovers += failovers_of(pod)
        self.pods.remove(pod)
        thread = pod.end()
        self.ending.append(thread)
        return thread

    def _await_ended(self):
        for thread in self.ending:
            thread.join()
        self.ending.clear()

    def _await_all_ready(self):
        for pod in list(self.pods):
            self._await_ready(pod)

    def _await_ready(self, pod):
        deadline = time.monotonic() + START_LIMIT_S
        while not pod.is_ready:
            if pod.process.poll() is not None:
                raise Trouble(f"{pod.name} ended with {pod.process.returncode} before it was ready")
            if time.monotonic() > deadline:
                raise Trouble(f"{pod.name} was not ready within {START_LIMIT_S} s")
            time.sleep(0.05)


def failovers_of(gateway):
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.metrics_port}/metrics") as page:
        found = re.search(r"^lockstep_gateway_failovers_total (\d+)", page.read().decode(), re.MULTILINE)
    return int(found[1]) if found else 0


@contextlib.contextmanager
def clock():
    began = time.monotonic()
    ended = []
    yield lambda: ended[0] - began
    ended.append(time.monotonic())
