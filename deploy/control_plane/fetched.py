"""The programs of a control plane and helm, built from Go modules, and the definitions of others' kinds."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

KUBERNETES = "v1.36.3"
HELM = "v4.2.1"

# All of one module, so that they share what they are made of; etcd is of the
# version that Kubernetes asks for.
PROGRAMS = {
    "helm": "helm.sh/helm/v4/cmd/helm",
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}

# Module, version, files.
DEFINITIONS = [
    ("sigs.k8s.io/lws", "v0.9.0", ["config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"]),
    (
        "sigs.k8s.io/gateway-api",
        "v1.5.1",
        [f"config/crd/standard/gateway.networking.k8s.io_{kind}.yaml" for kind in ("httproutes", "grpcroutes")],
    ),
    (
        "sigs.k8s.io/gateway-api-inference-extension",
        "v1.5.0",
        ["config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"],
    ),
    (
        "github.com/prometheus-operator/prometheus-operator",
        "v0.92.1",
        [
            f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml"
            for kind in ("podmonitors", "prometheusrules")
        ],
    ),
    ("github.com/kedacore/keda/v2", "v2.21.0", ["config/crd/bases/keda.sh_scaledobjects.yaml"]),
    ("github.com/cert-manager/cert-manager", "v1.21.0", ["deploy/crds/cert-manager.io_certificates.yaml"]),
]

ATTEMPTS = 3
DEFINITIONS_FILE = "definitions.json"

# Its makefile says so which version the server tells.
LINKING = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES}"

# Which kubernetes replaces by folders that its module is without.
STAGED = re.compile(r"^\t(k8s\.io/[a-z0-9-]+) => \./staging/", re.MULTILINE)


def _go(*arguments, cwd):
    """What it prints. GOFLAGS of the machine may refuse to change go.mod."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    return subprocess.run(
        ["nice", "-n", "19", "go", *arguments], cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def _download(module, version, cwd):
    """Where its files are; the go command has compared them with the public sums. A network that fails is asked again."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return json.loads(_go("mod", "download", "-json", f"{module}@{version}", cwd=cwd))
        except subprocess.CalledProcessError as error:
            if attempt == ATTEMPTS:
                raise
            print(f"{module}: {json.loads(error.stdout)['Error']}", file=sys.stderr)
    return None


def _write_module(folder):
    """A module that has Kubernetes' own versions of everything, with what it stages by number."""
    kubernetes = pathlib.Path(_download("k8s.io/kubernetes", KUBERNETES, folder)["Dir"])
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(kubernetes / name, folder / name)
    staged = "v0" + KUBERNETES.removeprefix("v1")
    edits = [f"-replace={each}={each}@{staged}" for each in STAGED.findall((folder / "go.mod").read_text())]
    _go("mod", "edit", "-module=control_plane", f"-require=k8s.io/kubernetes@{KUBERNETES}", *edits, cwd=folder)
    _go("get", f"helm.sh/helm/v4@{HELM}", cwd=folder)


def programs(cache, jobs, say):
    """The folder that has them; made once, which takes minutes of each of `jobs` cores. A helm that is installed will do."""
    digest = hashlib.sha256(repr((KUBERNETES, HELM, PROGRAMS, DEFINITIONS, LINKING)).encode()).hexdigest()[:16]
    folder = cache / "kubernetes" / digest
    folder.mkdir(parents=True, exist_ok=True)
    installed = shutil.which("helm")
    if installed and not (folder / "helm").exists():
        (folder / "helm").symlink_to(installed)
    missing = [name for name in PROGRAMS if not (folder / name).exists()]
    if not missing:
        return folder
    if shutil.which("go") is None:
        raise FileNotFoundError("go is not installed; Go 1.26 or newer builds Kubernetes")
    source = folder / "source"
    source.mkdir(exist_ok=True)
    _write_module(source)
    for name in missing:
        say(f"building {name} ({PROGRAMS[name]})")
        made = source / name
        _go("build", f"-p={jobs}", "-trimpath", f"-ldflags={LINKING}", "-o", made, PROGRAMS[name], cwd=source)
        made.rename(folder / name)
    return folder


def definitions(folder):
    """The CustomResourceDefinitions of the kinds that the chart makes and Kubernetes has not; kept there, too."""
    kept = folder / DEFINITIONS_FILE
    if kept.exists():
        return json.loads(kept.read_text())
    found = []
    for module, version, files in DEFINITIONS:
        module_folder = pathlib.Path(_download(module, version, folder)["Dir"])
        for file in files:
            with open(module_folder / file, encoding="utf-8") as stream:
                found += [each for each in yaml.load_all(stream, yaml.CSafeLoader) if each]
    kept.write_text(json.dumps(found))
    return found
