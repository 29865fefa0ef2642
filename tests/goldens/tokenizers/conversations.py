"""Conversations that chat templates are rendered with, and small templates for
single features of Jinja2 that real ones use.
"""


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Today's weather in <city> & around: \"temp\" in °C",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Zürich", "東京"]},
                "days": {"type": "integer", "default": 3, "maximum": 1e16},
                "limit": {"type": "number", "default": 0.00001},
                "flags": {"type": "array", "items": {}, "default": []},
            },
            "required": ["city"],
        },
    },
}

CALL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "arguments": {"city": "Zürich", "days": 2, "exact": True, "x": None},
    },
}

TEXT_CALL = {
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "東京"}'},
}

# The variables of one rendering each, by name.
CONVERSATIONS = {
    "one_question": {
        "messages": [user("What is the capital of France?")],
        "add_generation_prompt": True,
    },
    "system_first": {
        "messages": [system("You are terse."), user("Hi"), assistant("Hello.")]
    },
    "several_turns": {
        "messages": [
            user("One?"), assistant("1"), user("Two?"), assistant("2"),
            user("Three?"),
        ],
        "add_generation_prompt": True,
    },
    "white_space": {
        "messages": [
            user("  \n indented \t\n\n"), assistant("\n\nanswer \x1c\n"),
            user("\u3000wide\u00a0"),
        ],
        "add_generation_prompt": True,
    },
    "markup_and_scripts": {
        "messages": [
            system("<b>&amp;</b> 'single' \"double\" \\n {{ x }} {% y %}"),
            user("e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u05e9\u05dc\u05d5\u05dd"),
        ],
        "add_generation_prompt": True,
    },
    "special_tokens_in_text": {
        "messages": [user("<|im_end|><eos><|eot_id|> \u2581 <think>x</think>")],
    },
    "tools": {
        "messages": [system("Use tools."), user("Weather?")],
        "tools": [WEATHER],
        "add_generation_prompt": True,
    },
    "tool_call_and_result": {
        "messages": [
            user("Weather?"),
            assistant("Let me see.", tool_calls=[CALL, CALL]),
            {"role": "tool", "name": "get_weather", "content": '{"t": 21.5}'},
            {"role": "tool", "name": "get_weather", "content": "rain"},
            assistant("Rain at 21.5 °C."),
            user("Thanks"),
        ],
        "tools": [WEATHER],
        "add_generation_prompt": True,
    },
    "tool_call_without_content": {
        "messages": [
            user("Weather?"),
            assistant(None, tool_calls=[TEXT_CALL, TEXT_CALL]),
            {"role": "tool", "content": "sun"},
        ],
    },
    "thoughts": {
        "messages": [
            user("2+2?"),
            assistant("<think>\nadd them\n</think>\n\n4"),
            user("And 3+3?"),
            assistant("6", reasoning_content="again"),
        ],
    },
    "thinking_off": {
        "messages": [user("Quick!")],
        "add_generation_prompt": True,
        "enable_thinking": False,
    },
    "two_users_in_a_row": {"messages": [user("One"), user("Two")]},
    "content_in_parts": {
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": " Look: "},
                {"type": "image"},
                {"type": "text", "text": "what is it?"},
            ]},
        ],
        "add_generation_prompt": True,
    },
    "no_messages": {"messages": [], "add_generation_prompt": True},
    "no_content": {"messages": [{"role": "user"}]},
    "own_bos_token": {"messages": [user("Hi")], "bos_token": "<mine>"},
}

VALUES = {
    "s": "Ab c", "padded": " \t\x1c x \n", "i": 7, "f": 2.0, "yes": True,
    "nothing": None, "empty": [], "list": [1, "two", 3.5, None, True],
    "map": {"b": 1, "a": {"x": "<&>'\"é"}}, "words": ["x", "y", "z"],
    "numbers": [1e16, 1e-5, 0.1, -0.0, 1e22, 123456789.0, 1.5e300, 3],
    "people": [{"name": "Ann", "age": 3}, {"name": "Bob", "age": 5}],
    "control": "a\x00b\x1f\x7f\u2028\U0001f600/\\\b\f\n\r\t",
}

