"""What came out of one artifact: read and measured next to the file, small enough to send home."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from stallwise.doctor.measures import measure_timeline
from stallwise.doctor.messages import LogMetrics, log_metrics_of, messages_in
from stallwise.doctor.understanding import (
    ANY_TEXT,
    LOG_READERS,
    is_composed,
    is_document,
    is_prose,
    is_written,
    understood,
)
from stallwise.doctor.words import asserted_in, bag_of
from stallwise.errors import StallwiseError
from stallwise.evidence import gc_pause
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.bag import Bag
from stallwise.evidence.catalog import run, serving, stated
from stallwise.evidence.catalog.serving import ENGINE_SAMPLES
from stallwise.evidence.error_boundary import failure_of, kept
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Series, Source, Table
from stallwise.evidence.file_cache import forget
from stallwise.evidence.gpu_load import SAMPLES as GPU_SAMPLES
from stallwise.evidence.limits import Limits, OutOfTime, at_most, within
from stallwise.evidence.own_lines import own_lines
from stallwise.evidence.reading import Printed, Rows
from stallwise.evidence.reading import Reading as ReadValue
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.unread import ErrorLine, Unread
from stallwise.late import unwarned
from stallwise.readers import Reader, readers_for
from stallwise.readers.records.plain_rows import SAMPLE_ROWS, plainly, redrawn
from stallwise.readers.shapes.pasted import parts_of
from stallwise.readers.shapes.unwrap import plain
from stallwise.readers.text.layouts import layouts_in

STATED_FORMAT = "stated facts"
IN_WORDS = "words and numbers"
KERNEL_LOG = "kernel.log"  # boot messages of a machine: what matters in them calls itself a fault
CODED = ("driver-error", "switch-error")  # their code says what they mean, and their other words are ids
LOUD = ("error", "fatal", "critical")
_RAISED = re.compile(rb"allocat|\b[A-Za-z]{2,40}(?:Error|Exception)\b|startup is less|No available memory")
MESSAGES = "messages"
ENGINE_HINTS = (b"throughput", b"running", b"Running", b"tok/s", b"tokens/s")
CARD_HINTS = (b"power", b"temp", b"clock")
MOST_BYTES = 1 << 21  # of a text that its reader found empty


@dataclass(slots=True, eq=False)
class Reading:
    """The formats that matched and what they gave, or the problem."""

    name: str
    formats: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    problem: StallwiseError | None = None


class Engine(Protocol):
    """Reads many artifacts, somewhere. Readings come in the order of the artifacts, whoever finishes first."""

    def readings(self, artifacts: list[Artifact], plan: ReadingPlan) -> Iterable[Reading]: ...


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """How to read; travels to the workers."""

    keep_timelines: bool = False
    cache: bool = True
    limits: Limits = field(default_factory=Limits)


def read_artifact(artifact: Artifact, *, keep_timelines: bool = False) -> tuple[list[str], list[Item]]:
    """The formats that matched and what they gave. Timelines are measured here and then dropped unless kept."""
    if artifact.size_bytes == 0:  # thousands of them lie in some folders, and none says anything
        return [], [Bag(frozenset(), Source(artifact.name))]
    stored, artifact = artifact, plain(artifact)
    whole = artifact
    if is_prose(artifact):
        artifact = artifact.saying(asserted_in(artifact.text()))
    text, readers = _best_form(artifact)
    owners, alone = _owned(readers), any(getattr(r, "EXCLUSIVE", False) for r in readers)
    parts: list[Artifact] = []
    if (collected := _of_machine(readers, artifact, keep_timelines)) is not None:
        return collected[0], collected[1] + _losses(stored, artifact)
    if text is artifact and owners:  # one that owns the file would leave the others' outputs unread
        parts = parts_of(artifact, _owners_of, unasked=alone or len(owners) > 1)
    if parts:
        formats, items = _each(parts, keep_timelines)
        items.append(Bag(frozenset(), Source(artifact.name), composed=is_composed(stored)))
        return formats, items + _losses(stored, artifact)
    written = is_written(text)
    source = Source(artifact.name)
    quoted = written or (not alone and is_document(artifact))
    messages = [] if alone else list(kept(messages_in(whole, written=quoted), "the book of messages", source))
    pasted = any(
        isinstance(x, Event) and x.role is Role.ROOT and x.level == "error" for x in messages
    )  # lines of a program
    first = [r for r in readers if not written or pasted or not (r.FORMAT in LOG_READERS or _mentioned(r.FORMAT, text))]
    formats, items, problems = _read(first, text, keep_timelines)
    table = redrawn(text) if not owners else None  # readers of tables know them as CSV
    if table is not None:
        drawn = _read([r for r in readers_for(table) if r not in readers], table, keep_timelines)
        formats, items = formats + drawn[0], items + drawn[1]
    lines: LogMetrics = []
    try:
        lines = [] if alone else log_metrics_of(text)
    except Exception as error:
        problems.append(failure_of("the reader of gauges", error))
    metrics = [x for x in lines if not written or pasted or not (x[0].in_logs or _mentioned(x[0].format, text))]
    formats, items = _with(metrics, formats, items)
    if not any(isinstance(item, Table) and item.kind == ENGINE_SAMPLES for item in items) and worth_reading(text):
        from stallwise.doctor.engine_lines import engine_samples

        items += kept(engine_samples(text), "the reader of engine lines", source)
    if not alone and speaks_of_cards(text) and not any(isinstance(x, Table) and x.kind == GPU_SAMPLES for x in items):
        from stallwise.doctor.engine_lines import card_samples

        items += kept(card_samples(text), "the reader of monitor lines", source)
    if not any(getattr(r, "EXCLUSIVE", False) and r.FORMAT in formats and r.FORMAT != STATED_FORMAT for r in readers):
        formats += [MESSAGES] if any(isinstance(item, Event) for item in messages) else []
        items += messages
        more = list(kept(_understood(text, items, formats, written, whole), "the lexicon", source))
        items, more = _with_layouts(whole, items, more)
        if any(isinstance(item, (Fact, Series, Table)) for item in more):
            formats += [] if formats else [IN_WORDS]
        elif len(first) + len(metrics) < len(readers) + len(lines):  # the page says nothing in words: a log after all
            rest = _read([r for r in readers if r not in first], text, keep_timelines)
            formats, items, problems = formats + rest[0], items + rest[1], problems + rest[2]
            formats, items = _with([x for x in lines if x not in metrics], formats, items)
        items += more
        labelled = any(getattr(r, "LABELLED", False) and r.FORMAT in formats for r in readers)
        engine = not quoted and _of_an_engine(items)
        labelled = labelled or (not quoted and any(isinstance(x, Table) and x.kind == KERNEL_LOG for x in items))
        loud = _errors(items) if engine else _loud(items) if labelled else None
        items += _last_line(whole) if engine else ()
        items.append(_bag(whole, loud, composed=is_composed(stored)))
    elif not items and b"\x00" not in artifact.head[:4096]:  # of its format, yet nothing in it: the words remain
        items.append(bag_of(enumerate(text.text(MOST_BYTES).splitlines(), 1), artifact.name))
    elif is_composed(stored):
        items.append(Bag(frozenset(), source, composed=True))
    if problems and not formats:
        raise problems[0]
    items += [Note(problem.problem, source, lost=True) for problem in problems]
    return formats, items + _losses(stored, artifact, text)


def _bag(whole: Artifact, loud: Iterator[Event | ErrorLine] | None, *, composed: bool) -> Bag:
    """The words of a text. Of a file that is labels and values only its `loud` lines: labels and table heads are no evidence."""
    if loud is not None and not composed:
        return bag_of(((_line(text.source), text.text) for text in loud), whole.name)
    words = whole.skeletons  # lines that differ in digits alone have the same words
    kinds = [" ".join(key.split()) for key in words.keys]  # numbers of other lengths leave other gaps
    times = Counter(kinds[s] for s in words.of)
    rows = frozenset(s for s, first in enumerate(words.firsts) if _is_row(words.lines[first], times[kinds[s]]))
    lines = ((i + 1, words.lines[i]) for s, i in enumerate(words.firsts) if s not in rows)
    return replace(bag_of(lines, whole.name, prose=is_prose(whole)), composed=composed)


def _of_an_engine(items: list[Item]) -> bool:
    """Whether a serving engine wrote the log: what it announces of its start and its settings is no sign of anything."""
    learns = any(isinstance(x, Series) and x.quantity in (run.LOSS, run.REWARD) for x in items)
    return not learns and any(
        x.kind == ENGINE_SAMPLES if isinstance(x, Table) else isinstance(x, Fact) and x.quantity in ENGINES_OWN
        for x in items
    )


def _last_line(log: Artifact) -> Iterator[Fact]:
    """What it ends in, and how many lines are like it: a start that hangs or is cut says there where it stood."""
    text = log.skeletons
    at = next((i for i in range(len(text.lines) - 1, -1, -1) if text.lines[i].strip()), None)
    if at is not None:
        line, alike = " ".join(text.lines[at].split())[:LONGEST_ROW], len(text.members(text.of[at]))
        yield Fact(serving.LAST_LINE, line, Source(log.name, f"line {at + 1}"), samples=alike)


ENGINES_OWN = (serving.START_PHASE, serving.READY_TIME, serving.PER_REQUEST_RATE, serving.KV_TOKENS, serving.VERSION)


def _is_row(line: str, times: int) -> bool:
    """Whether a line is one of many alike that hold labels and numbers: a table row by row, as training logs and engines print."""
    return times >= ROWS_ALIKE and len(_NUMBER.findall(line[:LONGEST_ROW])) >= NUMBERS_IN_ROW


# A message that repeats ("Gradient overflow. Skipping step, loss scale 32768") holds one or two numbers beside its time.
ROWS_ALIKE, NUMBERS_IN_ROW, LONGEST_ROW = 8, 5, 500
_NUMBER = re.compile(r"(?<![\w.])\d[\d.,]*(?:[eE][+-]?\d+)?")


def _loud(items: list[Item]) -> Iterator[Event | ErrorLine]:
    for item in items:
        if isinstance(item, Fact) and item.quantity is stated.SYMPTOM:  # what somebody complains of, in a file of facts
            yield ErrorLine(str(item.value), item.source)
        elif isinstance(item, Event) and item.kind not in CODED:
            yield item
        elif isinstance(item, Unread):
            yield from item.error_lines


def _errors(items: list[Item]) -> Iterator[Event | ErrorLine]:
    """An engine warns at every start of what it falls back to: only its errors are signs, and of them those that tell of trouble."""
    return (
        line
        for line in _loud(items)
        if line.level in LOUD and not (isinstance(line, Event) and line.role in (Role.CONFIRMATION, Role.ADVICE))
    )


def _line(source: Source) -> int:
    number = re.search(r"\d+", source.where)
    return int(number[0]) if number else 0


def _of_machine(readers: list[Reader], artifact: Artifact, keep_timelines: bool) -> tuple[list[str], list[Item]] | None:
    """A report that holds the outputs of many commands, each read by its own reader; what concerns nobody here is left out."""
    machine = next((r for r in readers if hasattr(r, "parts")), None)
    parts: list[Artifact] | None = machine.parts(artifact) if machine is not None else None
    if machine is None or parts is None:
        return None
    formats, items, _ = _read([machine], artifact, keep_timelines)
    more, rest = _each(parts, keep_timelines)
    kinds = {item.kind for item in items if isinstance(item, Table)}
    items += [item for item in rest if not (isinstance(item, Table) and item.kind in kinds)]
    return [*formats, *(f for f in more if f not in formats)], items


def _losses(*artifacts: Artifact) -> list[Note]:
    """What was left out of a text on its way."""
    losses = dict.fromkeys(loss for one in artifacts for loss in one.losses)
    return [Note(loss, Source(artifacts[0].name), lost=True) for loss in losses]


def _owned(readers: list[Reader]) -> frozenset[str]:
    """Formats that take a whole text as theirs."""
    return frozenset(r.FORMAT for r in readers if r.FORMAT not in ANY_TEXT)


def _owners_of(part: Artifact) -> frozenset[str]:
    """The same, with books whose tables it has."""
    tables = {
        catalogue.format for catalogue, found in log_metrics_of(part) if any(isinstance(item, Table) for item in found)
    }
    return _owned(readers_for(part)) | tables


def _each(parts: list[Artifact], keep_timelines: bool) -> tuple[list[str], list[Item]]:
    """What the outputs in one file give, each read by itself; a problem of one does not silence the others."""
    formats: list[str] = []
    items: list[Item] = []
    problems: list[StallwiseError] = []
    for part in parts:
        try:
            found, given_items = read_artifact(part, keep_timelines=keep_timelines)
        except StallwiseError as error:
            problems.append(error)
            continue
        formats += [f for f in found if f not in formats]
        items += given_items
    if problems and not formats:
        raise problems[0]
    return formats, items + [Note(problem.problem, Source(parts[0].name), lost=True) for problem in problems]


def _with_layouts(whole: Artifact, items: list[Item], more: list[Item]) -> tuple[list[Item], list[Item]]:
    """Compared layouts in place of single degrees: what fits is no denial of what failed, and either alone misleads."""
    compared = layouts_in(whole.text(), whole.name) if is_written(whole) else []
    axes = {f.quantity for f in compared}
    kept_, others = ([i for i in x if not (isinstance(i, Fact) and i.quantity in axes)] for x in (items, more))
    return kept_, [*others, *compared]


def _understood(
    text: Artifact, known: list[Item], formats: list[str], written: bool, whole: Artifact
) -> Iterator[Item]:
    denying = whole.text() if written and whole is not text else ""
    yield from understood(text, known, formats, written=written, whole=denying)


def _read(
    readers: list[Reader], text: Artifact, keep_timelines: bool
) -> tuple[list[str], list[Item], list[StallwiseError]]:
    """What these readers give; a problem of one does not silence the others."""
    formats: list[str] = []
    items: list[Item] = []
    problems: list[StallwiseError] = []
    for reader in readers:
        try:
            shaped, given = False, len(items)
            for item in reader.read(text):
                if isinstance(item, Printed | Rows | ReadValue):
                    from stallwise.readers.text.steps import understood_steps

                    shaped = True
                    known = any(isinstance(x, Table) and x.kind == GPU_SAMPLES for x in items)
                    items += understood_steps(item, text.name, with_cards=not known)
                    continue
                if isinstance(item, Timeline):
                    items += kept(measure_timeline(item), "a measure", Source(text.name))
                    if not keep_timelines:
                        continue
                items.append(item)
            if not shaped or len(items) > given:  # a shape is of a format where its keys mean something
                formats.append(reader.FORMAT)
        except Exception as error:
            problems.append(failure_of(f"the reader of '{reader.FORMAT}'", error))
    return formats, items, problems


def _with(lines: LogMetrics, formats: list[str], items: list[Item]) -> tuple[list[str], list[Item]]:
    all_formats = dict.fromkeys([*formats, *(catalogue.format for catalogue, _ in lines)])
    return list(all_formats), items + [item for _, found in lines for item in found]


def _mentioned(format_: str, page: Artifact) -> bool:
    """An error that a person speaks of is no error message: it has no numbers of its own."""
    return format_ == "out-of-memory error" and not _RAISED.search(page.head)


def _best_form(artifact: Artifact) -> tuple[Artifact, list[Reader]]:
    """The artifact in the clothes that readers know best, and those readers."""
    known = readers_for(artifact)
    if any(getattr(r, "EXCLUSIVE", False) for r in known):
        return artifact, known
    sample = plainly(artifact, SAMPLE_ROWS)
    readers = readers_for(sample) if sample is not None else []
    if any(r not in known for r in readers) and (table := plainly(artifact)) is not None:
        return table, readers  # one that does not know it as it came
    return artifact, known


def worth_reading(artifact: Artifact) -> bool:
    """Text that speaks of requests or of a rate."""
    head = artifact.head
    return (
        b"\x00" not in head[:4096]
        and head.lstrip()[:2] not in (b'{"', b"[{", b"{\n", b"[\n")
        and any(h in head for h in ENGINE_HINTS)
    )


def speaks_of_cards(artifact: Artifact) -> bool:
    """Text that names two of what a monitor prints of a card."""
    return b"\x00" not in artifact.head[:4096] and sum(h in artifact.head for h in CARD_HINTS) >= 2


def reading_of(artifact: Artifact, plan: ReadingPlan) -> Reading:
    """Never raises what a user should not see; a problem is part of the answer. Looked up before it is computed."""
    from stallwise.doctor.cache import recall, remember

    artifact = replace(artifact)  # what is looked at on the way goes when it has been read
    key, seconds = "", plan.limits.file_s
    try:
        seconds = plan.limits.seconds_for(artifact.size_bytes)
        with within(plan.limits), at_most(seconds), unwarned(), gc_pause.paused():
            if plan.cache and not plan.keep_timelines:
                key, known = recall(artifact)
                if known is not None:
                    return known
            formats, items = read_artifact(artifact, keep_timelines=plan.keep_timelines)
            items = own_lines(artifact, items)
    except (Exception, OutOfTime) as error:
        return Reading(artifact.name, problem=failure_of(artifact.name, error, seconds))
    finally:
        forget()
    reading = Reading(artifact.name, formats, items)
    if key:
        remember(key, reading)
    return reading


def one_by_one(artifacts: Iterable[Artifact], plan: ReadingPlan) -> Iterator[Reading]:
    """In this process."""
    for artifact in artifacts:
        yield reading_of(artifact, plan)
