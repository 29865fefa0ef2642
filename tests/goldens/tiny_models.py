"""The tiny models that make_tiny_models.py draws, and the prompts they answer."""

import dataclasses

import tiny_tokenizer

# Lengths of the prompts, and of how many of their last positions logits are
# kept: a lone token, one full page of 16, several pages, and past the 64
# positions at which the llama3 rope scaling sets in.
PROMPTS = ((1, 1), (16, 16), (45, 12), (131, 4))


@dataclasses.dataclass(frozen=True)
class Tiny:
    seed: int
    kind: str
    config: dict
    # config.json as published before transformers 5: rope_theta at the top.
    old_config: bool = True
    max_shard: str = "1GB"
    prompts: tuple = PROMPTS
    # The longest sequence, where rope follows it; 0: what the model was made for.
    max_context: int = 0


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

# Six of a head's eight dimensions rotate: three pairs.
LONGROPE = {
    "head_dim": 8,
    "max_position_embeddings": 256,
    "original_max_position_embeddings": 64,
    "partial_rotary_factor": 0.75,
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.75,
        "short_factor": [1.0, 1.2, 2.5],
        "long_factor": [1.1, 2.7, 7.0],
    },
}
# Greedy ids included they do not grow past the original context, or start past
# it: on either side all frequencies stay as they are.
SHORT_PROMPTS = ((1, 1), (16, 16), (40, 12))
LONG_PROMPTS = ((65, 1), (80, 16), (131, 4))

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

# Of DeepSeek-V3's router: 3 of 8 experts a token, which are of 2 of 4 groups.
GROUPED_EXPERTS = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
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
    # Theta grows with the longest sequence.
    "llama_dynamic": Tiny(
        seed=24,
        kind="llama",
        config={
            "max_position_embeddings": 64,
            "rope_parameters": rope(10000.0, rope_type="dynamic", factor=4.0),
        },
        prompts=LONG_PROMPTS,
        max_context=160,
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
    "phi3_short": Tiny(
        seed=21,
        kind="phi3",
        config=LONGROPE,
        prompts=SHORT_PROMPTS,
    ),
    "phi3_long": Tiny(
        seed=22,
        kind="phi3",
        config=LONGROPE | {"tie_word_embeddings": True},
        old_config=False,
        prompts=LONG_PROMPTS,
        max_context=256,
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
    # The same without norms of what blocks add.
    "glm": Tiny(
        seed=49,
        kind="glm",
        config={
            "partial_rotary_factor": 0.5,
            "rope_parameters": rope(10000.0, partial_rotary_factor=0.5),
        },
    ),
    # Sigmoids, groups and a bias of the choice; a first layer without experts, two shared experts, norms
    # of queries and keys.
    "glm4_moe": Tiny(
        seed=52,
        kind="glm4_moe",
        config=GROUPED_EXPERTS
        | {
            "num_hidden_layers": 3,
            "attention_bias": True,
            "use_qk_norm": True,
            "first_k_dense_replace": 1,
            "n_shared_experts": 2,
            "norm_topk_prob": True,
            "num_nextn_predict_layers": 0,
            "partial_rotary_factor": 0.5,
            "rope_parameters": rope(1000000.0, partial_rotary_factor=0.5),
        },
    ),
    # Weights that are not made to sum to anything; neither biases nor norms of queries and keys.
    "glm4_moe_air": Tiny(
        seed=62,
        kind="glm4_moe",
        config=GROUPED_EXPERTS
        | {
            "first_k_dense_replace": 0,
            "n_group": 1,
            "topk_group": 1,
            "n_shared_experts": 1,
            "norm_topk_prob": False,
            "num_nextn_predict_layers": 0,
            "partial_rotary_factor": 0.5,
            "rope_parameters": rope(10000.0, partial_rotary_factor=0.5),
        },
        old_config=False,
    ),
    "dots1": Tiny(
        seed=59,
        kind="dots1",
        config=GROUPED_EXPERTS
        | {
            "first_k_dense_replace": 1,
            "n_shared_experts": 1,
            "norm_topk_prob": True,
            "sliding_window": None,
            "rope_parameters": rope(10000.0),
        },
    ),
}
