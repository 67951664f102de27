"""Rows of an operation table laid out as (operation, replica, step): all steps of all replicas run the same program.

What most replicas and steps have in common is the program. A replica that lacks part of it in some step (a file that ends early, a
lost event) is filled with the usual duration; one that lacks most of it is left out of that step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.evidence.operations import PASSES, Work, numbered
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

ENOUGH = 0.5  # of all replicas and steps: an operation this common is part of the program
SAMPLE_CELLS = 512  # replicas times steps that a usual duration is taken from


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the program."""

    stage: int
    work: Work
    label: str
    chunk: int
    number: int  # microbatch of a pass, else its place among its like
    known: bool = True  # False: nobody recorded it, its time follows from its neighbours'

    @property
    def is_pass(self) -> bool:
        """Whether it is a forward or backward pass."""
        return self.work in PASSES


@dataclass(slots=True, eq=False)
class Grid:
    """What the workers did, in the same order everywhere."""

    operations: list[Operation]
    begin_s: Floats  # (operation, replica, step), from the first begin in the step
    work_s: Floats
    present: Bools  # (replica, step)
    replicas: Ints  # their names
    steps: Ints
    filled: int = 0  # entries that were not recorded
    left_out: list[str] = field(default_factory=list)
    recorded: Bools | None = None  # (operation, replica, step); None where nothing is missing
    least_kept: float = 1.0  # share of operations, of steps, and of the steps of the worker that lacks most

    def leave_out(self, text: str, kept: float) -> None:
        """What is not judged, and the share that is."""
        self.left_out.append(text)
        self.least_kept = min(self.least_kept, kept)

    def recorded_at(self, places: Sequence[int]) -> Bools:
        """Where all of these operations were recorded."""
        if self.recorded is None:
            return self.present
        known = [i for i in places if i < len(self.recorded)]
        return self.present & self.recorded[known].all(axis=0)

    @property
    def complete(self) -> Bools:
        """Replicas and steps of which everything was recorded; all that are there where none is."""
        whole = self.recorded_at(range(len(self.operations)))
        return whole if whole.any() else self.present

    @property
    def end_s(self) -> Floats:
        """When each operation ended."""
        return self.begin_s + self.work_s

    @property
    def stages(self) -> list[int]:
        """Pipeline stages, in order."""
        return sorted({o.stage for o in self.operations})

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.replicas) * len(self.stages)

    def where(self, *works: Work, stage: int | None = None) -> list[int]:
        """Places of the operations of these kinds."""
        return [i for i, o in enumerate(self.operations) if o.work in works and stage in (None, o.stage)]

    def measured_s(self) -> Floats:
        """Length of each step as recorded: first begin to last end on any worker."""
        recorded = [i for i, o in enumerate(self.operations) if o.known]
        last = np.where(self.present, self.end_s[recorded].max(axis=0), -np.inf).max(axis=0)
        first = np.where(self.present, self.begin_s[recorded].min(axis=0), np.inf).min(axis=0)
        return np.asarray(last - first)


def grid_of(columns: Mapping[str, NDArray[Any]], labels: Sequence[str], works: Sequence[int]) -> Grid | None:
    """Lays rows out; None where no two workers or steps share a program."""
    rows = _one_of_each_tensor_group(columns)
    replicas, cell = numbered(rows["replica"])
    steps, step = numbered(rows["step"])
    cell *= len(steps)
    cell += step
    del step
    number = _numbers(rows, np.array(works, np.int8), cell)
    chunk = np.maximum(rows["chunk"], 0)
    span = [int(values.max(initial=0)) + 1 for values in (chunk, number)]
    most = (int(rows["stage"].max(initial=0)) + 1) * len(labels) * span[0] * span[1]
    code: NDArray[Any] = rows["stage"].astype(np.int32 if most < 2**31 else np.int64)
    for values, size in ((rows["label"], len(labels)), (chunk, span[0]), (number, span[1])):
        code *= size
        code += values.astype(code.dtype)
    del chunk, number
    codes, at = numbered(code)
    del code
    cells = len(replicas) * len(steps)
    common = np.bincount(at, minlength=len(codes)) >= ENOUGH * np.count_nonzero(np.bincount(cell, minlength=cells))
    if not common.any():
        return None
    keep = common[at]
    flat = (np.cumsum(common) - 1)[at] * cells + cell
    shape = (int(common.sum()), len(replicas), len(steps))
    begin, work = np.full(shape, np.nan), np.full(shape, np.nan)
    whole = bool(keep.all())
    for to, name in ((begin, "start_s"), (work, "duration_s")):
        to.reshape(-1)[flat if whole else flat[keep]] = rows[name] if whole else rows[name][keep]
    np.maximum(work, 0.0, out=work)
    operations = [_operation(int(c), span, labels, works) for c in codes[common].tolist()]
    grid = Grid(operations, begin, work, np.ones(shape[1:], bool), replicas, steps)
    if not whole:
        grid.leave_out(f"{int((~keep).sum()):,} operations outside of the common program", float(keep.mean()))
    return _filled(grid)


def _operation(code: int, span: list[int], labels: Sequence[str], works: Sequence[int]) -> Operation:
    rest, number = divmod(code, span[1])
    rest, chunk = divmod(rest, span[0])
    stage, label = divmod(rest, len(labels))
    return Operation(stage, Work(works[label]), labels[label], chunk, number)


