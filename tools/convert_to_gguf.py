#!/usr/bin/env python3
"""Writes the model of a Hugging Face folder as a GGUF file.

    convert_to_gguf.py FOLDER OUT.gguf [--pre NAME] [--fuse_gate_up]

Matrices keep their type (F32, F16 or BF16), vectors become F32. A BPE tokenizer
goes along; of a byte-level one --pre is ggml's name of its pre-tokenizer, gpt-2
if it is not given. Of other tokenizers there is nothing in the file. Experts may
be tensors of their own or one tensor a layer; with --fuse_gate_up their gates and
ups become one tensor, as llama.cpp's converter has an option for. Needs Python
alone. docs/models.md has the architectures.
"""

import argparse
import array
import dataclasses
import json
import math
import pathlib
import re
import struct
import sys

import gguf_names
from gguf_names import Unsupported
from gguf_tokens import add_tokens
from gguf_writer import Writer

GGML_TYPES = {"F32": 0, "F16": 1, "BF16": 30}


@dataclasses.dataclass(frozen=True)
class Piece:
    """A tensor of a folder or, of one that holds all experts, a matrix of it."""

    name: str
    shape: tuple
    first: int = 0  # element


class Checkpoint:
    """The tensors of a folder, by name: type, shape, bytes."""

    def __init__(self, folder):
        self.places = {}
        for path in sorted(folder.glob("*.safetensors")):
            with open(path, "rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(size))
            for name, entry in header.items():
                if name != "__metadata__":
                    self.places[name] = path, 8 + size, entry

    def names(self):
        return sorted(self.places)

    def shape(self, name):
        return self.places[name][2]["shape"]

    def type(self, name):
        return self.places[name][2]["dtype"]

    def whole(self, name):
        return Piece(name, tuple(self.shape(name)))

    def bytes(self, piece):
        path, start, entry = self.places[piece.name]
        begin, end = entry["data_offsets"]
        size = (end - begin) // math.prod(entry["shape"])
        with open(path, "rb") as file:
            file.seek(start + begin + piece.first * size)
            return file.read(math.prod(piece.shape) * size)

    def floats(self, piece):
        data, kind = self.bytes(piece), self.type(piece.name)
        if kind == "F32":
            return array.array("f", data)
        if kind == "F16":
            return array.array("f", struct.unpack(f"<{len(data) // 2}e", data))
        words = array.array("I", (bits << 16 for bits in array.array("H", data)))
        return array.array("f", words.tobytes())


def halves_to_neighbours(data, rows, head_dim):
    """Row i of a head's first half and row i of its second side by side."""
    size = len(data) // rows
    moved = []
    for row in range(rows):
        head, inner = divmod(row, head_dim)
        source = head * head_dim + inner % 2 * (head_dim // 2) + inner // 2
        moved.append(data[source * size : (source + 1) * size])
    return b"".join(moved)


class Converter:
    def __init__(self, folder, fuses_gate_up):
        self.folder = folder
        self.fuses = fuses_gate_up
        self.config = json.loads((folder / "config.json").read_text())
        name = self.config["architectures"][0]
        if name not in gguf_names.ARCHITECTURES:
            known = ", ".join(gguf_names.ARCHITECTURES)
            raise Unsupported(f"the architecture {name}; supported are {known}")
        self.arch = gguf_names.ARCHITECTURES[name]
        self.config = self.arch.defaults | self.config
        self.checkpoint = Checkpoint(folder)
        self.writer = Writer()
        self.heads = self.config["num_attention_heads"]
        self.layers = self.config["num_hidden_layers"]
        self.head_dim = self.config.get("head_dim") or self.config["hidden_size"] // self.heads

    def get(self, *names, otherwise=None):
        for name in names:
            if self.config.get(name) is not None:
                return self.config[name]
        return otherwise

    def key(self, name, value):
        if value is not None:
            self.writer.add(f"{self.arch.gguf}.{name}", value)

    # Metadata.

    def add_sizes(self):
        get = self.get
        self.writer.add("general.architecture", self.arch.gguf)
        self.key("block_count", self.layers)
        self.key("context_length", get("max_position_embeddings"))
        self.key("embedding_length", get("hidden_size"))
        self.key("feed_forward_length", get("intermediate_size"))
        self.key("attention.head_count", self.heads)
        self.key("attention.head_count_kv", get("num_key_value_heads", otherwise=self.heads))
        self.key("attention.key_length", self.head_dim)
        self.key("attention.value_length", self.head_dim)
        self.key("attention.layer_norm_rms_epsilon", float(get("rms_norm_eps")))
        self.key("vocab_size", get("vocab_size"))

    def add_experts(self):
        get = self.get
        if not self.arch.experts:
            return
        self.key("expert_count", get("num_experts", "num_local_experts", "n_routed_experts"))
        self.key("expert_used_count", get("num_experts_per_tok"))
        self.key("expert_feed_forward_length", get("moe_intermediate_size"))
        self.key("expert_shared_feed_forward_length", get("shared_expert_intermediate_size"))
        self.key("expert_weights_norm", get("norm_topk_prob"))
        if self.arch.sigmoids:
            self.add_sigmoid_router()
        if get("mlp_only_layers") or get("decoder_sparse_step", otherwise=1) != 1:
            raise Unsupported("layers without experts among such with them")

    def add_sigmoid_router(self):
        if self.get("scoring_func", otherwise="sigmoid") not in ("sigmoid", "noaux_tc"):
            raise Unsupported(f"scoring_func {self.get('scoring_func')}")
        self.key("expert_gating_func", 2)
        self.key("expert_shared_count", self.get("n_shared_experts"))
        scale = self.get("routed_scaling_factor")
        self.key("expert_weights_scale", None if scale is None else float(scale))
        self.key("expert_group_count", self.get("n_group"))
        self.key("expert_group_used_count", self.get("topk_group"))
        self.key("leading_dense_block_count", self.get("first_k_dense_replace"))

    def add_scales(self):
        for option, key in (
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("attention_multiplier", "attention.scale"),
            ("embedding_multiplier", "embedding_scale"),
            ("residual_multiplier", "residual_scale"),
            ("logits_scaling", "logit_scale"),
        ):
            value = self.get(option)
            self.key(key, None if value is None else float(value))
        scalar = self.get("query_pre_attn_scalar", otherwise=self.head_dim)
        if scalar != self.head_dim:
            self.key("attention.scale", scalar**-0.5)

    def add_window(self):
        window = self.get("sliding_window")
        if window is None or self.get("use_sliding_window") is False:
            return
        if not self.arch.windows:
            raise Unsupported(f"a sliding window of {self.arch.gguf}")
        self.key("attention.sliding_window", window)
        types = self.get("layer_types")
        if self.arch.full_interval and types:
            interval = types.index("full_attention") + 1 if "full_attention" in types else len(types) + 1
            expected = [
                "full_attention" if (i + 1) % interval == 0 else "sliding_attention" for i in range(len(types))
            ]
            if types != expected:
                raise Unsupported("layer_types that are not periodic")
            if interval != self.arch.full_interval:
                self.key("attention.sliding_window_pattern", interval)

    def rope(self):
        """Theta, scaling and the theta of layers with a window."""
        parameters = self.get("rope_parameters", otherwise={})
        local = self.get("rope_local_base_freq")
        if "full_attention" in parameters:
            local = parameters["sliding_attention"]["rope_theta"]
            parameters = parameters["full_attention"]
        scaling = self.get("rope_scaling", otherwise=parameters)
        theta = parameters.get("rope_theta", self.get("rope_theta", otherwise=10000.0))
        return float(theta), scaling, local

    def add_rope(self):
        theta, scaling, local = self.rope()
        part = scaling.get("partial_rotary_factor", self.get("partial_rotary_factor", otherwise=self.arch.rotates))
        rotary_dim = int(self.head_dim * part)
        self.key("rope.dimension_count", rotary_dim)
        self.key("rope.freq_base", theta)
        if self.arch.local_rope and local is not None:
            self.key("rope.freq_base_swa", float(local))
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        original = self.get("original_max_position_embeddings", otherwise=scaling.get("original_max_position_embeddings"))
        if kind == "llama3":
            self.key("rope.scaling.original_context_length", original)
            self.add_factors("rope_freqs.weight", llama3_factors(theta, rotary_dim, scaling))
        elif kind == "longrope":
            self.key("rope.scaling.original_context_length", original)
            self.key("rope.scaling.attn_factor", self.attention_factor(scaling, original))
            for name in ("long", "short"):
                self.add_factors(f"rope_factors_{name}.weight", scaling[f"{name}_factor"])
        elif kind in ("linear", "yarn"):
            self.key("rope.scaling.type", kind)
            self.key("rope.scaling.factor", float(scaling["factor"]))
            self.key("rope.scaling.original_context_length", original)
            if kind == "yarn":
                self.add_yarn(scaling)
        elif kind != "default":
            raise Unsupported(f"rope scaling {kind}")

    def add_yarn(self, scaling):
        for option, usual in (("attention_factor", None), ("mscale", None), ("mscale_all_dim", None), ("truncate", True)):
            if scaling.get(option, usual) not in (None, usual):
                raise Unsupported(f"yarn with {option}")
        for option in ("beta_fast", "beta_slow"):
            value = scaling.get(option)
            self.key(f"rope.scaling.yarn_{option}", None if value is None else float(value))

    def attention_factor(self, scaling, original):
        """What cosines and sines are multiplied by, of longrope."""
        growth = scaling.get("factor", self.get("max_position_embeddings") / original)
        otherwise = math.sqrt(1 + math.log(growth) / math.log(original)) if growth > 1 else 1.0
        return float(scaling.get("attention_factor", otherwise))

    def add_factors(self, name, factors):
        data = array.array("f", factors).tobytes()
        self.writer.add_tensor(name, [len(data) // 4], 0, len(data), lambda: data)

    # Tensors.

    def read(self, piece):
        """Its bytes as GGUF has them."""
        name, shape = piece.name, piece.shape
        rotates = re.search(r"self_attn\.[qk]_proj\.", name) and self.arch.neighbours
        if len(shape) == 1 or self.arch.squeezes(name):
            values = self.checkpoint.floats(piece)
            if self.arch.norm_offset and name.endswith("norm.weight"):
                values = array.array("f", (1.0 + value for value in values))
            data = values.tobytes()
        else:
            data = self.checkpoint.bytes(piece)
        return halves_to_neighbours(data, shape[0], self.head_dim) if rotates else data

    def add_tensor(self, gguf_name, experts):
        """Of each expert one piece or several of one shape, on top of each other;
        of what is not an expert's, one piece of one."""
        pieces = [piece for of_expert in experts for piece in of_expert]
        name, shape = pieces[0].name, list(pieces[0].shape)
        kind = self.checkpoint.type(name)
        if self.arch.squeezes(name):
            shape = shape[1:]
        if len(shape) == 1:
            kind = "F32"
        if kind not in GGML_TYPES:
            raise Unsupported(f"{name} of type {kind}")
        size = math.prod(shape) * len(pieces) * (4 if kind == "F32" else 2)
        if len(pieces) > 1:
            shape = [len(experts), len(pieces) // len(experts) * shape[0], shape[1]]
        self.writer.add_tensor(
            gguf_name, shape, GGML_TYPES[kind], size, lambda: b"".join(self.read(piece) for piece in pieces)
        )

    def guesses(self, name):
        """Whether a tensor is of the layers after the last, which are left out."""
        layer = gguf_names.LAYER_NUMBER.fullmatch(name)
        return self.arch.sigmoids and layer and int(layer[1]) >= self.layers

    def parts_of(self, name):
        """What a tensor becomes: names of GGUF's, numbers of experts, pieces."""
        fused = gguf_names.FUSED_EXPERTS.fullmatch(name)
        if not fused:
            gguf_name, expert = self.arch.name_of(name)
            if gguf_name is None:
                raise Unsupported(f"the tensor {name}")
            return [(gguf_name, expert, self.checkpoint.whole(name))]
        experts, rows, cols = self.checkpoint.shape(name)
        projections = ["ffn_gate_exps", "ffn_up_exps"] if fused[2] == "gate_up_proj" else ["ffn_down_exps"]
        rows //= len(projections)
        # Of each expert's rows gate's come before up's.
        places = ((i, projection) for i in range(experts) for projection in projections)
        return [
            (f"blk.{fused[1]}.{projection}.weight", i, Piece(name, (rows, cols), place * rows * cols))
            for place, (i, projection) in enumerate(places)
        ]

    def add_tensors(self):
        groups = {}
        for name in self.checkpoint.names():
            if name == "lm_head.weight" and self.get("tie_word_embeddings", otherwise=self.arch.tied):
                continue
            if self.guesses(name):
                continue
            for gguf_name, expert, piece in self.parts_of(name):
                # Sorted, gate comes before up.
                group = re.sub("ffn_(gate|up)_exps", "ffn_gate_up_exps", gguf_name) if self.fuses else gguf_name
                groups.setdefault(group, {}).setdefault(expert, {})[gguf_name] = piece
        for group, experts in sorted(groups.items()):
            self.add_tensor(group, [[piece for _, piece in sorted(experts[i].items())] for i in sorted(experts)])

    def convert(self, out, pre):
        self.add_sizes()
        self.add_experts()
        self.add_scales()
        self.add_window()
        self.add_rope()
        add_tokens(self.folder, self.config, self.writer, pre)
        self.add_tensors()
        self.writer.write(out)


def llama3_factors(theta, rotary_dim, scaling):
    """What ggml divides each inverse frequency by: the Llama 3.1 rule."""
    low, high, factor = (scaling[name] for name in ("low_freq_factor", "high_freq_factor", "factor"))
    for i in range(rotary_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * i / rotary_dim)
        smooth = (scaling["original_max_position_embeddings"] / wavelength - low) / (high - low)
        smooth = min(max(smooth, 0.0), 1.0)
        yield 1 / ((1 - smooth) / factor + smooth)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pre", default="gpt-2")
    parser.add_argument("--fuse_gate_up", action="store_true")
    flags = parser.parse_args()
    try:
        Converter(flags.folder, flags.fuse_gate_up).convert(flags.out, flags.pre)
    except Unsupported as error:
        sys.exit(f"{flags.folder}: {error} can not be converted")


if __name__ == "__main__":
    main()
