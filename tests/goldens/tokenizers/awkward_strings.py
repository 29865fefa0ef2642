#!/usr/bin/env python3
"""The 200 awkward strings: what breaks tokenizers, decoders and templates.

They are written with escapes, so that an editor can neither show nor change
what makes them awkward. Printed as JSON:

    awkward_strings.py > awkward_strings.json
"""

import json
import sys

NUMBER = 200

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>",
    "<|eot_id|>", "<|start_header_id|>", "<bos>", "<eos>", "<start_of_turn>",
    "<unused0>", "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
    "<\uff5cUser\uff5c>", "<|startoftext|>", "<|return|>", "<think>",
    "<tool_call>", "<s>", "</s>", "<unk>", "<0x0A>", "[INST]",
)

STRINGS = [
    # Nothing, and next to nothing.
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", " \n ",
    "\u00a0", "\u2003\u2003", "\u3000", "\u200b", "\u2028", "\u2029",
    "\x0b\x0c", "\x85", "a", "A", "0", ".", "'",
    # White space around and inside words.
    " leading", "trailing ", "  two  spaces  ", "a\tb", "a \t b", "a\n\n\nb",
    "a\r\nb\r\n", "line \n  indented\n\tand tabbed\n", " " * 17 + "x",
    "x" + " " * 33, "\n" * 9 + "end", "tab\there\t\tthere", "a\u00a0b",
    "a\u2009b\u200ac", "word\u200bword", "one\u2028two\u2029three",
    # Contractions, as the splitting rules know them, and as they do not.
    "I'm you're he's they've we'll she'd can't",
    "I'M YOU'RE HE'S THEY'VE WE'LL SHE'D CAN'T",
    "I\u2019m you\u2019re he\u2019s", "'s 's'S 'tis rock'n'roll", "''''", "it''s",
    "\u017fie'\u017f", "O'Neill's 'quoted' words'",
    # Numbers.
    "1", "12", "123", "1234", "12345678901234567890", "3.14159", "1,000,000.00",
    "1e-7", "0x1F600", "2024-02-29T23:59:60Z", " 7", "a 1 b 22 c 333",
    "   4", "x1y22z333", "\u0661\u0662\u0663", "\u0967\u0968\u0969", "\u00bd \u00b2 \u2460 \u216b \u3007",
    "\uff11\uff12\uff13", "\U0001d7d8\U0001d7d9\U0001d7da", "1\ufe0f\u20e3", "v1.2.3-rc.4+build5",
    # Punctuation.
    "!?!?...", "\u2026\u2014\u2013\u2012\u2022", "\u00ab\u201e\u201c\u201d\u2018\u2019\u00bb", "((([[[{{{}}}]]])))",
    "a,b;c:d.e!f?g", "#$%&*+-/<=>@\\^_`|~", "----------", "==========>",
    " .", " ,word", "hello,world", "\u3001\u3002\u300c\u300d\uff01\uff1f", "\u00bfQu\u00e9? \u00a1No!", "...\n", "?!\n\nNext",
    # Scripts.
    "\u00c5ngstr\u00f6m na\u00efve fa\u00e7ade \u0152uvre", "Stra\u00dfe GROSS gro\u00df \u1e9e",
    "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439, \u043c\u0438\u0440!", "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ba\u03cc\u03c3\u03bc\u03b5",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "abc \u05d0\u05d1\u05d2 123 \u202eover\u202c", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u4f60\u597d \u4e16\u754c hello\u4e16\u754c", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002", "\u30a2\u30a4\u30a6\uff71\uff72\uff73\uff9e",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u1230\u120b\u121d \u1208\u12d3\u1208\u121d",
    "\u0f56\u0f7c\u0f51\u0f0b\u0f61\u0f72\u0f42", "\u1019\u103c\u1014\u103a\u1019\u102c", "\u13e3\u13b3\u13a9", "\U00012000\U00012031\U0001202d",
    "\U00020000\U0002a6d6\U0003134a", "\ua980\u1b05\u1c50", "ti\u1ebfng Vi\u1ec7t", "tie\u0302\u0301ng Vie\u0323\u0302t",
    # Characters that look alike, are composed or fold.
    "\u00e9", "e\u0301", "caf\u00e9 cafe\u0301", "\u212b \u00c5 A\u030a", "\ufb01\ufb02\ufb03", "\u1e9b\u0323", "\u2126 \u03a9",
    "a\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308", "\u0300", "x\u20dd", "\u0345\u0345", "\u01c4 \u01c5 \u01c6", "\u0130I\u0131i",
    "\uff21\uff22\uff23 \uff41\uff42\uff43", "\U0001d400\U0001d41a \U0001d504",
    # Emoji.
    "\U0001f600", "\U0001f600\U0001f601\U0001f602", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u2764\ufe0f\u2764\ufe0e\u2764", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "\U0001f9d1\U0001f3ff\u200d\U0001f680 lift-off \U0001f680\U0001f680", "a\U0001f600b \U0001f600c", "\u263a \u2660\u2663\u2665\u2666 \u2713",
    # Control and other characters that text should not have.
    "\x00", "a\x00b", "\x01\x02\x03\x1b[31mred\x1b[0m", "\x7f", "\x1c\x1d\x1e\x1f", "\x80\x9f",
    "\ufeff", "\ufeffBOM first", "mid\ufeffdle", "\ufffd", "a\ufffdb\ufffd\ufffd", "\ufffe\uffff", "\U0010ffff",
    "\ue000\uf8ff", "\u202a\u202b\u2066\u2069", "\u00ad soft\u00adhyphen", "\u2060\u180e\u034f",
    # Symbols that tokenizers use themselves.
    "\u0120", "\u0120hello \u010a", "\u2581", "\u2581hello\u2581world", "a \u2581 b", "\u0100\u0143", "##ing", "@@ word@@",
    # Code and markup.
    "def f(x):\n    return x ** 2  # done\n", "for (int i = 0; i < n; ++i) {\n\ta[i] += b[i];\n}",
    "<div class=\"a\">&amp; &lt;b&gt;</div>", "{\"k\": [1, 2.5, null, true], \"\\u00e9\": \"\\n\"}",
    "SELECT * FROM `t` WHERE a='it''s' AND b<>\"c\";", "https://example.com/a?b=c&d=%20#e", "C:\\path\\to\\file.txt",
    "user@example.com", "$E = mc^2$ and \\frac{1}{2}", "snake_case camelCase PascalCase kebab-case SCREAMING_CASE",
    "{% for x in y %}{{ x }}{% endfor %}", "| a | b |\n|---|---|\n| 1 | 2 |",
    "```python\nprint('hi')\n```\n", "\u0394x/\u0394t \u2248 \u221e \u2211\u1d62 \u221a2 \u2260 \u2264",
    # Long words.
    "a" * 300, "ab" * 200, "\u00e9" * 100, "\u4e2d" * 100, "\U0001f600" * 40, "1" * 100, "!" * 100, "a1" * 60,
    "Donaudampfschifffahrtselektrizit\u00e4tenhauptbetriebswerkbauunterbeamtengesellschaft",
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 4, "x" * 60 + " " + "y" * 60,
    # Special tokens: alone, in text, side by side, and almost.
    *(f"before {token}after" for token in SPECIAL_TOKENS[:8]),
    " ".join(SPECIAL_TOKENS), "".join(SPECIAL_TOKENS), "<|im_start|", "<|im_start|>>", "<|IM_END|>", "< |im_end|>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", " <|im_end|> \n <eos> ",
]

if __name__ == "__main__":
    assert len(STRINGS) == len(set(STRINGS)), "a string occurs twice"
    assert len(STRINGS) == NUMBER, f"{len(STRINGS)} strings"
    json.dump(STRINGS, sys.stdout, indent=0)
    print()
