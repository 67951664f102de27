"""A live view of a job as terminal lines and as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from stallwise.units import Unit, show

BAR_CELLS = 36
WORDS = {
    "batch_wait": "input wait", "h2d": "copy to device", "forward": "forward", "backward": "backward",
    "gradient_sync": "gradient sync", "optimizer": "optimizer", "side": "side work", "checkpoint": "  of it checkpoint",
    "gc": "  of it garbage collection", "evaluation": "  of it evaluation",
}  # fmt: skip


class LateRank(Protocol):
    """The rank others wait for."""

    @property
    def rank(self) -> int: ...
    @property
    def stage(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def often_share(self) -> float: ...


class View(Protocol):
    """What `doctor.live` computes."""

    @property
    def ranks(self) -> int: ...
    @property
    def expected_ranks(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def step_s(self) -> float: ...
    @property
    def steps_per_s(self) -> float: ...
    @property
    def stages(self) -> Mapping[str, float]: ...
    @property
    def on_device(self) -> bool: ...
    @property
    def late(self) -> LateRank | None: ...
    @property
    def worse_ratio(self) -> float: ...
    @property
    def worse_stage(self) -> str: ...
    @property
    def creep(self) -> Mapping[str, float]: ...
    @property
    def silent_s(self) -> float: ...
    @property
    def behind(self) -> tuple[int, ...]: ...
    @property
    def stacks(self) -> Mapping[int, str]: ...
    @property
    def ended(self) -> Mapping[int, str]: ...
    @property
    def gauges(self) -> Mapping[str, float]: ...
    @property
    def hanging(self) -> bool: ...


def as_lines(view: View, mfu: float | None = None) -> list[str]:
    """The screen of `stallwise watch`."""
    missing = f" ({view.expected_ranks - view.ranks} silent)" if view.expected_ranks > view.ranks else ""
    head = f"step {view.step}  ·  {show(view.step_s, Unit.SECOND)} a step  ·  {view.ranks} of {view.expected_ranks} ranks{missing}"
    if mfu is not None:
        head += f"  ·  MFU {mfu:.1%}"
    lines = [head, *_alarms(view), ""]
    whole = max(sum(v for k, v in view.stages.items() if not WORDS.get(k, k).startswith("  ")), 1e-12)
    for name, seconds in sorted(view.stages.items(), key=lambda kv: list(WORDS).index(kv[0]) if kv[0] in WORDS else 99):
        bar = "█" * round(BAR_CELLS * min(seconds / whole, 1.0))
        lines.append(f"{WORDS.get(name, name):28}{show(seconds, Unit.SECOND):>10}  {seconds / whole:4.0%}  {bar}")
    clock = "device time, by events read late" if view.on_device else "host time; no GPU events in this record"
    lines += ["", f"({clock}; mean over ranks of the last steps)"]
    for rank, text in view.stacks.items():
        lines += ["", f"rank {rank} stands here:", *(f"  {line}" for line in text.splitlines()[:12])]
    return lines


def _alarms(view: View) -> Iterator[str]:
    if view.hanging:
        who = f"; behind: rank {', '.join(map(str, view.behind))}" if view.behind else ""
        yield f"HANG: no step has ended for {show(view.silent_s, Unit.SECOND)}{who}"
    if view.late is not None:
        late = view.late
        where = WORDS.get(late.stage, late.stage)
        yield (
            f"LATE: rank {late.rank} holds the others up by {show(late.seconds, Unit.SECOND)} a step in {where} "
            f"({late.often_share:.0%} of steps)"
        )
    if view.worse_ratio > 1:
        stage = WORDS.get(view.worse_stage, view.worse_stage)
        yield f"SLOWER: steps take {view.worse_ratio:.2f}x what this run's best stretch took; most of it in {stage}"
    for name, grown in view.creep.items():
        yield f"CREEP: {name.removesuffix('_bytes').replace('_', ' ')} has grown by {show(grown, Unit.BYTE)} and still rises"
    for rank, why in view.ended.items():
        if why != "exit":
            yield f"ENDED: rank {rank}: {why}"


def as_prometheus(view: View) -> str:
    """The same as metrics."""
    rows = [
        ("stallwise_step", "", float(view.step)),
        ("stallwise_step_seconds", "", view.step_s),
        ("stallwise_ranks", "", float(view.ranks)),
        ("stallwise_silent_seconds", "", view.silent_s),
        ("stallwise_hang", "", float(view.hanging)),
        ("stallwise_slowdown_ratio", "", view.worse_ratio),
    ]
    rows += [("stallwise_stage_seconds", f'{{stage="{name}"}}', s) for name, s in view.stages.items()]
    if view.late is not None:
        rows.append(
            ("stallwise_late_seconds", f'{{rank="{view.late.rank}",stage="{view.late.stage}"}}', view.late.seconds)
        )
    rows += [("stallwise_creep_bytes", f'{{gauge="{name}"}}', grown) for name, grown in view.creep.items()]
    lines, seen = [], set()
    for name, labels, value in rows:
        if name not in seen:
            lines.append(f"# TYPE {name} gauge")
            seen.add(name)
        lines.append(f"{name}{labels} {value:.9g}")
    return "\n".join(lines) + "\n"
