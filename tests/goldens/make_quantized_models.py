#!/usr/bin/env python3
"""Makes tiny quantized checkpoints and what Hugging Face computes from them.

    make_quantized_models.py FOLDER [NAME...]

As make_tiny_models.py, but for NAME/quantized: a checkpoint in one of the
formats of quantized_formats.py. The golden file is what a plain model computes
in float32 with the weights that are read back from it.
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

import make_tiny_models
from quantized_formats import Awq, CompressedTensors, Fp8, Gptq
from tiny_models import COMMON, EXPERTS, Tiny, rope

# Rows of o and down are eight blocks of 32 columns.
SIZES = COMMON | {
    "num_hidden_layers": 1,
    "head_dim": 32,
    "intermediate_size": 256,
    "rope_parameters": rope(10000.0),
}


@dataclasses.dataclass(frozen=True)
class Quantized:
    seed: int
    format: object
    kind: str = "llama"
    config: dict = dataclasses.field(default_factory=dict)


TIED = {"tie_word_embeddings": True}

MODELS = {
    "gptq": Quantized(81, Gptq(zero_biases=True, lm_head=True)),
    "gptq_act_order": Quantized(62, Gptq(group=32, symmetric=False, act_order=True), config=TIED),
    "gptq_v2": Quantized(63, Gptq(group=64, symmetric=False, version=2), "qwen2", TIED),
    "gptq_8bit": Quantized(64, Gptq(bits=8, group=-1), "qwen3", TIED),
    "awq": Quantized(65, Awq(), "phi3", TIED),
    "fp8_block": Quantized(66, Fp8(), "qwen3", TIED),
    "fp8_tensor": Quantized(67, Fp8(block=None)),
    "fp8_experts": Quantized(
        68, Fp8(block=(32, 48), scale_dtype=torch.bfloat16), "qwen3_moe", EXPERTS | TIED | {"norm_topk_prob": True}
    ),
    "ct_fp8": Quantized(69, CompressedTensors("float8"), config=TIED),
    "ct_w8a8": Quantized(70, CompressedTensors("int8"), config=TIED),
    "ct_w4a16": Quantized(71, CompressedTensors(group=32)),
    "ct_w4a16_asym": Quantized(72, CompressedTensors(group=128, symmetric=False), "qwen3", TIED),
}


def is_quantized(name, tensor, quantization):
    if tensor.dim() != 2 or "embed_tokens" in name or name.endswith("mlp.gate.weight"):
        return False
    return quantization.lm_head if "lm_head" in name and isinstance(quantization, Gptq) else "lm_head" not in name


def stored_tensors(folder):
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def write_checkpoint(plain, quantized, folder):
    """Writes the checkpoint in the folder `plain` in the quantized format."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, tensor in stored_tensors(plain).items():
        if not is_quantized(name, tensor, quantized.format):
            tensors[name] = tensor.bfloat16()
            continue
        module = name.removesuffix("weight")
        tensors |= {module + part: stored for part, stored in quantized.format.tensors(tensor).items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((plain / "config.json").read_text())
    config["quantization_config"] = quantized.format.config()
    if quantized.kind != "phi3":
        config = make_tiny_models.as_published_before(config)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def read_back(folder, quantized, plain):
    """Makes the weights in the folder `plain` those of the quantized checkpoint."""
    stored = stored_tensors(folder)
    tensors = {}
    for name, tensor in stored_tensors(plain).items():
        if is_quantized(name, tensor, quantized.format):
            module = name.removesuffix("weight")
            parts = {key.removeprefix(module): t for key, t in stored.items() if key.startswith(module)}
            tensors[name] = quantized.format.weights(parts).contiguous()
        else:
            tensors[name] = stored[name].float()
    save_file(tensors, plain / "model.safetensors", {"format": "pt"})


def make(name, quantized, root):
    config = AutoConfig.for_model(quantized.kind, **(SIZES | quantized.config))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    make_tiny_models.draw_weights(model, quantized.seed)
    folder = root / name / "quantized"
    with tempfile.TemporaryDirectory() as scratch:
        plain = pathlib.Path(scratch)
        model.save_pretrained(plain)
        write_checkpoint(plain, quantized, folder)
        read_back(folder, quantized, plain)
        tensors = make_tiny_models.golden_tensors(plain, Tiny(quantized.seed, quantized.kind, {}))
    least = min(float(t.min()) for key, t in tensors.items() if "margin" in key)
    print(f"{name}: least margin {least:.4f}")
    assert least > make_tiny_models.LEAST_MARGIN, "take another seed"
    save_file(tensors, root / name / "goldens.quantized.safetensors")
    for path in (root / name).rglob("*.safetensors"):
        path.chmod(0o644)


def main():
    torch.set_num_threads(1)
    root, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or MODELS
    for name in names:
        make(name, MODELS[name], root)


if __name__ == "__main__":
    main()
