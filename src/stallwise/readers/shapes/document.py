"""A document: fenced blocks, tables, pairs and sentences, in whatever mix people write and programs print."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stallwise.evidence.reading import Reading, Rows, Shape
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes import aligned, delimited, keyed, prose, tree
from stallwise.readers.shapes.lines import Peeler

MAX_TEXT = 1 << 18  # people write a page, not a log; logs are read by their lines
LEAST_LINES = 3  # of a table: a header, a rule or a row, and a row
_NO_DIGITS = str.maketrans("", "", "0123456789. ")
FULL_LINE = 60  # characters from which a line of a letter may have been wrapped
_P = patterns("document")


def recognises(name: str, text: str) -> bool:
    """Any text of a page or so."""
    return bool(text.strip()) and len(text) <= MAX_TEXT and "\x00" not in text[:4096]


def read(text: str) -> Iterator[Shape]:
    """Blocks in their order."""
    section = ""
    for start, block in _blocks(text):
        titles = {at: match[1] for at, line in enumerate(block, start) if (match := _P["section"].match(line))}
        if not titles and not section:
            yield from _block(block, start)
            continue
        pieces = sorted({start, *titles, *(at + 1 for at in titles)})
        for first, last in zip(pieces, [*pieces[1:], start + len(block)], strict=True):
            section = titles.get(first, section)
            if first not in titles and first < last:
                yield from _under(section, _block(block[first - start : last - start], first))


def _under(section: str, shapes: Iterator[Shape]) -> Iterator[Shape]:
    """Pairs below the title of a section belong to it, even where the file as a whole is damaged."""
    for shape in shapes:
        keyed_here = isinstance(shape, Reading) and not shape.in_prose
        yield replace(shape, path=(section, *shape.path)) if section and keyed_here else shape


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank lines and fences; a fenced block comes whole."""
    block: list[str] = []
    start, fence = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        opened = _P["fence"].match(line)
        if opened and (not fence or opened[1] == fence):
            if block:
                yield start, block
            block, start, fence = [], number + 1, "" if fence else opened[1]
        elif not line.strip() and not fence:
            if block:
                yield start, block
            block, start = [], number + 1
        else:
            if not block:
                start = number
            block.append(line)
    if block:
        yield start, block


def _block(lines: list[str], start: int) -> Iterator[Shape]:
    text = "\n".join(lines)
    numbered = list(enumerate(lines, start))
    if lines[0].lstrip()[:1] in ("{", "[") and tree.tree_of("", text) is not None:
        yield from tree.read(text)
        return
    rows = delimited.table_in(text) if "," in lines[0] or "\t" in lines[0] else None
    if rows is not None and (len(rows) >= 2 or "\t" in lines[0]):
        yield rows
        return
    tables = {first: (rows, end) for rows, first, end in drawn_tables(lines, start)}
    at = 0
    while at < len(numbered):
        if at in tables:
            rows, at = tables[at]
            yield rows
            continue
        number, line = numbered[at]
        while at + 1 < len(numbered) and _wrapped(numbered[at][1], numbered[at + 1][1]):
            at += 1
            line = f"{line.rstrip()} {numbered[at][1].lstrip()}"
        yield from _line(number, line)
        at += 1


def drawn_tables(lines: list[str], start: int = 1) -> Iterator[tuple[Rows, int, int]]:
    """Tables between bars or kept apart by spaces, with the lines they stand in."""
    numbered = list(enumerate(lines, start))
    tables = (
        (_ends(lines, aligned.between_bars, aligned.barred_begins), aligned.barred),
        (_ends(lines, aligned.has_gaps, aligned.spaced_begins), aligned.spaced),
    )
    at = 0
    while at < len(lines):
        cuts = ((cut(numbered[at : ends[at]]), ends[at]) for ends, cut in tables if ends[at])
        rows, end = next(((rows, end) for rows, end in cuts if rows is not None), (None, at + 1))
        if rows is not None:
            yield rows, at, end
        at = end


def _ends(lines: list[str], belongs: Callable[[str], bool], begins: Callable[[list[str]], list[bool]]) -> list[int]:
    """Behind which line the table ends that begins at each; 0 where none does."""
    ends, at = [0] * len(lines), 0
    while at < len(lines):
        end = at
        while end < len(lines) and belongs(lines[end]):
            end += 1
        for place, one in enumerate(begins(lines[at:end]), at):
            ends[place] = end if one and end - place >= LEAST_LINES else 0
        at = max(end, at + 1)
    return ends


def _wrapped(line: str, following: str) -> bool:
    """A sentence that goes on in the next line of a paragraph: a full line without an end, and no new beginning."""
    return (
        len(line.rstrip()) >= FULL_LINE
        and line.count(" ") >= FULL_LINE / 10
        and line.rstrip()[-1:] not in ".!?:;|"
        and _P["goes_on"].match(following) is not None
        and not keyed.all_paired(following, list(keyed.pairs_in(following, "")))
        and not Peeler({}).peel(line)[1]
        and line.translate(_NO_DIGITS) != following.translate(_NO_DIGITS)  # a program's lines, one below the other
    )


def _line(number: int, line: str) -> Iterator[Shape]:
    place = f"line {number}"
    if _P["operator"].match(line):
        return
    message, row = Peeler({}).peel(line)
    if "time" in row or "level" in row:  # a place alone may be a key: "node-3: 2.1 s"
        line = message
    whole = keyed.triple_in(line, place) or keyed.list_in(line, number)
    if whole is not None:
        yield whole
        return
    if parts := keyed.parts_in(line, place):
        yield from parts
        return
    pairs = list(keyed.pairs_in(line, place))
    pair = keyed.word_pair(line, place)
    if "time" in row or "rank" in row or keyed.all_paired(line, pairs):
        one = len(pairs) == 1 and pair is not None and pair.path == pairs[0].path
        yield from [pair] if one and pair is not None else pairs  # with its words behind the number
        return
    if pair is not None:
        yield pair
    for sentence in prose.sentences(line):
        yield from prose.numbers_in(sentence, f"{place}: {sentence[:40]}" if sentence != line.strip() else place)
