"""Whether two runs did the same work: only then does the time of one say anything about the other."""

from __future__ import annotations

from collections.abc import Mapping

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import hardware, serving, stated, step

Work = dict[str, str | float]

# What sets the time of a healthy step: the card, how many, the model and the batch.
TEXTS = (hardware.GPU_NAME, stated.GPU, serving.MODEL)
SIZES = (
    stated.GPUS, stated.PARAMETERS, stated.HIDDEN, stated.SEQUENCE, stated.MICROBATCH, stated.GLOBAL_BATCH,
)  # fmt: skip
SAME_SIZE = 1.01  # such numbers are printed rounded
# Kernels of a step: warm-up, evaluation and a fallback of an operator move them by a few percent, another model by more.
SAME_LAUNCHES = 2.0


def work_of(diagnosis: Diagnosis, *, of_a_file: bool) -> Work:
    """What a run tells of its work. A file has no command line: the kernels it launches stand for the program."""
    evidence = diagnosis.evidence
    found: Work = {q.name: str(fact.value) for q in TEXTS if (fact := evidence.get(q)) is not None}
    sizes = (*SIZES, step.LAUNCHES) if of_a_file else SIZES
    numbers = {q.name: evidence.value(q, 0.0) for q in sizes}
    return found | {name: value for name, value in numbers.items() if value > 0}


def same_work(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """As far as both tell."""
    return all(_same(name, one[name], other[name]) for name in one if name in other)


def _same(name: str, one: object, other: object) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        most = SAME_LAUNCHES if name == step.LAUNCHES.name else SAME_SIZE
        return max(one, other) <= most * min(one, other)
    return one == other
