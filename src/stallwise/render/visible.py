"""Text that is safe to print: what would move the cursor, clear the screen or rename the window is shown, not obeyed."""

from __future__ import annotations

import re

OWN_COLORS = r"\x1b\[(?:0|2|1;3[123])m"  # what our own pages use; colours alone harm nobody
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL_OR_COLOR = re.compile(f"({OWN_COLORS})|{_CONTROL.pattern}")


def visible(text: str, *, colors: bool = False) -> str:
    """The same text with every control character written out."""
    if colors:
        return _CONTROL_OR_COLOR.sub(lambda m: m[1] or _shown(m[0]), text)
    return _CONTROL.sub(lambda m: _shown(m[0]), text)


def _shown(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
