"""Clients that keep streams open, and know what each must say."""

import http.client
import json
import random
import threading
import time
import typing

import dataclasses

PROMPTS = ["The capital of France is", "Once upon a time", "To bake bread you", "The moon"]
TIMEOUT_S = 120


@dataclasses.dataclass(frozen=True)
class Counts:
    whole: int = 0
    cut: int = 0
    different: int = 0

    def __sub__(self, other):
        return Counts(self.whole - other.whole, self.cut - other.cut, self.different - other.different)


def ask(address, prompt, tokens):
    """The text of a streamed answer; ValueError if it does not come to its end."""
    connection = http.client.HTTPConnection(address, 8080, timeout=TIMEOUT_S)
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"{address} answered {response.status}: {response.read(300).decode(errors='replace')}")
        text = ""
        for line in response:
            data = line.decode().strip().removeprefix("data: ")
            if data == "[DONE]":
                return text
            if not data or data.startswith(":"):
                continue
            event = json.loads(data)
            if "error" in event:
                raise ValueError(f"{address} ended a stream: {event['error']['message']}")
            text += "".join(choice["text"] for choice in event["choices"])
        raise ValueError(f"{address} ended a stream without a word")
    except OSError as error:
        raise ValueError(f"{address}: {error!r}") from error
    finally:
        connection.close()


class Clients:
    """`gateways` gives the addresses that a Service leads to, as far as is known."""

    def __init__(self, gateways: typing.Callable[[], list[str]], streams, tokens):
        self.gateways = gateways
        self.streams = streams
        self.tokens = tokens
        self.answers = {}
        self.complaints = set()
        self.threads = []
        self.lock = threading.Lock()
        self.found = Counts()
        self.stopping = threading.Event()

    def learn_answers(self):
        """Of one at a time, with nothing going on."""
        for prompt in PROMPTS:
            self.answers[prompt] = ask(random.choice(self.gateways()), prompt, self.tokens)

    def start(self):
        for number in range(self.streams):
            thread = threading.Thread(target=self._run, args=(PROMPTS[number % len(PROMPTS)],), daemon=True)
            thread.start()
            self.threads.append(thread)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def counts(self):
        with self.lock:
            return self.found

    def await_rounds(self, rounds):
        """Until as many streams have ended as are open, so many times."""
        enough = self.total() + rounds * self.streams
        while self.total() < enough:
            time.sleep(0.05)

    def total(self):
        return sum(dataclasses.astuple(self.counts()))

    def _run(self, prompt):
        while not self.stopping.is_set():
            try:
                is_equal = ask(random.choice(self.gateways()), prompt, self.tokens) == self.answers[prompt]
                found = Counts(whole=is_equal, different=not is_equal)
            except ValueError as complaint:
                found = Counts(cut=1)
                with self.lock:
                    self.complaints.add(str(complaint))
            with self.lock:
                self.found = Counts(
                    *(a + b for a, b in zip(dataclasses.astuple(self.found), dataclasses.astuple(found)))
                )
