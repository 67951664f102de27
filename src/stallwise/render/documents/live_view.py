"""A live view of a job as a document and as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from stallwise.render.blocks import Bar, Bars, Code, Document, Note, Part, Verdict, seconds, share, steps
from stallwise.render.blocks import document as filled
from stallwise.units import Unit, show

MOST_FRAMES = 12
WORDS = {
    "batch_wait": "input wait", "h2d": "copy to device", "forward": "forward", "backward": "backward",
    "gradient_sync": "gradient sync", "optimizer": "optimizer", "side": "side work", "checkpoint": "  of it checkpoint",
    "gc": "  garbage collection, in these", "evaluation": "  of it evaluation",
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


def document(view: View, mfu: float | None = None, *, deep: bool = False) -> Document:
    """The screen of `stallwise watch`."""
    missing = f" ({view.expected_ranks - view.ranks} silent)" if view.expected_ranks > view.ranks else ""
    what: list[Part] = [
        f"step {view.step}  ·  ", seconds(view.step_s), f" per step  ·  {view.ranks} of {view.expected_ranks} ranks{missing}"
    ]  # fmt: skip
    if mfu is not None:
        what += ["  ·  MFU ", share(mfu, 1)]
    whole = max(sum(v for k, v in view.stages.items() if not WORDS.get(k, k).startswith("  ")), 1e-12)
    order = sorted(view.stages.items(), key=lambda kv: list(WORDS).index(kv[0]) if kv[0] in WORDS else len(WORDS))
    rows = tuple(Bar(WORDS.get(name, name), seconds(s), min(s / whole, 1.0)) for name, s in order)
    clock = "device time, by events read late" if view.on_device else "host time; no GPU events in this record"
    alarms = list(_alarms(view))
    return filled(
        Verdict(tuple(what), tone="bad" if alarms else "good"),
        steps("", alarms),
        Bars(rows, seconds(view.step_s), label="step", title="Where a step goes"),
        Note(f"({clock}; mean over ranks of the last steps)"),
        *(Code("\n".join(f"  {line}" for line in text.splitlines()[:MOST_FRAMES]), title=f"Rank {rank} stands here")
          for rank, text in view.stacks.items()),
        verb="watch",
    )  # fmt: skip


def _alarms(view: View) -> Iterator[str]:
    if view.hanging:
        who = f"; behind: rank {', '.join(map(str, view.behind))}" if view.behind else ""
        yield f"HANG: no step has ended for {show(view.silent_s, Unit.SECOND)}{who}"
    if view.late is not None:
        late = view.late
        where = WORDS.get(late.stage, late.stage)
        yield (
            f"LATE: rank {late.rank} holds the others up by {show(late.seconds, Unit.SECOND)} per step in {where} "
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
