"""Reads the many dialects of Hugging Face's config.json into one Model."""

from __future__ import annotations

from typing import Any

from stallwise.errors import BadRequest, UnreadableInput
from stallwise.physics.specs.model import DENSE, FULL, LINEAR, MOE, NONE, WINDOW, LinearMixer, Mla, Model

# The same number under the names different families gave it.
NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "num_attention_groups"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "intermediate": ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "mlp_hidden_size"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"),
    "expert_intermediate": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "context": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "max_sequence_length"),
}
# Families whose MLP has one widening matrix; everything newer is gated.
UNGATED = {
    "gpt2", "opt", "bloom", "mpt", "falcon", "gpt_neox", "gptj", "gpt_neo", "phi", "starcoder2", "gpt_bigcode",
    "nemotron", "nemotron_h", "codegen", "bert", "roberta", "megatron-gpt", "stablelm_alpha", "persimmon",
}  # fmt: skip
# Families with biases on every linear layer, and with two-parameter LayerNorms.
ALL_BIAS = {
    "gpt2",
    "opt",
    "bloom",
    "gpt_neox",
    "phi",
    "starcoder2",
    "gpt_bigcode",
    "bert",
    "roberta",
    "gpt_neo",
    "gptj",
}
LAYER_NORM = ALL_BIAS | {"falcon", "nemotron", "stablelm", "persimmon"}
QKV_BIAS = {"qwen2", "qwen2_moe", "chatglm", "qwen"}
QK_NORM = {"qwen3", "qwen3_moe", "qwen3_next", "gemma3", "gemma3_text", "olmo2", "glm4_moe"}
LEARNED_POSITIONS = {"gpt2", "opt", "gpt_bigcode", "bert", "roberta", "gpt_neo"}
TIED_BY_DEFAULT = {"gpt2", "gemma", "gemma2", "gemma3", "gemma3_text", "bloom", "opt", "falcon", "mpt", "gpt_bigcode"}
FOUR_NORMS = {"gemma2", "gemma3", "gemma3_text"}
VISION = ("ForImageClassification", "VisionModel", "ForObjectDetection", "ForSemanticSegmentation", "ImageModel")
SHARED_WIDTH = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size")
TEXT_PARTS = ("text_config", "language_config", "llm_config", "thinker_config", "language_model")


def read_config(config: dict[str, Any], name: str = "") -> Model:
    """A Model from a config.json; the text half of a multimodal one."""
    if not isinstance(config, dict):
        raise UnreadableInput("the model config is not a JSON object", hint="give a Hugging Face config.json")
    try:
        return _read(config, name)
    except (TypeError, ValueError, OverflowError, KeyError, AttributeError, ZeroDivisionError) as error:
        # A config is a hundred fields of any type; one of a wrong type is the file's fault, wherever it is met.
        raise UnreadableInput(
            f"the model config holds something that cannot be: {error}",
            hint="compare it with the model's own config.json",
        ) from error


def _read(config: dict[str, Any], name: str) -> Model:
    _refuse_what_is_no_decoder(config)
    for part in TEXT_PARTS:
        if isinstance(config.get(part), dict):
            inner = {**{k: v for k, v in config.items() if k == "tie_word_embeddings"}, **config[part]}
            return _read(inner, name or str(config.get("_name_or_path") or config.get("model_type", "")))
    kind = str(config.get("model_type", "")).lower()
    layers, hidden, heads = (_required(config, what) for what in ("layers", "hidden", "heads"))
    title = name or str(config.get("_name_or_path") or kind or "model")
    return Model(
        name=title.rstrip("/").split("/")[-1].lower(),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(config, kind, heads),
        head_dim=_find(config, "head_dim") or hidden // heads,
        intermediate=_intermediate(config, kind, hidden),
        vocab=_required(config, "vocab"),
        **_moe(config, kind, layers),
        mla=_mla(config),
        **_mixers(config, kind, layers, hidden),
        tied=bool(config.get("tie_word_embeddings", kind in TIED_BY_DEFAULT)),
        mtp_layers=int(config.get("num_nextn_predict_layers") or config.get("mtp_num_layers") or 0),
        gated=bool(config.get("gated_mlp", kind not in UNGATED)),
        fused_activation=not (config.get("swiglu_limit") or "relu2" in str(_activation(config))),
        bias=_bias(config, kind),
        norm_bias=kind in LAYER_NORM,
        norms_per_layer=4 if kind in FOUR_NORMS else 1 if kind == "nemotron_h" else 2,
        qk_norm=bool(config.get("use_qk_norm", kind in QK_NORM)),
        learned_positions=(_find(config, "context") or 0) if kind in LEARNED_POSITIONS else 0,
        max_context=_find(config, "context") or 0,
        dtype=_dtype(config),
        source=str(config.get("source", "")),
    )


