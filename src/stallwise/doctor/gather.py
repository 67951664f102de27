"""From paths to evidence: finds the artifacts, lets an engine read and measure them, and puts the readings together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from stallwise.doctor.budget import Budget
from stallwise.doctor.find import find
from stallwise.doctor.given import ends_like_a_file
from stallwise.doctor.joined_pages import join_pages
from stallwise.doctor.reading import IN_WORDS, Engine, Reading, ReadingPlan, read_artifact
from stallwise.doctor.recognise.ranking import of_our_trade, trouble_in
from stallwise.doctor.runs import separate_runs
from stallwise.doctor.understanding import is_record, is_written
from stallwise.doctor.words import words_in
from stallwise.errors import BadRequest, StallwiseError, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.bag import Bag
from stallwise.evidence.blocks import Blocks
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.limits import Limits, within
from stallwise.evidence.textual import is_textual
from stallwise.progress import shown
from stallwise.readers.text.human_text import asks
from stallwise.readers.text.phrases import symptom_in

__all__ = ["artifacts_of", "gather", "read_artifact"]

DEFAULT_LIMITS = Limits()
ENGINES = ("local", "ray")
READ_AS_WORDS = "there is no file of this name: it was read as words"
NO_READER = "no reader knows this file"
BUNDLE, LOG = "bundle.json", "log.txt"  # of a recorded job: how it ended, and what it printed
SMALL_BYTES = 50_000  # of a file that takes as long to be asked about as to be read
EVEN = 0.5  # odds that somebody has trouble
LONGEST_REMARK = 2_000  # bytes: a longer text reports, and what it reports is to be understood
NAMED = 3  # files named in a message before the rest is counted
AGAIN = "capture one: stallwise record -- python train.py   (formats: stallwise formats)"


def artifacts_of(paths: Iterable[str]) -> list[Artifact]:
    """Files, folders, globs, URLs and '-'; zips opened."""
    artifacts, problems = find(paths)
    if problems and not artifacts:
        raise problems[0][1]
    return artifacts


def gather(
    paths: Iterable[str],
    *,
    keep_timelines: bool = False,
    engine: str = "local",
    workers: int | None = None,
    cache: bool = True,
    live_s: float = 0.0,
    base: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Evidence:
    """Reads everything that can be read; complains only when nothing can. Names are told from `base`, where given."""
    with within(limits):
        artifacts, unopened = find(paths, live_s)
    if base is not None:
        artifacts = [replace(a, name=a.name.removeprefix(f"{base}/")) for a in artifacts]
    artifacts = join_pages(artifacts)
    plan = ReadingPlan(keep_timelines=keep_timelines, cache=cache, limits=limits)
    read = _engine(engine, workers).readings(artifacts, plan)
    before_bytes = Blocks.passed_bytes
    sizes = _sizes(artifacts)
    passed = (lambda: Blocks.passed_bytes - before_bytes) if sizes else None
    drawn = shown(read, len(artifacts), "reading", "files", sizes, passed)
    evidence, others, budget = Evidence(), set[str](), Budget()
    readings: list[Reading] = []
    for reading in drawn:
        _give_words(reading, evidence, others)
        reading.items = budget.held(reading.items, reading.name)
        readings.append(reading)
    typed = {a.name: a.text() for a in artifacts if a.typed}
    for label, words in typed.items():
        if ends_like_a_file(words):
            evidence.notes.append(Note(READ_AS_WORDS, Source(label)))
    for name, problem in unopened:
        evidence.notes.append(Note(problem.problem, Source(name), lost=True))
    problems = [problem for _, problem in unopened]
    own_logs = {a.name.removesuffix(BUNDLE) + LOG for a in artifacts if a.name.endswith(BUNDLE)}
    for reading in separate_runs(readings):
        if reading.problem is not None:
            problems.append(reading.problem)
            evidence.notes.append(Note(reading.problem.problem, Source(reading.name), lost=True))
        elif not reading.formats and reading.name in typed:
            continue  # what is said of it is said below
        elif not reading.formats and reading.name not in own_logs:
            evidence.notes.append(Note(NO_READER, Source(reading.name)))
        elif not reading.formats:
            continue  # a job may print nothing
        else:
            evidence.inputs.append(reading.name)
            evidence.formats += [f for f in reading.formats if f not in evidence.formats]
            evidence.add(reading.items)
    if evidence.inputs:
        unhurt = {r.name for r in readings if r.problem is None}
        small = [a for a in artifacts if not a.typed and a.name in unhurt and a.size_bytes <= LONGEST_REMARK]
        texts = [a for a in small if is_textual(a.head)]
        evidence.records |= {a.name for a in texts if is_record(a)}
        evidence.remarks |= {
            a.name for a in texts if len(artifacts) > 1 and a.name not in evidence.records and _is_remark(a)
        }
        _add_complaints(evidence, typed)
        return evidence
    evidence.stems |= others
    if not _are_texts(evidence, readings, artifacts):
        raise _nothing_readable(artifacts, readings, problems)
    _add_complaints(evidence, typed)
    return evidence


def _is_remark(artifact: Artifact) -> bool:
    """A note beside artifacts that neither asks nor names a trouble: of 2,112 recorded complaints 11 read so."""
    text = artifact.text()
    words = Evidence(stems=set(words_in(text)))
    return (
        is_written(artifact)
        and not asks(text)
        and not symptom_in(text)
        and (not of_our_trade(words) or trouble_in(words, (), in_numbers=False) < EVEN)
    )


def _add_complaints(evidence: Evidence, typed: dict[str, str]) -> None:
    """Who types words of our trade in the place of a path complains, as with `--fact symptom=`."""
    if typed and not evidence.all(stated.SYMPTOM) and of_our_trade(evidence):
        evidence.add(Fact(stated.SYMPTOM, words, Source(label, stated=True)) for label, words in sorted(typed.items()))


def _sizes(artifacts: list[Artifact]) -> list[float]:
    """What each adds to the progress; none where there are so many small ones that files tell it better than bytes."""
    sizes = [float(a.size_bytes) for a in artifacts]
    return sizes if sum(sizes) >= len(sizes) * SMALL_BYTES else []


def _give_words(reading: Reading, evidence: Evidence, others: set[str]) -> None:
    """Its words are put to those of the other files at once: a thousand files have hardly more of them than ten."""
    for at, item in enumerate(reading.items):
        if isinstance(item, Bag):
            if reading.formats:
                evidence.add([item])
            else:
                others |= item.stems
            reading.items[at] = Bag(frozenset(), item.source, () if reading.formats else item.passages)


def _are_texts(evidence: Evidence, readings: list[Reading], artifacts: list[Artifact]) -> bool:
    """Texts without one fact: words of our trade are evidence, and of all others the answer is that one cannot tell."""
    read = {r.name: r for r in readings if r.problem is None}
    textual = {a.name for a in artifacts if a.name in read and is_textual(a.head)}
    texts = [r for name, r in read.items() if name in textual]
    evidence.add(item for r in texts for item in r.items)
    if not of_our_trade(evidence):
        evidence.stems.clear()  # its words are nobody's evidence
    evidence.inputs += [r.name for r in texts]
    evidence.formats += [IN_WORDS] if texts else []
    evidence.notes[:] = [n for n in evidence.notes if n.text != NO_READER or n.source.file not in textual]
    return bool(texts)


def _engine(name: str, workers: int | None) -> Engine:
    if name == "local":
        from stallwise.doctor.engine_local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from stallwise.doctor.engine_ray import RayEngine

        return RayEngine(workers)
    raise BadRequest(f"there is no engine '{name}'", hint=f"one of: {', '.join(ENGINES)}")


def _nothing_readable(
    artifacts: list[Artifact], readings: list[Reading], problems: list[StallwiseError]
) -> StallwiseError:
    if len(problems) == 1:
        return problems[0]
    if problems:
        more = f"; and {len(problems) - 1} more could not be read"
        asked_wrongly = all(isinstance(p, BadRequest) for p in problems)
        return (BadRequest if asked_wrongly else UnreadableInput)(problems[0].problem + more, hint=problems[0].hint)
    described = "; ".join(f"{a.name} is {_nature(a)}" for a in artifacts[:NAMED])
    rest = f"; and {len(artifacts) - NAMED} more files" if len(artifacts) > NAMED else ""
    return UnreadableInput(
        f"nothing here is an artifact that stallwise knows: {described}{rest}. "
        "Missing: a profiler trace, a log, a metrics page or a counter report",
        hint=AGAIN,
    )


def _nature(artifact: Artifact) -> str:
    """What an unknown file looks like, so that the user sees which file was meant."""
    size = artifact.size_bytes
    if size == 0:
        return "empty (0 bytes)"
    return f"binary ({size:,} bytes)" if artifact.head.strip() else f"blank ({size:,} bytes)"
