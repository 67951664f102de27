"""Number formats and the bytes each takes."""

from __future__ import annotations

from stallwise.errors import BadRequest

# MX formats carry one shared 8-bit scale for 32 values, NVFP4 one for 16 (OCP MX 1.0; NVIDIA Blackwell notes).
BYTES = {
    "fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0,
    "mxfp8": 1.0 + 1 / 32, "int4": 0.5, "fp4": 0.5 + 1 / 16, "mxfp4": 0.5 + 1 / 32, "nvfp4": 0.5 + 1 / 16,
}  # fmt: skip
ALIASES = {
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "e4m3": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
    "fp8-block": "fp8", "w8a8": "int8", "awq": "int4", "gptq": "int4", "int4_awq": "int4", "w4a16": "int4",
}  # fmt: skip


def dtype(name: str) -> str:
    """The plain name of a number format ("bfloat16" -> "bf16")."""
    low = name.strip().lower().removeprefix("torch.")
    plain = ALIASES.get(low, low)
    if plain not in BYTES:
        raise BadRequest(f"'{name}' is not a number format", hint=f"one of {', '.join(sorted(BYTES))}")
    return plain


def bytes_per(name: str) -> float:
    """Bytes one value takes, its share of scales included."""
    return BYTES[dtype(name)]
