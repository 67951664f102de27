"""Words typed where a path may stand: how they are kept apart from paths, and the label under which they are cited."""

from __future__ import annotations

LONGEST_LABEL = 72  # characters: a longer text is cited by its beginning and its end
GAP = " … "
OPEN, CLOSE = "“", "”"


class Words(str):
    """A text that is never looked up as a path, whatever lies on the disk."""

    __slots__ = ()


def label_of(text: str) -> str:
    """The user's own words in quotes, on one line, shortened in the middle."""
    plain = " ".join(text.split())
    if len(plain) > LONGEST_LABEL:
        room = LONGEST_LABEL - len(GAP)
        head, tail = plain[: room - room // 3], plain[-(room // 3) :]
        # Break at blanks where there are any: scripts without blanks break anywhere.
        head = head.rsplit(" ", 1)[0] if " " in head else head
        tail = tail.split(" ", 1)[1] if " " in tail else tail
        plain = f"{head}{GAP}{tail}"
    return f"{OPEN}{plain}{CLOSE}"


def is_label(name: str) -> bool:
    """Whether a source is cited by the user's words: a label has no folders to leave out."""
    return name.startswith(OPEN) and name.endswith(CLOSE)
