"""What a damaged input is thrown at: the whole tool, one reader, the shapes, the book of messages and the lexicon.

A target takes the input and gives its outcome, small enough to compare. It lets through what no user should see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from pathlib import Path

from stallwise.doctor.messages import messages_in
from stallwise.doctor.understanding import is_written, understood
from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.readers import all_readers
from stallwise.readers.records.plain_rows import plainly
from stallwise.readers.shapes import all_shapes
from stallwise.readers.shapes.unwrap import plain
from stallwise.readers.text.message_patterns import message_patterns
from tests.fuzz.tally import Told, place_of

Target = Callable[[Path, Told], Hashable]
_DIGITS = re.compile(r"\d+")


def skeleton(text: str) -> str:
    """A sentence without its numbers."""
    return _DIGITS.sub("", text)[:80]


def each_reader(path: Path, told: Told) -> Hashable:
    """Every reader is asked, and those that know the input read it. What one raises is contained in the tool, yet a defect."""
    artifact = plain(Artifact(path.name, path))
    head, outcome = artifact.head, []
    for reader in all_readers():
        name = reader.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        if not reader.recognises(path.name, head):
            continue
        told.tally.readers[name] += 1
        try:
            outcome.append((name, tuple(sorted({type(item).__name__ for item in reader.read(artifact)}))))
        except StallwiseError as error:
            outcome.append((name, (skeleton(error.problem),)))
        except Exception as error:
            told.tally.contained += 1
            told.seen(f"contained: {place_of(error)}")
    return tuple(outcome)


def each_shape(path: Path, told: Told) -> Hashable:
    """Every shape that knows the text cuts it; whatever is cut is plain text."""
    artifact = plain(Artifact(path.name, path))
    text, outcome = artifact.text(), []
    for shape in all_shapes():
        if shape.recognises(path.name, text):
            found = list(shape.read(text))
            outcome.append((shape.__name__, len(found).bit_length()))  # type: ignore[attr-defined]
    return (*outcome, plainly(artifact) is not None)


def messages_and_words(path: Path, told: Told) -> Hashable:
    """The book of messages and the lexicon, whoever else would read the file."""
    artifact = plain(Artifact(path.name, path))
    written = is_written(artifact)
    said = list(messages_in(artifact, written=written))
    events = {str(getattr(item, "event", "")) for item in said}
    facts = {str(getattr(item, "quantity", "")) for item in understood(artifact, said, [], written=written)}
    return tuple(sorted(events)[:8]), tuple(sorted(facts)[:8])


def sample_messages() -> list[bytes]:
    """Logs made of the lines that the book of messages was judged by: the seeds of its own fuzzing."""
    lines = [
        sample.encode() for signature in message_patterns() for sample in (*signature.samples, *signature.not_samples)
    ]
    return [b"\n".join(lines[at : at + 12]) + b"\n" for at in range(0, len(lines), 12)]
