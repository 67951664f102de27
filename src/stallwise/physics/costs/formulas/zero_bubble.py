"""Splitting the backward lets weight gradients fill the pipeline's idle time.

Only the input gradient is on the way of the others. ZB-H1 fills the end, ZB-H2 also the front, DualPipe runs two
directions at once.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = """
1F1B (p-1)(F+B+W)   ZB-H1 (p-1)(F+B-W)   ZB-H2 (p-1)(F+B-2W)   with B the input gradient
DualPipe (p/2-1)(F&B + B - 3W)           with B the full backward, F&B a forward and a backward together
"""
SOURCE = "Qi et al. 2024 (arXiv 2401.10241), section 2; DeepSeek-V3 (arXiv 2412.19437), table 2."
FOLK = """
The two papers write B for different things. With equal thirds ZB-H1 idles a third of 1F1B, ZB-H2 not at all; real
passes are not thirds: with W = 0.5 F as in Zero Bubble's 1.5B model ZB-H2 keeps a bubble of 10.8%.
"""
TIMES = ("forward_s", "input_grad_s", "weight_grad_s", "one_f_one_b_s", "zb_h1_s", "zb_h2_s", "dualpipe_s")
UNITS = dict.fromkeys(TIMES, Unit.SECOND)


def evaluate(
    stages: int = 8, forward_s: float = 0.01, input_grad_s: float = 0.01, weight_grad_s: float = 0.01
) -> dict[str, float]:
    """Idle seconds per device and step."""
    f, b, w, p = forward_s, input_grad_s, weight_grad_s, stages
    together, full = f + b + w, b + w
    return {
        "one_f_one_b_s": (p - 1) * (f + b + w),
        "zb_h1_s": (p - 1) * max(0.0, f + b - w),
        "zb_h2_s": (p - 1) * max(0.0, f + b - 2 * w),
        "dualpipe_s": (p / 2 - 1) * max(0.0, together + full - 3 * w),
    }
