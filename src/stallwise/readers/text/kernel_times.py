"""Two times in a text on one's own kernel: what it takes, and what the library or eager path takes for the same.

"1.34 ms vs 0.88 eager", "ours needs 1.91 ms, whereas plain PyTorch takes 1.22 ms": the words beside a time say whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.evidence.catalog import autotune, stated
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.reading import Reading
from stallwise.readers.text.around import clause_after
from stallwise.readers.text.value import number_in
from stallwise.readers.text.words import listed, words_of
from stallwise.units import Unit, readings_of

LONGEST_S = 1.0  # of one kernel
BEHIND, BEFORE = 3, 8  # words beside a number that say whose it is


def sides_in(readings: Sequence[Reading], text: str, file: str) -> list[Fact]:
    """Both times and their ratio; the library's alone where no other time is named."""
    if not listed("turns.toml", "kernels") & set(words_of(text)):
        return []
    library: Reading | None = None
    own: Reading | None = None
    for reading, seconds in _times(readings):
        if not 0 < seconds <= LONGEST_S:
            continue
        if _of_library(reading):
            library = library or reading
        else:
            own = own or reading
    times = {id(r): s for r, s in _times(readings)}
    if library is None:
        return []
    if own is None:
        return [Fact(autotune.LIBRARY, times[id(library)], Source(file, library.place, stated=True))]
    mine, theirs, source = times[id(own)], times[id(library)], Source(file, own.place, stated=True)
    return [
        Fact(stated.CUSTOM_SPEEDUP, theirs / mine, source),
        Fact(autotune.BEST, mine, source),
        Fact(autotune.LIBRARY, theirs, source),
    ]


def _times(readings: Sequence[Reading]) -> list[tuple[Reading, float]]:
    """Every time, and a bare number that one is compared with in its unit ("1.34 ms vs 0.88 eager")."""
    found: list[tuple[Reading, float]] = []
    last: float | None = None
    for reading in readings:
        value = number_in(reading.value) if isinstance(reading.value, str) else (reading.value, reading.unit)
        if value is None or isinstance(value[0], bool):
            last = None
            continue
        factor = next((f for u, f in readings_of(value[1]) if u is Unit.SECOND), None)
        compared = reading.path[-1].lower().split()[-1:] in (["vs"], ["vs."], ["against"], ["versus"])
        if factor is None and not value[1] and last is not None and compared:
            factor = last
        if factor is not None:
            found.append((reading, float(value[0]) * factor))
        last = factor
    return found


def _of_library(reading: Reading) -> bool:
    names = listed("turns.toml", "libraries")
    behind = words_of(clause_after(reading.after))[:BEHIND]
    before = words_of(reading.path[-1])[-BEFORE:]
    return any(word.startswith(name) for word in (*behind, *before) for name in names)
