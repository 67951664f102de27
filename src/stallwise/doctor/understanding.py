"""What the lexicon understands of a file, behind the readers of its format: their word stands where both have one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import fabric, stated
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source, Table
from stallwise.evidence.reading import Printed, Reading, Rows, Shape
from stallwise.readers import readers_for
from stallwise.readers.records.plain_rows import SAMPLE_ROWS, as_csv, recolumned
from stallwise.readers.shapes import delimited, prose, shapes_in
from stallwise.readers.shapes.tree import tree_of
from stallwise.readers.text.human_text import first_statement, is_manual, is_settled, unresolved
from stallwise.readers.text.mentions import mentions
from stallwise.readers.text.phrases import order_of, symptom_in
from stallwise.readers.text.rows import named_columns
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.troubles import undenied
from stallwise.readers.text.understand import excluded_in, understand
from stallwise.units import Unit

MAX_BYTES = 1 << 18  # larger files are logs or dumps that have readers of their own
TABLE_BYTES = 1 << 23  # a table, one record a line: its columns are named once, however long it is
REPEATING = 0.5  # share of lines that repeat another but for its digits: then a program wrote them
SOME = 0.3  # the same share where the lines count steps
_RULER = re.compile(r"^\s{0,8}\|\s{0,8}:?-{1,200}:?\s{0,8}\|")
_STEPPING = re.compile(r"\b(?:steps?|iter\w*|epoch)\b|it/s|s/it", re.IGNORECASE)
FEW_LINES = 12
LEAST_ALIKE, LEAST_PAIRS = 3, 4  # lines with so many numbers under their keys: nobody types the same record three times
_PAIR = re.compile(r"[A-Za-z)\]][\"']?\s?[:=]\s{0,6}[\"']?[-+]?\d")
FEW_FACTS = 2  # numbers by which a reader shows that a file is of its format
LONGEST_PAGE = 1 << 14
MOST_LINES = 120
STAMPED_SHARE = 0.1  # a pasted line or two do not make a page a log
_STAMPED = re.compile(
    r"\d\d:\d\d:\d\d|^\W*(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL)\b|\bNCCL (?:INFO|WARN)|\[rank\d|^Traceback|"
    r'^\s+File "|^\s*at \w|NVRM:|^\[\s*\d+\.\d+\]|\bpid\b|^[+|][-=+]{8}|'
    r"^(?:srv|slot|que) +\w+: |^(?:llama|ggml|whisper|common|sched)_\w+: "  # ggml programs put the function before each line
)
_HEADER = re.compile(
    r"^(?:> ?){0,4}\W{0,2}(?:Date|Sent|Received|On|Am|Le)\b:? ?.{0,60}\d\d:\d\d"
)  # of a mail or a quoted one
DOCUMENT_SAMPLE = 1 << 16
STAMP_ENDS = 40  # letters of a line: programs stamp its beginning, people sign its end
DOCUMENT_STAMPED = 0.02  # a program that prints stamps does so more often than a manual that shows one
LEAST_WORDS = 4  # of a sentence
_CHAT_CLOCK = re.compile(r"^\s*\[\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]\s*")  # when a line of a chat was said
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
_BLANKED = re.compile(
    r"^ {2,}| {2,}(?=[.,;:!?)]|$)"
)  # a denied clause, blanked to its end; gaps of a table come before a cell
_DIGITS = str.maketrans("", "", "0123456789#█▏▎▍▌▋▊▉ =>.")  # and the bars of progress


# What they take of a page that a person wrote, the lexicon reads better.
LOG_READERS = {
    "run settings", "model settings", "rank progress", "rank layout", "training log", "checkpoint lines", "evaluation lines",
    "run speed",
    "tracebacks of collectives",
    "Python tracebacks",
}  # fmt: skip
TABLE_READERS = {
    "table of steps", "table of named columns",
    "layer statistics", "nvidia-smi CSV",
}  # fmt: skip
# Readers that take a line here and there of any text: what they know does not make it their format.
ANY_TEXT = {
    "stated facts", "run settings", "model settings", "rank progress", "rank layout", "training log", "run outcomes",
    "checkpoint lines", "evaluation lines", "notes on a load", "precision comparison", "run speed",
    "out-of-memory error", "messages", "tracebacks of collectives", "Python tracebacks", "table of steps", "autotune log",
    "table of named columns", "engine start-up", "tokens by expert",
}  # fmt: skip


def understood(
    artifact: Artifact, known: list[Item], formats: list[str], *, written: bool, whole: str = ""
) -> list[Item]:
    """Facts that no reader gave, tables inside documents, complaints, and what stayed without a name.

    `whole`: the text with what it denies, which says what is not there.
    """
    number_count = sum(isinstance(i, Fact) and not isinstance(i.value, str) for i in known)
    if any(f not in ANY_TEXT for f in formats) and (
        number_count > FEW_FACTS or any(isinstance(i, Series) or _is_of_a_format(i) for i in known)
    ):
        return []
    start = artifact.head[:4096]
    table = not written and _is_table(artifact)
    most = TABLE_BYTES if table else MAX_BYTES
    if artifact.size_bytes > most or b"\x00" in start or b"traceEvents" in start or not start.strip():
        return []
    # What a run printed again and again has been read: its other lines tell of single moments. So has the page of a program whose
    # format is known: what it calls memory may be the host's.
    read = (Series, Table) if all(f in ANY_TEXT for f in formats) else (Fact, Series, Table)
    if not written and any(isinstance(item, read) for item in known):
        return []
    text = artifact.text(most)
    found = understand(
        shapes_in(artifact.name, text, prose=written or artifact.size_bytes <= LONGEST_PAGE),
        text,
        artifact.name,
        written=written,
    )
    items: list[Item] = [f for f in found.facts if not _given(f, known)]
    items += _tables(artifact, found.rows, known)
    if written:
        items += [f for f in mentions(text, artifact.name) if not _given(f, [*known, *items])]
        items += [f for f in excluded_in(whole, artifact.name) if not _given(f, [*known, *items])]
        items += _complaint(text, artifact.name, [*known, *items])
    if found.unread is not None:
        silent = not any(isinstance(i, (Fact, Series, Table)) for i in (*known, *items))
        items.append(replace(found.unread, without_fact=silent))
    return items


def _is_of_a_format(item: Item) -> bool:
    """A table that tells what a file is; how a run ended can be read off any text."""
    return isinstance(item, Table) and item.kind != "run.outcomes"


def _is_table(artifact: Artifact) -> bool:
    """By its beginning: a header and rows, or a JSON object a line."""
    start = artifact.head[:DOCUMENT_SAMPLE].decode("utf-8", "replace").rpartition("\n")[0]
    lines = [line for line in start.splitlines() if line.strip()]
    objects = bool(lines) and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines)
    return objects or delimited.sign_of(start) is not None


def is_written(artifact: Artifact) -> bool:
    """A page that a person wrote: no stamps before its lines, no stack traces, no lines that repeat but for digits."""
    start = artifact.head[:4096]
    if artifact.size_bytes > LONGEST_PAGE or b"\x00" in start or not start.strip():
        return False
    text = artifact.text(LONGEST_PAGE)
    lines = [x for x in text.splitlines() if x.strip()]
    if isinstance(tree_of(artifact.name, text), dict):
        return True  # settings and results, as people keep them
    stamped = sum(_STAMPED.search(x[:80]) is not None and _HEADER.match(x) is None for x in lines)
    quoting = (
        SOME if any(map(_RULER.match, lines)) else STAMPED_SHARE
    )  # who draws a table quotes lines of a log beside it
    if len(lines) > MOST_LINES or stamped > quoting * len(lines):
        return False
    alike = 1.0 - len({x.translate(_DIGITS) for x in lines}) / max(len(lines), 1)
    records = sum(len(_PAIR.findall(x)) >= LEAST_PAIRS for x in lines)
    if alike >= REPEATING and records >= max(LEAST_ALIKE, REPEATING * len(lines)):
        return False
    stepping = sum(_STEPPING.search(x) is not None for x in lines)
    return not (alike >= REPEATING and len(lines) >= FEW_LINES) and not (alike >= SOME and stepping > SOME * len(lines))


def is_prose(artifact: Artifact) -> bool:
    """A page of sentences: what a person wrote, but for settings and results in a notation of their own."""
    if not is_written(artifact) or delimited.sign_of(artifact.text(LONGEST_PAGE)) is not None:
        return False  # a cell "ok" is a value and denies nothing of its row
    return not isinstance(tree_of(artifact.name, artifact.text(LONGEST_PAGE)), dict | list)


def is_record(artifact: Artifact) -> bool:
    """Keys or titles with their numbers, as programs leave them: no sentence of anybody's."""
    text = artifact.text(LONGEST_PAGE)
    drawn = all(_BARRED.match(line) for line in text.splitlines() if line.strip())
    return drawn or _is_table(artifact) or isinstance(tree_of(artifact.name, text), dict | list)


