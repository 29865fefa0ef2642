#!/usr/bin/env python3
"""Tries, on this machine, what a real Kubernetes API server makes of the chart and of a gateway: deploy/try_api_server.py --model FILE

etcd, kube-apiserver and helm are built from Go modules the first time, which takes Go
1.26 or newer, the network and some minutes; they are kept in ~/.cache/lockstep. Then,
without the network, in a temporary folder and a network namespace of its own:

acceptance: all objects that the chart makes of deploy/helm/lockstep/ci, and the plain
    manifests, are created with strict validation, beside the definitions of others'
    kinds; and Pods of all their templates, under Pod Security.
following: a gateway in front of two groups of one rank finds them through the API
    server, with the account, the token and the Role that the chart gives it. What a
    kubelet and the controllers would do to Pods is done through the API.

    bazel build //frontend:gateway //worker:worker //tools:await_serving
    deploy/try_api_server.py --model model.gguf

The exit status is 1 if anything is refused or not followed. A network namespace takes
root or user namespaces.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import own_namespace
from control_plane import acceptance, api, fetched, following, server

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[1]


def say(what):
    print(what, flush=True)


def make_network():
    for command in ("link set lo up", f"route add local {following.NETWORK} dev lo"):
        subprocess.run(["ip", *command.split()], check=True)


def run(options, programs, definitions, folder):
    num_servers = 2 if "following" in options.parts else 1
    with server.ControlPlane(programs, folder, following.SERVER_ADDRESS, num_servers) as control_plane:
        version = control_plane.api().must("GET", "/version")["gitVersion"]
        say(f"kube-apiserver {version} is ready")
        num_failures = 0
        acceptance.install_definitions(control_plane.api(), definitions)
        if "acceptance" in options.parts:
            num_failures += acceptance.try_all(control_plane.api(), programs / "helm", ROOT / "deploy", say)
        if "following" in options.parts:
            num_failures += following.try_it(control_plane, programs / "helm", ROOT / "deploy", options, say)
        say(f"{num_failures} failures")
        return 1 if num_failures else 0


def stop(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, help="a GGUF file or a folder; for following")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "bazel-bin")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache/lockstep")
    parser.add_argument("--parts", nargs="*", choices=["acceptance", "following"], default=["acceptance", "following"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cores to build with")
    parser.add_argument("--logs", type=pathlib.Path, help="a folder for what the processes write, if it fails or not")
    options = parser.parse_args()
    if "following" in options.parts and options.model is None:
        parser.error("--model is needed for following")
    programs = fetched.programs(options.cache, options.jobs, say)
    definitions = fetched.definitions(programs)
    own_namespace.enter("--net")  # where addresses are its own affair
    make_network()
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(options, programs, definitions, pathlib.Path(folder))
        except api.Trouble as trouble:
            say(str(trouble))
            return 1
        except KeyboardInterrupt:
            say("stopped")
            return 130
        finally:
            if options.logs:
                options.logs.mkdir(parents=True, exist_ok=True)
                for log in pathlib.Path(folder).glob("*.log"):
                    shutil.copy(log, options.logs)


if __name__ == "__main__":
    sys.exit(main())