# Each is rendered with VALUES.
FEATURES = [
    # What a value looks like.
    "{{ s }}|{{ i }}|{{ f }}|{{ yes }}|{{ nothing }}|{{ missing }}|",
    "{{ list }}|{{ map }}|{{ empty }}|{{ words }}",
    "{{ s ~ i ~ f ~ yes ~ nothing }}|{{ 'n' + i|string }}",
    "{{ 1 == 1.0 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 7 % 3 }} {{ 2 ** 5 }} {{ -7 // 2 }}",
    # White space control.
    "  {% if yes %}\n  kept\n  {% endif %}\n  after\n\n",
    "a\n  {%- if yes -%}  \n b \n {%- endif -%} \n c",
    "{# a comment #}\n  {# another #}x\n",
    "line\r\nbreaks\rof {% if yes %}\r\nevery kind{% endif %}\n\n",
    "{%+ if yes %} plus {% endif +%}\nx",
    # JSON.
    "{{ map | tojson }}|{{ list | tojson }}|{{ empty | tojson }}",
    "{{ map | tojson(indent=2) }}|{{ people | tojson(indent=4) }}",
    "{{ empty | tojson(indent=2) }}{{ {} | tojson(indent=2) }}",
    "{{ numbers | tojson }}",
    "{{ control | tojson }}|{{ control | tojson(ensure_ascii=true) }}",
    "{{ map | tojson(sort_keys=true) }}|{{ map | tojson(separators=(',', ':')) }}",
    "{{ {'k': [1, [], {}]} | tojson(indent=1, separators=(' ,', ' : ')) }}",
    "{{ missing | tojson }}",
    # Strings.
    "[{{ padded | trim }}][{{ padded.strip() }}][{{ padded.lstrip() }}][{{ padded.rstrip() }}]",
    "{{ 'xxaxx'.strip('x') }}{{ 'xyax'.lstrip('xy') }}{{ 'axyx'.rstrip('yx') }}",
    "{{ s.upper() }}{{ s.lower() }}{{ s | upper }}{{ s.title() }}{{ 'abC d'.capitalize() }}",
    "{{ s.startswith('Ab') }}{{ s.endswith('x') }}{{ 'b' in s }}{{ 'z' not in s }}",
    "{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}",
    "{{ 'a\nb\n\nc'.splitlines() }}{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '-', 1) }}",
    "{{ '-'.join(words) }}{{ words | join(', ') }}{{ list | join('/') }}",
    "{{ s | length }}{{ s[0] }}{{ s[-1] }}{{ s[1:3] }}{{ s[::-1] }}",
    "{{ '%s has %d' | format('x', 3) }}|{{ '{} {}'.format('a', 1) }}",
    "{{ 'x' * 3 }}{{ words | first }}{{ words | last }}{{ s | replace('b', 'B') }}",
    "{{ 'a\\nb' }}{{ 'q\"' }}{{ \"it's\" }}",
    # Lists and maps.
    "{{ list[1:] }}{{ words[::-1] }}{{ words[-1] }}{{ list | length }}",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}{{ map.keys() | list }}",
    "{{ map.get('b') }}{{ map.get('z') }}{{ map.get('z', 'd') }}{{ map['a']['x'] }}{{ map.a.x }}",
    "{% for k, v in map | dictsort %}{{ k }}{% endfor %}{% for k, v in map | items %}{{ k }}{% endfor %}",
    "{{ people | map(attribute='name') | list }}{{ people | selectattr('age', 'gt', 4) | list }}",
    "{{ people | rejectattr('name', 'equalto', 'Ann') | map(attribute='name') | join }}",
    "{{ [3, 1, 2] | sort }}{{ [1, 1, 2] | unique | list }}{{ [1, 2] + [3] }}{{ (1, 2) }}",
    "{{ people[0].name }}{{ people[5] is defined }}{{ people | length > 1 }}",
    "{{ dict(a=1, b=2) | tojson }}{{ range(3) | list }}{{ range(1, 9, 3) | list }}",
    # Tests.
    "{{ s is string }}{{ i is number }}{{ list is sequence }}{{ map is mapping }}{{ words is iterable }}",
    "{{ s is iterable }}{{ map is iterable }}{{ nothing is iterable }}{{ missing is iterable }}{{ i is iterable }}{{ nothing is none }}{{ missing is none }}{{ missing is undefined }}",
    "{{ yes is true }}{{ yes is boolean }}{{ i is odd }}{{ 4 is divisibleby 2 }}{{ s is sequence }}{{ yes is sameas true }}",
    "{{ missing | default('d') }}{{ nothing | default('d') }}{{ '' | default('d', true) }}",
    "{{ missing == nothing }}{{ missing or 'x' }}{{ nothing and 'x' }}{{ not missing }}",
    "{{ 'yes' if yes else 'no' }}{{ 'no' if missing }}|",
    # Loops, scopes and blocks.
    "{% for w in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }} {% endfor %}",
    "{% for w in words %}{% if w == 'y' %}{% continue %}{% endif %}{{ w }}{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}",
    "{% for w in words if w != 'y' %}{{ w }}{{ loop.index }}{% else %}none{% endfor %}{% for x in [] %}{% else %}none{% endfor %}",
    "{% for w in words %}{{ loop.previtem }}<{{ w }}>{{ loop.nextitem }};{% endfor %}",
    "{% for w in words %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for w in words %}{% set ns.n = ns.n + 1 %}{% set s = w %}{% endfor %}{{ ns.n }}{{ s }}",
    "{% set ns = namespace(x=1) %}{% set ns.x = [1, {'a': 2}] %}{{ ns.x }}{% set ns.x = ns.x + ['=', \"%}\"] %}{{ ns.x }}{% set ns.y = 1 == 1 %}{{ ns.y }}",
    "{% set ns = namespace() %}{% set ns.x %}a = {{ i }}{% endset %}[{{ ns.x }}]{% set ns.x | replace('b', '=') %}b{% endset %}{{ ns.x }}",
    "{%- set ns = namespace() -%}{%- set ns.x = 'a' if yes else 'b' -%} {{ ns.x }} {%- set ns.x=-1-%} {{ ns.x }}",
    "{{ '{% set ns.x = 1 %}' }}{% raw %}{% set ns.x = 1 %}{% endraw %}{# {% set ns.x = 1 %} #}{{ {'a': {'b': 1}} }}",
    "{% set x %}block {{ i }}{% endset %}[{{ x }}]{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% macro m(a, b='d') %}({{ a }},{{ b }}){% endmacro %}{{ m(1) }}{{ m(1, b=2) }}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{% endcall %}",
    "{% filter upper %}abc{% endfilter %}{% with q = 5 %}{{ q }}{% endwith %}{% raw %}{{ x }}{% endraw %}",
    "{% generation %}said {{ i }}{% endgeneration %}\n{%- generation -%} x {%- endgeneration -%} .",
    "{{ missing.attribute }}",
    "{{ nothing.attribute }}|{{ map.nothing }}|",
    "{{ missing + 'x' }}",
    "{{ s + 1 }}",
    "{% for x in missing %}{{ x }}{% endfor %}|{{ words is sequence }}{{ map is sequence }}{{ i is sequence }}",
    "{{ raise_exception('no: ' + s) }}",
    "{% macro m() %}{{ raise_exception('from a macro') }}{% endmacro %}{{ m() }}",
    "{{ strftime_now('%%') }}{{ strftime_now('') }}",
    "{{ unknown_function() }}",
    "{{ s | unknown_filter }}",
    "{% if %}",
]
