"""All occurrences of thousands of words by the standard library: an alternation folded into a trie, for want of an automaton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

SHORTEST = 3  # letters of a word


class Folded:
    """At each place the trie gives the longest word; those that start with the same letters are tested by name."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = words
        self.starts: dict[bytes, list[int]] = {}
        trie: dict[int, Any] = {}
        for number, word in enumerate(words):
            node = trie
            for letter in word:
                node = node.setdefault(letter, {})
            node[-1] = number
            self.starts.setdefault(word[:SHORTEST], []).append(number)
        self.pattern = re.compile(b"(?=(" + _alternatives(trie) + b"))")

    def find_matches_as_indexes(self, data: bytes, *, overlapping: bool) -> list[tuple[int, int, int]]:
        """Which word, where it starts and where it ends, as the automaton tells it; overlapping ones always."""
        return list(self._found(data))

    def _found(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        for match in self.pattern.finditer(data):
            at = match.start()
            for number in self.starts[match[1][:SHORTEST]]:
                if data.startswith(self.words[number], at):
                    yield number, at, at + len(self.words[number])


def _alternatives(node: dict[int, Any]) -> bytes:
    """One level of the trie: shared letters are written once."""
    parts = [re.escape(bytes([letter])) + _alternatives(below) for letter, below in node.items() if letter != -1]
    if not parts:
        return b""
    inner = parts[0] if len(parts) == 1 else b"(?:" + b"|".join(parts) + b")"
    return (b"(?:" + inner + b")?") if -1 in node else inner
