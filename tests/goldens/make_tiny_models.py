#!/usr/bin/env python3
"""Makes the tiny checkpoints and what Hugging Face computes from them.

    make_tiny_models.py FOLDER [NAME...]

Files and their tensors are described in README.md. Each checkpoint is drawn
from a seed of its own, written in float32 and, rounded, in bfloat16; each
golden file is computed from the checkpoint as read back, in float32.
"""

import dataclasses
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

import tiny_tokenizer

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

# Lengths of the prompts, and of how many of their last positions logits are
# kept: a lone token, one full page of 16, several pages, and past the 64
# positions at which the llama3 rope scaling sets in.
PROMPTS = ((1, 1), (16, 16), (45, 12), (131, 4))
HIDDEN_STATES_OF = 1
GREEDY_STEPS = 24
# No greedy choice may be so close that an engine within tolerance could differ.
LEAST_MARGIN = 1e-3


@dataclasses.dataclass(frozen=True)
class Tiny:
    seed: int
    kind: str
    config: dict
    # config.json as published before transformers 5: rope_theta at the top.
    old_config: bool = True
    max_shard: str = "1GB"


def rope(theta, **scaling):
    return {"rope_type": "default", "rope_theta": theta} | scaling


COMMON = {
    "vocab_size": tiny_tokenizer.VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}

GEMMA = {
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 32,
    "tie_word_embeddings": True,
}

EXPERTS = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}

MODELS = {
    # In several files with an index; head_dim follows from the other sizes.
    "llama": Tiny(
        seed=11,
        kind="llama",
        config={"hidden_size": 128, "rope_parameters": rope(10000.0)},
        max_shard="500KB",
    ),
    "llama_tied": Tiny(
        seed=12,
        kind="llama",
        config={
            "num_hidden_layers": 3,
            "tie_word_embeddings": True,
            "rms_norm_eps": 1e-5,
            "rope_parameters": rope(100000.0),
        },
    ),
    "llama3_rope": Tiny(
        seed=13,
        kind="llama",
        config={"rope_parameters": rope(500000.0, **LLAMA3)},
    ),
    # Nothing divides: 9 heads and 499 rows of vocabulary on 2, 4 or 8 ranks.
    "llama_uneven": Tiny(
        seed=14,
        kind="llama",
        config={
            "vocab_size": 499,
            "hidden_size": 72,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "tie_word_embeddings": True,
            "rope_parameters": rope(10000.0),
        },
    ),
    "qwen3": Tiny(
        seed=15,
        kind="qwen3",
        config={
            "num_hidden_layers": 3,
            "tie_word_embeddings": True,
            "rope_parameters": rope(1000000.0),
        },
        old_config=False,
    ),
    # Biases of q, k and v; the scaling by parts of longer contexts.
    "qwen2": Tiny(
        seed=26,
        kind="qwen2",
        config={
            "use_sliding_window": False,
            "rope_parameters": rope(10000.0, **YARN),
        },
    ),
    # A window of the later layer.
    "qwen2_window": Tiny(
        seed=17,
        kind="qwen2",
        config={
            "use_sliding_window": True,
            "sliding_window": 20,
            "max_window_layers": 1,
            "rope_parameters": rope(10000.0, rope_type="linear", factor=2.0),
        },
    ),
    "mistral": Tiny(
        seed=48,
        kind="mistral",
        config={"sliding_window": 24, "rope_parameters": rope(10000.0)},
        old_config=False,
    ),
    # Fused projections; three quarters of a head rotate.
    "phi3": Tiny(
        seed=19,
        kind="phi3",
        config={
            "sliding_window": 100,
            "partial_rotary_factor": 0.75,
            "rope_parameters": rope(10000.0, partial_rotary_factor=0.75),
        },
        old_config=False,
    ),
    # The last of four layers does not rotate.
    "smollm3": Tiny(
        seed=20,
        kind="smollm3",
        config={
            "num_hidden_layers": 4,
            "tie_word_embeddings": True,
            "rope_parameters": rope(50000.0),
        },
    ),
    # Soft caps, four norms, a window of the first layer.
    "gemma2": Tiny(
        seed=31,
        kind="gemma2",
        config=GEMMA
        | {
            "attn_logit_softcapping": 4.0,
            "final_logit_softcapping": 8.0,
            "query_pre_attn_scalar": 24,
            "layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": rope(10000.0),
        },
    ),
    # Two rope bases, one of them scaled.
    "gemma3": Tiny(
        seed=32,
        kind="gemma3_text",
        config=GEMMA
        | {
            "num_hidden_layers": 3,
            "query_pre_attn_scalar": 16,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "rope_parameters": {
                "full_attention": rope(1000000.0, rope_type="linear", factor=2.0),
                "sliding_attention": rope(10000.0),
            },
        },
    ),
    "qwen3_moe": Tiny(
        seed=33,
        kind="qwen3_moe",
        config=EXPERTS | {"norm_topk_prob": True, "rope_parameters": rope(1000000.0)},
    ),
    # A shared expert; weights that do not sum to 1; three of six experts.
    "qwen2_moe": Tiny(
        seed=34,
        kind="qwen2_moe",
        config=EXPERTS
        | {
            "num_experts_per_tok": 3,
            "norm_topk_prob": False,
            "shared_expert_intermediate_size": 96,
            "rope_parameters": rope(10000.0),
        },
    ),
    "mixtral": Tiny(
        seed=35,
        kind="mixtral",
        config={
            "intermediate_size": 64,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_parameters": rope(10000.0),
        },
    ),
    # Norms of whole projections and of what blocks add.
    "olmo2": Tiny(
        seed=36,
        kind="olmo2",
        config={"rope_parameters": rope(500000.0)},
    ),
    "granite": Tiny(
        seed=37,
        kind="granite",
        config={
            "attention_multiplier": 0.4,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.7,
            "logits_scaling": 2.5,
            "tie_word_embeddings": True,
            "rope_parameters": rope(10000.0),
        },
    ),
    # Half of a head rotates, neighbours together; biases of q, k and v.
    "glm4": Tiny(
        seed=48,
        kind="glm4",
        config={
            "attention_bias": True,
            "partial_rotary_factor": 0.5,
            "rope_parameters": rope(10000.0, partial_rotary_factor=0.5),
        },
        old_config=False,
    ),
}


