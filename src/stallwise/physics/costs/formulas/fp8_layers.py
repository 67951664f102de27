"""Which layer breaks first under FP8: the one whose largest input lies farthest above its usual one, for one scale must hold both.

A scale maps the largest value to the end of the grid; the usual values keep the grid's octaves less those between them. Inputs of
query, key, value, gate and up are normed: the largest of n values is about sqrt(2 ln n) times the usual one. The down projection
reads a product of two such (SwiGLU): about half the square. The output projection reads a mean: spread over s tokens the usual value
shrinks by sqrt(s), while a head that looks at one token keeps its size. So the down projection breaks first where attention spreads
over few tokens, the output projection beyond the crossing, and it alone gets worse with length: short tasks fine and long ones
broken means this one, in the last layers first, where the residual stream is largest.
"""

from __future__ import annotations

from math import log, log2, sqrt

from stallwise.units import Unit

EQUATION = (
    "normed: g = sqrt(2 ln(tokens x width))    down: g^2 / 2    output: sqrt(context)    octaves left = 15 - log2(ratio)    "
    "crossing = (g^2 / 2)^2    beyond a shorter calibration: sqrt(context / calibrated)"
)
SOURCE = (
    "Extreme values of Gaussian samples; E4M3 of the OCP 8-bit specification (2023); Fishman et al. 2024 (arXiv 2409.12517) found "
    "SwiGLU products to be what breaks FP8 training; Sun et al. 2024 (arXiv 2402.17762) measured activations 10,000 times the median."
)
FOLK = """
"The attention scores overflow": they are never stored in FP8 by fused kernels. "Calibrate with more data": more of the same length
does not reach what only length brings. Ratios here are for trained weights without outlier channels; channels that are 10 to 100
times the rest come on top for every layer, and the last layers before the head have most of them: measure with `stallwise numerics`.
"""
UNITS = {
    "tokens": Unit.TOKEN, "width": Unit.COUNT, "context": Unit.TOKEN, "calibrated": Unit.TOKEN,
    "normed_ratio": Unit.RATIO, "down_ratio": Unit.RATIO, "output_ratio": Unit.RATIO, "normed_octaves": Unit.COUNT,
    "down_octaves": Unit.COUNT, "output_octaves": Unit.COUNT, "output_growth_ratio": Unit.RATIO, "crossing": Unit.TOKEN,
}  # fmt: skip
OCTAVES = 15.0  # of E4M3: from 2^-6 to 448, just under 2^9


def evaluate(tokens: int = 32768, width: int = 8192, context: int = 32768, calibrated: int = 4096) -> dict[str, float]:
    """Largest over usual input of each kind of layer, the octaves that the usual values keep, and what length adds."""
    normed = sqrt(2.0 * log(tokens * width))
    down, output = normed**2 / 2.0, sqrt(context)
    return {
        "normed_ratio": normed, "down_ratio": down, "output_ratio": output, "normed_octaves": round(OCTAVES - log2(normed), 1),
        "down_octaves": round(OCTAVES - log2(down), 1), "output_octaves": round(OCTAVES - log2(output), 1),
        "output_growth_ratio": sqrt(context / calibrated), "crossing": down**2,
    }  # fmt: skip
