"""A training plan for a terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.planner.search import Candidate, Change, Plan
from stallwise.planner.standing import AnswerSeconds
from stallwise.units import Unit, show

GIB = 2.0**30


def to_dict(plan: Plan, explained: list[str] | None = None) -> dict[str, Any]:
    """Everything a program may want."""
    found: dict[str, Any] = {
        "schema": "stallwise.plan.train/1",
        "model": plan.model.name,
        "parameters": plan.model.parameters().total,
        "cluster": plan.cluster.name,
        "gpus": plan.cluster.gpus,
        "seq": plan.workload.seq,
        "global_batch": plan.workload.global_batch,
        "considered": plan.considered,
        "feasible": plan.feasible,
        "search_s": plan.search_s,
        "best": [_candidate(c) for c in plan.best],
        "why_the_others_lost": plan.lost,
        "frontier": [_candidate(c) for c in plan.frontier],
        "sizes": [{"gpus": gpus, **_candidate(c)} for gpus, c in plan.sizes],
        "pipeline": asdict(plan.pipeline) if plan.pipeline else None,
        "sensitivity": [_change(c, plan.best[0]) for c in plan.sensitivity],
        "equal": plan.equal,
        "picked_ratio": plan.picked_ratio,
        "tight": plan.tight,
        "would_fit": plan.would_fit,
        "remarks": plan.remarks,
        "run": asdict(plan.run) if plan.run else None,
        "answers": [asdict(a) for a in plan.answers],
        "anchor": {**asdict(plan.anchor), "scale": plan.anchor.scale} if plan.anchor else None,
        "would_change": plan.would_change,
        "mfu_against": plan.best[0].mfu_against,
    }
    return found | ({"explain": explained} if explained else {})


def _candidate(c: Candidate) -> dict[str, Any]:
    return {**asdict(c), "label": c.layout.label}


def _change(c: Change, best: Candidate) -> dict[str, Any]:
    return {
        "knob": c.knob, "label": c.layout.label, "seconds": c.seconds, "slower_share": c.seconds / best.seconds - 1,
        "memory_bytes": c.memory_bytes, "fits": c.fits,
    }  # fmt: skip


def to_text(plan: Plan, explained: list[str] | None = None) -> str:
    """The answer first, then what surrounds it."""
    best = plan.best[0]
    card = plan.cluster.gpu
    lines = [
        f"{plan.model.name} ({plan.model.parameters().total / 1e9:.1f} B) on {plan.cluster.gpus} x {card.title}, "
        f"{plan.workload.global_batch} x {plan.workload.seq:,} tokens a step",
        "",
        f"{best.layout.label}",
        f"  {show(best.seconds, Unit.SECOND)} a step ({show(best.low_s, Unit.SECOND)} to {show(best.high_s, Unit.SECOND)}, "
        f"90% sure), {best.tokens_per_s:,.0f} tokens/s, MFU {best.mfu_share:.1%} of the "
        f"{best.mfu_against} (HFU {best.hfu_share:.1%})",
        f"  {best.memory_bytes / GIB:.1f} of {card.memory_bytes / GIB:.0f} GiB on the fullest GPU ({best.memory_low_bytes / GIB:.1f} "
        f"to {best.memory_high_bytes / GIB:.1f}, 90% sure: {best.fit}; {best.peak_stage} stage, {best.peak_moment})"
        + (f"; {show(best.dollar_per_step, Unit.DOLLAR)} a step" if best.dollar_per_step else ""),
        run_line(plan, best),
        "",
        "where a step goes    " + _bars(best.parts, best.seconds),
        "where memory goes    " + _sizes(best.memory_parts),
        *_pipeline(plan),
        "",
        f"of {plan.considered:,} layouts {plan.feasible:,} fit; searched in {show(plan.search_s, Unit.SECOND)}",
        *_standing(plan, best),
    ]
    lines += [
        f"  {i + 2}. {c.layout.label:52} {why}" for i, (c, why) in enumerate(zip(plan.best[1:], plan.lost, strict=True))
    ]
    lines += ["", "time against memory  (nothing is better in both)"]
    lines += [
        f"  {show(c.seconds, Unit.SECOND):>8} {c.memory_bytes / GIB:6.1f} GiB  {c.layout.label}" for c in plan.frontier
    ]
    lines += ["", "one knob moved"]
    widest = max((len(c.layout.label) for c in plan.sensitivity), default=0)
    lines += [_sensitivity(c, best, widest) for c in plan.sensitivity]
    lines += _run_lines(plan)
    lines += _sizes_lines(plan)
    if explained:
        lines += ["", "on the board", *(f"  {line}" for line in explained)]
    return "\n".join(line for line in lines if line is not None)


def _standing(plan: Plan, best: Candidate) -> list[str]:
    """How the first stands: its equals, what picking it may flatter, the published run beside it, what would change it."""
    lines = []
    lines += [f"  {text}" for text in plan.remarks]
    if plan.tight:
        lines.append(
            "  nothing fits by the numbers: these may, the leanest first. What would fit: "
            + ", or ".join(plan.would_fit)
        )
    if plan.equal > 1 and not plan.tight:
        ahead = best.seconds / plan.fastest_s - 1
        lines.append(
            f"  {plan.equal:,} of them are equal within what predictions err; the one with room to spare and fewest axes stands first"
            + (f", {ahead:.1%} behind the fastest" if ahead > 0.001 else "")
        )
    lines += ["", "by how much is known of the cluster (90% sure)", *map(_answer, plan.answers), ""]
    if plan.picked_ratio > 1.005:
        lines.append(f"  the upper end is {plan.picked_ratio - 1:.0%} higher for having been picked among many")
    if plan.anchor is not None:
        a = plan.anchor
        own = best.tokens_per_s / plan.cluster.gpus
        lines.append(
            f"  {a.source} published {a.tokens_per_s_per_gpu:,.0f} tokens/s/GPU on {a.gpus} GPUs at {a.seq:,} tokens ({a.label}); "
            f"this plan {own:,.0f}: {own / a.tokens_per_s_per_gpu - 1:+.0%}. Times start from that run"
        )
    if plan.cluster.gpus > 1 and not plan.cluster.wiring_known:
        lines.append(
            "  how these cards are plugged in decides: the interval is three times as wide until you say --wiring and --peer-access"
        )
    return lines + [f"  {text}" for text in plan.would_change]


def _answer(answer: AnswerSeconds) -> str:
    if answer.seconds is None or answer.low_s is None or answer.high_s is None:
        return f"    {answer.name:38} x{answer.half_width_ratio:.2f} either way ({answer.basis})"
    span = (
        f"{show(answer.seconds, Unit.SECOND)} ({show(answer.low_s, Unit.SECOND)} to {show(answer.high_s, Unit.SECOND)})"
    )
    return f"  {'>' if answer.taken else ' '} {answer.name:38} {span}  {answer.basis}"


def _run_lines(plan: Plan) -> list[str]:
    """The run with its failures, one line a figure."""
    if plan.run is None:
        return []
    r = plan.run
    size, write, every = (
        show(r.checkpoint_bytes, Unit.BYTE),
        show(r.write_s, Unit.SECOND),
        show(r.interval_s, Unit.SECOND),
    )
    useful = f"{r.goodput_share:.1%} of the time ({r.goodput_low_share:.1%} to {r.goodput_high_share:.1%})"
    hour, failure = show(r.dollar_per_useful_hour, Unit.DOLLAR), show(r.dollar_per_failure, Unit.DOLLAR)
    found = [
        "",
        f"the run with its failures  ({r.basis})",
        f"  checkpoint            {size}, written in {write}, best every {every}",
        f"  failures              {r.failures_per_day:.2g} a day; useful {useful}",
        f"  on another topology   read again in {show(r.reshard_s, Unit.SECOND)}",
        f"  a useful hour costs   {hour}, a failure {failure}",
    ]
    if r.run_wall_s and r.run_dollar:
        found.append(f"  the whole run         {show(r.run_wall_s, Unit.SECOND)}, {show(r.run_dollar, Unit.DOLLAR)}")
    return found


def _sizes_lines(plan: Plan) -> list[str]:
    if not plan.sizes:
        return []
    lines = ["", "time against cost   (GPU hours for a trillion tokens)"]
    for gpus, c in plan.sizes:
        hours = gpus / c.tokens_per_s * 1e12 / 3600
        price = plan.cluster.price_per_gpu_hour
        cost = f"  {show(hours * price, Unit.DOLLAR)}" if price else ""
        lines.append(
            f"  {gpus:>7,} GPUs {show(c.seconds, Unit.SECOND):>8} a step {hours:14,.0f} h{cost}  {c.layout.label}"
        )
    return lines


def _pipeline(plan: Plan) -> list[str]:
    if plan.pipeline is None:
        return []
    p = plan.pipeline
    return [
        f"pipeline simulated   {p.schedule}: idle {p.bubble_step_share:.1%} of the step "
        f"({p.bubble_useful_ratio:.1%} of useful time), fullest stage {p.slowest_stage}"
    ]


def run_line(plan: Plan, best: Candidate) -> str:
    """What the whole run takes and costs."""
    if not plan.workload.tokens:
        return f"  one trillion tokens take {show(1e12 / best.tokens_per_s, Unit.SECOND)}"
    seconds = plan.workload.tokens / best.tokens_per_s
    price = plan.cluster.price_per_gpu_hour
    cost = f", {show(price * plan.cluster.gpus * seconds / 3600, Unit.DOLLAR)}" if price else ""
    return f"  {plan.workload.tokens:.3g} tokens take {show(seconds, Unit.SECOND)}{cost} without failures"


def _bars(parts: dict[str, float], whole: float) -> str:
    shown = sorted(((v, n) for n, v in parts.items() if v > 0.005 * whole), reverse=True)
    return "  ".join(f"{n.replace('_', ' ')} {v / whole:.0%}" for v, n in shown)


def _sizes(parts: dict[str, float]) -> str:
    shown = sorted(((v, n) for n, v in parts.items() if v > 0.05 * GIB), reverse=True)
    return "  ".join(f"{n} {v / GIB:.1f}" for v, n in shown) + " GiB"


def _sensitivity(change: Change, best: Candidate, widest: int) -> str:
    verdict = "" if change.fits else f"  {change.fit}"
    return (
        f"  {change.knob:10} {change.layout.label:{widest}} {change.seconds / best.seconds - 1:+7.1%}  "
        f"{(change.memory_bytes - best.memory_bytes) / GIB:+6.1f} GiB{verdict}"
    )
