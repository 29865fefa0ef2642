#!/usr/bin/env python3
"""The official openai library against a gateway: openai_sdk.py http://HOST:PORT/v1

Run by clients_test.cc, which serves a small random model: what it says makes no
sense, but two ways of asking must give the same.
"""

import struct
import sys
import unittest

import openai

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say something."}]


def client(**options):
    return openai.OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0, timeout=60, **options)


def greedy(**options):
    return {"model": "tiny", "temperature": 0, "extra_body": {"ignore_eos": True}, **options}


class SdkTest(unittest.TestCase):
    def test_models(self):
        models = list(client().models.list())
        self.assertEqual([model.id for model in models], ["tiny"])
        self.assertEqual(client().models.retrieve("tiny").id, "tiny")
        with self.assertRaises(openai.NotFoundError) as raised:
            client().models.retrieve("org/other")
        self.assertEqual(raised.exception.code, "model_not_found")

    def test_a_chat_streamed_or_not(self):
        options = greedy(messages=CHAT, max_completion_tokens=12, n=2, logprobs=True, top_logprobs=2)
        whole = client().chat.completions.create(**options)
        self.assertEqual(whole.object, "chat.completion")
        self.assertEqual(whole.usage.completion_tokens, 24)
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + 24)
        texts, logprobs, reasons, usage = {}, {}, {}, None
        stream = client().chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                reasons[choice.index] = choice.finish_reason or reasons.get(choice.index)
                if choice.logprobs:
                    logprobs.setdefault(choice.index, []).extend(choice.logprobs.content)
        # Cached tokens differ: the second request finds what the first computed.
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(usage.prompt_tokens, whole.usage.prompt_tokens)
        self.assertGreater(usage.prompt_tokens_details.cached_tokens, 0)
        for choice in whole.choices:
            self.assertEqual(texts[choice.index], choice.message.content)
            self.assertEqual(reasons[choice.index], choice.finish_reason)
            self.assertEqual(logprobs[choice.index], choice.logprobs.content)
            self.assertEqual(len(choice.logprobs.content), 12)
            self.assertEqual(len(choice.logprobs.content[0].top_logprobs), 2)

    def test_the_stream_helper(self):
        with client().chat.completions.stream(**greedy(messages=CHAT, max_tokens=8)) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            whole = stream.current_completion_snapshot
        self.assertEqual("".join(deltas), whole.choices[0].message.content)
        self.assertEqual(whole.choices[0].finish_reason, "length")

    def test_completions_of_lists(self):
        answer = client().completions.create(**greedy(prompt=["One", "Two"], max_tokens=4, echo=True, logprobs=1))
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertTrue(answer.choices[1].text.startswith("Two"))
        logprobs = answer.choices[0].logprobs
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertEqual(len(logprobs.tokens), len(logprobs.text_offset))
        ids = client().completions.create(**greedy(prompt=[65, 66, 67], max_tokens=4))
        self.assertEqual(ids.usage.prompt_tokens, 3)

    def test_embeddings(self):
        # Unless it is told otherwise, the library asks for base64 and decodes it.
        inputs = ["One", "Two", "One"]
        answer = client().embeddings.create(model="tiny", input=inputs)
        self.assertEqual([item.index for item in answer.data], [0, 1, 2])
        one, two, again = (item.embedding for item in answer.data)
        self.assertEqual(one, again)
        self.assertNotEqual(one, two)
        self.assertAlmostEqual(sum(value * value for value in one), 1, places=5)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens)
        as_numbers = client().embeddings.create(model="tiny", input="One", encoding_format="float")
        self.assertEqual([struct.pack("<f", value) for value in as_numbers.data[0].embedding], [struct.pack("<f", value) for value in one])
        ids = client().embeddings.create(model="tiny", input=[[65, 66], [67]], extra_body={"pooling": "mean"})
        self.assertEqual(ids.usage.prompt_tokens, 3)
        self.assertEqual(len(ids.data), 2)

    def test_a_stream_that_is_left_early(self):
        options = greedy(messages=CHAT, max_tokens=50_000, stream=True)
        stream = client().chat.completions.create(**options)
        next(iter(stream))
        stream.close()

    def test_errors(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            client().chat.completions.create(model="tiny", messages=CHAT, temperature=-1)
        self.assertEqual(raised.exception.param, "temperature")
        self.assertIsNotNone(raised.exception.request_id)
        with self.assertRaises(openai.BadRequestError) as raised:
            client().chat.completions.create(model="tiny", messages=CHAT, max_tokens=10**6)
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
        with self.assertRaises(openai.BadRequestError) as raised:
            client().chat.completions.create(model="tiny", messages=CHAT, tools=[tool])
        self.assertEqual(raised.exception.code, "unsupported_parameter")
        with self.assertRaises(openai.NotFoundError):
            client().completions.create(model="other", prompt="hi")
        with self.assertRaises(openai.BadRequestError) as raised:
            client().embeddings.create(model="tiny", input="hi", dimensions=3)
        self.assertEqual(raised.exception.param, "dimensions")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
