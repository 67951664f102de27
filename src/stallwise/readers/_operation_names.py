"""What the name of an operation says of it, and which rank a process or thread is named after; all of it data (operations.toml)."""

from __future__ import annotations

import re
from functools import cache

from stallwise.evidence.operations import Work
from stallwise.readers._patterns import document, patterns

_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
TABLE = "operations"


@cache
def work_of(name: str) -> Work:
    """The kind of work, by its words in any case and with any separators."""
    words = " ".join(_WORDS.split(name)).lower().strip()
    return next((Work[e["is"]] for e, pattern in _works() if pattern.search(words)), Work.OTHER)


@cache
def _works() -> list[tuple[dict[str, str], re.Pattern[str]]]:
    return [(entry, re.compile(entry["match"])) for entry in document(TABLE)["work"]]


@cache
def _places() -> dict[str, re.Pattern[str]]:
    return {role: re.compile(match, re.IGNORECASE) for role, match in document(TABLE)["place"].items()}


def places_in(text: str) -> dict[str, int]:
    """Ranks by role: "PP rank 2, TP rank 0, compute" is stage 2 and tensor 0."""
    found: dict[str, int] = {}
    for role, pattern in _places().items():
        rest = text
        for match in pattern.finditer(rest):
            # "PP rank 2" is no global rank 2.
            if role != "rank" or not re.search(
                r"(?:dp|pp|tp|parallel|pipeline|tensor|data)[ _-]*$", text[: match.start()], re.I
            ):
                found.setdefault(role, int(match[1]))
    return found


def host_in(text: str) -> str | None:
    """The host that a process or thread is named after: "node 3, PP rank 2"."""
    found = re.search(document(TABLE)["host"]["match"], text, re.IGNORECASE)
    return found[1] if found else None


def names_a_host(title: str) -> bool:
    """Whether a column holds hosts."""
    return title in document(TABLE)["host"]["columns"]


def rank_in_file(name: str) -> int | None:
    """The rank that a file is named after."""
    found = patterns("trace")["rank_in_name"].search(re.split(r"[/\\!]", name)[-1])
    return int(found[1]) if found else None


@cache
def roles() -> dict[str, str]:
    """Those names with the role of each."""
    return {name: role for role, names in document(TABLE)["args"].items() for name in names}
