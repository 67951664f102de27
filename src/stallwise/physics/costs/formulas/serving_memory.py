"""Serving needs the weights, the cache of all running requests, and room to work in.

The room: activations of the largest prefill, CUDA graphs, communication buffers and the sampler's logits in fp32.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "bytes = N element + KV + work,  work = tokens x 4 (h + ffn) element + requests x V x 4 + context"
SOURCE = "Arithmetic; vLLM reserves 0.90 to 0.92 of the GPU, a CUDA context takes about 0.5 GB."
FOLK = """
"8B in bf16 is 16 GB" forgets what engines add: 3 to 10 GB of graphs, buffers and prefill activations. Whether it fits is
decided by the engine's fraction of the GPU, not by the whole of it.
"""
UNITS = {
    "element": Unit.BYTE, "kv_bytes": Unit.BYTE, "context_bytes": Unit.BYTE, "weights_bytes": Unit.BYTE,
    "work_bytes": Unit.BYTE, "total_bytes": Unit.BYTE,
}  # fmt: skip


def evaluate(
    params: float = 8.03e9, kv_bytes: float = 8.59e9, element: float = 2.0, prefill_tokens: int = 8192,
    hidden: int = 4096, ffn: int = 14336, vocab: int = 128256, requests: int = 8, context_bytes: float = 1.5e9,
) -> dict[str, float]:  # fmt: skip
    """Weights, working room and the sum."""
    weights = params * element
    work = prefill_tokens * 4 * (hidden + ffn) * element + requests * vocab * 4.0 + context_bytes
    return {"weights_bytes": weights, "work_bytes": work, "total_bytes": weights + kv_bytes + work}
