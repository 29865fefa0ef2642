"""A machine for the commands of the pages: a checkout, a home and a PATH of its own.

Its scripts are the checkout's, its programs those just built. Stand-ins take the
place of Bazel, which can not run inside a test of its own, and of what would
change the real machine: on this one nothing is installed at first.
"""

import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
LIMIT_S = 900  # Only a failing test waits for it.

STAND_INS = {
    "apt-get": 'printf "%s\\n" "$@" >> "$HOME/installed"',
    "dpkg-query": 'sed "s/^/installed /" "$HOME/installed"',
    "sudo": 'shift; exec "$@"',
    "rustc": "echo rustc 999.0.0",
    # Everything is built, every test passes, one file is compiled.
    "bazel": """
case $1 in
  test) for word; do case $word in //*) echo "$word  PASSED in 0.1s" ;; esac; done ;;
  info) echo bazel-out ;;
  aquery) echo '{"actions": [{"arguments": ["gcc", "-c", "common/digest.cc"]}]}' ;;
esac""",
}

HUB_MODELS = {"Qwen/Qwen3-0.6B": "tests/goldens/tiny/qwen3/bf16"}

# Set so that the addresses can be replaced.
ADDED_FLAGS = {
    "./lockstep up": "--gateway_listen 127.0.0.1:50051 --http_listen 127.0.0.1:8080 --worker_listen 127.0.0.1:50052",
    "./lockstep chat": "--server=localhost:50051 --temperature=0",
}


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def find_grpcurl():
    """The real one where it is installed, else ours."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    installed = shutil.which("grpcurl", path=f"{home}/go/bin:/usr/local/bin:/usr/bin")
    return installed or RUNFILES / "tests/documentation/grpcurl"


class Machine:
    """Runs the commands of a page in a folder; what serves in the end is stopped.

    with Machine(folder) as machine:
        machine.start_up("./lockstep up")
        status, output = machine.run("./lockstep chat", typed="Hello.")
    """

    def __init__(self, folder):
        self.gateway, self.http, self.worker = free_address(), free_address(), free_address()
        self.checkout, self.home = folder / "checkout", folder / "home"
        self.bin = folder / "bin"
        self.up = None
        self._make_checkout()
        self._make_home()
        self._make_bin()
        self.hub = self._start_hub()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._stop()
        self.hub.kill()
        self.hub.wait()
        self.hub.stdout.close()

    def _start_hub(self):
        """Its models have the names of others, and are small."""
        models = [f"{name}={RUNFILES / folder}" for name, folder in HUB_MODELS.items()]
        hub = subprocess.Popen([RUNFILES / "tests/testing/hub/serve_hub", *models], stdout=subprocess.PIPE, text=True)
        self.hub_address = hub.stdout.readline().strip()
        return hub

    def _make_checkout(self):
        self.checkout.mkdir()
        shutil.copy(RUNFILES / "lockstep", self.checkout)
        shutil.copytree(RUNFILES / "tools", self.checkout / "tools")
        for name in ("bench", "tests", "third_party"):
            (self.checkout / name).symlink_to(RUNFILES / name)
        (self.checkout / "bazel-bin").symlink_to(RUNFILES)

    def _make_home(self):
        """What is fetched lies there already, so that nothing is."""
        data = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", ""))
        for kind in ("models", "tokenizers", "clients", "kubernetes", "prometheus", "schemas"):
            cache = self.home / ".cache/lockstep" / kind
            cache.mkdir(parents=True)
            if not (data / kind).is_dir():
                raise FileNotFoundError(f"no {kind} in $LOCKSTEP_TEST_DATA; ./lockstep test fetches them")
            for path in (data / kind).iterdir():
                (cache / path.name).symlink_to(path)
        (self.home / "installed").touch()

    def _make_bin(self):
        self.bin.mkdir()
        for name, script in STAND_INS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.bin / name).chmod(0o755)
        (self.bin / "grpcurl").symlink_to(find_grpcurl())
        if shutil.which("curl", path="/usr/local/bin:/usr/bin:/bin") is None:
            (self.bin / "curl").symlink_to(RUNFILES / "tests/documentation/curl.py")

    def with_addresses(self, text):
        """What a page says, with the addresses of this machine."""
        text = re.sub(r"(localhost|127\.0\.0\.1):50052", self.worker, text)
        text = re.sub(r"(localhost|127\.0\.0\.1):8080", self.http, text)
        return re.sub(r"(localhost|127\.0\.0\.1):50051", self.gateway, text)

    def _start(self, command):
        added = ADDED_FLAGS.get(" ".join(command.split()[:2]), "")
        return subprocess.Popen(
            ["/bin/bash", "-c", self.with_addresses(f"{command} {added}")],
            cwd=self.checkout,
            env={
                **os.environ,
                "HOME": str(self.home),
                "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                "HF_ENDPOINT": self.hub_address,
                "LOCKSTEP_HEALTH_LISTEN": "127.0.0.1:0",
                "LOCKSTEP_METRICS_PORT": "0",
                # Else ./lockstep test fetches one; bazel is a stand-in.
                "CUDA_HOME": "/usr/local/cuda",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command, typed=""):
        """The exit status of a command and what it printed."""
        process = self._start(command)
        try:
            output, _ = process.communicate(typed, timeout=LIMIT_S)
        finally:
            process.kill()
        return process.returncode, output

    def start_up(self, command):
        """Starts a command that serves until Ctrl-C, in place of the one before.

        Returns what it printed until it was ready.
        """
        self._stop()
        self.up = self._start(command)
        output = ""
        for line in self.up.stdout:
            output += line
            if line.startswith("Ctrl-C stops it"):
                break
        return output

    def _stop(self):
        if self.up is None:
            return
        process, self.up = self.up, None
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
        if process.returncode != 0:
            raise RuntimeError(f"after Ctrl-C, status {process.returncode}: {output}")
