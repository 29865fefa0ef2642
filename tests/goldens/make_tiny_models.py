#!/usr/bin/env python3
"""Makes the tiny checkpoints and what Hugging Face computes from them.

    make_tiny_models.py FOLDER [NAME...]

Files and their tensors are described in README.md. Each checkpoint is drawn
from a seed of its own, written in float32 and, rounded, in bfloat16; each
golden file is computed from the checkpoint as read back, in float32.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

import tiny_tokenizer
from tiny_models import COMMON, MODELS

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

HIDDEN_STATES_OF = 1
GREEDY_STEPS = 24
# No greedy choice may be so close that an engine within tolerance could differ.
LEAST_MARGIN = 1e-3


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
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            # Of the size of scores: it often decides, and some are negative.
            buffer.data.copy_(0.4 * torch.randn(buffer.shape, generator=random))


def as_published_before(config):
    """The same config.json with the keys most published checkpoints have."""
    parameters = config.pop("rope_parameters")
    if "full_attention" in parameters:
        config["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
        parameters = parameters["full_attention"]
    config["rope_theta"] = parameters.pop("rope_theta")
    scaled = parameters["rope_type"] != "default"
    config["rope_scaling"] = parameters if scaled else None
    if "original_max_position_embeddings" in config:
        parameters.pop("original_max_position_embeddings", None)
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
def golden_tensors(folder, tiny):
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    random = torch.Generator().manual_seed(tiny.seed)
    tensors = {}
    if tiny.max_context:
        tensors["max_context"] = torch.tensor([tiny.max_context], dtype=torch.int32)
        # What follows the length stays as the longest sequence so far had it.
        model(torch.ones(1, tiny.max_context, dtype=torch.long))
    for number, (length, kept) in enumerate(tiny.prompts):
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
        tensors = golden_tensors(folder, tiny)
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