def _one_of_each_tensor_group(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Rows in an order in which the longest of a tensor-parallel group comes last and so is kept."""
    rows = dict(columns)
    tensor = rows.get("tensor")
    if tensor is not None and len(tensor) and (tensor != tensor[0]).any():
        order = np.argsort(rows["duration_s"], kind="stable")
        rows = {name: values[order] for name, values in rows.items()}
    return rows


def _numbers(rows: Mapping[str, NDArray[Any]], works: NDArray[np.int8], cell: NDArray[Any]) -> NDArray[np.int32]:
    """The microbatch of a pass; else the recorder's own count; else the place by time among operations of the same name."""
    is_pass = np.isin(works, [int(w) for w in PASSES])[rows["label"]]
    number = np.where(is_pass & (rows["microbatch"] >= 0), rows["microbatch"], rows["order"]).astype(np.int32)
    bare = np.flatnonzero(number < 0)
    if len(bare):
        key = cell[bare].astype(np.int64)
        for name in ("stage", "label", "chunk", "tensor"):
            values = np.maximum(rows[name][bare], 0) if name in rows else np.zeros(1, np.int64)
            key *= int(values.max(initial=0)) + 1
            key += values
        by_time = np.lexsort((rows["start_s"][bare], key))
        sorted_key = key[by_time]
        first = np.concatenate(([True], sorted_key[1:] != sorted_key[:-1]))
        rows_in_time = bare[by_time]
        again = ~first  # files of one rank that overlap hold a row twice: it is one operation
        for name in ("start_s", "duration_s"):
            again[1:] &= rows[name][rows_in_time][1:] == rows[name][rows_in_time][:-1]
        place = np.cumsum(~again) - 1
        number[rows_in_time] = place - np.maximum.accumulate(np.where(first, place, 0))
    return number


def _filled(grid: Grid) -> Grid | None:
    """Begins count from the step's first; what is missing takes the usual place and duration."""
    here = np.isfinite(grid.work_s)
    grid.present = here.mean(axis=0) >= ENOUGH
    if not grid.present.any():
        return None
    grid = _without_empty_steps(grid)
    here = np.isfinite(grid.work_s)
    first = np.nanmin(np.where(grid.present, grid.begin_s, np.nan), axis=(0, 1))
    grid.begin_s -= first
    grid.filled = int((~here[:, grid.present]).sum())
    if here.all():
        return grid
    grid.recorded = here
    # Of two workers neither is the middle: the quicker one stands for those that were not recorded.
    usual_begin, usual_work = usual(grid.begin_s, grid.present), usual(grid.work_s, grid.present, lower=True)
    grid.begin_s = np.where(here, grid.begin_s, usual_begin[:, None, None])
    grid.work_s = np.where(here, grid.work_s, usual_work[:, None, None])
    absent = int((~grid.present).sum())
    if absent:
        text = f"{absent:,} of {grid.present.size:,} replicas times steps, which lack most operations"
        grid.leave_out(text, float(grid.present.mean(axis=1).min()))
    if grid.filled:
        share = grid.filled / max(here[:, grid.present].size, 1)
        least = min(float(here[grid.where(*Work, stage=s)].mean(axis=(0, 2)).min()) for s in grid.stages)
        grid.leave_out(f"{grid.filled:,} operations ({share:.1%}) were not recorded and take the usual time", least)
    return grid


def _without_empty_steps(grid: Grid) -> Grid:
    seen = np.asarray(grid.present.any(axis=0))
    if not seen.all():
        text = f"{int((~seen).sum())} of {len(seen)} steps, which have another program or lack most operations"
        grid.leave_out(text, float(seen.mean()))
        grid.begin_s, grid.work_s = grid.begin_s[:, :, seen], grid.work_s[:, :, seen]
        grid.present, grid.steps = grid.present[:, seen], grid.steps[seen]
    kept = grid.present.any(axis=1)
    if not kept.all():
        names = ", ".join(map(str, grid.replicas[~kept][:8].tolist()))
        grid.leave_out(f"replicas {names}, which lack most operations in all steps", 0.0)
        grid.begin_s, grid.work_s = grid.begin_s[:, kept], grid.work_s[:, kept]
        grid.present, grid.replicas = grid.present[kept], grid.replicas[kept]
    return grid


def usual(values: Floats, present: Bools, *, lower: bool = False) -> Floats:
    """The median of each operation over replicas and steps, of a sample where there are many; 0 where nothing is known."""
    cells = np.flatnonzero(present.reshape(-1))
    cells = cells[:: max(1, len(cells) // SAMPLE_CELLS)]
    return np.nan_to_num(middle(values.reshape(len(values), -1)[:, cells].T, lower=lower))


def middle(values: Floats, *, lower: bool = False) -> Floats:
    """Along the first axis the median of what is known; `lower`: the lesser of two in the middle."""
    ordered = np.sort(values, axis=0)  # what is not known comes last
    known = np.isfinite(ordered).sum(axis=0)
    low, high = (
        np.take_along_axis(ordered, at[None], axis=0)[0]
        for at in (np.maximum(known - 1, 0) // 2, np.minimum(known // 2, len(ordered) - 1))
    )
    found: Floats = low if lower else (low + high) / 2
    return found
