"""What the program says of one small file, as a person reads it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stallwise.doctor.examine import diagnose
from stallwise.render.json import to_dict
from stallwise.render.text import to_text


class Said(NamedTuple):
    """The state, the first cause, the text and the document."""

    state: str
    first: str
    text: str
    document: dict[str, object]


def stated_of(folder: Path, name: str, content: str | bytes) -> Said:
    """Writes the file and asks."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = diagnose(str(path), cache=False)
    text = " ".join(to_text(found, width=130).split())
    return Said(found.state.value, found.ranked[0] if found.ranked else "", text, to_dict(found))