def is_composed(artifact: Artifact) -> bool:
    """Whether somebody put it together: blocks between fences, a session of several commands, lines left out."""
    start = artifact.head[:DOCUMENT_SAMPLE].decode("utf-8", "replace")
    return (
        len(_FENCE.findall(start)) > 1 or len(set(_COMMAND.findall(start))) > 1 or _LEFT_OUT.search(start) is not None
    )


_BARRED = re.compile(r"\s{0,9}[|+│├┌└╞]")  # a line of a drawn table
_LEFT_OUT = re.compile(r"(?m)^[ \t]{0,20}[\[(<]?(?:\.\.\.|\u2026)[\])>]?[ \t]{0,20}$")
_FENCE = re.compile(r"(?m)^ {0,3}```")
_COMMAND = re.compile(r"(?m)^(?:\([\w.-]{1,40}\) )?(?:[\w.-]{1,40}@[\w.-]{1,60}[:~ ][^\n$#]{0,80})?[$] (\S[^\n]{0,80})")


def is_document(artifact: Artifact) -> bool:
    """A text that is too long for a page, and was written all the same: a changelog, a manual, a source file.

    Judged by its beginning: no stamps, and hardly a line like another but for digits. A message in it is one only where it
    stands as programs print it.
    """
    start = artifact.head[:DOCUMENT_SAMPLE]
    if b"\x00" in start[:4096]:
        return False
    lines = [x for x in start.decode("utf-8", "replace").splitlines() if x.strip()]
    if len(lines) < FEW_LINES:
        return False
    if sum(_STAMPED.search(x[:STAMP_ENDS]) is not None for x in lines) > DOCUMENT_STAMPED * len(lines):
        return False
    return 1.0 - len({x.translate(_DIGITS) for x in lines}) / len(lines) < REPEATING


