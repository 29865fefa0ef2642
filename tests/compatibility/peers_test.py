#!/usr/bin/env python3
"""A gateway works with workers of every release that is kept, with older and with newer ones; and so do clients.

The programs are today's. Between them each message is taken for one of the
other version: what it does not know is refused in requests, and lost from
answers.
"""

import copy
import os
import pathlib
import unittest

import grpc
from google.protobuf import json_format

import listing
import peers

RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
MODEL = (RUNFILES / "tests/goldens/tiny/qwen3/bf16/config.json").resolve().parent
RELEASED = sorted(
    (pathlib.Path(__file__).resolve().parent / "released").glob("*.txt"),
    key=lambda path: [int(number) for number in path.stem.split(".")],
)
TIMEOUT_S = 60

PLAIN = {"text": "The capital", "sampling": {"temperature": 0, "max_tokens": 8, "ignore_eos": True}}
CHOICES = {"text": "The capital", "sampling": {"temperature": 1, "seed": 7, "n": 2, "logprobs": 2, "max_tokens": 8}}
CONSTRAINED = {"text": "The", "structured_output": {"regex": "[ab]{6}"}, "sampling": {"temperature": 0, "max_tokens": 16}}


def read(path):
    return listing.from_text(path.read_text(encoding="utf-8"))


class Client:
    """Of the gateway, by the protos of a version."""

    def __init__(self, address, version):
        self.channel = grpc.insecure_channel(address)
        self.version = version

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def generate(self, request):
        """What is the same for the same request."""
        takes, gives, _ = self.version.call("Inference", "Generate")
        call = self.channel.unary_stream(f"/{listing.PACKAGE}.Inference/Generate")
        message = json_format.ParseDict(request, takes()).SerializeToString()
        texts, ids, ends = {}, {}, 0
        for answer in call(message, timeout=TIMEOUT_S, wait_for_ready=True):
            event = gives.FromString(answer)
            if event.WhichOneof("event") == "delta":
                choice = event.delta.index
                texts[choice] = texts.get(choice, "") + event.delta.text
                ids[choice] = [*ids.get(choice, []), *event.delta.token_ids]
            ends += event.WhichOneof("event") == "summary"
        return texts, ids, ends

    def embed(self, text):
        takes, gives, _ = self.version.call("Inference", "Embed")
        call = self.channel.unary_unary(f"/{listing.PACKAGE}.Inference/Embed")
        message = json_format.ParseDict({"inputs": [{"text": text}]}, takes()).SerializeToString()
        answer = gives.FromString(call(message, timeout=TIMEOUT_S, wait_for_ready=True))
        return [list(each.values) for each in answer.embeddings]


class PeersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = cls.enterClassContext(
            peers.Program(
                RUNFILES / "worker/worker", f"--model={MODEL}", "--listen=127.0.0.1:0", "--threads=1", "--num_pages=256"
            )
        )
        cls.newest = peers.Version(read(RELEASED[-1]))
        cls.expected = cls.answers(cls.worker.address, cls.newest)

    @classmethod
    def answers(cls, worker, version):
        with cls.gateway(worker) as gateway, Client(gateway.address, version) as client:
            return [client.generate(request) for request in (PLAIN, CHOICES, CONSTRAINED)], client.embed("The")

    @classmethod
    def gateway(cls, worker):
        return peers.Program(
            RUNFILES / "frontend/gateway",
            *(f"--model={MODEL}", f"--workers={worker}", "--listen=127.0.0.1:0", "--http_listen="),
            *("--health_listen=127.0.0.1:0", "--metrics_port=0"),
        )

    def test_answers_are_what_they_should_be(self):
        (plain, choices, constrained), embeddings = self.expected
        self.assertEqual([len(ids) for ids in plain[1].values()], [8])
        self.assertEqual(set(choices[1]), {0, 1})
        self.assertRegex(constrained[0][0], "^[ab]{6}$")
        self.assertTrue(embeddings)
        self.assertEqual([each[2] for each in (plain, choices, constrained)], [1, 1, 1])

    def test_workers_and_clients_of_every_release(self):
        for path in RELEASED:
            with self.subTest(release=path.stem):
                version = peers.Version(read(path))
                with peers.Between(self.worker.address, version) as worker:
                    self.assertEqual(self.answers(worker.address, version), self.expected)

    def test_a_worker_without_what_may_be_added(self):
        """Of a version in which there was only what a worker needs; what asks for more is refused, not misunderstood."""
        older = copy.deepcopy(self.newest.entries)
        for message, least in (
            ("WorkerGenerateRequest", 7),
            ("ModelInfo", 7),
            ("Accepted", 3),
            ("Load", 6),
            ("Summary", 2),
        ):
            entry = older[message]
            kept = {number: line for number, line in entry.lines.items() if number < least or "fingerprint" in line}
            self.assertLess(len(kept), len(entry.lines), message)
            entry.lines = kept
        for call in ("Drain", "Undrain"):
            del older["Worker"].lines[call]
        with (
            peers.Between(self.worker.address, peers.Version(older)) as worker,
            self.gateway(worker.address) as gateway,
            Client(gateway.address, self.newest) as client,
        ):
            self.assertEqual(client.generate(PLAIN), self.expected[0][0])
            with self.assertRaises(grpc.RpcError) as refused:
                client.generate(CONSTRAINED)
            self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("a field that is not known", refused.exception.details())

    def test_a_worker_of_a_later_version(self):
        with peers.Between(self.worker.address, self.newest, newer=True) as worker:
            self.assertEqual(self.answers(worker.address, self.newest), self.expected)


if __name__ == "__main__":
    unittest.main()
