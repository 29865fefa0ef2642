#!/usr/bin/env python3
"""The official openai library with structured output: openai_structured_sdk.py http://HOST:PORT/v1

Run by structured_clients_test.cc. The model is random: whatever is right of an answer, its grammar made so.
"""

import json
import sys
import unittest
from typing import Annotated, Literal

import openai
import pydantic

QUESTION = [{"role": "user", "content": "Who?"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "age": {"type": "integer", "minimum": 0, "maximum": 30},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 1, "maxItems": 2},
    },
    "required": ["kind", "age", "names"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "adopt", "parameters": SCHEMA, "strict": True}},
    {"type": "function", "function": {"name": "leave", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}},
]


class Animal(pydantic.BaseModel):
    kind: Literal["cat", "dog"]
    age: Annotated[int, pydantic.Field(ge=0, le=30)]
    name: Annotated[str, pydantic.Field(max_length=8)]


def client():
    return openai.OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0, timeout=60)


def create(seed=1, **options):
    return client().chat.completions.create(model="tiny", **{"messages": QUESTION, "seed": seed, "max_tokens": 400, **options})


def of_schema(schema=SCHEMA):
    return {"type": "json_schema", "json_schema": {"name": "animal", "schema": schema, "strict": True}}


class StructuredTest(unittest.TestCase):
    def check(self, value):
        self.assertEqual(list(value), ["kind", "age", "names"])
        self.assertIn(value["kind"], ["cat", "dog"])
        self.assertIn(value["age"], range(31))
        self.assertIn(len(value["names"]), [1, 2])
        self.assertTrue(all(len(name) <= 6 for name in value["names"]))

    def test_answers_are_of_their_schema(self):
        for seed in range(5):
            choice = create(seed, response_format=of_schema()).choices[0]
            self.assertEqual(choice.finish_reason, "stop")
            self.check(json.loads(choice.message.content))

    def test_choices_and_streams_too(self):
        whole = create(7, n=3, response_format=of_schema())
        texts = ["", "", ""]
        for chunk in create(7, n=3, response_format=of_schema(), stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
        for choice in whole.choices:
            self.assertEqual(texts[choice.index], choice.message.content)
            self.check(json.loads(choice.message.content))

    def test_the_parse_helper(self):
        parsed = client().chat.completions.parse(
            model="tiny", messages=QUESTION, response_format=Animal, seed=3, max_tokens=400
        )
        self.assertIsInstance(parsed.choices[0].message.parsed, Animal)

    def test_an_object_is_cut_off_with_length(self):
        choice = create(response_format=of_schema(), max_tokens=5).choices[0]
        self.assertEqual(choice.finish_reason, "length")
        self.assertTrue(choice.message.content.startswith("{"))

    def test_other_constraints(self):
        for extra, texts in (
            ({"guided_choice": ["yes", "no"]}, ["yes", "no"]),
            ({"structured_outputs": {"regex": "[ab]{3}"}}, None),
            ({"ebnf": 'root ::= "a" | "b" [0-9]'}, None),
        ):
            text = create(extra_body=extra).choices[0].message.content
            if texts:
                self.assertIn(text, texts)
            else:
                self.assertRegex(text, r"^([ab]{3}|a|b[0-9])$")
        said = client().completions.create(model="tiny", prompt="Who", max_tokens=20, extra_body={"guided_regex": "[0-9]{4}"})
        self.assertRegex(said.choices[0].text, r"^[0-9]{4}$")

    def test_logprobs_are_of_what_is_allowed(self):
        choice = create(extra_body={"guided_choice": ["yes", "no"]}, logprobs=True, top_logprobs=5).choices[0]
        first = choice.logprobs.content[0]
        self.assertLessEqual({top.token[0] for top in first.top_logprobs}, {"y", "n"})

    def test_a_call_is_made_where_it_is_required(self):
        for seed in range(3):
            choice = create(seed, tools=TOOLS, tool_choice="required").choices[0]
            self.assertEqual(choice.finish_reason, "tool_calls")
            self.assertIsNone(choice.message.content)
            for call in choice.message.tool_calls:
                arguments = json.loads(call.function.arguments)
                if call.function.name == "adopt":
                    self.check(arguments)
                else:
                    self.assertEqual((call.function.name, arguments), ("leave", {}))

    def test_the_named_tool_is_called_once(self):
        choice = create(
            tools=TOOLS,
            tool_choice={"type": "function", "function": {"name": "adopt"}},
            parallel_tool_calls=False,
        ).choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertEqual([call.function.name for call in choice.message.tool_calls], ["adopt"])
        self.check(json.loads(choice.message.tool_calls[0].function.arguments))

    def test_what_is_bad_is_refused_before_it_starts(self):
        for schema in ({"type": "strin"}, {"$ref": "#/$defs/nobody"}, {"type": "string", "pattern": "("}):
            with self.assertRaises(openai.BadRequestError) as raised:
                create(response_format=of_schema(schema), stream=True)
            self.assertEqual(raised.exception.param, "response_format")
        with self.assertRaises(openai.BadRequestError) as raised:
            create(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "x"}}}], tool_choice="required")
        self.assertEqual(raised.exception.param, "tools")
        with self.assertRaises(openai.BadRequestError):
            create(extra_body={"guided_regex": "["})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
