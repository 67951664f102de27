"""Words that the project no longer uses: how often each still stands in the source and the documents.

    python .ci/words.py            the counts beside what is allowed
    python .ci/words.py --check    fails where a word stands more often than allowed
    python .ci/words.py --lower    lowers what is allowed to what is there; it raises nothing

The list is tests/meta/retired_words.tsv: word or phrase, what to write instead, how many are left. Names are taken apart: `_was_told` and
`WasTold` hold "told". Tables (patterns, phrases of users) are other people's words and are not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
LIST = REPO / "tests" / "meta" / "retired_words.tsv"
OURS = ("src/*.py", "src/*.html", "src/*.js", "docs/*.md", "README.md", "DESIGN.md", "CONTRIBUTING.md")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def counts(texts: list[str], retired: list[str]) -> Counter[str]:
    """How often each retired word or phrase stands in the texts."""
    found: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for text in texts:
        words.update(_WORD.findall(text))
        lower = text.lower()
        found.update({phrase: n for phrase in retired if " " in phrase and (n := lower.count(phrase))})
    by_word: Counter[str] = Counter()
    for word, n in words.items():
        by_word[word.lower()] += n
    return found + Counter({word: by_word[word] for word in retired if " " not in word})


def texts() -> list[str]:
    """Source and documents, as git knows them."""
    files = subprocess.run(["git", "ls-files", "--", *OURS], cwd=REPO, capture_output=True, text=True, check=True)
    return [path.read_text(encoding="utf-8") for f in files.stdout.splitlines() if (path := REPO / f).is_file()]


def listed() -> list[tuple[str, str, int]]:
    """Word, what to write instead, how many are allowed."""
    lines = (line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    rows = (line.split("\t") for line in lines)
    return [(word, instead, int(allowed)) for word, instead, allowed in rows]


def main() -> None:
    """Prints, checks or lowers."""
    rows = listed()
    found = counts(texts(), [word for word, _, _ in rows])
    if "--lower" in sys.argv:
        head = [line for line in LIST.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        lines = [f"{word}\t{instead}\t{min(allowed, found[word])}" for word, instead, allowed in rows]
        LIST.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
        return
    for word, instead, allowed in rows:
        print(f"{found[word]:5} of {allowed:5}  {word}  (write: {instead})")
    grown = [f"{word}: {found[word]} where {allowed} are left" for word, _, allowed in rows if found[word] > allowed]
    if "--check" in sys.argv and grown:
        raise SystemExit("retired words came back; write what the list says instead: " + "; ".join(grown))


if __name__ == "__main__":
    main()
