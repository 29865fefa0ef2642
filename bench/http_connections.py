#!/usr/bin/env python3
"""What connections cost a gateway: its memory with many idle ones, and with many open streams.

    bench/http_connections.py --target HOST:PORT --pid PID --idle 10000 --streams 1000
    bench/http_connections.py --target HOST:PORT --pid PID --idle 3000 --streams 0 --ca FILE

With --ca, of the gateway's certificate, connections are over TLS. PID is the gateway's. A stream is a chat without an end, read as it comes; the
worker should have --max_queued_requests to hold them all.
"""

import argparse
import json
import pathlib
import re
import selectors
import socket
import ssl
import time

GET = b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n"
SETTLE_S = 2


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1])


def connect(address, tls=None):
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    return tls.wrap_socket(connection, server_hostname=host) if tls else connection


def ask_once(connection):
    """A connection that is idle has been used before."""
    connection.sendall(GET)
    while b"\r\n\r\n" not in connection.recv(4096):
        pass


def start_stream(connection, max_tokens):
    body = json.dumps(
        {"messages": [{"role": "user", "content": "Go on."}], "max_tokens": max_tokens, "ignore_eos": True, "stream": True}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def read_for(connections, seconds):
    """The number of streams that have answered 200, and of events read meanwhile."""
    selector = selectors.DefaultSelector()
    accepted, events = set(), 0
    for connection in connections:
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            data = key.fileobj.recv(1 << 16)
            if data.startswith(b"HTTP/1.1 200"):
                accepted.add(key.fileobj)
            events += data.count(b"data: ")
            if not data:
                selector.unregister(key.fileobj)
    return len(accepted), events


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", required=True)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--max_tokens", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--ca")
    options = parser.parse_args()
    tls = ssl.create_default_context(cafile=options.ca) if options.ca else None

    base = resident_kib(options.pid)
    print(f"at first             {base / 1024:8.1f} MiB")
    idle = [connect(options.target, tls) for _ in range(options.idle)]
    for connection in idle:
        ask_once(connection)
    with_idle = resident_kib(options.pid)
    each = (with_idle - base) / options.idle
    print(f"{options.idle:6} idle          {with_idle / 1024:8.1f} MiB, {each:.1f} KiB each")

    streams = [connect(options.target, tls) for _ in range(options.streams)]
    for connection in streams:
        start_stream(connection, options.max_tokens)
    accepted, events = read_for(streams, options.seconds)
    with_streams = resident_kib(options.pid)
    each = (with_streams - with_idle) / max(1, options.streams)
    print(f"{accepted:6} open streams  {with_streams / 1024:8.1f} MiB, {each:.1f} KiB each; {events} events read")
    for connection in idle:
        ask_once(connection)
    print(f"{len(idle):6} still answer")
    for connection in streams + idle:
        connection.close()
    time.sleep(SETTLE_S)
    print(f"afterwards           {resident_kib(options.pid) / 1024:8.1f} MiB")


if __name__ == "__main__":
    main()
