"""What a successful training hour costs: goodput and price first, then what they rest on."""

from __future__ import annotations

from typing import Any

from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Verdict,
    Words,
    dollar,
    number,
    rate,
    seconds,
    share,
    size,
    steps,
    table,
)
from stallwise.render.blocks import document as filled

CLOSE_RATIO = 1.5  # of two intervals: then the textbook explains the chosen one
Answer = dict[str, Any]


def document(answer: Answer, *, deep: bool = False) -> Document:
    """The answer of `plan cost`."""
    others = (
        (kind, share(other["goodput_share"], 2), seconds(other["interval_s"]))
        for kind, other in answer["alternatives"].items()
    )
    return filled(
        _verdict(answer),
        Facts(_facts(answer)),
        table("Other ways to write checkpoints", (Column("way"), number("useful time"), number("every")), others),
        steps("", [answer["basis"]], label="from"),
        verb="plan cost",
        subject=f"{answer['gpus']} x {answer['gpu']}",
    )


def _verdict(answer: Answer) -> Verdict:
    good, money = answer["goodput"], answer["money"]
    low, high = money["dollar_per_useful_hour_range"]
    what: Words = (
        f"{answer['gpus']} x {answer['gpu']}: a successful training hour costs ", dollar(money["dollar_per_useful_hour"], 0),
        " (", dollar(low, 0), " to ", dollar(high, 0), ")",
    )  # fmt: skip
    why: Words = (
        share(good["goodput_share"], 1), " of the paid time trains (", share(good["low_share"], 1), " to ",
        share(good["high_share"], 1), "); paid ", dollar(money["paid_dollar_per_hour"], 0), " an hour at ",
        dollar(money["dollar_per_gpu_hour"]), " per GPU",
        "." if money["price_known"] else " (price assumed: state yours with --price).",
    )  # fmt: skip
    return Verdict(what, why)


def _facts(answer: Answer) -> tuple[tuple[str, Words], ...]:
    good, money, write = answer["goodput"], answer["money"], answer["checkpoint"]
    rows: list[tuple[str, Words]] = [
        ("failures", ("one every ", seconds(answer["mtbf_s"]), f", {good['failures_per_day']:.2f} a day; each costs ",
                      dollar(money["dollar_per_failure"], 0))),
        ("lost time", ("checkpoints ", share(good["checkpoint_share"], 2), ", repeated work ",
                       share(good["lost_work_share"], 2), ", down ", share(good["down_share"], 2))),
        ("checkpoint", (size(write["size_bytes"]), " in ", seconds(write["write_s"]), ", the step waits ",
                        seconds(write["stall_s"]), "; every ", seconds(good["interval_s"]), " (", *_optima(write, good), ")")),
        ("storage", (rate(good["storage_byte_per_s"]), " on average; synchronous writes at this interval cost 1% from ",
                     rate(write["storage_for_one_percent_byte_per_s"]), " up")),
        ("re-layout", ("reading the checkpoint into another layout takes at least ", seconds(answer["reshard_s"]))),
        ("energy", f"{answer['energy']['kwh_per_useful_hour']:,.0f} kWh per useful hour at the meter"),
    ]  # fmt: skip
    if answer["stranded_share"] is not None:
        rows.append(("stranded", (share(answer["stranded_share"]), " of the free GPUs do not form whole blocks")))
    if "run_dollar" in money:
        low, high = money["run_dollar_range"]
        rows.append(("the run", (seconds(money["run_wall_s"]), ", ", dollar(money["run_dollar"], 0), " (", dollar(low, 0),
                                 " to ", dollar(high, 0), ")")))  # fmt: skip
    return tuple(rows)


def _optima(write: Answer, good: Answer) -> tuple[Any, ...]:
    """The textbook intervals; where writes in the background set a longer one, that stands first."""
    textbook = (
        "Young ",
        seconds(write["young_s"]),
        ", Daly ",
        seconds(write["daly_s"]),
        ", exact ",
        seconds(write["best_s"]),
    )
    if good["interval_s"] <= CLOSE_RATIO * write["best_s"]:
        return textbook
    times = good["interval_s"] / write["write_s"]
    return (f"{times:.1f} times the write itself, which must be over before the next; for the stall alone: ", *textbook)