def _refuse_what_is_no_decoder(config: dict[str, Any]) -> None:
    kinds = [str(a) for a in config.get("architectures") or ()]
    looks = any(mark in a for a in kinds for mark in VISION) or (
        "image_size" in config and "patch_size" in config and _find(config, "vocab") is None
    )
    if looks and not any(isinstance(config.get(p), dict) for p in TEXT_PARTS):
        what = kinds[0] if kinds else config.get("model_type", "an image model")
        raise BadRequest(
            f"this config.json is of a vision model ({what}), not of a language model",
            hint="give the config.json of a decoder, such as stallwise plan train --model llama-3.1-8b",
        )
    if config.get("is_encoder_decoder"):
        raise BadRequest(
            "this config.json is of an encoder-decoder; only decoders are modelled",
            hint="give a decoder of the same width and depth: it bounds the answer",
        )


def _find(config: dict[str, Any], what: str) -> int | None:
    for key in NAMES[what]:
        value = config.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, list) and value and all(isinstance(v, int) for v in value):
            return round(sum(value) / len(value))  # per-layer widths: their mean keeps the totals right
    return None


def _first(config: dict[str, Any], keys: tuple[str, ...]) -> int:
    return next((int(config[k]) for k in keys if config.get(k)), 0)


def _required(config: dict[str, Any], what: str) -> int:
    value = _find(config, what)
    if value is None:
        present = ", ".join(sorted(k for k in config if not k.startswith("_"))[:8])
        raise BadRequest(
            f"the model config has no {NAMES[what][0]}" + (f" (it has {present}, ...)" if present else ""),
            hint="give the config.json of a decoder language model, or a name from `stallwise plan models`",
        )
    if not 0 < value < 10**9:
        raise BadRequest(f"{NAMES[what][0]} = {value} cannot be", hint="a positive count below one billion")
    return value


def _kv_heads(config: dict[str, Any], kind: str, heads: int) -> int:
    if kind == "falcon" and config.get("multi_query") and not config.get("new_decoder_architecture"):
        return 1
    if kind == "gpt_bigcode" and config.get("multi_query", True):
        return 1
    inner = config.get("attn_config")
    if isinstance(inner, dict) and inner.get("kv_n_heads"):
        return int(inner["kv_n_heads"])
    return _find(config, "kv_heads") or heads


def _intermediate(config: dict[str, Any], kind: str, hidden: int) -> int:
    found = _find(config, "intermediate")
    if found:
        return found
    inner = config.get("ffn_config")
    if isinstance(inner, dict) and inner.get("ffn_hidden_size"):
        return int(inner["ffn_hidden_size"])
    return int(hidden * float(config.get("expansion_ratio", 4)))


def _bias(config: dict[str, Any], kind: str) -> str:
    if config.get("no_bias") or config.get("bias") is False:
        return "none"
    if kind in ALL_BIAS:
        return "all"
    stated = config.get("attention_bias", config.get("qkv_bias", config.get("add_qkv_bias")))
    return "qkv" if (kind in QKV_BIAS if stated is None else stated) else "none"


