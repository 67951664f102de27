"""The answer of `stallwise plan cost` for a terminal."""

from __future__ import annotations

from typing import Any

from stallwise.units import Unit, show

CLOSE_RATIO = 1.5  # of two intervals: then the textbook explains the chosen one


def to_text(answer: dict[str, Any]) -> str:
    """Goodput and the price of a useful hour first, then what they rest on."""
    good, money, write = answer["goodput"], answer["money"], answer["checkpoint"]
    low, high = money["dollar_per_useful_hour_range"]
    lines = [
        f"{answer['gpus']} x {answer['gpu']}: {good['goodput_share']:.1%} of the paid time trains "
        f"({good['low_share']:.1%} to {good['high_share']:.1%})",
        f"a successful training hour costs ${money['dollar_per_useful_hour']:,.0f} (${low:,.0f} to ${high:,.0f}); paid "
        f"${money['paid_dollar_per_hour']:,.0f} an hour at ${money['dollar_per_gpu_hour']:.2f} per GPU"
        + ("" if money["price_known"] else " (price assumed: state yours with --price)"),
        "",
        f"failures   one every {_s(answer['mtbf_s'])}, {good['failures_per_day']:.2f} a day; each costs "
        f"${money['dollar_per_failure']:,.0f}",
        f"lost       checkpoints {good['checkpoint_share']:.2%}, repeated work {good['lost_work_share']:.2%}, down "
        f"{good['down_share']:.2%}",
        f"checkpoint {show(write['size_bytes'], Unit.BYTE)} in {_s(write['write_s'])}, the step waits "
        f"{_s(write['stall_s'])}; every {_s(good['interval_s'])} ({_optima(write, good['interval_s'])})",
        f"storage    {show(good['storage_byte_per_s'], Unit.BYTE_PER_S)} on average; synchronous writes at this "
        f"interval cost 1% from {show(write['storage_for_one_percent_byte_per_s'], Unit.BYTE_PER_S)} up",
    ]
    for kind, other in answer["alternatives"].items():
        lines.append(f"{kind:10} {other['goodput_share']:.2%} at every {_s(other['interval_s'])}")
    lines.append(f"re-layout  reading the checkpoint into another layout takes {_s(answer['reshard_s'])} at least")
    lines.append(f"energy     {answer['energy']['kwh_per_useful_hour']:,.0f} kWh per useful hour at the meter")
    if answer["stranded_share"] is not None:
        lines.append(f"stranded   {answer['stranded_share']:.0%} of the free GPUs do not form whole blocks")
    if "run_dollar" in money:
        low, high = money["run_dollar_range"]
        lines.append(f"the run    {_s(money['run_wall_s'])}, ${money['run_dollar']:,.0f} (${low:,.0f} to ${high:,.0f})")
    lines.append(f"basis      {answer['basis']}")
    return "\n".join(lines)


def _s(value: float) -> str:
    return show(value, Unit.SECOND)


def _optima(write: dict[str, Any], interval_s: float) -> str:
    """The textbook intervals; where writes in the background set a longer one, that is said first."""
    intervals = f"Young {_s(write['young_s'])}, Daly {_s(write['daly_s'])}, exact {_s(write['best_s'])}"
    if interval_s <= CLOSE_RATIO * write["best_s"]:
        return intervals
    times = interval_s / write["write_s"]
    return f"{times:.1f} times the write itself, which must be over before the next; for the stall alone: {intervals}"
