#!/usr/bin/env python3
"""Rehearses, on this machine, what a cluster does with the plain manifests: deploy/rehearsal.py --model FILE

A small stand-in for Kubernetes starts the Pods of a folder of deploy/kustomize as
processes with addresses of their own (127.64.0.N), with the manifests' own flags,
probes, preStop and grace periods. While clients keep streams open it updates the
gateways, then the worker groups, and then drains a node that holds one of each.
Every answer must be whole and equal to an undisturbed one, and no process may have
to be killed; the exit status is 1 otherwise.

    bazel build //frontend:gateway //worker:worker //tools:await_serving
    deploy/rehearsal.py --model model.gguf --streams 64

What the manifests leave to the cluster is done as it does it: a Pod that is told to
end leaves its Services at once, clients hear of that later, SIGTERM comes after
preStop. Names of Services are found in a hosts file, which only this program and
what it starts can see; that takes a mount namespace, and so root or user namespaces.
"""

import argparse
import os
import pathlib
import sys

import manifests
import own_namespace
from stand_in import cluster, streams

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[1]


def say(what):
    print(f"rehearsal: {what}", flush=True)


def rehearse(options, kubernetes):
    say(f"starting {options.manifests.parent.name}")
    kubernetes.start()
    clients = streams.Clients(kubernetes.gateways, options.streams, options.tokens)
    clients.learn_answers()
    clients.start()
    clients.await_rounds(1)
    for name, act in (
        ("a rolling update of the gateways", kubernetes.update_gateways),
        ("a rolling update of the worker groups", kubernetes.update_groups),
        ("the drain of a node", kubernetes.drain_node),
    ):
        before = clients.counts()
        seconds = act()
        clients.await_rounds(1)
        done = clients.counts() - before
        say(f"{name} took {seconds:.0f} s: {done.whole} streams whole, {done.cut} cut, {done.different} different")
    clients.stop()
    counts = clients.counts()
    for complaint in sorted(clients.complaints)[:10]:
        say(complaint)
    killed = kubernetes.end()
    say(f"{counts.whole} streams whole, {counts.cut} cut, {counts.different} different, {killed} processes killed")
    say(f"{kubernetes.num_failovers} answers went on at another group")
    return 0 if counts.whole and not (counts.cut or counts.different or killed) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, type=pathlib.Path, help="a GGUF file or a folder")
    parser.add_argument("--manifests", type=pathlib.Path, default=ROOT / "deploy/kustomize/single_node/manifests.yaml")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "bazel-bin")
    parser.add_argument("--streams", type=int, default=64, help="open at a time")
    parser.add_argument("--tokens", type=int, default=200, help="of an answer")
    parser.add_argument("--hurry", type=float, default=1, help="divides the periods of probes, and how late news reaches clients")
    parser.add_argument("--worker_flag", action="append", default=[], help="one more for the workers")
    parser.add_argument("--logs", type=pathlib.Path, help="a folder for what the processes write")
    options = parser.parse_args()
    own_namespace.enter("--mount")  # where what is mounted is its own affair

    objects = manifests.load(options.manifests)
    kubernetes = cluster.Cluster(objects, options)
    try:
        return rehearse(options, kubernetes)
    except cluster.Trouble as trouble:
        say(str(trouble))
        return 1
    finally:
        kubernetes.kill()


if __name__ == "__main__":
    sys.exit(main())
