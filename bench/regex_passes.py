"""How often the characters of a text pass through regular expressions: `python bench/regex_passes.py FILE...`.

Every compiled expression is replaced by one that counts the characters it is given, up to where it stopped. The budget is eight
times the size of the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("STALLWISE_CACHE", "off")
seen: Counter[str] = Counter()
_compile = re.compile


class Counted:
    """A compiled expression that counts what it looks at."""

    def __init__(self, ready: re.Pattern[str]) -> None:
        self.ready = ready

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.ready, name)
        if name not in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"):
            return found

        def asked(*args: Any, **more: Any) -> Any:
            text = args[1] if name in ("sub", "subn") else args[0]
            start = args[1] if len(args) > 1 and name not in ("sub", "subn", "split") else 0
            end = min(args[2], len(text)) if len(args) > 2 and name not in ("sub", "subn") else len(text)
            result = found(*args, **more)
            if name in ("search", "match", "fullmatch"):
                # A match that fails looks at its first characters only; a search that finds stops there.
                end = result.end() if result is not None else (end if name == "search" else min(end, start + 1))
            seen[self.ready.pattern if isinstance(self.ready.pattern, str) else repr(self.ready.pattern)] += end - start
            return result

        return asked

    def __hash__(self) -> int:
        return hash(self.ready)

    def __eq__(self, other: object) -> bool:
        return self.ready == getattr(other, "ready", other)


def main() -> None:
    """One line a file: passes over its characters, then the expressions that take most of them."""
    from stallwise.doctor.examine import diagnose

    with TemporaryDirectory() as folder:  # tables are parsed once; no line of the file itself may be remembered
        other = Path(folder, "other.log")
        other.write_text("step 1 loss 2.0\nstep 2 loss 1.9\n", encoding="utf-8")
        diagnose(str(other), cache=False, workers=1)
    for path in sys.argv[1:]:
        seen.clear()
        diagnose(path, cache=False, workers=1)
        size = Path(path).stat().st_size
        print(f"{path}: {size:,} bytes, {sum(seen.values()) / size:.1f} passes")
        for pattern, characters in seen.most_common(12):
            print(f"   {characters / size:6.2f}  {pattern[:110]!r}")


if __name__ == "__main__":
    re.compile = lambda pattern, flags=0: Counted(_compile(pattern, flags))  # type: ignore[assignment]
    main()
