"""Events of a text: which signatures fit which lines, and which loud lines nobody understands.

One pass finds the anchors of all signatures; only the lines that hold one are looked at, each with its own expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from stallwise.evidence.event import Event, Role
from stallwise.evidence.fact import Scope
from stallwise.evidence.line import Line
from stallwise.evidence.skeletons import LONGEST, Skeletons, asks_for_digits, skeletons_of
from stallwise.readers.text.anchors import Anchors
from stallwise.readers.text.assertion import Status, spans_of
from stallwise.readers.text.codes import code_of
from stallwise.readers.text.expressions import first_line
from stallwise.readers.text.message_patterns import MessagePattern, message_patterns
from stallwise.readers.text.words import word_table as table_of

MARK = -1  # stands for the marks of loud lines, among the numbers of signatures
KEPT = 100  # events of one signature from the start of a file, and as many from its end
KEPT_EACH = 3  # the same of each card, say, and code
SEVERAL = (0, 1, -1)  # lines of a skeleton that are asked for all of them
LAST_LINES = 40  # a fatal error and its traceback are the last thing a rank prints
MOST_PLACES = 1e9  # ranks or cards: a number beyond it is damage
SHOWN = 500  # characters of a message that are kept
_WORD = re.compile(r"[A-Za-z]{2}")
_QUIET = ("info", "debug")
_DIGIT = re.compile(r"\d")
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]")
_Kind = tuple[str, ...]  # a signature, and the words that keep its occurrences apart
_Fit = tuple[MessagePattern, re.Match[str], Line]
Kept = TypeVar("Kept")
LineMaker = Callable[[int], Line]  # index of a line -> the line with its row


@dataclass(slots=True)
class Matches:
    """What a text said."""

    events: list[Event]
    unknown: list[tuple[Line, int]]  # loud lines without a meaning, and how often each came


@dataclass(frozen=True, slots=True)
class Matcher:
    """A book made ready."""

    patterns: tuple[MessagePattern, ...]
    anchors: Anchors[int]  # places of signatures, or the mark of loud lines

    def match(self, source: Sequence[str] | Skeletons, line_of: LineMaker, *, pasted: bool = False) -> Matches:
        """Every event of these lines, in their order; with `pasted` only where a line is a message and not a sentence about one."""
        text = source if isinstance(source, Skeletons) else skeletons_of(source)
        candidates, passed, more = self._candidates(text, line_of)
        fitting: dict[_Kind, list[_Fit]] = {}
        louds: dict[int, bool] = {}  # of each skeleton
        unmeant: dict[
            int, tuple[Line, int]
        ] = {}  # the first loud line of each that nothing fits, and how many there are
        for number in sorted(candidates):
            whole, own = text.lines[number][:LONGEST], text.of[number]
            owners = [self.patterns[owner] for owner in sorted(candidates[number] - {MARK})]
            if MARK not in candidates[number] and not any(s.starts_line or s.fits(whole) for s in owners):
                continue  # most lines with an anchor end here
            if not owners and own in louds and own not in unmeant:
                continue
            line = unmeant[own][0] if not owners and own in unmeant else line_of(number)
            found = [(s, m, line) for s in owners if (m := _fits(s, line.text, whole)) is not None]
            found = [fit for fit in found if not _is_denied(fit)]
            if own not in louds:
                louds[own] = _is_loud(line)
            if pasted and not louds[own] and len(line.text) == len(whole):
                found = [fit for fit in found if fit[1].start() == 0]
            if louds[own] and not found:
                first, times = unmeant.get(own, (line, more.get(own, 0)))
                unmeant[own] = first, times + 1
            for fit in {fit[0].event: fit for fit in reversed(found)}.values():  # one of each kind
                fitting.setdefault(fit[0].kind_of(fit[1]), []).append(fit)
        placed = [(line.number, event) for line, event in _events(fitting, passed, len(text.lines))]
        placed.sort(key=lambda one: one[0])
        return Matches([event for _, event in placed], list(unmeant.values()))

    def _candidates(
        self, text: Skeletons, line_of: LineMaker
    ) -> tuple[dict[int, set[int]], dict[_Kind, int], dict[int, int]]:
        """Lines that hold an anchor, and whose; and how many lines of each kind and of each loud skeleton were passed over.

        Of a message that comes again and again the first and the last lines are enough.
        """
        kept: dict[int, set[int]] = {}
        passed: dict[_Kind, int] = {}
        more: dict[int, int] = {}
        separate: dict[int, list[int]] = {}  # lines of signatures whose occurrences are told apart
        for skeleton, owners in self.anchors.standing(text).items():
            sample, members = first_line(text, skeleton), text.members(skeleton)
            ends = _ends(members, KEPT)
            message, certain = line_of(members[0]).text, False
            for owner in sorted(owners - {MARK}):
                entry = self.patterns[owner]
                if not _may(entry, message, sample):
                    continue
                chosen = members
                if entry.separate_by:
                    separate.setdefault(owner, []).extend(members)
                    chosen, owners = [], owners - {MARK}  # all of these lines are explained
                elif not entry.every and _all_alike(entry, sample):
                    chosen, certain = ends, True
                    passed[(entry.id,)] = passed.get((entry.id,), 0) + len(members) - len(ends)
                elif len(members) > len(ends) and not entry.every and not entry.starts_line:
                    chosen = entry.holding(text, skeleton)
                for line in chosen:
                    kept.setdefault(line, set()).add(owner)
            if MARK in owners and (
                len(members) <= len(SEVERAL) or any(_is_loud(line_of(members[at])) for at in SEVERAL)
            ):
                for line in ends:
                    kept.setdefault(line, set()).add(MARK)
                more[skeleton] = 0 if certain else len(members) - len(ends)
        for owner, members in separate.items():
            for kind, own in _kinds(text, sorted(members), self.patterns[owner]).items():
                ends = _ends(own, KEPT_EACH)
                passed[kind] = len(own) - len(ends)
                for line in ends:
                    kept.setdefault(line, set()).add(owner)
        return kept, passed, more


def _is_denied(fit: _Fit) -> bool:
    """Whether the line names the message only to say that it is not there: "no Xid in dmesg".

    Only the words around the message count: many a message denies or advises something itself ("not enough memory", "Possibly
    too large swap space"), and a program's advice behind its message does not take the message back.
    """
    text, (start, end) = fit[1].string, fit[1].span()
    if not spans_of(text) or end - start < len(SOME_FAULT):
        return False
    around = f"{text[:start]}{SOME_FAULT:_<{end - start}}{text[end:]}"
    return any(
        s.start < end and start < s.end and (s.status is not Status.BOILERPLATE or around.startswith(OPTIONS, s.start))
        for s in spans_of(around)
    )


SOME_FAULT = "fault"  # stands for the message: a word that can be denied
OPTIONS = ("--", "http")  # a flag or an address that spells the message


def _ends(items: list[Kept], most: int) -> list[Kept]:
    return items if len(items) <= 2 * most else [*items[:most], *items[-most:]]


def _events(fitting: dict[_Kind, list[_Fit]], passed: dict[_Kind, int], lines: int) -> Iterator[tuple[Line, Event]]:
    """The first and last ones of each kind; the first carries how often the file has it."""
    for kind, fits in fitting.items():
        times = len(fits) + passed.get(kind, 0)
        for entry, match, line in fits if fits[0][0].every else _ends(fits, KEPT):
            yield line, replace(_event(entry, match, line, lines), times=times)
            times = 1


def _may(entry: MessagePattern, message: str, whole: str) -> bool:
    """Whether it may fit a line of this skeleton."""
    if entry.may(message, whole) is None:
        return False
    return not entry.unless or asks_for_digits(entry.unless) or not entry.refuses(message)


def _all_alike(entry: MessagePattern, sample: str) -> bool:
    """Whether all lines of a skeleton are of this signature or none: it wants no certain digits, or stands where there are none."""
    if not entry.wants_digits:
        return True
    if entry.starts_line or asks_for_digits(entry.unless) or _LOOKS_AROUND.search(entry.pattern):
        return False
    found = entry.fits(sample)
    return found is not None and _DIGIT.search(sample, max(found.start() - 1, 0), found.end() + 1) is None


def _kinds(text: Skeletons, members: list[int], entry: MessagePattern) -> dict[_Kind, list[int]]:
    """The lines that an expression fits, by the words that keep its occurrences apart."""
    found: dict[_Kind, list[int]] = {}
    search = entry.ready.search
    for at in members:
        match = search(text.lines[at][:LONGEST])
        if match is not None:
            found.setdefault(entry.kind_of(match), []).append(at)
    return found


def _fits(entry: MessagePattern, message: str, whole: str) -> re.Match[str] | None:
    """The message alone first: an expression may ask for its start. The place a prefix names may be part of it, too."""
    return entry.fits(message) or (entry.fits(whole) if len(whole) != len(message) else None)


@cache
def matcher() -> Matcher:
    """The whole book."""
    return matcher_of(message_patterns())


def matcher_of(patterns: tuple[MessagePattern, ...]) -> Matcher:
    """A matcher for these signatures."""
    asked = [(anchor, number) for number, entry in enumerate(patterns) for anchor in entry.anchors]
    return Matcher(patterns, Anchors([*asked, *((mark, MARK) for mark in loudness()[0])]))


@cache
def loudness() -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Marks that loud lines hold, and how the text of one starts."""
    document = table_of("loud.toml")
    return tuple(document["marks"]), re.compile("|".join(document["starts"]), re.IGNORECASE)


def _is_loud(line: Line) -> bool:
    if line.level in _QUIET or line.text[:1].isspace() or not _WORD.search(line.text[:200]):
        return False  # rulers, and what continues the line above
    return line.level in ("warning", "error") or loudness()[1].search(line.text[:200]) is not None


def _event(entry: MessagePattern, match: re.Match[str], line: Line, lines: int) -> Event:
    slots = _slots(entry, match)
    rank, gpu, node = slots.get("rank"), slots.get("gpu"), slots.get("node")
    scope = Scope(
        rank=int(rank) if isinstance(rank, float) and abs(rank) < MOST_PLACES else line.rank,
        node=node if isinstance(node, str) else line.node,
        gpu=int(gpu) if isinstance(gpu, float) and abs(gpu) < MOST_PLACES else line.gpu,
        group=line.group,
    )
    role = entry.role
    if role_slot := next((v for k, v in slots.items() if k.endswith(".role")), ""):
        role = Role(str(role_slot))
    return Event(
        entry.event, entry.id, line.text.strip()[:SHOWN], line.source, role, entry.component,
        line.level or entry.level, scope, slots, line.boot_s if line.boot_s == line.boot_s else line.time_s,
        ends_log=line.number > lines - LAST_LINES,
    )  # fmt: skip


def _slots(entry: MessagePattern, match: re.Match[str]) -> dict[str, float | str]:
    """What the groups hold, as their types say; a code also gets its name and what it stands for."""
    slots: dict[str, float | str] = {}
    for name, kind, value in entry.values_in(match):
        slots[name] = value
        if kind.startswith("code:"):
            found = (code_of(table, value) for table in kind.removeprefix("code:").split("|"))
            if (code := next((c for c in found if c is not None), None)) is not None:
                known = {"name": code.name, "means": code.means, "fault": code.fault, "role": code.role}
                slots |= {f"{name}.{k}": v for k, v in known.items() if v}
    return slots


def facts_fed(events: Sequence[Event]) -> Iterator[tuple[str, float | str, Event]]:
    """Quantities by name that these events feed."""
    by_id = _by_id()
    for event in events:
        entry = by_id.get(event.pattern_id)
        if entry is None:
            continue
        if entry.feeds:
            yield entry.feeds, event.text[:240], event
        for quantity, slot in entry.facts.items():
            if slot in event.slots:
                yield quantity, event.slots[slot], event


@cache
def _by_id() -> dict[str, MessagePattern]:
    return {s.id: s for s in message_patterns()}
