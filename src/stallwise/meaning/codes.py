"""Tables of codes: what a number or a name of a library's, driver's or scheduler's own list stands for.

One file per table in `codes/`. A signature names the table of its slot; whoever holds a bare number asks `code_of`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Code:
    """One entry."""

    table: str
    number: int | None
    name: str
    means: str
    fault: str = ""  # where the trouble usually lies, in the table's own classes
    role: str = ""  # where the code itself says that it only follows, or proves
    action: str = ""


@cache
def tables() -> tuple[str, ...]:
    """Names of all tables."""
    folder = files("stallwise.meaning").joinpath("codes")
    return tuple(sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")))


@cache
def table(name: str) -> tuple[Code, ...]:
    """Every code of one table."""
    text = files("stallwise.meaning").joinpath("codes", f"{name}.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    shared = document.get("actions", {})
    return tuple(
        Code(
            name,
            row.get("code"),
            row.get("name", ""),
            row["means"],
            row.get("fault", ""),
            row.get("role", ""),
            shared.get(row.get("action", ""), row.get("action", "")),
        )
        for row in document["code"]
    )


@cache
def source_of(name: str) -> str:
    """Where the table comes from."""
    text = files("stallwise.meaning").joinpath("codes", f"{name}.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["source"])


@cache
def _index(name: str) -> dict[str, Code]:
    found: dict[str, Code] = {}
    for code in table(name):
        if code.number is not None:
            found.setdefault(str(code.number), code)
        if code.name:
            found.setdefault(code.name.lower(), code)
    return found


@lru_cache(maxsize=4096)
def code_of(name: str, written: str | float) -> Code | None:
    """The entry that a number or a name stands for; None where the table lacks it."""
    word = f"{written:g}" if isinstance(written, float | int) else written.strip()
    if word.lower().startswith("0x"):
        try:
            word = str(int(word, 16))
        except ValueError:
            return None
    return _index(name).get(word.lower())
