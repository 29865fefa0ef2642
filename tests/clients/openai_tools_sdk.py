#!/usr/bin/env python3
"""The official openai library with tools, reasoning and retries: openai_tools_sdk.py http://HOST:PORT/v1

Run by tool_clients_test.cc, whose worker asks for the weather of Zürich and, once it has it, tells it.
"""

import json
import sys
import time
import unittest

import openai

QUESTION = [{"role": "user", "content": "Weather?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Today's weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def client(max_retries=0):
    return openai.OpenAI(base_url=sys.argv[1], api_key="any", max_retries=max_retries, timeout=60)


def create(**options):
    return client().chat.completions.create(model="fake", **{"messages": QUESTION, "tools": [TOOL], **options})


class ToolsTest(unittest.TestCase):
    def test_a_call_and_what_comes_of_it(self):
        asked = create(tool_choice="auto")
        choice = asked.choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertIsNone(choice.message.content)
        self.assertEqual(choice.message.reasoning, "I must look.")
        self.assertEqual(choice.message.reasoning_content, "I must look.")
        self.assertGreater(asked.usage.completion_tokens_details.reasoning_tokens, 0)
        calls = choice.message.tool_calls
        self.assertEqual([call.function.name for call in calls], ["get_weather", "get_weather"])
        self.assertEqual(json.loads(calls[0].function.arguments), {"city": "Zürich"})
        self.assertEqual(len({call.id for call in calls}), 2)

        answers = [{"role": "tool", "tool_call_id": call.id, "content": "21"} for call in calls]
        told = create(messages=[*QUESTION, choice.message, *answers])
        self.assertEqual(told.choices[0].finish_reason, "stop")
        self.assertEqual(told.choices[0].message.content, "It is 21 °C.")
        self.assertIsNone(told.choices[0].message.tool_calls)

    def test_a_call_as_it_comes(self):
        reasoning, calls, reasons = "", {}, []
        for chunk in create(stream=True):
            choice = chunk.choices[0]
            reasons += [choice.finish_reason] if choice.finish_reason else []
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            for part in choice.delta.tool_calls or []:
                if part.id:
                    self.assertEqual(part.function.arguments, "")
                    calls[part.index] = [part.id, part.function.name, ""]
                else:
                    self.assertIsNone(part.function.name)
                    calls[part.index][2] += part.function.arguments
        self.assertEqual(reasons, ["tool_calls"])
        self.assertEqual(reasoning, "I must look.")
        self.assertEqual(sorted(calls), [0, 1])
        self.assertEqual(calls[1][1], "get_weather")
        self.assertEqual(json.loads(calls[1][2]), {"city": "東京"})

    def test_the_stream_helper(self):
        with client().chat.completions.stream(model="fake", messages=QUESTION) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
        self.assertIn("<tool_call>", message.content)  # there were no tools

    def test_one_call_is_enough(self):
        asked = create(parallel_tool_calls=False)
        self.assertEqual(len(asked.choices[0].message.tool_calls), 1)
        self.assertEqual(asked.choices[0].finish_reason, "tool_calls")

    def test_a_full_queue_is_tried_again_when_the_worker_says(self):
        began = time.monotonic()
        busy = [{"role": "user", "content": "busy 2 python"}]
        told = client(max_retries=2).chat.completions.create(model="fake", messages=busy)
        self.assertEqual(told.choices[0].message.content, "At last.")
        self.assertGreaterEqual(time.monotonic() - began, 2 * 0.2)
        with self.assertRaises(openai.RateLimitError) as raised:
            client().chat.completions.create(model="fake", messages=[{"role": "user", "content": "busy 9 python"}])
        self.assertEqual(raised.exception.body["reason"], "QUEUE_FULL_REQUESTS")

    def test_a_named_call_stops(self):
        asked = create(tool_choice={"type": "function", "function": {"name": "get_weather"}})
        self.assertEqual(asked.choices[0].finish_reason, "stop")
        self.assertEqual(create(tool_choice="required").choices[0].finish_reason, "tool_calls")

    def test_what_is_not_supported_is_named(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            create(tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}})
        self.assertEqual(raised.exception.code, "unsupported_parameter")
        self.assertEqual(raised.exception.param, "tool_choice")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
