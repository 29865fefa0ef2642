#!/usr/bin/env python3
"""Asks Prometheus for every panel of the dashboards, of a gateway and a worker that answer: deploy/try_dashboards.py --model FILE

For each query it prints how many series there are and a value. Exits with 1 if
one is refused or empty. Takes python3-grpcio.
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import grpc

import binaries

PORTS = {"gateway": 19090, "worker": 19091, "prometheus": 19099, "http": 18080, "grpc": 15051, "worker_grpc": 15052}
SCRAPE_S = 1
ASKED_S = 45
# What a dashboard's variables and Grafana's own stand for.
VARIABLES = {"$__rate_interval": "30s", "$__range": "30s", "$namespace": ".*", "$pod": ".*", "$group": ".*"}


def get(url, body=None):
    request = urllib.request.Request(url, body and json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def queries():
    """(dashboard: panel, legend, expression) of each."""
    for path in sorted((binaries.ROOT / "deploy/grafana").glob("*.json")):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", []):
                yield f"{path.stem}: {panel['title']}", target.get("legendFormat", ""), target["expr"]


def evaluated(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    query = urllib.parse.urlencode({"query": expression})
    try:
        return get(f"http://127.0.0.1:{PORTS['prometheus']}/api/v1/query?{query}")["data"]["result"]
    except urllib.error.HTTPError as error:
        raise ValueError(json.load(error)["error"]) from error


def configuration():
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{PORTS[name]}"], "labels": labels}]}
        for name, labels in (
            ("gateway", {"namespace": "here", "pod": "gateway-0"}),
            ("worker", {"namespace": "here", "pod": "worker-0", "group_set": "default", "group_index": "0"}),
        )
    ]
    return json.dumps(  # which is YAML, too
        {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
            "rule_files": [str(binaries.ROOT / "deploy/prometheus/alerts.yaml")],
            "scrape_configs": jobs,
        }
    )


def ask_until(end, number):
    """Answers of several kinds, one of which is refused."""
    while time.monotonic() < end:
        body = {"prompt": f"The capital of country {number} is", "max_tokens": 16, "ignore_eos": True, "stream": True}
        for changes in ({}, {"stream": False, "n": 2}, {"temperature": -1}):
            request = json.dumps({**body, **changes}).encode()
            try:
                asked = urllib.request.Request(
                    f"http://127.0.0.1:{PORTS['http']}/v1/completions", request, {"content-type": "application/json"}
                )
                urllib.request.urlopen(asked, timeout=60).read()
            except urllib.error.HTTPError:
                pass
        ask_by_grpc()


def ask_by_grpc():
    """For a text, of three letters: the request's field 3."""
    with grpc.insecure_channel(f"127.0.0.1:{PORTS['grpc']}") as channel:
        return list(channel.unary_stream("/lockstep.v1.Inference/Generate")(b"\x1a\x03The", timeout=60))


def await_answer(url):
    for _ in range(600):
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


def report():
    refused, empty = [], []
    for where, legend, expression in queries():
        try:
            result = evaluated(expression)
        except ValueError as error:
            refused.append(f"{where}: {expression}: {error}")
            continue
        if not result:
            empty.append(where)
        value = f"{float(result[0]['value'][1]):.4g}" if result else "-"
        print(f"{len(result):3} series  {value:>10}  {where}  {re.sub(r'[{}]', '', legend)}")
    for each in refused:
        print(f"refused: {each}")
    return refused, empty


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--model", required=True)
    flags.add_argument("--binaries", default=binaries.ROOT / "bazel-bin", type=pathlib.Path)
    flags.add_argument("--prometheus", default="prometheus", help="the program; tools/fetch.sh prometheus FOLDER fetches it")
    given = flags.parse_args()
    addresses = [f"--workers=127.0.0.1:{PORTS['worker_grpc']}", f"--listen=127.0.0.1:{PORTS['grpc']}"]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "prometheus.yaml")
        config.write_text(configuration(), encoding="utf-8")
        commands = [
            [given.binaries / "worker/worker", f"--model={given.model}", f"--listen=127.0.0.1:{PORTS['worker_grpc']}"]
            + [f"--metrics_port={PORTS['worker']}", "--health_listen=127.0.0.1:0"]
            + ["--tensor_parallel_size=2", "--threads=1"],
            [given.binaries / "frontend/gateway", f"--model={given.model}", *addresses, "--health_listen=127.0.0.1:0"]
            + [f"--http_listen=127.0.0.1:{PORTS['http']}", f"--metrics_port={PORTS['gateway']}"],
            [given.prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
            + [f"--web.listen-address=127.0.0.1:{PORTS['prometheus']}"],
        ]
        programs = [subprocess.Popen(each, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for each in commands]
        try:
            await_answer(f"http://127.0.0.1:{PORTS['http']}/v1/models")
            await_answer(f"http://127.0.0.1:{PORTS['prometheus']}/-/ready")
            end = time.monotonic() + ASKED_S
            clients = [threading.Thread(target=ask_until, args=(end, number)) for number in range(4)]
            for each in clients:
                each.start()
            time.sleep(ASKED_S - 2)
            refused, empty = report()
            for each in clients:
                each.join()
        finally:
            for each in programs:
                each.kill()
                each.wait()
    print(f"{len(refused)} refused, {len(empty)} empty: {', '.join(empty)}")
    return 1 if refused or empty else 0


if __name__ == "__main__":
    raise SystemExit(main())
