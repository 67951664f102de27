"""Keys that name a trouble: denied, they say that it is not there; a setting that is off says that it is off."""

from __future__ import annotations

from functools import lru_cache

from stallwise.evidence import vocabulary
from stallwise.evidence.flags import without_denied
from stallwise.readers.text.entries import entries
from stallwise.readers.text.name import name
from stallwise.readers.text.phrases import symptom_in
from stallwise.units import Unit


def undenied(text: str) -> str:
    """A text but for the troubles that its keys and values deny."""
    return without_denied(text, names_trouble)


@lru_cache(maxsize=512)
def names_trouble(key: str) -> bool:
    """Whether this key is a flag of the catalogue, a count that is better when lower, or itself a complaint."""
    quantity = vocabulary.find(key)
    if quantity is None and (named := name((key,), "", True) or name((key,))) is not None:
        quantity = named.quantity
    if quantity is None:
        return bool(symptom_in(key.replace("_", " ").replace("-", " ")))
    entry = entries().get(quantity.name)
    return quantity.unit is Unit.FLAG or (entry is not None and entry.quantity.better == "lower")