def _given(fact: Fact, known: list[Item]) -> bool:
    """Somebody who knows the format said it already, under this name or as another size: one number is not two things."""
    before = fact.scope.run == "before"
    return any(
        isinstance(item, (Fact, Series))
        and (
            (
                item.quantity.name == fact.quantity.name
                and (not isinstance(item, Fact) or (item.scope.run == "before") == before)
            )
            or (
                fact.quantity.unit is Unit.BYTE is item.quantity.unit
                and isinstance(item, Fact)
                and item.value == fact.value
            )
        )
        for item in known
    )


def _tables(artifact: Artifact, tables: list[Rows], known: list[Item]) -> Iterator[Item]:
    """Tables inside documents, through the readers of tables."""
    if any(isinstance(item, Series) or _is_of_a_format(item) for item in known):
        return  # the file itself was a table, or its log was read
    for rows in tables:
        from stallwise.readers.text.series import table_series
        from stallwise.readers.text.served_rows import served_rows
        from stallwise.readers.text.steps import understood_steps

        if len(rows) < 2:
            continue
        if served := served_rows(rows, artifact.name):
            yield from (i for i in served if not (isinstance(i, Fact) and _given(i, known)))
            continue
        found: list[Item] = []
        for item in _through_readers(artifact, recolumned(rows, dict(_titles(rows)))):
            found += understood_steps(item, artifact.name) if isinstance(item, Printed | Rows | Reading) else [item]
        if not any(isinstance(item, (Series, Table)) for item in found):
            found += table_series(rows, artifact.name)
        for item in found:
            if isinstance(item, (Series, Table)) or (isinstance(item, Fact) and not _given(item, known)):
                yield item


