"""Names and times of profiles as a person reads them."""

from __future__ import annotations

import re

from stallwise.units import Unit, show

LONGEST = 56  # letters of a name
_METHOD = re.compile(r"\{(?:method '(?P<method>[^']+)' of '(?P<of>[^']+)' objects|built-in method (?P<built>[^}]+))\}")
_FOLDERS = re.compile(r"[^\s(]{0,400}[/\\](?=[^/\\\s]{1,200}\.py\b)")


def long_seconds(seconds: float) -> str:
    """Four digits, and seconds stay seconds: 1,339.7 s beside 572.6 s is compared at a glance."""
    return f"{seconds:,.1f} s" if seconds >= 10 else show_four(seconds)


def show_four(seconds: float) -> str:
    """As `show`, with one digit more."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if (size := seconds * scale) >= 1:
            digits = 1 if size >= 10 else 2
            return f"{size:,.{digits}f} {unit}"
    return show(seconds, Unit.SECOND)


def short_name(name: str) -> str:
    """A function without its folders, a method with its class alone, a kernel without its arguments."""
    if found := _METHOD.match(name):
        owner = (found["of"] or "").rpartition(".")[2].strip("_").removesuffix("Base")
        return f"{owner}.{found['method']}" if found["method"] else found["built"]
    name = demangled(name)
    short = _FOLDERS.sub(
        "", name.strip().removeprefix("void ").replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    )
    if "#" not in short and not re.search(r"\.py:\d+", short):  # no place in a file: parentheses hold arguments
        short = re.split(r"[(<]", short, maxsplit=1)[0].strip() or short
    return short if len(short) <= LONGEST else f"{short[: LONGEST - 3]}..."


def demangled(name: str) -> str:
    """The last part of a mangled C++ name; others as they are."""
    if not name.startswith("_Z"):
        return name
    at, parts = 3 if name.startswith("_ZN") else 2, []
    while found := re.match(r"\d{1,3}", name[at:]):
        at += len(found[0])
        parts.append(name[at : at + int(found[0])])
        at += int(found[0])
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N")) or name
