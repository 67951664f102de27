"""Damaged inputs through every reader, measure, rule and page, in one process; what must never happen is counted.

    python -m tests.fuzz.harness --cases 20000 --seed 1 --seeds ../shared/data --report fuzz.json

Never: an exception that is no sentence of ours, a run past its limit, memory above its limit, an answer of another file
that is lost, a sick run that turns healthy without a loss being said, or a page that commands the terminal. A failure
that was contained is no failure of the run; its place is reported, for it is a part of an answer lost.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError
from stallwise.evidence import contained
from stallwise.evidence.limits import Limits, OutOfTime, at_most
from stallwise.findings.diagnosis import Diagnosis
from stallwise.render.ci import findings_junit, findings_sarif
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.redact import shareable
from stallwise.render.text import to_text
from tests.fuzz.mutations import mutated

REPO = Path(__file__).parents[2]
OWN_SEEDS = ("tests/fixtures", "tests/incidents/improve", "examples", "tests/cases")
LARGEST_SEED_BYTES = 60_000
LIMIT_S = 20.0  # for one damaged file
PAGES_S = 30.0  # for all its pages
MEMORY_BYTES = 3 << 30
RENDERED = 0.2  # of the cases: every page is made
BESIDE = 0.1  # of the cases: a good file lies beside the damaged one
GOOD = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
    "79.10 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch.\n"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Tally:
    """What happened, counted; a few examples of each."""

    cases: int = 0
    answered: int = 0
    refused: int = 0
    escapes: int = 0  # exceptions that would have been exit 4 or 130
    over_time: int = 0
    over_memory: int = 0
    lost_answers: int = 0
    flips: int = 0  # sick before, healthy after, and nothing said of a loss
    bad_pages: int = 0
    warned: int = 0
    stopped: int = 0  # files that were given up at their limit, with a note
    contained: int = 0  # failures that became a note
    rendered: int = 0
    beside: int = 0
    seconds: float = 0.0
    places: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, object]] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return self.escapes + self.over_time + self.over_memory + self.lost_answers + self.flips + self.bad_pages


def seeds(more: list[str]) -> list[Path]:
    """Small files of every format, ours and those that are named; always in the same order."""
    found = []
    for folder in (*(REPO / f for f in OWN_SEEDS), *map(Path, more)):
        found += [
            p
            for p in sorted(folder.rglob("*"))
            if p.is_file() and "kept" not in p.parts and "__pycache__" not in p.parts
            and 0 < p.stat().st_size <= LARGEST_SEED_BYTES and p.suffix not in (".py", ".png", ".md")
        ]  # fmt: skip
    return found


def place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}stallwise{os.sep}" in f.filename] or list(frames)
    where = own[-1] if own else None
    name = f"{Path(where.filename).parent.name}/{Path(where.filename).name}:{where.lineno}" if where else "?"
    return f"{type(error).__name__} @ {name}"


class Fuzz:
    """One run."""

    def __init__(self, seed: int, files: list[Path], keep: Path | None = None) -> None:
        self.seed, self.files, self.keep = seed, files, keep
        self.tally = Tally()
        self._base: dict[Path, bool | None] = {}
        self._failed: list[str] = []
        real = contained.failure_of

        def watched(who: str, error: BaseException, seconds: float = 0.0) -> StallwiseError:
            if not isinstance(error, (StallwiseError, OutOfTime)):
                self._failed.append(place_of(error))
            return real(who, error, seconds)

        for module in (contained, __import__("stallwise.doctor.reading", fromlist=["x"])):
            module.failure_of = watched  # type: ignore[attr-defined]

    def case(self, number: int, folder: Path) -> None:
        r = random.Random(f"{self.seed}:{number}")
        seed = r.choice(self.files)
        how, data = mutated(r, seed.read_bytes(), r.choice(self.files).read_bytes())
        path = folder / (seed.name[-80:] + (".gz" if data[:2] == b"\x1f\x8b" else ".zip" if data[:2] == b"PK" else ""))
        path.write_bytes(data)
        beside = r.random() < BESIDE
        good = folder / "good_file.log"
        if beside:
            good.write_text(GOOD)
            self.tally.beside += 1
        tally, self._failed = self.tally, []
        tally.cases += 1
        told = {"case": number, "seed": seed.name, "how": how, "bytes": len(data)}
        began = time.monotonic()
        try:
            with at_most(4 * LIMIT_S), warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = self._diagnosed(folder if beside else path)
            tally.warned += any("stallwise" in str(w.filename) for w in heard)
            if found is not None:
                self._checked(found, seed, beside, told, data, r.random() < RENDERED)
        except OutOfTime as error:
            self._report("over_time", place_of(error), told, data)
        except MemoryError as error:
            self._report("over_memory", place_of(error), told, data)
        except Exception as error:
            self._report("escapes", place_of(error), told, data)
        if time.monotonic() - began > 4 * LIMIT_S + PAGES_S:
            self._report("over_time", "in all", told, data)
        if self._failed:
            tally.contained += 1
            for place in set(self._failed):
                tally.places[f"contained: {place}"] += 1
                self._example(f"contained: {place}", told, data)
        for used in (path, good):
            used.unlink(missing_ok=True)

    def _diagnosed(self, path: Path) -> Diagnosis | None:
        try:
            found = diagnose(str(path), cache=False, workers=1, limits=Limits(file_s=LIMIT_S))
        except StallwiseError as error:
            self.tally.refused += 1
            self.tally.stopped += "its limit" in error.problem
            return None
        self.tally.answered += 1
        self.tally.stopped += any("its limit" in n.text for n in found.notes)
        return found

    def _checked(
        self, found: Diagnosis, seed: Path, beside: bool, told: dict[str, object], data: bytes, pages: bool
    ) -> None:
        if beside and "good_file.log" not in " ".join(found.evidence.inputs):
            self._report("lost_answers", "the good file was not read", told, data)
        if found.healthy and self._sick_before(seed):
            self._report("flips", "sick, then healthy", told, data)
        if not pages:
            return
        self.tally.rendered += 1
        with at_most(PAGES_S):
            text, share = to_text(found), to_text(shareable(found))
            answer = json.dumps(to_dict(found))
            html = to_html(found)
            to_markdown(found), findings_junit(found), json.dumps(findings_sarif(found))
        if _CONTROL.search(text) or _CONTROL.search(share):
            self._report("bad_pages", "a control character", told, data)
        if "<script>alert(1)" in html:
            self._report("bad_pages", "markup", told, data)
        if not answer:
            self._report("bad_pages", "no answer", told, data)

    def _sick_before(self, seed: Path) -> bool:
        if seed not in self._base:
            try:
                self._base[seed] = diagnose(str(seed), cache=False, workers=1).state.value == "sick"
            except StallwiseError:
                self._base[seed] = None
        return self._base[seed] is True

    def _report(self, kind: str, place: str, told: dict[str, object], data: bytes) -> None:
        setattr(self.tally, kind, getattr(self.tally, kind) + 1)
        self.tally.places[f"{kind}: {place}"] += 1
        self._example(f"{kind}: {place}", told, data)

    def _example(self, what: str, told: dict[str, object], data: bytes) -> None:
        if self.tally.places[what] > 1:
            return
        self.tally.examples.append({"what": what, **told})
        if self.keep is not None:
            name = hashlib.sha1(what.encode()).hexdigest()[:10]
            (self.keep / f"{name}-{str(told['seed'])[-60:]}").write_bytes(data)


def run(
    cases: int, seed: int, files: list[Path], *, seconds: float = 0.0, first: int = 0, keep: Path | None = None
) -> Tally:
    """So many cases, or so many seconds of them."""
    fuzz = Fuzz(seed, files, keep)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in _numbers(first, cases):
            fuzz.case(number, Path(folder))
            fuzz.tally.seconds = time.monotonic() - began
            if seconds and fuzz.tally.seconds > seconds:
                break
    return fuzz.tally


def _numbers(first: int, cases: int) -> Iterator[int]:
    yield from range(first, first + cases)


def main() -> None:
    """The long mode."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seeds", nargs="*", default=[], help="more folders of files to damage")
    parser.add_argument("--keep", type=Path, help="folder for one example of each failure")
    parser.add_argument("--report", type=Path)
    chosen = parser.parse_args()
    os.environ["STALLWISE_CACHE"] = "off"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    if chosen.keep:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    found = run(
        chosen.cases, chosen.seed, seeds(chosen.seeds), seconds=chosen.seconds, first=chosen.first, keep=chosen.keep
    )
    text = json.dumps({**asdict(found), "places": dict(found.places.most_common())}, indent=1)
    if chosen.report:
        chosen.report.write_text(text + "\n")
    print(text)
    raise SystemExit(1 if found.failures else 0)


if __name__ == "__main__":
    main()
