#!/usr/bin/env python3
"""Writes the dashboards beside it: deploy/grafana/make_dashboards.py [FOLDER]

A dashboard is rows of panels, a panel a title, a unit and queries.
"""

import json
import pathlib
import sys

WIDTH = 24  # of Grafana's grid
HEIGHT = 8
GATEWAY = 'namespace=~"$namespace"'
WORKER = 'namespace=~"$namespace", pod=~"$pod"'


def rate(metric, labels, by=None):
    total = f"sum by ({by}) " if by else "sum"
    return f"{total}(rate({metric}{{{labels}}}[$__rate_interval]))"


def quantile(q, metric, labels, by="le"):
    return f"histogram_quantile({q}, {rate(metric + '_bucket', labels, by)})"


def quantiles(metric, labels):
    """Queries of a histogram's 50th, 90th and 99th percentile."""
    return [(quantile(q, metric, labels), f"p{round(q * 100)}") for q in (0.5, 0.9, 0.99)]


def worker_histogram(title, metric, unit="s"):
    return title, unit, quantiles(metric, WORKER)


GATEWAY_ROWS = {
    "Answers": [
        ("Ended, by code", "reqps", [(rate("lockstep_gateway_generations_total", GATEWAY, "code"), "{{code}}")]),
        (
            "Refused, by reason",
            "reqps",
            [(rate("lockstep_gateway_refused_requests_total", GATEWAY, "reason"), "{{reason}}")],
        ),
        ("In progress", "short", [(f"sum by (pod) (lockstep_gateway_open_streams{{{GATEWAY}}})", "{{pod}}")]),
        (
            "Part that fails",
            "percentunit",
            [
                (f"lockstep:failed_answers:ratio_rate{window}{{{GATEWAY}}}", f"over {window}")
                for window in ("5m", "1h", "6h")
            ],
        ),
    ],
    "Latency": [
        ("First token", "s", quantiles("lockstep_gateway_time_to_first_token_seconds", GATEWAY)),
        ("Between tokens", "s", quantiles("lockstep_gateway_inter_token_latency_seconds", GATEWAY)),
        ("Whole answer", "s", quantiles("lockstep_gateway_request_latency_seconds", GATEWAY)),
        ("Tokenizing", "s", quantiles("lockstep_gateway_encode_seconds", GATEWAY)),
    ],
    "Tokens": [
        (
            "Tokens a second",
            "short",
            [
                (rate("lockstep_gateway_prompt_tokens_total", GATEWAY), "prompt"),
                (rate("lockstep_gateway_generation_tokens_total", GATEWAY), "generated"),
            ],
        ),
        (
            "Part of the prompts that was cached",
            "percentunit",
            [
                (
                    rate("lockstep_gateway_cached_prompt_tokens_total", GATEWAY)
                    + " / "
                    + rate("lockstep_gateway_prompt_tokens_total", GATEWAY),
                    "cached",
                )
            ],
        ),
    ],
    "Worker groups, as gateways see them": [
        ("Ready", "short", [(f"max by (group) (lockstep_gateway_group_ready{{{GATEWAY}}})", "{{group}}")]),
        (
            "Breaker: 0 closed, 1 half-open, 2 open",
            "short",
            [(f"max by (group) (lockstep_gateway_group_breaker_state{{{GATEWAY}}})", "{{group}}")],
        ),
        ("Requests", "reqps", [(rate("lockstep_gateway_group_requests_total", GATEWAY, "group"), "{{group}}")]),
        (
            "Tokens that wait",
            "short",
            [(f"max by (group) (lockstep_gateway_group_waiting_tokens{{{GATEWAY}}})", "{{group}}")],
        ),
        (
            "Pages in use",
            "percentunit",
            [(f"max by (group) (lockstep_gateway_group_kv_usage{{{GATEWAY}}})", "{{group}}")],
        ),
        (
            "Failover",
            "short",
            [
                (f"sum(increase(lockstep_gateway_{name}_total{{{GATEWAY}}}[$__rate_interval]))", legend)
                for name, legend in (
                    ("failovers", "went on elsewhere"),
                    ("lost_answers", "lost"),
                    ("retries", "sent again before the first token"),
                    ("refused_retries", "not sent again, budget spent"),
                    ("silent_groups", "group was silent"),
                )
            ],
        ),
    ],
    "Processes": [
        (
            "HTTP, by status",
            "reqps",
            [(rate("lockstep_gateway_http_requests_total", GATEWAY, "code"), "{{code}}")],
        ),
        ("gRPC, by code", "reqps", [(rate("lockstep_gateway_grpc_requests_total", GATEWAY, "code"), "{{code}}")]),
        ("Lag of event loops", "s", quantiles("lockstep_gateway_event_loop_lag_seconds", GATEWAY)),
        (
            "HTTP connections",
            "short",
            [(f"sum by (pod) (lockstep_gateway_http_connections{{{GATEWAY}}})", "{{pod}}")],
        ),
    ],
}

