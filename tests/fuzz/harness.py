"""Damaged inputs through every reader, measure, rule, page and command, in one process; what must never happen is counted.

    python -m tests.fuzz.harness --cases 20000 --seed 1 --seeds ../shared/data --report fuzz.json

Never: an exception that is no sentence of ours, exit 4 or 130, a run past its limit, memory above its limit, an answer of
another file that is lost, a sick run that turns healthy without a loss being said, or a page that commands the terminal.
A failure that was contained is no failure of the run; its place is reported, for it is a part of an answer lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Hashable
from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.errors import StallwiseError
from stallwise.evidence import error_boundary
from stallwise.evidence.limits import Limits, OutOfTime, at_most, at_most_of_work
from stallwise.render.ci import findings_junit, findings_sarif
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.markdown import to_markdown
from stallwise.render.redact import shareable
from stallwise.render.strict_json import dumps
from stallwise.render.text import to_text
from tests.fuzz.commands import one_command
from tests.fuzz.guide import Guide
from tests.fuzz.mutations import mutated
from tests.fuzz.served import one_call, one_request
from tests.fuzz.tally import Tally, Told, place_of
from tests.fuzz.targets import each_reader, each_shape, messages_and_words, sample_messages, skeleton
from tests.incidents.archive import unpacked

REPO = Path(__file__).parents[2]
OWN_SEEDS = ("tests/fixtures", "examples", "tests/cases", "tests/fuzz/seeds")
LARGEST_SEED_BYTES = 60_000
LIMIT_S = 20.0  # of the processor's time for one damaged file, however busy the machine is
PAGES_S = 30.0  # of it for all its pages
CROWD = 15.0  # times as long as its work a case may last by the wall's clock: others use the machine as well
MEMORY_BYTES = 3 << 30
RENDERED = 0.1  # of the cases: every page is made
BESIDE = 0.1  # of the cases: a good file lies beside the damaged one
SHARES = {
    "whole": 0.25,
    "readers": 0.38,
    "shapes": 0.12,
    "words": 0.15,
    "command": 0.1,
}  # of the cases, by what they hit
AT_A_DOOR = {"command": one_command, "page": one_request, "mcp": one_call}
GOOD = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
    "79.10 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch.\n"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def seeds(more: list[str]) -> list[Path]:
    """Small files of every format, ours and those that are named; always in the same order."""
    found = []
    for folder in (*(REPO / f for f in OWN_SEEDS), unpacked() / "public_dev", *map(Path, more)):
        found += [
            p
            for p in sorted(folder.rglob("*"))
            if p.is_file() and "kept" not in p.parts and "__pycache__" not in p.parts
            and 0 < p.stat().st_size <= LARGEST_SEED_BYTES and p.suffix not in (".py", ".png", ".md")
        ]  # fmt: skip
    return found


class Fuzz:
    """One run."""

    def __init__(self, seed: int, files: list[Path], keep: Path | None = None, guide: Guide | None = None) -> None:
        self.seed, self.files, self.keep, self.guide = seed, files, keep, guide
        self.by_reader: list[list[Path]] = []  # seeds of each reader, so that rare formats get their share
        self.tally = Tally()
        self.shares = SHARES
        self._base: dict[str, bool | None] = {}
        self._messages = sample_messages()
        self._failed: list[BaseException] = []
        real = error_boundary.failure_of

        def watched(who: str, error: BaseException, seconds: float = 0.0) -> StallwiseError:
            if not isinstance(error, (StallwiseError, OutOfTime)):
                self._failed.append(error)
            return real(who, error, seconds)

        for module in (error_boundary, __import__("stallwise.doctor.reading", fromlist=["x"])):
            module.failure_of = watched  # type: ignore[attr-defined]

    def _picked(self, r: random.Random, target: str) -> tuple[str, bytes, Path | None]:
        """A name, bytes to damage, and the whole file that they were, if they were one."""
        kept = self.guide.picked(r) if self.guide is not None else None
        if kept is not None:
            return (*kept, None)
        if target == "words" and r.random() < 0.5:
            return "messages.log", r.choice(self._messages), None
        chosen = r.choice(r.choice(self.by_reader) if self.by_reader and target == "readers" else self.files)
        return chosen.name, chosen.read_bytes(), chosen

    def case(self, number: int, folder: Path) -> None:
        r = random.Random(f"{self.seed}:{number}")
        (target,) = r.choices(list(self.shares), list(self.shares.values()))
        name, data, seed = self._picked(r, target)
        how, data = mutated(r, data, r.choice(self.files).read_bytes())
        self.throw(r, folder, Told(number, name, how, target, data, self.tally, self.keep), seed)

    def throw(self, r: random.Random, folder: Path, told: Told, seed: Path | None) -> None:
        """One input at its target, whoever damaged it; whatever must never happen is counted."""
        name, data, target = told.seed, told.data, told.target
        path = folder / (name[-80:] + (".gz" if data[:2] == b"\x1f\x8b" else ".zip" if data[:2] == b"PK" else ""))
        path.write_bytes(data)
        tally, self._failed = self.tally, []
        tally.cases += 1
        tally.targets[target] += 1
        outcome: Hashable = None
        began = time.process_time()
        try:
            with (
                warnings.catch_warnings(record=True) as heard,
                at_most_of_work(4 * LIMIT_S),
                at_most(4 * LIMIT_S * CROWD),
            ):
                warnings.simplefilter("always")
                outcome = self._thrown(target, r, path, seed, told)
            tally.warned += any("stallwise" in str(w.filename) for w in heard)
        except StallwiseError as error:
            tally.refused += 1
            outcome = skeleton(error.problem)
        except OutOfTime as error:
            told.fails("over_time", place_of(error))
        except MemoryError as error:
            told.fails("over_memory", place_of(error))
        except Exception as error:
            told.fails("escapes", place_of(error))
        if time.process_time() - began > 4 * LIMIT_S + PAGES_S:
            told.fails("over_time", "in all")
        for failed in self._failed:
            if isinstance(failed, MemoryError):
                told.fails("over_memory", place_of(failed))
            else:
                tally.contained += 1
                told.seen(f"contained: {place_of(failed)}")
        if self.guide is not None:
            tally.fresh += self.guide.told(name, data, (target, outcome))
            tally.lines = self.guide.lines
        for used in folder.iterdir():
            used.unlink()

    def _thrown(self, target: str, r: random.Random, path: Path, seed: Path | None, told: Told) -> Hashable:
        if target == "readers":
            return each_reader(path, told)
        if target == "shapes":
            return each_shape(path, told)
        if target == "words":
            return messages_and_words(path, told)
        if target in AT_A_DOOR:
            return AT_A_DOOR[target](r, path, told)
        beside = r.random() < BESIDE
        if beside:
            (path.parent / "good_file.log").write_text(GOOD)
            self.tally.beside += 1
        found = self._diagnosed(path.parent if beside else path)
        if found is None:
            return None
        self._checked(found, seed, beside, told, r.random() < RENDERED)
        notes = tuple(sorted({skeleton(n.text.replace(path.name, "")) for n in found.notes})[:4])
        return tuple(found.evidence.formats), found.state.value, tuple(str(f) for f in found.ranked[:3]), notes

    def _diagnosed(self, path: Path) -> Diagnosis | None:
        try:
            found = diagnose(str(path), cache=False, workers=1, limits=Limits(file_s=LIMIT_S * CROWD))
        except StallwiseError as error:
            self.tally.refused += 1
            self.tally.stopped += "its limit" in error.problem
            return None
        self.tally.answered += 1
        self.tally.stopped += any("its limit" in n.text for n in found.notes)
        return found

    def _checked(self, found: Diagnosis, seed: Path | None, beside: bool, told: Told, pages: bool) -> None:
        if beside and "good_file.log" not in " ".join(found.evidence.inputs):
            told.fails("lost_answers", "the good file was not read")
        if found.healthy and (beside or self._sick_before(seed)):
            told.fails("flips", "sick, then healthy")
        if not pages:
            return
        self.tally.rendered += 1
        with at_most_of_work(PAGES_S):
            text, share = to_text(found), to_text(shareable(found))
            json.loads(dumps(to_dict(found)))
            html = to_html(found)
            to_markdown(found), findings_junit(found), json.dumps(findings_sarif(found), allow_nan=False)
        if _CONTROL.search(text) or _CONTROL.search(share):
            told.fails("bad_pages", "a control character")
        if "<script>alert(1)" in html:
            told.fails("bad_pages", "markup")

    def _sick_before(self, seed: Path | None) -> bool:
        if seed is None:  # damaged before: whether that was sick is not known
            return False
        if str(seed) not in self._base:
            try:
                self._base[str(seed)] = diagnose(str(seed), cache=False, workers=1).state.value == "sick"
            except StallwiseError:
                self._base[str(seed)] = None
        return self._base[str(seed)] is True


def run(
    cases: int, seed: int, files: list[Path], *, seconds: float = 0.0, first: int = 0, keep: Path | None = None
) -> Tally:
    """So many cases, or so many seconds of them; the same each time."""
    return over(Fuzz(seed, files, keep), range(first, first + cases), seconds)


def over(fuzz: Fuzz, numbers: range, seconds: float = 0.0) -> Tally:
    """These cases, in a folder that is thrown away."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            fuzz.case(number, Path(folder))
            fuzz.tally.seconds = time.monotonic() - began
            if seconds and fuzz.tally.seconds > seconds:
                break
    fuzz.tally.peak_bytes = peak_bytes()
    return fuzz.tally


def peak_bytes() -> int:
    """The most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)


def confined() -> None:
    """As users run it, within the limits that must hold: nothing of theirs is read or written."""
    home = tempfile.mkdtemp()
    os.environ.update(STALLWISE_CACHE="off", HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home, XDG_CACHE_HOME=home)
    os.environ.pop("STALLWISE_DEBUG", None)
    os.environ.pop("GITHUB_STEP_SUMMARY", None)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


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
    confined()
    if chosen.keep:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    found = run(
        chosen.cases, chosen.seed, seeds(chosen.seeds), seconds=chosen.seconds, first=chosen.first, keep=chosen.keep
    )
    text = json.dumps(found.as_dict(), indent=1)
    if chosen.report:
        chosen.report.write_text(text + "\n")
    print(text)
    raise SystemExit(1 if found.failures else 0)


if __name__ == "__main__":
    main()
