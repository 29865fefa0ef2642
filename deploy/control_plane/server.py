"""etcd and kube-apiserver as processes of this machine, in a folder of their own."""

import base64
import ctypes
import http.client
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from control_plane import api

START_LIMIT_S = 300
PR_SET_PDEATHSIG = 1
ADMIN_TOKEN = "admin"
SERVICES = "10.96.0.0/16"
ISSUER = "https://kubernetes.default.svc"


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port(address):
    with socket.create_server((address, 0)) as found:
        return found.getsockname()[1]


class Process:
    """One at a time of a program; a signal to the terminal is not one to it."""

    def __init__(self, name, logs):
        self.name = name
        self.log = logs / f"{name}.log"
        self.process = None

    def start(self, command, environment=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(each) for each in command],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def has_ended(self):
        return self.process is None or self.process.poll() is not None

    def stop(self, limit_s=30):
        if self.has_ended():
            return
        self.process.terminate()
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def await_(self, is_done, what):
        deadline = time.monotonic() + START_LIMIT_S
        while not is_done():
            if self.has_ended():
                raise api.Trouble(f"{self.name} ended before {what}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise api.Trouble(f"not {what} within {START_LIMIT_S} s: {self.last_words()}")
            time.sleep(0.1)

    def last_words(self):
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-3:])


def make_keys(folder, address):
    """A CA, the server's certificate, and the key that signs tokens."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", *new_key, "-subj", "/CN=cluster", "-keyout", "ca.key", "-out", "ca.crt")
    names = f"subjectAltName=DNS:kubernetes.default.svc,IP:{address}"
    authority = ["-CA", "ca.crt", "-CAkey", "ca.key"]
    openssl(
        "req", "-x509", *new_key, *authority, "-subj", "/CN=kube-apiserver", "-addext", names,
        "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "server.key", "-out", "server.crt",
    )  # fmt: skip
    openssl("genrsa", "-out", "tokens.key", "2048")
    openssl("rsa", "-in", "tokens.key", "-pubout", "-out", "tokens.pub")
    (folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')


class ControlPlane:
    """Ends with the block; `num_servers` API servers share one etcd.

    with ControlPlane(programs, folder, "127.0.0.1") as control_plane:
        control_plane.api().ask("GET", "/version")
    """

    def __init__(self, programs, folder, address, num_servers=1):
        self.programs = programs
        self.folder = pathlib.Path(folder)
        self.address = address
        make_keys(self.folder, address)
        self.etcd = Process("etcd", self.folder)
        self.etcd_port, self.peer_port = free_port(address), free_port(address)
        self.servers = [Process(f"kube-apiserver-{number}", self.folder) for number in range(num_servers)]
        self.ports = [free_port(address) for _ in self.servers]

    @property
    def ca(self):
        return self.folder / "ca.crt"

    @property
    def data(self):
        return self.folder / "etcd"

    def __enter__(self):
        try:
            self._start_all()
        except BaseException:
            self._stop_all()
            raise
        return self

    def __exit__(self, *_):
        self._stop_all()

    def api(self, number=0, token=ADMIN_TOKEN):
        return api.Api(self.address, self.ports[number], self.ca, token)

    def start_etcd(self):
        client, peer = (f"http://{self.address}:{port}" for port in (self.etcd_port, self.peer_port))
        self.etcd.start(
            [self.programs / "etcd", f"--data-dir={self.data}", "--unsafe-no-fsync"]
            + [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
            + [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]
        )
        self.etcd.await_(self._etcd_is_healthy, "healthy")

    def start(self, number):
        self.servers[number].start(
            [self.programs / "kube-apiserver", f"--etcd-servers=http://{self.address}:{self.etcd_port}"]
            + [f"--bind-address={self.address}", f"--advertise-address={self.address}"]
            + [f"--secure-port={self.ports[number]}", f"--cert-dir={self.folder}", "--endpoint-reconciler-type=none"]
            + [f"--tls-cert-file={self.folder}/server.crt", f"--tls-private-key-file={self.folder}/server.key"]
            + [f"--token-auth-file={self.folder}/tokens.csv", "--authorization-mode=RBAC"]
            + [f"--service-account-issuer={ISSUER}", f"--service-account-key-file={self.folder}/tokens.pub"]
            + [f"--service-account-signing-key-file={self.folder}/tokens.key"]
            + [f"--service-cluster-ip-range={SERVICES}", "--etcd-compaction-interval=0"]
        )
        self.servers[number].await_(lambda: self._is_ready(number), "ready")

    def _start_all(self):
        self.start_etcd()
        for number in range(len(self.servers)):
            self.start(number)

    def _stop_all(self):
        for server in self.servers:
            server.stop()
        self.etcd.stop()

    def stop(self, number):
        self.servers[number].stop()

    def set_back(self, act):
        """Calls `act`, and has all that it changed undone, as from a backup of before; then no server runs."""
        backup = self.folder / "backup"
        self._stop_all()
        shutil.copytree(self.data, backup)
        self._start_all()
        act()
        self._stop_all()
        shutil.rmtree(self.data)
        backup.rename(self.data)
        self.start_etcd()

    def compact(self):
        """Has etcd forget all versions but the newest."""
        nothing = base64.b64encode(b"\0").decode()
        newest = self._ask_etcd("kv/range", {"key": nothing})["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": newest, "physical": True})
        return int(newest)

    def _ask_etcd(self, what, body):
        url = f"http://{self.address}:{self.etcd_port}/v3/{what}"
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=30) as answer:
            return json.load(answer)

    def _etcd_is_healthy(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}:{self.etcd_port}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _is_ready(self, number):
        try:
            return self.api(number).ask("GET", "/readyz").status == 200
        except (OSError, http.client.HTTPException):
            return False
