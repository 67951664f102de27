"""A simulated service under a load: its times, its goodput, cache and queue over time, and what stalls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallwise.render.blocks import (
    Document,
    Number,
    Series,
    Verdict,
    Words,
    count,
    number,
    seconds,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.units import Unit

NAMES = {
    "ttft": "first token",
    "tpot": "later tokens, mean of a request",
    "token": "later tokens, each",
    "request": "request",
}


def document(
    figures: Mapping[str, Any], samples: Mapping[str, list[float]], says: str, *, deep: bool = False
) -> Document:
    """The answer of `plan load`; `says` is the doctor's verdict on the same run."""
    rows: list[tuple[Words, ...]] = [
        (name, *(seconds(figures[f"{key}_{word}_s"]) for word in ("p50", "p90", "p99"))) for key, name in NAMES.items()
    ]
    what = (
        f"{figures['requests']} requests in ", seconds(figures["seconds"]), ": ", count(figures["output_token_per_s"]),
        " output tokens/s, ", share(figures["good_share"]), " good requests (",
        Number(figures["goodput_per_s"], Unit.PER_S, f"{figures['goodput_per_s']:.2f}/s"), f"), {figures['preemptions']} preemptions",
    )  # fmt: skip
    over_time = (("running", Unit.COUNT, None), ("waiting", Unit.COUNT, None), ("KV cache", Unit.SHARE, 1.0))
    return filled(
        Verdict(what),
        table("Times", ("time to", number("p50"), number("p90"), number("p99")), rows),
        steps("What stalls it", [says], label="why"),
        *(
            Series(name, tuple(samples[name]), unit, most, high=_most(samples[name], unit), title=name if deep else "")
            for name, unit, most in over_time
        ),
        verb="plan load",
    )  # fmt: skip


def _most(values: list[float], unit: Unit) -> Number:
    most = max(values, default=0.0)
    return share(most) if unit is Unit.SHARE else count(most)
