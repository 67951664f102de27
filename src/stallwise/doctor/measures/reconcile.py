"""Parts against their whole: what each part takes, what no part explains, and a ledger where the parts are a step's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stallwise.evidence.catalog import change, quantities, run, stages
from stallwise.evidence.catalog import step as traced
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.ledger import Category, Ledger

ORDER = -4  # after what a trace or a record tells, before what builds on the facts of a step
SLACK = 1.05  # parts that add up to more than the whole by rounding
WHOLE_STEP = {stages.FORWARD.name, stages.BACKWARD.name, stages.OPTIMIZER.name}
CATEGORIES = {
    run.DATA_TIME.name: Category.INPUT_WAIT, stages.BATCH_WAIT.name: Category.INPUT_WAIT, stages.H2D.name: Category.COPY,
    stages.FORWARD.name: Category.COMPUTE, stages.BACKWARD.name: Category.COMPUTE, stages.OPTIMIZER.name: Category.COMPUTE,
    stages.GRADIENT_SYNC.name: Category.COMMUNICATION, stages.CHECKPOINT.name: Category.CHECKPOINT,
    run.SYNC_TIME.name: Category.HOST_WAIT,
}  # fmt: skip
QUANTITY_OF = {
    Category.INPUT_WAIT: traced.INPUT_WAIT, Category.COMMUNICATION: traced.EXPOSED_COMMUNICATION,
    Category.CHECKPOINT: traced.CHECKPOINT_WAIT, Category.COPY: traced.EXPOSED_COPY, Category.HOST_WAIT: traced.SYNC_WAIT,
    Category.COMPUTE: traced.COMPUTE_TIME,
}  # fmt: skip


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Shares of every part, and the ledger of a step whose stages were stated."""
    parts: dict[str, list[Fact]] = defaultdict(list)
    for name in list(evidence.facts):
        whole_name = quantities()[name].whole
        part = evidence.get(quantities()[name], run=None) if whole_name else None
        if part is not None and not isinstance(part.value, str):
            parts[whole_name].append(part)
    for whole_name, found in parts.items():
        whole = evidence.get(quantities()[whole_name], run=None)
        total = sum(p.number for p in found)
        if whole is None and whole_name == run.STEP_TIME.name and _listed_whole(found):
            for part in found:
                yield Fact(change.PART_SHARE, part.number / total, part.source, Scope(layer=part.quantity.name))
        if whole is None or whole.number <= 0 or total > SLACK * whole.number:
            continue
        for part in found:
            yield Fact(change.PART_SHARE, part.number / whole.number, part.source, Scope(layer=part.quantity.name))
        yield Fact(
            change.UNEXPLAINED_SHARE, max(0.0, 1.0 - total / whole.number), whole.source, Scope(layer=whole_name)
        )
    yield from _ledger(evidence, parts.get(run.STEP_TIME.name, []))


def _listed_whole(parts: list[Fact]) -> bool:
    """Who lists forward, backward and the optimizer in one place lists the step: the parts are its whole."""
    named = {p.quantity.name for p in parts if p.number > 0}
    return named >= WHOLE_STEP and len({p.source.file for p in parts}) == 1


def _ledger(evidence: Evidence, parts: list[Fact]) -> Iterator[Item]:
    """A step whose stages somebody timed by hand."""
    staged = [p for p in parts if p.quantity.name.startswith("stage.")]
    if evidence.ledgers or evidence.all(stages.ON_DEVICE) or len(staged) < 2:
        return
    from stallwise.evidence.operations import KIND, workers_in

    if workers_in([t for t in evidence.table(KIND) if t.meta.get("laid_out")]) > 1:
        return  # of many ranks the replay makes the ledger
    seconds: dict[Category, float] = defaultdict(float)
    for part in parts:
        if part.quantity.name in CATEGORIES:
            seconds[CATEGORIES[part.quantity.name]] += part.number
    whole = evidence.get(run.STEP_TIME, run=None)
    total = sum(seconds.values())
    step_s = max(whole.number if whole is not None else total, total)
    seconds[Category.OTHER] = step_s - total
    source, samples = staged[0].source, min(p.samples for p in parts)
    yield Ledger(dict(seconds), source, samples=samples)
    yield Fact(traced.STEP_TIME, step_s, source, samples=samples)
    for category, quantity in QUANTITY_OF.items():
        if category in seconds:
            yield Fact(quantity, seconds[category], source, samples=samples)