WORKER_ROWS = {
    "Requests": [
        ("Running", "short", [(f"vllm:num_requests_running{{{WORKER}}}", "{{pod}}")]),
        ("Waiting", "short", [(f"vllm:num_requests_waiting{{{WORKER}}}", "{{pod}}")]),
        ("Ended, by outcome", "reqps", [(rate("lockstep_worker_requests_total", WORKER, "outcome"), "{{outcome}}")]),
        (
            "Finished, by reason",
            "reqps",
            [(rate("vllm:request_success_total", WORKER, "finished_reason"), "{{finished_reason}}")],
        ),
    ],
    "Latency": [
        worker_histogram("First token", "vllm:time_to_first_token_seconds"),
        worker_histogram("Between tokens", "vllm:inter_token_latency_seconds"),
        worker_histogram("In the queue", "vllm:request_queue_time_seconds"),
        worker_histogram("Prefill", "vllm:request_prefill_time_seconds"),
        worker_histogram("Decode", "vllm:request_decode_time_seconds"),
        worker_histogram("Whole request", "vllm:e2e_request_latency_seconds"),
    ],
    "Tokens": [
        (
            "Tokens a second",
            "short",
            [
                (rate("vllm:prompt_tokens_total", WORKER, "pod"), "{{pod}} prompt"),
                (rate("vllm:generation_tokens_total", WORKER, "pod"), "{{pod}} generated"),
            ],
        ),
        worker_histogram("Tokens of a step", "vllm:iteration_tokens_total", "short"),
        worker_histogram("Prompt", "vllm:request_prompt_tokens", "short"),
        worker_histogram("Answer", "vllm:request_generation_tokens", "short"),
    ],
    "KV cache": [
        ("Pages in use", "percentunit", [(f"vllm:kv_cache_usage_perc{{{WORKER}}}", "{{pod}}")]),
        (
            "Pages",
            "short",
            [(f"sum by (state) (lockstep_worker_kv_pages{{{WORKER}}})", "{{state}}")],
        ),
        (
            "Prompt tokens found in the prefix cache",
            "percentunit",
            [
                (
                    rate("vllm:prefix_cache_hits_total", WORKER, "pod")
                    + " / "
                    + rate("vllm:prefix_cache_queries_total", WORKER, "pod"),
                    "{{pod}}",
                )
            ],
        ),
        ("Preemptions", "short", [(rate("vllm:num_preemptions_total", WORKER, "pod"), "{{pod}}")]),
    ],
    "Ranks": [
        (
            "A step",
            "s",
            [(quantile(0.99, "lockstep_worker_step_seconds", WORKER, "pod, rank, le"), "{{pod}} rank {{rank}} p99")],
        ),
        (
            "Where step threads spend their time",
            "percentunit",
            [(rate("lockstep_worker_step_stage_seconds_total", WORKER, "rank, stage"), "rank {{rank}} {{stage}}")],
        ),
        ("Collectives", "ops", [(rate("lockstep_worker_collectives_total", WORKER, "kind"), "{{kind}}")]),
        (
            "Digests compared",
            "ops",
            [(rate("lockstep_worker_digest_checks_total", WORKER, "rank"), "rank {{rank}}")],
        ),
        (
            "Heartbeats",
            "ops",
            [(rate("lockstep_worker_heartbeats_total", WORKER, "rank, peer"), "rank {{rank}} of {{peer}}")],
        ),
    ],
    "Processes": [
        ("Memory", "bytes", [(f"process_resident_memory_bytes{{{WORKER}}}", "{{pod}}")]),
        ("Cores", "short", [(rate("process_cpu_seconds_total", WORKER, "pod"), "{{pod}}")]),
    ],
}


def variable(name, query):
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"selected": True, "text": "All", "value": "$__all"},
    }


def panel(identity, title, unit, queries, place):
    return {
        "id": identity,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, "custom": {"fillOpacity": 8}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + i), "expr": query, "legendFormat": legend}
            for i, (query, legend) in enumerate(queries)
        ],
    }


def panels(rows):
    """Rows with their panels beneath, as many beside each other as share the width evenly."""
    found, y = [], 0
    for row, members in rows.items():
        found.append(
            {
                "id": len(found) + 1,
                "type": "row",
                "title": row,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            }
        )
        y += 1
        columns = 3 if len(members) % 3 == 0 else 2
        for i, member in enumerate(members):
            width = WIDTH // columns
            place = {"x": i % columns * width, "y": y + i // columns * HEIGHT, "w": width, "h": HEIGHT}
            found.append(panel(len(found) + 1, *member, place))
        y += -(-len(members) // columns) * HEIGHT
    return found


def dashboard(uid, title, rows, variables):
    datasource = {"name": "datasource", "type": "datasource", "query": "prometheus", "refresh": 1}
    return {
        "uid": uid,
        "title": title,
        "tags": ["lockstep"],
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "schemaVersion": 39,
        "templating": {"list": [datasource, *variables]},
        "panels": panels(rows),
    }


NAMESPACE = variable("namespace", "label_values(lockstep_build_info, namespace)")
POD = variable("pod", 'label_values(lockstep_build_info{program="worker", namespace=~"$namespace"}, pod)')
DASHBOARDS = [
    dashboard("lockstep-gateways", "Lockstep gateways", GATEWAY_ROWS, [NAMESPACE]),
    dashboard("lockstep-workers", "Lockstep worker groups", WORKER_ROWS, [NAMESPACE, POD]),
]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for each in DASHBOARDS:
        name = each["uid"].removeprefix("lockstep-") + ".json"
        (folder / name).write_text(json.dumps(each, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
