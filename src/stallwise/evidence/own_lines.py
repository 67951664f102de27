"""Line numbers as an editor counts them. Readers also part a line where a progress bar returned to its start."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.bag import Bag
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.unread import Unread
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
LINE = "line"  # a table's column
_INNER_END = re.compile(
    "\r(?!\n)|[\v\f\x1c-\x1e\x85\u2028\u2029]"
)  # where `str.splitlines` parts, and an editor does not
_PLACE = re.compile(r"(?<=^line )\d+|(?<=^lines )\d+(?:-\d+)?")


def own_lines(artifact: Artifact, items: Iterable[T]) -> list[T]:
    """The items, each at its line of the file. Nothing changes where the two counts agree."""
    found = list(items)
    if not any(_placed(item) for item in found):  # a trace names no line, and its text is long
        return found
    numbers = _numbers(artifact.text())
    return found if numbers is None else [_moved(item, artifact.name, numbers) for item in found]


def _placed(item: object) -> bool:
    source = getattr(item, "source", None)
    return isinstance(item, (Bag, Unread)) or (isinstance(source, Source) and source.where.startswith(LINE))


def _numbers(text: str) -> NDArray[np.int64] | None:
    """The file's line of each of the readers' lines, from 1; None where they are the same."""
    if not _INNER_END.search(text):
        return None
    pieces = text.splitlines(keepends=True)
    ends = np.fromiter((piece.endswith("\n") for piece in pieces), bool, len(pieces))
    return np.concatenate([[0, 1], 1 + np.cumsum(ends[:-1])])


def _moved(item: Any, file: str, numbers: NDArray[np.int64]) -> Any:
    if isinstance(item, Bag):
        moved_passages = tuple(replace(p, source=_source(p.source, file, numbers)) for p in item.passages)
        return replace(item, passages=moved_passages)
    if isinstance(item, Unread):
        lines = tuple(replace(e, source=_source(e.source, file, numbers)) for e in item.error_lines)
        return replace(item, error_lines=lines)
    source = getattr(item, "source", None)
    if not isinstance(source, Source) or source.file != file:
        return item
    item = replace(item, source=_source(source, file, numbers))
    if isinstance(item, Table) and LINE in item.columns:
        at = np.clip(np.nan_to_num(item.columns[LINE]).astype(np.int64), 0, len(numbers) - 1)
        item = replace(item, columns={**item.columns, LINE: numbers[at].astype(item.columns[LINE].dtype)})
    return item


def _source(source: Source, file: str, numbers: NDArray[np.int64]) -> Source:
    if source.file != file:
        return source
    return replace(source, where=_PLACE.sub(lambda m: _named(m, numbers), source.where, count=1))


def _named(match: re.Match[str], numbers: NDArray[np.int64]) -> str:
    """ "12", or "12-40"; of lines that an editor shows as one, both numbers are the same."""
    first, _, last = match[0].partition("-")
    first_and_last = [str(numbers[min(int(n), len(numbers) - 1)]) for n in (first, last) if n]
    return "-".join(first_and_last)
