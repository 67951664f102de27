"""Tables of the package, written in TOML and read at every start: what was parsed once is kept beside the bytecode.

The key is the text itself, so an edited table is parsed anew. As with bytecode nothing is kept where PYTHONDONTWRITEBYTECODE is set or
the folder cannot be written; then every start parses (50 ms for the 137 tables that a sentence needs).
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any
from zlib import adler32, crc32

KEPT = Path(__file__).parent / "__pycache__" / f"tables.{sys.implementation.cache_tag}.bin"
MOST = 1000  # tables kept: three times what there is, so that edited ones go some day


def parsed(text: str) -> dict[str, Any]:
    """A table of the package; the caller may change what it gets."""
    kept, key = _kept(), _key(text.encode())
    if key not in kept:
        import tomllib

        table = tomllib.loads(text)
        try:
            kept[key] = marshal.dumps(table)
        except ValueError:  # a date
            return table
        _write_at_exit()
    found: dict[str, Any] = marshal.loads(kept[key])
    return found


def _key(text: bytes) -> bytes:
    """Length and two checksums: enough for tables that we wrote ourselves."""
    return b"".join(n.to_bytes(4, "little") for n in (len(text), crc32(text), adler32(text)))


def table(path: Path) -> dict[str, Any]:
    """The same, by its file."""
    return parsed(path.read_text(encoding="utf-8"))


@cache
def _kept() -> dict[bytes, bytes]:
    try:
        kept = marshal.loads(KEPT.read_bytes())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return kept if isinstance(kept, dict) and len(kept) <= MOST else {}


@cache
def _write_at_exit() -> None:
    if not sys.dont_write_bytecode:
        atexit.register(_write)


def _write() -> None:
    beside = KEPT.with_name(f"{KEPT.name}.{os.getpid()}")
    try:
        KEPT.parent.mkdir(exist_ok=True)
        beside.write_bytes(marshal.dumps(_kept()))
        beside.replace(KEPT)
    except OSError:
        pass  # a folder of somebody else
