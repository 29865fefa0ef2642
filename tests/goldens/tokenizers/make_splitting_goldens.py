#!/usr/bin/env python3
"""Makes what Hugging Face's tokenizers computes with the rules that GGUF files
name (tokenizer.ggml.pre), over a small vocabulary:

    make_splitting_goldens.py DATA FOLDER

DATA holds tokenizers/NAME/tokenizer.json, as ./lockstep test fetches them: the
rules that these have are taken from there. The others are written here as the
tokenizer.json of the models have them or, of those that could not be had, as
llama.cpp has them (src/llama-vocab.cpp, llm_tokenizer_bpe). Into FOLDER go tokenizer.json and
ids.json. The vocabulary is trained on the awkward strings without any rule, so
that its pieces reach over every place where one could cut.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from awkward_strings import STRINGS

VOCABULARY = 1400

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
PUNCTUATION = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# The cased letters of DeepSeek LLM: those of Unicode's that were there first.
CASED = (
    "A-Za-zµ\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556"
    "\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    "\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    "\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
)


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def digits(alone):
    return {"type": "Digits", "individual_digits": alone}


def byte_level(cuts=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": cuts}


def cased_words(ending="", upper=UPPER, lower=LOWER):
    before = r"[^\r\n\p{L}\p{N}]?"
    return f"{before}{upper}*{lower}+{ending}|{before}{upper}+{lower}*{ending}"


AFTER_CASED_WORDS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
# DeepSeek V3's, but for what is between punctuation and spaces.
PUNCTUATED_WORDS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"""
KANA = "\u3040-\u309f\u30a0-\u30ff"


# The steps of each, by the name it is best known by.
RULES = {
    "gpt-2": [byte_level(cuts=True)],
    "smollm": [digits(True), byte_level(cuts=True)],
    "minicpm5": [
        split(r"\p{N}{1,3}"),
        split(f"{CONTRACTIONS}|{WORDS}" + r"|\p{N}+|" + f"{PUNCTUATION}|{SPACES}"),
        byte_level(),
    ],
    "superbpe": [split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), byte_level()],
    "qwen35": [
        split(
            CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES,
        ),
        byte_level(),
    ],
    "bailingmoe": [
        split(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
            r"\s+(?!\S)|\s+"
        ),
        byte_level(),
    ],
    "seed-coder": [
        split(f"{CONTRACTIONS}|{WORDS}" + r"|\p{N}{1}| ?[^\s\p{L}\p{N}" + "\r\n]+|\\s*[\r\n]+" + r"|\s+(?!\S)|\s+"),
        byte_level(),
    ],
    "tekken": [split(cased_words() + r"|\p{N}" + AFTER_CASED_WORDS), byte_level()],
    # Not Chinese characters, which are words of their own: tiktoken's pattern in
    # Kimi K2's tokenization_kimi.py.
    "kimi-k2": [
        split(
            r"[\p{Han}]+|"
            + cased_words(
                f"{CONTRACTIONS}?",
                r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
            )
            + r"|\p{N}{1,3}|"
            + f"{PUNCTUATION}|{SPACES}"
        ),
        byte_level(),
    ],
    "tiny_aya": [
        split(r"\d{1,3}(?=(?:\d{3})*\b)"),
        split(cased_words(f"{CONTRACTIONS}?") + r"|\p{N}{1,3}" + AFTER_CASED_WORDS),
        byte_level(),
    ],
    "youtu": [
        split(
            "[\uac00-\ud7a3\u3131-\u318e]+|"
            "[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|"
            f"[\u3105-\u312f]+|[\u4e00-\u9fa5{KANA}]+"
        ),
        split(cased_words(f"{CONTRACTIONS}?") + r"|\p{N}" + AFTER_CASED_WORDS),
        byte_level(),
    ],
    "exaone-moe": [
        split(
            CONTRACTIONS
            + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]"
            + r"|\s+(?!\S)|\s+"
        ),
        byte_level(),
    ],
    "jais-2": [
        split(
            f"{CONTRACTIONS}|{WORDS}"
            + r"|\p{N}{1,3}|"
            + PUNCTUATION
            + r"|\s*[\r\n]+|"
            + "|".join(rf"\s{{{size}}}(?!\S)" for size in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
            + r"|\s{1}"
        ),
        byte_level(),
    ],
    "ufakzeka": [split(WORDS + r"|\p{N}|" + f"{PUNCTUATION}|{SPACES}"), byte_level()],
    "laguna": [
        split("[^\n]+|[\n]+"),
        split(f"{CONTRACTIONS}|{WORDS}" + r"|\p{N}|" + f"{PUNCTUATION}|{SPACES}"),
        byte_level(),
    ],
    "chameleon": [
        split("<sentinel:[0-9]+>"),
        split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
        split("([\t\n]|    |  )"),
        digits(True),
        {"type": "Punctuation", "behavior": "Isolated"},
        byte_level(cuts=True),
    ],
    "afmoe": [
        split(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"),
        split(
            "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
            "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"
        ),
        split(PUNCTUATED_WORDS + r"[\r\n]*|" + SPACES),
        byte_level(),
    ],
    "spark2_5": [
        split(r"\p{N}{1,3}"),
        split(f"[\u4e00-\u9fa5{KANA}]+"),
        split(PUNCTUATED_WORDS + r"|[\r\n]|\s+(?!\S)|\s+"),
        split(r"\p{N}"),
        byte_level(),
    ],
    "deepseek-llm": [
        split("[\r\n]"),
        split(rf"\s?[{CASED}]+"),
        split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
        split(r"\s+$"),
        split(HAN),
        digits(True),
        byte_level(),
    ],
    "deepseek-coder": [
        split("[\r\n]"),
        split(r"\s?\p{L}+"),
        split(r"\s?\p{P}+"),
        split(HAN),
        digits(True),
        byte_level(),
    ],
    "falcon": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        byte_level(cuts=True),
        digits(False),
        split("[0-9][0-9][0-9]"),
    ],
    "bloom": [split(BLOOM), byte_level()],
    "viking": [split(BLOOM), digits(True), byte_level()],
    # No model's: what llama.cpp's default is.
    "default": [
        split(r"[\p{P}\$\+<=>\^~\|]+"),
        split(GPT2),
        split(r"\p{N}+"),
        split("[0-9][0-9][0-9]"),
        byte_level(),
    ],
}

