"""What GGUF calls the architectures and tensors of Hugging Face's models (ggml's
docs/gguf.md, "Standardized tensor names"). Used by convert_to_gguf.py."""

import dataclasses
import re


class Unsupported(Exception):
    """What can not be converted, in words."""


MODEL_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}

# After "model.layers.N." and "blk.N.", without ".weight" and ".bias".
LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
ROUTER_BIAS = "mlp.gate.e_score_correction_bias", "exp_probs_b.bias"

EXPERT_NAMES = {
    "gate_proj": "ffn_gate_exps",
    "up_proj": "ffn_up_exps",
    "down_proj": "ffn_down_exps",
    "w1": "ffn_gate_exps",
    "w3": "ffn_up_exps",
    "w2": "ffn_down_exps",
}

TWO_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
GEMMA_NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
OLMO_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GLM_NORMS = {
    "input_layernorm": "attn_norm",
    "post_self_attn_layernorm": "post_attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "post_mlp_layernorm": "post_ffw_norm",
}

GLM_MOE_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm"}

LAYER_NUMBER = re.compile(r"model\.layers\.(\d+)\.(.*)")
LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)\.(weight|bias)")
EXPERT = re.compile(r"(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(\w+)")
# All of a layer, as transformers 5 has them in memory.
FUSED_EXPERTS = re.compile(r"model\.layers\.(\d+)\.mlp\.experts\.(gate_up_proj|down_proj)")


@dataclasses.dataclass(frozen=True)
class Architecture:
    gguf: str
    norms: dict = dataclasses.field(default_factory=lambda: TWO_NORMS)
    neighbours: bool = False  # rows of q and k are permuted for rope
    norm_offset: bool = False  # norms are stored less 1
    windows: bool = False
    full_interval: int = 0  # every n-th layer sees all positions
    local_rope: bool = False
    experts: bool = False
    sigmoids: bool = False  # DeepSeek-V3's router
    tied: bool = False  # unless config.json says
    rotates: float = 1.0  # part of a head, the same
    defaults: dict = dataclasses.field(default_factory=dict)  # of others, the same

    def squeezes(self, name):
        return name.endswith("shared_expert_gate.weight")

    def name_of(self, name):
        """GGUF's name, and the number of the expert; None of a tensor it has not."""
        if name in MODEL_NAMES:
            return MODEL_NAMES[name], 0
        layer = LAYER_NUMBER.fullmatch(name)
        if layer and layer[2] == ROUTER_BIAS[0]:
            return f"blk.{layer[1]}.{ROUTER_BIAS[1]}", 0
        layer = LAYER.fullmatch(name)
        if not layer:
            return None, 0
        number, inner, suffix = layer.groups()
        expert = EXPERT.fullmatch(inner)
        if expert:
            return f"blk.{number}.{EXPERT_NAMES[expert[2]]}.{suffix}", int(expert[1])
        own = self.norms.get(inner, LAYER_NAMES.get(inner))
        return own and f"blk.{number}.{own}.{suffix}", 0


ARCHITECTURES = {
    "Dots1ForCausalLM": Architecture("dots1", experts=True, sigmoids=True),
    "Gemma2ForCausalLM": Architecture(
        "gemma2", norms=GEMMA_NORMS, norm_offset=True, windows=True, full_interval=2, tied=True
    ),
    "Gemma3ForCausalLM": Architecture(
        "gemma3", norms=GEMMA_NORMS, norm_offset=True, windows=True, full_interval=6, local_rope=True, tied=True
    ),
    "GlmForCausalLM": Architecture("chatglm", rotates=0.5),
    "Glm4ForCausalLM": Architecture("glm4", norms=GLM_NORMS, rotates=0.5),
    "Glm4MoeForCausalLM": Architecture(
        "glm4moe",
        norms=GLM_MOE_NORMS,
        experts=True,
        sigmoids=True,
        rotates=0.5,
        defaults={"first_k_dense_replace": 1, "norm_topk_prob": True},
    ),
    "GraniteForCausalLM": Architecture("granite", neighbours=True),
    "LlamaForCausalLM": Architecture("llama", neighbours=True),
    "MistralForCausalLM": Architecture("mistral", neighbours=True, windows=True),
    "MixtralForCausalLM": Architecture("llama", neighbours=True, experts=True),
    "Olmo2ForCausalLM": Architecture("olmo2", norms=OLMO_NORMS),
    "Phi3ForCausalLM": Architecture("phi3", windows=True),
    "Qwen2ForCausalLM": Architecture("qwen2"),
    "Qwen2MoeForCausalLM": Architecture("qwen2moe", experts=True),
    "Qwen3ForCausalLM": Architecture("qwen3"),
    "Qwen3MoeForCausalLM": Architecture("qwen3moe", experts=True),
    "SmolLM3ForCausalLM": Architecture("smollm3", neighbours=True),
}
