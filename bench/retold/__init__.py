"""The same facts in other clothes: ways in which people and programs hand the same numbers and lines on."""

from . import envelopes, lines, tables  # noqa: F401  (they fill TELLINGS)
from .files import TELLINGS, File

__all__ = ["TELLINGS", "File"]
