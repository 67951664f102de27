"""Record files of our own recorder: stage times by step, marks, gauges, stacks of a hang."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import job, run, stages
from stallwise.evidence.catalog.distributed import WORLD_SIZE
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Series, Source, Table
from stallwise.evidence.operations import Work
from stallwise.evidence.user_lines import BESIDE, GROWING, line_of_most, stage_of, user_lines
from stallwise.readers._operation_columns import of_step_parts
from stallwise.readers._stack_lines import lines_table
from stallwise.readers.native._sampled_stacks import sampled_stacks
from stallwise.readers.records.rank_record import COLLECTION, PARTS, STAGES, RankRecord, parse

FORMAT = "stallwise record"
CAPTURE = "stallwise record --light -- python train.py"
EXCLUSIVE = True
FIRST_LINE = re.compile(rb'^\s*\{"k":"(run|step|gpu|mark|window|frames|samples)",')

OPERATIONS = {
    "batch_wait": Work.INPUT, "h2d": Work.OTHER, "forward": Work.FORWARD, "backward": Work.BACKWARD, "replay": Work.COMPUTE,
    "gradient_sync": Work.GRADIENT_SYNC, "optimizer": Work.OPTIMIZER, "checkpoint": Work.CHECKPOINT, "evaluation": Work.OTHER,
}  # fmt: skip
PROCESS = re.compile(r"\.pid-(\d+)\.jsonl$")
FEWEST_UNTRACED = 5  # steps: fewer give no median worth the name
FEWEST_SAMPLES = 20
IMPORTS = "<frozen importlib"  # frames of a program that starts: no loop runs yet
MEMORY_OF = {"host_memory_bytes": run.HOST_MEMORY, "gpu_memory_bytes": run.GPU_MEMORY}
REPLAY = "replay"
NOTHING_REPEATS = "no step was found: nothing in this program repeats that the recorder knows"


def recognises(name: str, head: bytes) -> bool:
    """Our own lines begin with their kind."""
    return FIRST_LINE.match(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One series per stage and per span of the user's, and what the file says of its end."""
    record = parse(artifact.lines())
    source = Source(artifact.name)
    scope = Scope(rank=record.rank, run=_process(artifact.name))
    if record.lost_lines:
        yield Note(f"{record.lost_lines} torn or foreign lines were left out", source)
    yield Fact(job.RECORDED_STEPS, float(len(record.step)), source, scope)
    yield Fact(WORLD_SIZE, float(record.world), source, scope)
    for why in dict.fromkeys(f"{name}: {note}" for _, name, note in record.marks if name in ("no trace", "no stacks")):
        yield Fact(job.RECORDER_NOTE, why, source, scope)
    for window in record.windows:
        yield Fact(job.PROFILER_START, window.start_s, source, scope, note=window.kind)
        yield Fact(job.PROFILER_STOP, window.stop_s, source, scope, note=window.kind)
    yield from _stacks(record, source, scope)
    yield from sampled_stacks(record, source, scope)
    if len(record.step) == 0:
        attached = next((note for _, name, note in record.marks if name == "attached"), None)
        why = f"looked at {attached}: steps are not to be seen so" if attached else NOTHING_REPEATS
        yield Fact(job.RECORDER_NOTE, why, source, scope)
        yield from _from_outside(record, source, scope)
        return
    ended, last_step = record.ended or "cut off", float(record.step[-1])
    whole, record = record, record.steady()
    x = np.array(record.step, dtype=np.float64)
    yield Series(run.STEP_TIME, x, np.array(record.duration_s), source, scope)
    untraced = record.untraced_s()
    if whole.windows and len(untraced) >= FEWEST_UNTRACED:
        middle, low, high = (float(np.percentile(untraced, q)) for q in (50, 25, 75))
        if record.boundary[-1] == REPLAY:  # it returns before it has run
            middle = low = high = float(np.mean(untraced))
        # A host that runs ahead ends most steps early and waits in a few: no usual step is shorter than its work on the device.
        middle, low, high = (max(value, record.device_step_s()) for value in (middle, low, high))
        yield Fact(job.UNTRACED_STEP, middle, source, scope, len(untraced), low, high)
    yield Fact(job.STEP_BOUNDARY, record.boundary[-1], source, scope)
    yield Fact(stages.ON_DEVICE, float(record.on_device), source, scope)
    for name in (*STAGES, *PARTS):
        values = record.stage(name) if name != COLLECTION else record.collections()
        if values.any():
            yield Series(stages.STAGE_OF[name], x, values, source, scope)
    yield Series(stages.SIDE, x, record.side(), source, scope)
    if record.world > 1 and scope.run is None:
        yield _operations(record, artifact.name)
    for name in record.spans_of_the_user():
        at = replace(scope, group=name)
        yield Series(stages.USER_SPAN, x, record.span(name), source, at)
    for name in record.spans_elsewhere():
        elsewhere = np.array([spans.get(name, 0.0) for spans in record.elsewhere_s])
        yield Series(stages.USER_SPAN, x, elsewhere, source, replace(scope, group=f"{name} (other threads)"))
    yield from _recorded_numbers(record, source, scope)
    yield Fact(stages.ENDED, ended, source, scope)
    yield Fact(stages.LAST_STEP, last_step, source, scope)
    for step, _, silence_s, text in record.stacks:
        at = replace(scope, step=step)
        yield Fact(stages.HANG_SILENCE, silence_s, source, at)
        yield Fact(stages.HANG_STACK, text, source, at)