def draw_weights(model, seed):
    """Draws weights large enough for a wrong rope, norm or scale to show.

    Projections keep the variance of what they read, queries and keys are
    larger so that attention is not flat, norms are away from 1.
    """
    random = torch.Generator().manual_seed(seed)
    tied = model.config.tie_word_embeddings
    # Gemma's norms multiply by 1 + weight.
    norm_center = 0.0 if model.config.model_type.startswith("gemma") else 1.0
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=random)
        fan_in = parameter.shape[-1]
        if "norm" in name:
            drawn = norm_center + 0.25 * noise
        elif "embed_tokens" in name:
            drawn = noise * (2.0 / fan_in**0.5 if tied else 1.0)
        elif name.endswith("bias"):
            drawn = noise
        elif name.endswith("gate.weight"):  # a router's
            drawn = noise * 3.0 / fan_in**0.5
        elif any(part in name for part in ("q_proj", "k_proj", "qkv_proj", "lm_head")):
            drawn = noise * 1.5 / fan_in**0.5
        else:
            drawn = noise / fan_in**0.5
        parameter.data.copy_(drawn)


def as_published_before(config):
    """The same config.json with the keys most published checkpoints have."""
    parameters = config.pop("rope_parameters")
    if "full_attention" in parameters:
        config["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
        parameters = parameters["full_attention"]
    config["rope_theta"] = parameters.pop("rope_theta")
    scaled = parameters["rope_type"] != "default"
    config["rope_scaling"] = parameters if scaled else None
    config["torch_dtype"] = config.pop("dtype")
    if config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]:
        del config["head_dim"]
    return config


def write_checkpoint(model, dtype, tiny, folder):
    with tempfile.TemporaryDirectory() as scratch:
        rounded = AutoModelForCausalLM.from_config(model.config, dtype=dtype)
        rounded.load_state_dict(model.state_dict())
        rounded.save_pretrained(scratch, max_shard_size=tiny.max_shard)
        folder.mkdir(parents=True, exist_ok=True)
        for written in pathlib.Path(scratch).glob("model*"):
            shutil.copyfile(written, folder / written.name)
        config = json.loads((pathlib.Path(scratch) / "config.json").read_text())
    if tiny.old_config:
        config = as_published_before(config)
    text = json.dumps(config, indent=2, sort_keys=True)
    (folder / "config.json").write_text(text + "\n")
    tiny_tokenizer.write(folder)


def greedy(model, ids):
    """The likeliest continuation and by how much it won, without any cache."""
    chosen, margins = [], []
    for _ in range(GREEDY_STEPS):
        best = model(torch.cat([ids, *chosen])[None]).logits[0, -1].topk(2)
        chosen.append(best.indices[:1])
        margins.append(best.values[0] - best.values[1])
    return torch.cat(chosen), torch.stack(margins)


@torch.no_grad()
def golden_tensors(folder, seed):
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    random = torch.Generator().manual_seed(seed)
    tensors = {}
    for number, (length, kept) in enumerate(PROMPTS):
        ids = torch.randint(3, tiny_tokenizer.VOCABULARY, (length,), generator=random)
        result = model(ids[None], output_hidden_states=True)
        continuation, margins = greedy(model, ids)
        prompt = f"p{number}"
        tensors[f"{prompt}.ids"] = ids.int()
        tensors[f"{prompt}.logits"] = result.logits[0, -kept:].contiguous()
        tensors[f"{prompt}.greedy"] = continuation.int()
        tensors[f"{prompt}.margin"] = margins
        if number == HIDDEN_STATES_OF:
            states = [state[0] for state in result.hidden_states]
            tensors[f"{prompt}.hidden"] = torch.stack(states)
    return tensors


def make(name, tiny, root):
    config = AutoConfig.for_model(tiny.kind, **(COMMON | tiny.config))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    draw_weights(model, tiny.seed)
    for suffix, dtype in DTYPES.items():
        folder = root / name / suffix
        write_checkpoint(model, dtype, tiny, folder)
        tensors = golden_tensors(folder, tiny.seed)
        least = min(float(t.min()) for key, t in tensors.items() if "margin" in key)
        spread = float(tensors["p1.logits"].std())
        print(f"{name} {suffix}: logits spread {spread:.2f}, least margin {least:.4f}")
        assert least > LEAST_MARGIN, "take another seed"
        save_file(tensors, root / name / f"goldens.{suffix}.safetensors")
    for path in (root / name).rglob("*.safetensors"):
        path.chmod(0o644)


def main():
    torch.set_num_threads(1)
    root, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or MODELS
    for name in names:
        make(name, MODELS[name], root)


if __name__ == "__main__":
    main()
