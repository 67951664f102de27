"""Replays the steps of a trace with changes: each alone, all together, and the order in which they pay."""

from __future__ import annotations

from collections.abc import Iterable

from stallwise.doctor.gather import artifacts_of
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.evidence.timeline import Timeline
from stallwise.findings.finding import Gain
from stallwise.findings.whatif import Tried, WhatIf
from stallwise.measures._changes import CHANGES, Replays
from stallwise.measures._device_changes import DEVICE_CHANGES
from stallwise.measures._replay_range import won_range_s
from stallwise.measures._step_book import book_of
from stallwise.measures._without_profiler import without_profiler
from stallwise.readers import readers_for
from stallwise.sim.replay.change import Change, both

ALL = {**CHANGES, **DEVICE_CHANGES}
WORTH_SAYING = 0.005  # of the step


def meaning_of(change: str) -> str:
    """What a change takes out, in a line."""
    return (ALL[change].__doc__ or "").strip().rstrip(".")


def what_if(path: str, changes: Iterable[str] = ()) -> WhatIf:
    """The replays; without changes, of all that can be tried."""
    asked = tuple(changes)
    unknown = [c for c in asked if c not in ALL]
    if unknown:
        raise BadRequest(f"there is no change '{unknown[0]}'", hint=f"one of: {', '.join(ALL)}")
    timeline = _timeline(path)
    cleaned = without_profiler(timeline)
    book = book_of(cleaned.timeline if cleaned is not None else timeline)
    if not len(book.view) or not book.view.launched.any():
        raise UnreadableInput(
            f"{path}: the trace holds no launches with their device work, so nothing can be replayed",
            hint="record CPU and CUDA activities: stallwise record -- python train.py",
        )
    replays = Replays(book)
    step, busy, longest = replays.unchanged_s, book.mean_s(book.busy), max(replays.unchanged_s, book.longest_s)
    made = {name: ALL[name](replays) for name in asked or ALL}
    found = {name: change for name, change in made.items() if change is not None}
    alone = {name: replays.gain_s(change) for name, change in found.items()}
    keep = [name for name in found if asked or alone[name] > WORTH_SAYING * step]
    keep.sort(key=lambda name: -alone[name])
    order, together, won = _in_order(replays, {name: found[name] for name in keep})
    tried = tuple(_tried((name,), meaning_of(name), alone[name], step, longest, busy) for name in keep)
    # What device work the changes spare, at most: the rest of it stays, however many changes are made at once.
    spared = sum(t.gain.high_s for t in tried if t.changes[0] in DEVICE_CHANGES)
    surest = max((t.gain.low_s for t in tried), default=0.0)  # all of them together win no less than the best of them
    return WhatIf(
        source=timeline.source.file,
        steps=len(book.windows),
        unit=book.windows.unit,
        traced_step_s=cleaned.traced_step_s if cleaned else step,
        clean_step_s=step,
        clean_low_s=min(cleaned.low_s, step) if cleaned else step,
        clean_high_s=longest if cleaned else step,
        alone=tried,
        together=_tried(tuple(order), "all of these at once", won, step, longest, busy, spared, surest)
        if together and len(order) > 1
        else None,
        order=tuple(order),
        nothing=tuple(name for name in asked if made[name] is None),
    )


def _tried(
    changes: tuple[str, ...], meaning: str, won_s: float, step_s: float, longest_s: float, busy_s: float,
    spared_s: float = 0.0, least_s: float = 0.0,
) -> Tried:  # fmt: skip
    low, high = won_range_s(won_s, changes, step_s, longest_s, busy_s)
    if len(changes) > 1:
        low, high = min(max(low, least_s), won_s), max(won_s, min(high, longest_s - busy_s + spared_s))
    return Tried(changes, meaning, Gain(low, high, "replayed", won_s), step_s - won_s)


def _in_order(replays: Replays, changes: dict[str, Change]) -> tuple[list[str], Change | None, float]:
    """Greedy: the change that wins most, then the one that wins most beside it, and so on."""
    left, order, done, won = dict(changes), [], None, 0.0
    while left:
        gains = {n: replays.gain_s(c if done is None else both(done, c)) for n, c in left.items()}
        best = max(gains, key=gains.__getitem__)
        done = left[best] if done is None else both(done, left[best])
        won = gains[best]
        order.append(best)
        del left[best]
    return order, done, won


def _timeline(path: str) -> Timeline:
    for artifact in artifacts_of([path]):
        for reader in readers_for(artifact):
            for item in reader.read(artifact):
                if isinstance(item, Timeline):
                    return item
    raise UnreadableInput(f"{path} holds no trace that can be replayed", hint="give a profiler trace: trace.json.gz")
