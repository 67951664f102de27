"""Facts typed on the command line into evidence, next to whatever the artifacts show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallwise.doctor.given import on_disk
from stallwise.doctor.words import asserted_in, bag_of
from stallwise.errors import BadRequest
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import STATED, Fact, Series
from stallwise.evidence.reading import Reading
from stallwise.evidence.vocabulary import resolve, stated_items, value_of
from stallwise.readers.shapes import prose
from stallwise.readers.text.mentions import mentions
from stallwise.readers.text.understand import understand

INPUT = "stated facts"
DENIALS = (stated.NOT_SEEN.name, *stated.NOT_SEEN.aliases)  # they name a cause to say that it is not there


def pairs_of(words: Sequence[str]) -> dict[str, str]:
    """`mfu=0.22` words into pairs; says what is wrong with the others."""
    pairs: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key or not value:
            raise BadRequest(f"'{word}' is not WORD=VALUE", hint="--fact mfu=0.22 --fact mfu.before=0.48")
        pairs[key.strip()] = value.strip()
    return pairs


def split_words(paths: Sequence[str], facts: Sequence[str]) -> tuple[list[str], list[str]]:
    """After one --fact, bare WORD=VALUE arguments are facts too, unless a file of that name exists or it is a sentence."""
    if not facts:
        return list(paths), []
    stated = [p for p in paths if _is_pair(p) and not on_disk(p)]
    return [p for p in paths if p not in stated], [*facts, *stated]


def _is_pair(typed: str) -> bool:
    """ "mfu=0.22" and "symptom=it hangs" are pairs; "TP=4 fails, TP=8 fits" is a sentence with signs in it."""
    key, sign, value = typed.partition("=")
    if not sign or len(key.split()) != 1:
        return False
    if len(value.split()) <= 1:
        return True
    try:
        value_of(resolve(key.strip())[0], value)
    except BadRequest:
        return False
    return True


def _items(pairs: dict[str, str]) -> Iterator[Item]:
    """In the words of the catalogue; else in the lexicon's; else the catalogue's own complaint."""
    known: dict[str, str] = {}
    for key, value in pairs.items():
        try:
            resolve(key)
            known[key] = value
        except BadRequest:
            named = understand([Reading((key,), value, place=key)], "", STATED.file, written=True).facts
            if not named:
                raise
            yield from named
    yield from stated_items(known, STATED)


def _in_complaints(items: Sequence[Item], known: Evidence) -> Iterator[Fact]:
    """What the sentence of a complaint says besides: numbers by the words around them, statements, the card, the model.

    What was typed as a fact, or read from an artifact, is known better.
    """
    known_names = {item.quantity.name for item in items if isinstance(item, Fact | Series)}
    known_names |= {name for name, facts in known.facts.items() if facts} | {s.quantity.name for s in known.all_series}
    for item in items:
        if isinstance(item, Fact) and item.quantity is stated.SYMPTOM:
            text = asserted_in(str(item.value))
            numbers = [n for at, s in enumerate(prose.sentences(text)) for n in prose.numbers_in(s, f"{at}")]
            understood = understand(numbers, text, STATED.file, written=True).facts
            for fact in (*understood, *mentions(text, STATED.file)):
                if fact.quantity.name not in known_names:
                    yield fact


def state(evidence: Evidence, words: Sequence[str]) -> None:
    """Adds what was typed."""
    if not words:
        return
    pairs = pairs_of(words)
    items = list(_items(pairs))
    evidence.add([*items, *_in_complaints(items, evidence)])
    # A name of a quantity says what somebody measures, not what ails the run: only values that are words are evidence.
    worded = [value for key, value in pairs.items() if key not in DENIALS and not value[:1].isdigit()]
    evidence.add([bag_of(enumerate(worded, 1), STATED.file, stated=True)])
    if INPUT not in evidence.inputs:
        evidence.inputs.append(INPUT)
    if INPUT not in evidence.formats:
        evidence.formats.append(INPUT)
