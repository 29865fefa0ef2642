"""For openapi_check.py: rules between fields that the document says in words alone."""

import json

import schemathesis

SMALLEST = 2.0**-149  # that 32 bits hold
MOST_TOKENS = 8
MOST_STOP_BYTES = 1024
MOST_BAD_WORD_BYTES = 128
MOST_CHARACTERS = 500
MOST_ID = 255

FREE_CONSTRAINTS = ("guided_choice", "guided_json_object")
# What they say may be wrong in ways that no schema tells.
WRITTEN_CONSTRAINTS = ("structured_outputs", "guided_json", "guided_regex", "guided_grammar", "json_schema", "regex", "ebnf")


def is_set(body, name):
    return body.get(name) is not None


def contradicts_itself(body):
    streamed = body.get("stream") is True
    echoed = body.get("echo") is True
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    names = [tool["function"]["name"] for tool in body.get("tools") or []]
    return (
        (is_set(body, "stream_options") and not streamed)
        or (is_set(body, "prompt_logprobs") and streamed)
        or (bool(body.get("top_logprobs")) and body.get("logprobs") is not True)
        or (body.get("max_tokens") == 0 and not echoed)
        or (is_set(body, "min_tokens") and body["min_tokens"] > (most or 1))
        or body.get("continue_final_message") is True
        or (is_set(body, "input") and is_set(body, "dimensions"))
        or (body.get("truncate_prompt_tokens") or 1) > 1
        or any(is_nothing_in_32_bits(body.get(name)) for name in ("top_p", "repetition_penalty"))
        or (body.get("tool_choice") == "auto" and not names)
        or len(set(names)) < len(names)
        or constraints_contradict(body)
    )


def constraints_contradict(body):
    """With each other, or with the rest; or say what may be refused."""
    formatted = body.get("response_format") or {"type": "text"}
    asked = [name for name in FREE_CONSTRAINTS if body.get(name)]
    asked += ["response_format"] * (formatted["type"] != "text")
    choice = body.get("tool_choice")
    calls = choice == "required" or isinstance(choice, dict)
    return (
        any(is_set(body, name) for name in WRITTEN_CONSTRAINTS)
        or formatted["type"] == "json_schema"
        or len(asked) > 1
        or (bool(asked) and body.get("ignore_eos") is True)
        or calls  # of tools whose schemas may be refused
    )


def is_nothing_in_32_bits(number):
    return isinstance(number, float) and 0 < number < SMALLEST


def takes_long(body):
    """Or does not fit a small context."""
    is_chat = "messages" in body
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    text = json.dumps([body.get(name) for name in ("messages", "prompt", "input", "tools")])
    return len(text) > MOST_CHARACTERS or (is_chat and most is None) or (most or 0) > MOST_TOKENS


def is_beyond(body):
    """Limits in bytes, and ids as keys."""
    stops = body.get("stop") or []
    stops = [stops] if isinstance(stops, str) else stops
    words = body.get("bad_words") or []
    words = [words] if isinstance(words, str) else words
    return (
        any(len(stop.encode("utf-8", "replace")) > MOST_STOP_BYTES for stop in stops)
        or any(len(word.encode("utf-8", "replace")) > MOST_BAD_WORD_BYTES for word in words)
        or any(key.isdigit() and int(key) > MOST_ID for key in body.get("logit_bias") or {})
    )


@schemathesis.hook
def filter_case(context, case):
    """A request that fits the schema and breaks one of these rules proves nothing."""
    body = case.body
    try:
        return not isinstance(body, dict) or not (contradicts_itself(body) or takes_long(body) or is_beyond(body))
    except (AttributeError, KeyError, TypeError):
        return True  # it does not fit the schema anyway
