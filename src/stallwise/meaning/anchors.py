"""Which of thousands of fixed words stand where in a text, in one pass.

`ahocorasick-rs` where its wheel is installed; otherwise the standard library's `re` over a trie-folded alternation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

SHORTEST = 3  # letters of a word
Finder = Callable[[bytes], Iterator[tuple[int, int]]]  # text in lower case -> (which word, where it starts)


def finder(words: Sequence[bytes], *, fast: bool = True) -> Finder:
    """All occurrences of all words, overlapping ones too."""
    if fast:
        try:
            from ahocorasick_rs import BytesAhoCorasick
        except ImportError:
            pass
        else:
            automaton = BytesAhoCorasick(list(words))
            return lambda data: ((m[0], m[1]) for m in automaton.find_matches_as_indexes(data, overlapping=True))
    return _folded(words)


def _folded(words: Sequence[bytes]) -> Finder:
    """At each place the trie gives the longest word; those that start with the same letters are tested by name."""
    trie: dict[int, Any] = {}
    starts: dict[bytes, list[int]] = {}
    for number, word in enumerate(words):
        node = trie
        for letter in word:
            node = node.setdefault(letter, {})
        node[-1] = number
        starts.setdefault(word[:SHORTEST], []).append(number)
    pattern = re.compile(b"(?=(" + _alternatives(trie) + b"))")

    def find(data: bytes) -> Iterator[tuple[int, int]]:
        for match in pattern.finditer(data):
            at = match.start()
            for number in starts[match[1][:SHORTEST]]:
                if data.startswith(words[number], at):
                    yield number, at

    return find


def _alternatives(node: dict[int, Any]) -> bytes:
    """One level of the trie: shared letters are written once."""
    parts = [re.escape(bytes([letter])) + _alternatives(below) for letter, below in node.items() if letter != -1]
    if not parts:
        return b""
    inner = parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
    return (b"(?:" + inner + b")?") if -1 in node else inner
