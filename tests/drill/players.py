"""Scripted players: an expert that repeats the doctor, a parrot that always says the same, a novice without method."""

from __future__ import annotations

from pathlib import Path

from stallwise.drill.artifact_words import WHAT, kinds_meant
from stallwise.drill.concepts import CLASSES
from stallwise.drill.generate import incident
from stallwise.drill.incident import model_answer
from stallwise.drill.round import Round, start
from stallwise.drill.rubric import Score, score


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def begin(seed: int, folder: Path, name: str) -> tuple[Round, Clock]:
    clock = Clock()
    return start(seed, clock, folder / f"{name}-{seed}.jsonl"), clock


def expert(seed: int, folder: Path) -> Score:
    """Knows what the doctor says about these papers, and nothing of what was planted."""
    played, clock = begin(seed, folder, "expert")
    answer = model_answer(incident(seed))
    first = answer.first
    assert first is not None
    clock.wait(20)
    played.hypothesis(
        f"Given '{played.incident.setup}': most likely {answer.ranked[0]}, {first.headline}. Anything exotic is less likely."
    )
    pointed_at = {s.file for r in first.because for s in r.sources}  # the doctor's reasons name their papers
    stated = [s.where.replace("_", " ") for r in first.because for s in r.sources if s.where]
    wanted = [WHAT[e.kind] for e in played.incident.exhibits if e.file in pointed_at]
    wanted += [words for words in stated if kinds_meant(words)][:2]
    for request in (
        *dict.fromkeys(wanted),
        *(step.capture.artifact for step in answer.next[:2]),
        "nvidia-smi",
        "dmesg",
    ):
        clock.wait(30)
        played.ask(request)
    reasons = "; ".join(r.text for r in first.because)
    played.fixes([f"{f.action} because it is {f.worth or 'the cheapest'}" for f in first.fixes])
    clock.wait(120)
    played.commit(f"{answer.ranked[0].replace('-', ' ')}: {first.headline}. {reasons}")
    return score(played)


def parrot(seed: int, folder: Path) -> Score:
    played, clock = begin(seed, folder, "parrot")
    clock.wait(5)
    played.hypothesis("increase batch size, add GPUs, raise occupancy")
    played.fixes(["increase batch size", "add GPUs", "raise occupancy"])
    played.commit("increase batch size, add GPUs, raise occupancy")
    return score(played)


def novice(seed: int, folder: Path) -> Score:
    """Right class, no numbers, no artifacts."""
    played, clock = begin(seed, folder, "novice")
    clock.wait(60)
    word = CLASSES[played.incident.family][0]
    played.hypothesis(f"It is something with the {word}")
    played.fixes([f"look into the {word}"])
    played.commit(f"a {word} problem")
    return score(played)
