"""Processes of today that see each other as one of another version would."""

import concurrent.futures
import re
import subprocess

import grpc
from google.protobuf import descriptor_pool, message_factory

import listing

SERVING = re.compile(r": serving .*:(\d+)$")
# A number that no message has a field of, with a value.
OF_A_LATER_VERSION = b"\xc0\x3e\x01"
THREADS = 32


class Program:
    """A process, from its start until its port is known; ended when its context is."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            found = SERVING.search(line.strip())
            if found:
                self.address = f"127.0.0.1:{found[1]}"
                break
        else:
            raise RuntimeError("".join(self.said))
        # Else it would stand still once the pipe is full.
        self.reader = concurrent.futures.ThreadPoolExecutor(1)
        self.reader.submit(lambda: self.said.extend(self.process.stdout))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.shutdown()


class Version:
    """The messages and calls of a listing."""

    def __init__(self, entries):
        self.entries = entries
        pool = descriptor_pool.DescriptorPool()
        pool.Add(listing.to_file(entries))
        factory = message_factory.MessageFactory(pool)
        self.classes = {
            name: factory.GetPrototype(pool.FindMessageTypeByName(f"{listing.PACKAGE}.{name}"))
            for name, entry in entries.items()
            if entry.kind in ("message", "map")
        }

    def call(self, service, name):
        """(request's class, answer's class, whether answers are a stream); None where there is no such call."""
        line = self.entries[service].lines.get(name)
        if line is None:
            return None
        takes, gives = line.split(" -> ")
        return self.classes[takes], self.classes[gives.removeprefix("stream ")], gives.startswith("stream ")


class Between(grpc.GenericRpcHandler):
    """A worker of `version`: what it does is `worker`'s, what it knows is the version's.

    As every worker it refuses requests with fields that it does not know. Answers
    lose what the version has not, or get a field of a later one if it is `newer`.
    """

    def __init__(self, worker, version, newer=False):
        self.channel = grpc.insecure_channel(worker)
        self.version = version
        self.newer = newer
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(THREADS))
        self.server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()
        self.channel.close()

    def service(self, handler_call_details):
        method = handler_call_details.method
        service, name = method.strip("/").split("/")
        if service != f"{listing.PACKAGE}.Worker":  # health
            takes = gives = None
            streams = name == "Watch"
        else:
            call = self.version.call("Worker", name)
            if call is None:
                return None
            takes, gives, streams = call
        if streams:
            return grpc.unary_stream_rpc_method_handler(lambda *at: self.forward(method, takes, gives, *at))
        return grpc.unary_unary_rpc_method_handler(lambda *at: next(self.forward(method, takes, gives, *at)))

    def forward(self, method, takes, gives, request, context):
        if takes is not None and knows(takes, request) != request:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{takes.DESCRIPTOR.name} has a field that is not known.")
        # A stream of one where it is a single answer: the bytes are the same.
        call = self.channel.unary_stream(method)(request)
        context.add_callback(call.cancel)
        try:
            for answer in call:
                yield self.seen(gives, answer)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def seen(self, gives, answer):
        if gives is None:
            return answer
        return answer + OF_A_LATER_VERSION if self.newer else knows(gives, answer)


def knows(kind, message):
    """A message without the fields that its kind has not."""
    known = kind.FromString(message)
    known.DiscardUnknownFields()
    # In the order it came where it is whole, as bytes are compared.
    return message if known.ByteSize() == kind.FromString(message).ByteSize() else known.SerializeToString()
