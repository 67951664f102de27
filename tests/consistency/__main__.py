"""Every case, or those whose name holds a word: what does not hold in their answers, and how long it took."""

from __future__ import annotations

import sys
import time

from stallwise.errors import StallwiseError
from tests.consistency.cases import bundled, shared
from tests.consistency.forms import forms_of
from tests.consistency.rules import problems


def main(word: str = "") -> int:
    """How many answers contradict themselves."""
    wrong, begun = 0, time.process_time()
    cases = [case for case in (*bundled(), *shared()) if word in case.name]
    for case in cases:
        try:
            found = problems(forms_of(case))
        except StallwiseError as error:
            print(f"{case.name}: refused: {error.problem}")
            continue
        wrong += bool(found)
        print(
            "\n".join([f"{case.name}:", *(f"  {line}" for line in found)])
            if found
            else f"{case.name}: one set of numbers"
        )
    print(f"{len(cases)} cases, {wrong} that contradict themselves, {time.process_time() - begun:.0f} s of CPU")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:2]), 1))
