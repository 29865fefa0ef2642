"""What a GGUF file says of a Hugging Face folder's tokenizer (ggml's
docs/gguf.md, "Tokenizer"). Used by convert_to_gguf.py."""

import json
import re

from gguf_names import Unsupported


def token_type(token, added, of_pieces):
    """ggml's number: normal, control, user defined, unused or a byte."""
    if added is not None:
        return 3 if added["special"] else 4
    if token is None:
        return 5
    return 6 if of_pieces and re.fullmatch("<0x[0-9A-F]{2}>", token) else 1


def steps(part):
    """The steps of a normalizer, pre-tokenizer or post-processor, in their order."""
    if not part:
        return []
    inner = next((part[key] for key in ("normalizers", "pretokenizers", "processors") if key in part), None)
    return [part] if inner is None else [step for one in inner for step in steps(one)]


def puts_space_before(tokenizer):
    for step in steps(tokenizer.get("normalizer")) + steps(tokenizer.get("pre_tokenizer")):
        if step["type"] == "Prepend":
            return True
        if step["type"] == "Metaspace":
            return step.get("prepend_scheme", "always" if step.get("add_prefix_space") else "never") != "never"
    return False


def surroundings(tokenizer):
    """The tokens that are put before and behind each text."""
    processors = [step for step in steps(tokenizer.get("post_processor")) if step["type"] != "ByteLevel"]
    if any(step["type"] != "TemplateProcessing" for step in processors) or len(processors) > 1:
        raise Unsupported(f"the post-processor {', '.join(step['type'] for step in processors)}")
    template = processors[0] if processors else None
    single = template["single"] if template else [{"Sequence": {}}]
    at = next(i for i, piece in enumerate(single) if "Sequence" in piece)
    around = [[piece["SpecialToken"]["id"] for piece in side] for side in (single[:at], single[at + 1 :])]
    if any(len(side) > 1 for side in around):
        raise Unsupported("a text between several special tokens")
    return around


def add_special_tokens(config, writer, ids, around):
    """BOS and EOS as the configuration or, before it, what surrounds texts has them."""
    for name, side in zip(("bos", "eos"), around):
        value = ids[side[0]] if side else config.get(f"{name}_token_id")
        value = value[0] if isinstance(value, list) else value
        if value is not None:
            writer.add(f"tokenizer.ggml.{name}_token_id", value)


def add_tokens(folder, config, writer, pre):
    """All that a GGUF file says of a tokenizer, or only BOS and EOS where it is no BPE."""
    add = writer.add
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text()) if path.exists() else {}
    model = tokenizer.get("model", {})
    if model.get("type") != "BPE":
        add_special_tokens(config, writer, {}, ([], []))
        return
    around = surroundings(tokenizer)
    added_ids = {token["content"]: token["id"] for token in tokenizer.get("added_tokens", [])}
    add_special_tokens(config, writer, {**model["vocab"], **added_ids}, around)
    for name, side in zip(("bos", "eos"), around):
        add(f"tokenizer.ggml.add_{name}_token", bool(side))
    of_pieces = bool(model.get("byte_fallback"))
    tokens = {i: token for token, i in model["vocab"].items()}
    added = {t["id"]: t for t in tokenizer.get("added_tokens", [])}
    for i, token in added.items():
        is_looked_for = of_pieces and not token["special"]  # before pieces are, in the text as it is
        tokens[i] = token["content"].replace("\u2581", " ") if is_looked_for else token["content"]
    ids = range(config["vocab_size"])
    tokens = [tokens.get(i) for i in ids]
    types = [token_type(token, added.get(i), of_pieces) for i, token in enumerate(tokens)]
    add("tokenizer.ggml.tokens", [token or f"[PAD{i}]" for i, token in enumerate(tokens)])
    add("tokenizer.ggml.token_type", types)
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    if of_pieces:
        first = {left + right: i for i, (left, right) in reversed(list(enumerate(merges)))}
        add("tokenizer.ggml.model", "llama")
        add("tokenizer.ggml.scores", [-float(first.get(token, len(merges))) for token in tokens])
        add("tokenizer.ggml.add_space_prefix", puts_space_before(tokenizer))
        if model.get("unk_token") in model["vocab"]:
            add("tokenizer.ggml.unknown_token_id", model["vocab"][model["unk_token"]])
    else:
        add("tokenizer.ggml.model", "gpt2")
        add("tokenizer.ggml.pre", pre)
        add("tokenizer.ggml.merges", [" ".join(m) for m in merges])
    template = folder / "tokenizer_config.json"
    if template.exists() and "chat_template" in (settings := json.loads(template.read_text())):
        add("tokenizer.chat_template", settings["chat_template"])
