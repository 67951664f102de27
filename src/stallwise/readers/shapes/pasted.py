"""Several files or outputs that somebody put into one, each under its name, the prompt of a shell or between empty lines, as parts of
their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, pairwise

from stallwise.evidence.artifact import Artifact
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.unwrap import is_text

MAX_BYTES = 1 << 16  # people paste pages, not logs
MOST_PARTS = 24
MOST_JOINED = 64 << 20  # bytes of several files in one: their letters are held
FENCE = "```"
LONGEST_HEAD = 1 << 10
Owners = Callable[[Artifact], frozenset[str]]  # the formats that take a text as theirs
_P = patterns("pasted")


def files_in(artifact: Artifact) -> list[Artifact]:
    """The files of a text that begins with the name of one, as `tail` and `cat` print them and as people title blocks,
    and what stands under other prompts; empty for any other text."""
    start = artifact.start(LONGEST_HEAD).decode("utf-8", "replace").lstrip().partition("\n")[0]
    if not _P["file"].match(start.strip()) or artifact.size_bytes > MOST_JOINED:
        return []
    files: dict[str, list[str]] = {}
    name, prompted = artifact.name, False
    lines = artifact.text(MOST_JOINED).splitlines()
    for line, following in pairwise([*lines, ""]):
        head = _P["file"].match(line)
        if head and (head["titled"] is None or not following.strip() or following.startswith(FENCE)):
            name, prompted = f"{artifact.name}!{head['tailed'] or head['shown'] or head['titled']}", bool(head["shown"])
            continue
        if prompted and _P["prompt"].match(line):  # of another command
            name = artifact.name
        files.setdefault(name, []).append(line)
    if not {*files} - {artifact.name}:
        return []
    named_texts = {name: "\n".join(lines).strip("\n") for name, lines in files.items() if any(x.strip() for x in lines)}
    return [replace(artifact.saying(_unfenced(text) + "\n"), name=name) for name, text in named_texts.items()]


def _unfenced(text: str) -> str:
    """What stands between fences, where they stand around all."""
    first, _, inside = text.partition("\n")
    inside, _, last = inside.rpartition("\n")
    return inside if first.startswith(FENCE) and last.strip() == FENCE and FENCE not in inside else text


def parts_of(artifact: Artifact, owners: Owners, *, unasked: bool = True) -> list[Artifact]:
    """The outputs of different formats, and what nobody owns; lines keep their numbers. Empty where all is of one format.

    Empty lines part outputs only where `unasked`: every log has some, and a prompt is rare.
    """
    tree = artifact.head[:64].lstrip()[:1] in (b"{", b"[", b"<")
    if tree or artifact.size_bytes > MAX_BYTES or not is_text(artifact.head):
        return []
    lines = artifact.lines()
    prompts = [at for at, line in enumerate(lines) if _P["prompt"].match(line)]
    blocks = [at for at in range(1, len(lines)) if unasked and lines[at].strip() and not lines[at - 1].strip()]
    return next((found for starts in (prompts, blocks) if (found := _parted(artifact, starts, owners))), [])


def _parted(artifact: Artifact, starts: list[int], owners: Owners) -> list[Artifact]:
    if not 0 < len(starts) <= MOST_PARTS:
        return []
    owned: list[tuple[frozenset[str], set[int]]] = []
    rest: set[int] = set()
    for first, end in pairwise([0, *starts, len(artifact.lines())]):
        here = set(range(first, end))
        who = owners(only_lines(artifact, here)) if first < end else frozenset()
        if not who:
            rest |= here
        elif owned and owned[-1][0] & who:  # more of the same
            owned[-1] = owned[-1][0] | who, owned[-1][1] | here
        else:
            owned.append((who, here))
    if not any(a.isdisjoint(b) for (a, _), (b, _) in combinations(owned, 2)):
        return []
    return [only_lines(artifact, here) for here in (*(lines for _, lines in owned), rest) if here]


def only_lines(artifact: Artifact, kept: Iterable[int]) -> Artifact:
    """These lines in their places, all others empty."""
    lines = artifact.lines()
    text = [""] * len(lines)
    for at in kept:
        text[at] = lines[at]
    return artifact.saying("\n".join(text).rstrip("\n") + "\n")