# Of those that DATA has.
REAL = {"llama-bpe": "llama3_1", "qwen2": "qwen3", "gpt-4o": "gptoss", "deepseek-v3": "deepseek_v3"}

NFC = ("qwen2", "qwen35")
IGNORE_MERGES = ("llama-bpe", "minicpm5", "gpt-4o", "tekken", "kimi-k2", "youtu")


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(STRINGS, trainer)
    return json.loads(tokenizer.to_str())


def encoded(tokenizer, rule, steps):
    with_rule = json.loads(json.dumps(tokenizer))
    with_rule["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    with_rule["normalizer"] = {"type": "NFC"} if rule in NFC else None
    with_rule["model"]["ignore_merges"] = rule in IGNORE_MERGES
    opened = Tokenizer.from_str(json.dumps(with_rule))
    return [opened.encode(text, add_special_tokens=False).ids for text in STRINGS]


def main():
    data, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(exist_ok=True)
    rules = dict(RULES)
    for rule, name in REAL.items():
        real = json.loads((data / "tokenizers" / name / "tokenizer.json").read_text())
        rules[rule] = real["pre_tokenizer"]["pretokenizers"]
    tokenizer = train()
    ids = {rule: encoded(tokenizer, rule, steps) for rule, steps in rules.items()}
    for rule, rows in ids.items():
        same = [other for other in ids if ids[other] == rows and other != rule]
        print(f"{rule}: {len(set(map(str, rows)))} different rows", "as " + ", ".join(same) if same else "")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, separators=(",", ":")) + "\n")
    lines = (f'"{rule}":{json.dumps(rows, separators=(",", ":"))}' for rule, rows in sorted(ids.items()))
    (folder / "ids.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