def _activation(config: dict[str, Any]) -> str:
    return str(config.get("mlp_hidden_act") or config.get("hidden_act") or config.get("activation_function") or "")


def _dtype(config: dict[str, Any]) -> str:
    from stallwise.physics.specs.dtype import ALIASES, BYTES

    quant = config.get("quantization_config")
    method = str(quant.get("quant_method", "")).lower() if isinstance(quant, dict) else ""
    if method in ("fp8", "mxfp4", "awq", "gptq"):
        return ALIASES.get(method, method)
    stated = str(config.get("dtype") or config.get("torch_dtype") or "bf16").lower()
    plain = ALIASES.get(stated, stated)
    return plain if plain in BYTES else "bf16"


def _moe(config: dict[str, Any], kind: str, layers: int) -> dict[str, Any]:
    inner = config.get("ffn_config") if isinstance(config.get("ffn_config"), dict) else {}
    experts = _find(config, "experts") or int((inner or {}).get("moe_num_experts", 0))
    if experts < 2:
        return {}
    per_token = _find(config, "experts_per_token") or int((inner or {}).get("moe_top_k", 0)) or 2
    width = _find(config, "expert_intermediate") or _find(config, "intermediate") or 0
    if not width:
        width = int((inner or {}).get("ffn_hidden_size", 0))
    shared = int(config.get("n_shared_experts") or config.get("num_shared_experts") or 0)
    shared_width = int(_first(config, SHARED_WIDTH))
    if kind in ("llama4", "llama4_text") and not shared_width:
        shared_width = width  # Llama 4 has one shared expert as wide as the routed ones
    if shared_width and not shared:
        shared = 1
    every = int(config.get("interleave_moe_layer_step") or config.get("decoder_sparse_step") or 1)
    only_dense = set(config.get("mlp_only_layers") or ())
    first = int(config.get("first_k_dense_replace") or 0)
    found: dict[str, Any] = {
        "experts": experts,
        "experts_per_token": per_token,
        "expert_groups": int(config.get("n_group") or 0),
        "groups_per_token": int(config.get("topk_group") or 0),
        "shared_experts": shared,
        "expert_intermediate": width,
        "shared_intermediate": shared_width or shared * width,
        "expert_hidden": int(config.get("moe_latent_size") or 0),
        "dense_layers": first,
        "moe_every": max(every, 1),
    }
    frequency = config.get("moe_layer_freq")
    if (only_dense or isinstance(frequency, list)) and not config.get("hybrid_override_pattern"):
        flags = frequency if isinstance(frequency, list) else [1] * layers
        found["mlp_kinds"] = tuple(
            MOE
            if i < len(flags) and flags[i] and i not in only_dense and i >= first and (i + 1) % max(every, 1) == 0
            else DENSE
            for i in range(layers)
        )
    return found


def _mla(config: dict[str, Any]) -> Mla | None:
    rank = config.get("kv_lora_rank")
    if not rank:
        return None
    return Mla(
        kv_lora_rank=int(rank),
        q_lora_rank=int(config.get("q_lora_rank") or 0),
        rope_dim=int(config.get("qk_rope_head_dim", 64)),
        nope_dim=int(config.get("qk_nope_head_dim", 128)),
        v_dim=int(config.get("v_head_dim", 128)),
        index_topk=int(config.get("index_topk") or 0),
        index_dim=int(config.get("index_head_dim") or 0),
    )


