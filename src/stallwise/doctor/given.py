"""What one argument is: a path that exists, a pattern that matches, an address, words, or a path that is not there.

A path is what exists. Of the rest only what nobody could mean as a sentence is taken for a mistyped path: a token without
blanks that has a file's ending or a folder before it, or a text that begins like a path and ends like one.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

from stallwise.evidence.words import Words
from stallwise.readers.text.phrases import symptom_in

LONGEST_PATH_BYTES = 4096  # PATH_MAX of Linux
LONGEST_NAME_BYTES = 255  # NAME_MAX of every common file system
FEW_WORDS = 3  # below: "my trace.json" is rather a file with a blank in its name than a complaint
_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]+://\S+$", re.IGNORECASE)
_BEGINS = re.compile(r"[/\\]|\.\.?[/\\]|~[A-Za-z_]*[/\\]|[A-Za-z]:\\")  # "~40 it/s" is a rate
_NO_SENTENCE = re.compile(r"\.\.?[/\\]|~[A-Za-z_]*[/\\]|[A-Za-z]:\\")  # but "/dev/shm is full" is one
_MAGIC = re.compile(r"[*?\[]")
_NAME = re.compile(r"[A-Za-z0-9_.+@=,%*?\[\]{}~/\\:-]+$")  # characters that people give to files they capture
# Endings of what profilers, loggers, archivers and frameworks write: "optimizer.step" has none of them.
_ENDING = re.compile(
    r"\.(?:json[l5]?|ndjson|csv|tsv|log|txt|text|out|err|md|rst|html?|xml|ya?ml|toml|ini|cfg|conf|env|gz|bz2|xz|zst|lz4|zip|tar|"
    r"tgz|tbz2?|txz|7z|nsys-rep|ncu-rep|qdrep|sqlite3?|db|pkl|pickle|pt|pth|npy|npz|parquet|arrow|feather|pb|pbtxt|trace|prom|"
    r"ipynb|py|sh|sbatch|slurm|dmp|dump|hlo|ptx|cubin|sass|svg|har|eml|mbox|v2|(?<=[A-Za-z_]\.)\d{1,3})$",
    re.IGNORECASE,
)


class Kind(Enum):
    """What an argument turned out to be."""

    STDIN = "stdin"
    PAGE = "page"  # over HTTP
    REMOTE = "remote"  # behind any other scheme
    FOLDER = "folder"
    FILE = "file"
    PIPE = "pipe"
    PATTERN = "pattern"  # a glob that matches something
    WORDS = "words"
    MISSING = "missing"  # meant as a path, and not there


def kind_of(given: str) -> Kind:
    """The kind of one argument; never raises, however long or odd it is."""
    if isinstance(given, Words):
        return Kind.WORDS
    if given == "-":
        return Kind.STDIN
    if _ADDRESS.match(given):
        return Kind.PAGE if given.startswith(("http://", "https://")) else Kind.REMOTE
    if on_disk(given):
        path = Path(given)
        return Kind.FOLDER if path.is_dir() else Kind.FILE if path.is_file() else Kind.PIPE
    if matches_of(given):
        return Kind.PATTERN
    return Kind.MISSING if meant_as_path(given) else Kind.WORDS


def on_disk(given: str) -> bool:
    """Whether a file or folder of this name exists; a text that cannot be a name is none."""
    try:
        return _can_be_a_path(given) and Path(given).exists()
    except OSError:  # a folder above it that we may not look into
        return False


def matches_of(given: str) -> list[str]:
    """The files that a pattern matches."""
    if not _MAGIC.search(given) or not _can_be_a_path(given):
        return []
    try:
        import glob

        return [m for m in glob.glob(given, recursive=True) if Path(m).is_file()]
    except (OSError, ValueError, re.error):  # half a character class
        return []


def meant_as_path(given: str) -> bool:
    """Whether a text that does not exist can only have been meant as a path."""
    if not given.strip():
        return True
    if not _can_be_a_path(given):
        return False
    words = given.split()
    begins, ends = _BEGINS.match(given) is not None, ends_like_a_file(given)
    if len(words) > 1:
        few = len(words) <= FEW_WORDS and (begins and "/" in given.split(None, 1)[1])
        return _NO_SENTENCE.match(given) is not None or (begins and (ends or few)) or (ends and len(words) < FEW_WORDS)
    if begins or (ends and _NAME.match(given)):
        return True
    if "/" in given or "\\" in given:
        return _NAME.match(given) is not None
    # One bare token: a folder mistyped, unless it is itself a complaint ("OOM") or of a script that writes without blanks.
    return given.isascii() and not given.endswith(("?", "!")) and not symptom_in(given)


def ends_like_a_file(given: str) -> bool:
    """By a known ending: whoever types "my runs of today.json" may have meant a file that is not there."""
    return _ENDING.search(given.strip()) is not None


def _can_be_a_path(given: str) -> bool:
    if "\n" in given or "\0" in given:
        return False
    stored = os.fsencode(given) if _encodes(given) else b""
    parts = re.split(rb"[/\\]" if os.name == "nt" else rb"/", stored)
    return 0 < len(stored) <= LONGEST_PATH_BYTES and all(len(part) <= LONGEST_NAME_BYTES for part in parts)


def _encodes(given: str) -> bool:
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        return False
    return True
