"""The same targets under libFuzzer, which damages bytes by the branches that they reach; needs the package atheris.

    python -m tests.fuzz.guided --seconds 540 --out fuzz/guided-0 --seed 1 --seeds ../shared/data

An input is two bytes that choose a target and a name, and the file. What must never happen is counted as the harness counts
it, and the run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

TARGETS = ("whole", "readers", "readers", "shapes", "words")
LARGEST_BYTES = 16_000  # of an input: short ones are run often
REPORT_S = 2.0


def main() -> None:
    """Until the time is over; the report is written as it grows, for libFuzzer ends the process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", nargs="*", default=[], help="more folders of files to damage")
    parser.add_argument("--out", type=Path, default=Path("fuzz/guided"), help="folder for report.json")
    parser.add_argument("--keep", type=Path, default=Path("fuzz/failures"), help="folder for the failures")
    chosen = parser.parse_args()
    end = time.monotonic() + chosen.seconds
    import atheris

    with atheris.instrument_imports(include=["stallwise"]):
        from tests.fuzz.harness import Fuzz, confined, peak_bytes, seeds
        from tests.fuzz.tally import Told

    files = [f for f in seeds(chosen.seeds) if f.stat().st_size <= LARGEST_BYTES - 2]
    names = sorted({f.name for f in files})
    keep, out, corpus = chosen.keep.resolve(), chosen.out.resolve(), Path(tempfile.mkdtemp(prefix="corpus-"))
    for needed in (keep, out):
        needed.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        head = bytes([number % len(TARGETS), names.index(file.name) % 256])
        (corpus / f"{number:05d}").write_bytes(head + file.read_bytes())
    confined()
    fuzz = Fuzz(chosen.seed, files, keep)
    folder = Path(tempfile.mkdtemp(prefix="guided-"))
    began = told_at = time.monotonic()

    def one(data: bytes) -> None:
        nonlocal told_at
        if (
            signal.getsignal(signal.SIGALRM) is not signal.SIG_IGN
        ):  # libFuzzer's own alarm: the harness has limits of its own
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        if len(data) < 3:
            return
        which = range(data[1], len(names), 256)
        r = random.Random(data[:64])
        name = names[r.choice(which)] if which else "input.log"
        target = TARGETS[data[0] % len(TARGETS)]
        fuzz.throw(r, folder, Told(fuzz.tally.cases, name, "libFuzzer", target, data[2:], fuzz.tally, keep), None)
        if time.monotonic() - told_at > REPORT_S:
            told_at = time.monotonic()
            fuzz.tally.seconds, fuzz.tally.peak_bytes = told_at - began, peak_bytes()
            (out / "report.part").write_text(json.dumps(fuzz.tally.as_dict()))
            (out / "report.part").replace(out / "report.json")
            if told_at > end:  # libFuzzer looks at its clock after the first round alone
                os._exit(0)

    atheris.Setup(
        [
            sys.argv[0], str(corpus), f"-max_total_time={chosen.seconds}", f"-max_len={LARGEST_BYTES}",
            f"-seed={chosen.seed}", "-timeout=0", "-rss_limit_mb=0", "-verbosity=0",
        ],
        one,
    )  # fmt: skip
    atheris.Fuzz()


if __name__ == "__main__":
    main()