def _mixers(config: dict[str, Any], kind: str, layers: int, hidden: int) -> dict[str, Any]:
    """Which layers look at everything, at a window, or keep a recurrent state."""
    window = config.get("sliding_window") or config.get("attention_chunk_size") or 0
    if config.get("use_sliding_window") is False:
        window = 0
    found: dict[str, Any] = {"sliding_window": int(window or 0)}
    kinds = _stated_kinds(config, kind, layers, bool(window))
    if kinds:
        found["attention_kinds"] = kinds
    pattern = config.get("hybrid_override_pattern")
    blocks = config.get("layers_block_type")
    if isinstance(blocks, list) and {"moe", "mlp"} & {str(b) for b in blocks}:
        pattern = "".join({"mamba": "M", "attention": "*", "moe": "E"}.get(str(b), "-") for b in blocks)
    if isinstance(pattern, str) and len(pattern) >= layers:
        marks = pattern[:layers]
        found["attention_kinds"] = tuple({"M": LINEAR, "*": FULL}.get(c, NONE) for c in marks)
        found["mlp_kinds"] = tuple({"-": DENSE, "E": MOE}.get(c, NONE) for c in marks)
    if LINEAR in found.get("attention_kinds", ()):
        found["linear"] = _linear(config, hidden)
    return found


def _stated_kinds(config: dict[str, Any], kind: str, layers: int, window: bool) -> tuple[str, ...]:
    stated = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(stated, list) and len(stated) >= layers:
        words = {"full_attention": FULL, "attention": FULL, "sliding_attention": WINDOW, "chunked_attention": WINDOW}
        return tuple(words.get(str(s), LINEAR) for s in stated[:layers])
    full_every = config.get("full_attention_interval")
    if full_every:
        return tuple(FULL if (i + 1) % int(full_every) == 0 else LINEAR for i in range(layers))
    period = config.get("attn_layer_period")
    if period:
        offset = int(config.get("attn_layer_offset", 0))
        return tuple(FULL if i % int(period) == offset else LINEAR for i in range(layers))
    if not window:
        return ()
    if kind in ("llama4", "llama4_text"):
        return tuple(FULL if (i + 1) % 4 == 0 else WINDOW for i in range(layers))
    every = config.get("sliding_window_pattern") or {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "gpt_oss": 2}.get(kind)
    if every:
        return tuple(FULL if (i + 1) % int(every) == 0 else WINDOW for i in range(layers))
    if "max_window_layers" in config:  # Qwen2: the first layers stay full
        first = int(config["max_window_layers"])
        return tuple(FULL if i < first else WINDOW for i in range(layers))
    return (WINDOW,) * layers


def _linear(config: dict[str, Any], hidden: int) -> LinearMixer:
    conv = int(config.get("linear_conv_kernel_dim") or config.get("conv_kernel") or config.get("mamba_d_conv") or 4)
    if "linear_num_value_heads" in config:  # gated delta rule (Qwen3-Next)
        keys = int(config["linear_num_key_heads"]) * int(config["linear_key_head_dim"])
        v_heads, v_dim = int(config["linear_num_value_heads"]), int(config["linear_value_head_dim"])
        values = v_heads * v_dim
        params = hidden * (2 * keys + 2 * values + 2 * v_heads) + (2 * keys + values) * conv
        params += 2 * v_heads + v_dim + values * hidden
        state = v_heads * int(config["linear_key_head_dim"]) * v_dim + (2 * keys + values) * conv
        return LinearMixer(params, state)
    heads = int(config.get("mamba_num_heads") or config.get("mamba_n_heads") or 0)
    head_dim = int(config.get("mamba_head_dim") or config.get("mamba_d_head") or 64)
    inner = heads * head_dim or int(hidden * float(config.get("mamba_expand") or config.get("expand") or 2))
    state_dim = int(config.get("ssm_state_size") or config.get("mamba_d_state") or 16)
    groups = int(config.get("n_groups") or config.get("mamba_n_groups") or 1)
    heads = heads or max(inner // head_dim, 1)
    mixed = inner + 2 * groups * state_dim
    params = hidden * (inner + mixed + heads) + mixed * (conv + 1) + 3 * heads + inner + inner * hidden
    return LinearMixer(params, inner * state_dim + mixed * conv)
