"""The answer of `stallwise plan collective` for a terminal."""

from __future__ import annotations

from typing import Any

from stallwise.units import Unit, show


def to_text(answer: dict[str, Any]) -> str:
    """The number first, then its arithmetic, the alternatives and where it stops scaling."""
    best = answer["expected"]
    lines = [
        f"{answer['op']} of {_bytes(answer['size_bytes'])} over {answer['ranks']} x {answer['gpu']}: "
        f"{_s(best['seconds'])} ({_s(best['low_s'])} to {_s(best['high_s'])})",
        f"bus bandwidth {_rate(best['bus_byte_per_s'])}, {best['algorithm']} with {best['protocol']}, "
        f"limited by the {best['limit']}"
        if best["limit"] != "latency"
        else f"bus bandwidth {_rate(best['bus_byte_per_s'])}, {best['algorithm']} with {best['protocol']}, all latency",
        "",
        f"why        {_s(best['latency_s'])} launch and steps + {_s(best['wire_s'])} on the wire"
        f" + {_s(best['filling_s'])} filling the pipeline",
        f"           each rank sends {_bytes(answer['sent_bytes'])}; {answer['per_domain']} ranks share a domain at "
        f"{_rate(answer['link']['byte_per_s'])} ({answer['link']['name']}), {_rate(answer['nic_byte_per_s'])} of "
        "network each",
    ]
    lines.append("algorithms " + _table(answer["algorithms"], "algorithm"))
    lines.append("by size    " + _sizes(answer["by_size"]))
    lines.append("by ranks   " + ", ".join(f"{row['ranks']}: {_s(row['seconds'])}" for row in answer["by_ranks"]))
    lines += _cliffs(answer["cliffs"])
    lines += _measured(answer)
    if "wiring" in answer:
        lines.append(f"wiring     {answer['wiring']}")
    lines.append(f"basis      {answer['basis']}")
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]], key: str) -> str:
    return ", ".join(f"{row[key]} {_s(row['seconds'])}" for row in rows)


def _sizes(rows: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{_bytes(row['size_bytes'])} {_s(row['seconds'])} ({row['algorithm']}, {_rate(row['bus_byte_per_s'])})"
        for row in rows
    )


def _cliffs(cliffs: list[dict[str, Any]]) -> list[str]:
    if not cliffs:
        return ["cliff      none expected up to this size"]
    return [
        f"cliff      {cliff['below']} -> {cliff['above']} ranks: {cliff['ratio']:.1f}x, {cliff['reason']}"
        for cliff in cliffs
    ]


def _measured(answer: dict[str, Any]) -> list[str]:
    lines = []
    if "measured" in answer:
        seen = answer["measured"]
        low, high = seen["recoverable_s"]
        lines.append(
            f"measured   {_s(seen['seconds'])} is {seen['ratio']:.2f}x the expected: {seen['state']}"
            + (f"; {_s(low)} to {_s(high)} to gain" if low > 0 else "")
        )
    jump = answer.get("series", {}).get("jump")
    if jump:
        lines.append(
            f"jump       {jump['ratio']:.1f}x from {jump['below']} to {jump['above']} ranks; the trend before it gives "
            f"{_s(jump['expected_s'])}"
        )
        lines.append(
            f"           latency would need {_s(jump['needed_step_latency_s'])} per new step"
            + (": possible" if jump["latency_possible"] else ", which no fabric has: not latency")
        )
        lines.append(
            f"           a part of the path with {jump['narrower_ratio']:.1f}x less bandwidth explains it: a boundary "
            "(pod, spine, rail) or a fallback to a slower transport"
        )
    elif "series" in answer:
        lines.append("jump       none: the series grows smoothly")
    return lines


def _s(value: float) -> str:
    return show(value, Unit.SECOND)


def _bytes(value: float) -> str:
    return show(value, Unit.BYTE)


def _rate(value: float) -> str:
    return show(value, Unit.BYTE_PER_S)