def _through_readers(artifact: Artifact, rows: Rows) -> Iterator[Item | Printed | Shape]:
    """By those that know its beginning; a table is written out only for one that reads lines."""
    for reader in readers_for(as_csv(artifact, rows, SAMPLE_ROWS)):
        if reader.FORMAT in TABLE_READERS:
            read_rows = getattr(reader, "read_rows", None)
            yield from read_rows(rows, artifact.name) if read_rows else reader.read(as_csv(artifact, rows))


def _titles(rows: Rows) -> Iterator[tuple[int, tuple[str, list[float | str | None]]]]:
    """Columns in SI, with their unit in the title, where they have a name."""
    by_label = {c.label: c for c in named_columns(rows)}
    from stallwise.readers.text.words import words_of

    for at, title in enumerate(rows.columns):
        column = by_label.get(" ".join(words_of(title))) or by_label.get(title)
        if axis_of(title) in ("rank", "gpu") and [c for c in rows.cells[at] if c is not None][:3] == [0.0, 1.0, 2.0]:
            continue  # which one it is, not how many there are
        if column is not None and column.named.quantity is stated.GPUS:
            yield at, ("gpus", column.values)
        elif column is not None and column.named.quantity is fabric.NODES:
            yield at, ("nodes", column.values)
        elif column is not None and rows.numbers(at) is None and any(isinstance(c, str) for c in rows.cells[at]):
            yield (
                at,
                (f"{column.label.replace(' ', '_')}{_SUFFIX.get(column.named.quantity.unit.value, '')}", column.values),
            )


_SUFFIX = {"s": "_s", "share": "", "B": "_bytes"}


def _is_sentence(text: str) -> bool:
    """Words, one after the other; not a row of a report, nor what a program has written down as data."""
    text = _BLANKED.sub("", _CHAT_CLOCK.sub("", text))
    if text.lstrip()[:1] in ("{", "["):
        return False
    return len(_WORD.findall(text)) >= LEAST_WORDS and "  " not in text and text.count(",") < len(text) / 8


def _complaint(text: str, file: str, known: list[Item]) -> Iterator[Item]:
    """The narrowest symptom that one of the sentences complains of; else what somebody tells of a run without naming one.

    A run is told of in numbers, one of them understood at least: sentences without any are a manual's or a licence's.
    """
    if any(isinstance(item, Fact) and item.quantity is stated.SYMPTOM for item in known):
        return
    sentences = [x for x in prose.sentences(text) if _is_sentence(x)]
    settled = is_settled(text) or is_manual(text)
    complaining = [
        (order_of(s), at, x)
        for at, x in enumerate(sentences)
        if not settled and (s := symptom_in(unresolved(undenied(x))))
    ]
    if complaining:
        sentence = _BLANKED.sub("", min(complaining)[2])
        yield Fact(stated.SYMPTOM, sentence[:200], Source(file, sentence[:40], True))
    elif not settled and any(isinstance(i, Fact) and not isinstance(i.value, str) for i in known):
        sentence, asked = first_statement(sentences, text)
        if sentence:
            quantity = stated.ASKED if asked else stated.DESCRIBED
            yield Fact(quantity, sentence[:200], Source(file, sentence[:40], True))