def _from_outside(record: RankRecord, source: Source, scope: Scope) -> Iterator[Item]:
    """Of a process that was looked at: its program and its memory."""
    if record.script:
        yield Fact(job.SCRIPT, record.script, source)
    seconds, sizes = record.memory
    if seconds:
        yield Series(run.HOST_MEMORY, np.array(seconds), np.array(sizes), source, scope, over="time_s")
    if record.host_memory:
        yield Fact(run.HOST_MEMORY_TOTAL, float(record.host_memory), source, scope)


def _operations(record: RankRecord, file: str) -> Table:
    """Stages of every step as rows of the operation table, to be compared with those of the other ranks."""
    parts = {name: record.stage(name) for name in OPERATIONS}
    known = {name: values for name, values in parts.items() if values.any()}
    steps = np.array(record.step, np.int64)
    ranks = np.full(len(steps), record.rank, np.int64)
    hosts = [record.host or None] * len(steps)
    seconds = np.stack([*known.values()], axis=1) if known else np.zeros((len(steps), 0))
    table = of_step_parts(file, ranks, steps, list(known), seconds, hosts)
    table.meta["works"] = [int(OPERATIONS[name]) for name in known]
    return table


def _recorded_numbers(record: RankRecord, source: Source, scope: Scope) -> Iterator[Item]:
    """Bytes of memory, and what the user recorded."""
    for name, quantity in MEMORY_OF.items():
        if record.has_gauge(name):
            yield Series(quantity, *record.gauge(name), source, scope)
    if record.host_memory:
        yield Fact(run.HOST_MEMORY_TOTAL, float(record.host_memory), source, scope)
    if record.grows:
        columns = {k: np.array([e[k] for e in record.grows], dtype=object) for k in record.grows[0]}
        yield Table(GROWING, columns, source, scope)
    for name in record.gauges_of_the_user():
        yield Series(stages.USER_GAUGE, *record.gauge(name), source, replace(scope, group=name))


def _process(name: str) -> str | None:
    """A second process of one rank is a run of its own: its file says which."""
    found = PROCESS.search(name)
    return f"process {found[1]}" if found else None


def _stacks(record: RankRecord, source: Source, scope: Scope) -> Iterator[Item]:
    """Every line by its samples, and the line that held the training thread most often while no stage was open."""
    seen = Counter(s.stack for s in record.samples)
    seen.update(record.counted)
    yield from lines_table(((record.frames.get(stack, ()), count) for stack, count in seen.items()), source, scope)
    first_s, last_s = (record.time_s[0], record.time_s[-1]) if record.time_s else (0.0, float("inf"))
    inside = [s for s in record.samples if first_s <= s.time_s <= last_s]
    by_stage = Counter((s.stage or BESIDE, s.stack) for s in inside)
    imports = {stack for stack, lines in record.frames.items() if any(line.startswith(IMPORTS) for line in lines)}
    by_stage.update(
        {
            (stage_of(record.frames.get(stack, ())), stack): count
            for stack, count in record.counted.items()
            if stack not in imports or imports.issuperset(record.counted)
        }
    )
    table = user_lines(
        ((stage, record.frames.get(stack, ()), n) for (stage, stack), n in by_stage.items()), source, scope
    )
    if table is None:
        return
    table.meta["looked_s"] = record.looked_s
    yield table
    line = line_of_most([table], (BESIDE,))
    if line is not None and line.of >= FEWEST_SAMPLES:
        yield Fact(stages.SIDE_LINE, str(line), source, scope, line.of, note=f"{line.share:.2f}")
