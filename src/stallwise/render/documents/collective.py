"""How long a collective should take: the number, its arithmetic, the alternatives and where it stops scaling."""

from __future__ import annotations

from typing import Any

from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Number,
    Steps,
    Table,
    Verdict,
    Words,
    count,
    number,
    rate,
    seconds,
    seconds_range,
    size,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.units import Unit

Answer = dict[str, Any]


def document(answer: Answer, *, deep: bool = False) -> Document:
    """The answer of `plan collective`."""
    return filled(
        _verdict(answer),
        _measured(answer),
        _jump(answer),
        _why(answer),
        table("By algorithm", ("algorithm", number("time")), ((r["algorithm"], seconds(r["seconds"])) for r in answer["algorithms"])),
        table(
            "By size", (number("size"), number("time"), Column("algorithm", 1), number("bus bandwidth")),
            ((size(r["size_bytes"]), seconds(r["seconds"]), r["algorithm"], rate(r["bus_byte_per_s"])) for r in answer["by_size"]),
        ),
        table("By ranks", (number("ranks"), number("time")), ((count(r["ranks"]), seconds(r["seconds"])) for r in answer["by_ranks"])),
        _cliffs(answer["cliffs"]),
        steps("", [answer["basis"]], label="from"),
        verb="plan collective",
        subject=f"{answer['op']} over {answer['ranks']} x {answer['gpu']}",
    )  # fmt: skip


def _verdict(answer: Answer) -> Verdict:
    best = answer["expected"]
    what: Words = (
        f"{answer['op']} of ", size(answer["size_bytes"]), f" over {answer['ranks']} x {answer['gpu']}: ",
        seconds(best["seconds"]), " (", seconds_range(best["low_s"], best["high_s"]), ")",
    )  # fmt: skip
    limit = "all latency" if best["limit"] == "latency" else f"limited by the {best['limit']}"
    why = ("Bus bandwidth ", rate(best["bus_byte_per_s"]), f", {best['algorithm']} with {best['protocol']}, {limit}.")
    seen = answer.get("measured")
    return Verdict(what, why, "", "bad" if seen and seen["recoverable_s"][0] > 0 else "good")


def _why(answer: Answer) -> Steps:
    best = answer["expected"]
    lines: list[Words] = [
        (seconds(best["latency_s"]), " launch and steps + ", seconds(best["wire_s"]), " on the wire + ",
         seconds(best["filling_s"]), " filling the pipeline"),
        ("each rank sends ", size(answer["sent_bytes"]), f"; {answer['per_domain']} ranks share a domain at ",
         rate(answer["link"]["byte_per_s"]), f" ({answer['link']['name']}), ", rate(answer["nic_byte_per_s"]),
         " of network each"),
    ]  # fmt: skip
    return steps("Why", [*lines, answer.get("wiring", "")], label="why")


def _cliffs(cliffs: list[Answer]) -> Steps:
    rows: list[Words] = [
        (f"{c['below']} to {c['above']} ranks: ", _times(c["ratio"]), f", {c['reason']}") for c in cliffs
    ]
    return steps("Where it stops scaling", rows or ["none expected up to this size"], label="cliff")


def _times(value: float) -> Number:
    return Number(value, Unit.RATIO, f"{value:.1f}x")


def _measured(answer: Answer) -> Facts:
    """What was measured against what was expected."""
    if "measured" not in answer:
        return Facts(())
    seen = answer["measured"]
    low, high = seen["recoverable_s"]
    more: tuple[Any, ...] = ("; ", seconds_range(low, high), " to gain") if low > 0 else ()
    row: Words = (
        seconds(seen["seconds"]),
        " is ",
        Number(seen["ratio"], Unit.RATIO),
        f" the expected: {seen['state']}",
        *more,
    )
    return Facts((("measured", row),))


def _jump(answer: Answer) -> Steps | Table:
    """Where a measured series leaves its trend, and what could explain it."""
    jump = answer.get("series", {}).get("jump")
    if not jump:
        return steps("", ["none: the series grows smoothly"] if "series" in answer else [], label="jump")
    possible = ": possible" if jump["latency_possible"] else ", which no fabric has: not latency"
    return steps("The jump", [
        (_times(jump["ratio"]), f" from {jump['below']} to {jump['above']} ranks; the trend before it gives ",
         seconds(jump["expected_s"])),
        ("latency would need ", seconds(jump["needed_step_latency_s"]), f" per new step{possible}"),
        ("a part of the path with ", _times(jump["narrower_ratio"]), " less bandwidth explains it: a boundary (pod, spine, "
         "rail) or a fallback to a slower transport"),
    ], label="jump")  # fmt: skip
