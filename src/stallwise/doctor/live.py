"""What a running job says of itself right now: the stage that stalls, who is late, what got worse, who hangs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stallwise.errors import UnreadableInput
from stallwise.readers.records.rank_record import STAGES, RankRecord, parse

RECENT_STEPS = 50
LATE_SHARE = 0.05  # of a step: a smaller lead is within what ranks differ by on a healthy cluster
LATE_OFTEN = 0.6  # of the recent steps: a straggler is late in most of them
WORSE_RATIO = 1.1  # recent median against the run's own best window; less is noise
CREEP_SHARE = 0.05  # memory gained over the record before it is called creep
SILENT_AT_LEAST_S = 60.0  # as in the recorder's watchdog
SILENT_STEPS = 10.0
WAITING_STAGES = ("backward", "gradient_sync")  # where ranks wait for the late one
MEMORY_GAUGES = ("gpu_memory_bytes", "host_memory_bytes")


@dataclass(frozen=True)
class Late:
    """A rank that others wait for, the stage in which it loses the time, and what that costs each step."""

    rank: int
    stage: str
    seconds: float
    often_share: float


@dataclass(frozen=True)
class LiveView:
    """One look at the job."""

    ranks: int
    expected_ranks: int
    step: int
    step_s: float
    steps_per_s: float
    stages: dict[str, float]  # seconds a step, mean over ranks
    on_device: bool
    late: Late | None = None
    worse_ratio: float = 1.0
    worse_stage: str = ""
    creep: dict[str, float] = field(default_factory=dict)  # gauge -> bytes gained
    silent_s: float = 0.0
    behind: tuple[int, ...] = ()  # ranks at the lowest step, when the job is silent
    stacks: dict[int, str] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)

    @property
    def hanging(self) -> bool:
        """No step has ended for far longer than a step takes, and nobody has said goodbye."""
        return self.silent_s > max(SILENT_AT_LEAST_S, SILENT_STEPS * self.step_s) and len(self.ended) < self.ranks


def load(folder: Path) -> list[RankRecord]:
    """All rank files of a folder."""
    files = sorted(folder.glob("**/rank-*.jsonl"))
    if not files:
        raise UnreadableInput(
            f"no record of a job in {folder}",
            hint="start one: stallwise record -- python train.py   (or stallwise.start())",
        )
    records = []
    for file in files:
        try:
            records.append(parse(file.read_bytes().splitlines()))
        except OSError:
            continue
    return [r for r in records if r.step] or records


def look(records: list[RankRecord], now_s: float | None = None) -> LiveView:
    """Computes the view from what the ranks have written so far."""
    now_s = time.time() if now_s is None else now_s
    begun = [r for r in records if r.step]
    active = [r.steady() for r in begun]
    if not active:
        return LiveView(len(records), _expected(records), 0, 0.0, 0.0, {}, False)
    step_s = float(
        np.mean([r.whole()[-RECENT_STEPS:].mean() for r in active])
    )  # the stages are means, and add up to it
    last_s = max(r.time_s[-1] for r in begun)  # a traced step is not steady, yet the job is at it
    lowest = min(r.step[-1] for r in active)
    stages = {name: _recent_mean(active, name) for name in (*STAGES, "side", "checkpoint", "gc", "evaluation")}
    worse_ratio, worse_stage = _worse(active)
    silent_s = max(0.0, now_s - last_s)
    quiet = silent_s > max(SILENT_AT_LEAST_S, SILENT_STEPS * step_s)
    return LiveView(
        ranks=len(active),
        expected_ranks=_expected(records),
        step=max(r.step[-1] for r in begun),
        step_s=step_s,
        steps_per_s=1.0 / step_s if step_s else 0.0,
        stages={k: v for k, v in stages.items() if v > 0},
        on_device=all(r.on_device for r in active),
        late=_late(active),
        worse_ratio=worse_ratio,
        worse_stage=worse_stage,
        creep=_creep(active),
        silent_s=silent_s,
        behind=tuple(r.rank for r in active if r.step[-1] == lowest) if quiet and len(active) > 1 else (),
        stacks={r.rank: r.stacks[-1][3] for r in active if quiet and r.stacks},
        ended={r.rank: r.ended for r in active if r.ended},
        gauges=_last_gauges(active),
    )


def _expected(records: list[RankRecord]) -> int:
    return max([r.world for r in records], default=0)


def _recent_mean(records: list[RankRecord], name: str) -> float:
    def of(record: RankRecord) -> float:
        values = record.side() if name == "side" else _part(record, name)
        return float(np.mean(values[-RECENT_STEPS:]))

    return float(np.mean([of(r) for r in records]))


def _part(record: RankRecord, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if name == "gc":  # the host collects, whatever the device does
        return record.collections()
    return record.stage(name)


def _late(records: list[RankRecord]) -> Late | None:
    """Who the others wait for. Waiting hides in the backward pass or the sync, so those are levelled to the shortest."""
    if len(records) < 2:
        return None
    common = sorted(set.intersection(*(set(r.step) for r in records)))[-RECENT_STEPS:]
    if len(common) < 5:
        return None
    rows = {r.rank: [r.step.index(n) for n in common] for r in records}
    names = [n for n in (*STAGES, "side") if n not in WAITING_STAGES]
    own = {n: np.stack([_stage_rows(r, n, rows[r.rank]) for r in records]) for n in names}
    work = sum(own.values(), np.zeros((len(records), len(common))))
    step_s = float(np.median(np.stack([np.array(r.duration_s)[rows[r.rank]] for r in records])))
    excess = np.stack([work[i] - np.median(np.delete(work, i, axis=0), axis=0) for i in range(len(records))])
    often = (excess > LATE_SHARE * step_s).mean(axis=1)
    worst = int(np.argmax(np.median(excess, axis=1)))
    seconds = float(np.median(excess[worst]))
    if often[worst] < LATE_OFTEN or seconds < LATE_SHARE * step_s:
        return None
    others = {n: np.median(np.delete(own[n], worst, axis=0), axis=0) for n in names}
    by_stage = {n: float(np.median(own[n][worst] - others[n])) for n in names}
    stage = max(by_stage, key=lambda n: by_stage[n])
    return Late(records[worst].rank, stage, seconds, float(often[worst]))


def _stage_rows(record: RankRecord, name: str, rows: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # Lateness is a matter of the host's arrival, so the host's own times are compared, also on a GPU.
    if name == "side":
        covered = np.array([sum(v for k, v in s.items() if k in STAGES) for s in record.host_s])
        return np.maximum(np.array(record.duration_s) - covered, 0.0)[rows]  # type: ignore[no-any-return]
    return np.array([s.get(name, 0.0) for s in record.host_s])[rows]


def _worse(records: list[RankRecord]) -> tuple[float, str]:
    """The recent median against the best earlier window of the same length, and the stage that grew most."""
    record = max(records, key=lambda r: len(r.step))
    durations = np.array(record.duration_s)
    if len(durations) < 3 * RECENT_STEPS:
        return 1.0, ""
    windows = durations[: len(durations) // RECENT_STEPS * RECENT_STEPS].reshape(-1, RECENT_STEPS)
    medians = np.median(windows, axis=1)
    best = int(np.argmin(medians))
    now = slice(len(durations) - RECENT_STEPS, len(durations))
    ratio = float(np.median(durations[now]) / medians[best])
    if ratio < WORSE_RATIO:
        return 1.0, ""
    then = slice(best * RECENT_STEPS, (best + 1) * RECENT_STEPS)
    grown = {n: float(np.median(v[now]) - np.median(v[then])) for n in STAGES if (v := record.stage(n)).any()}
    grown["side"] = float(np.median(record.side()[now]) - np.median(record.side()[then]))
    return ratio, max(grown, key=lambda n: grown[n])


def _creep(records: list[RankRecord]) -> dict[str, float]:
    found: dict[str, float] = {}
    for record in records:
        for name in MEMORY_GAUGES:
            values = [g[name] for g in record.gauges if name in g]
            if len(values) < 8:
                continue
            quarter = len(values) // 4
            early, late = float(np.median(values[quarter : 2 * quarter])), float(np.median(values[-quarter:]))
            rising = np.mean(np.diff([np.median(part) for part in np.array_split(values, 4)]) > 0) == 1.0
            if rising and late > early * (1 + CREEP_SHARE):
                found[name] = max(found.get(name, 0.0), late - early)
    return found


def _last_gauges(records: list[RankRecord]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for record in records:
        for gauges in record.gauges[-RECENT_STEPS:]:
            merged.update(gauges)
    return merged
