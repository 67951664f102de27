"""Speed as ratios taken in one run, and how it grows: `make bench` prints it and writes docs/benchmarks.md.

    python bench/speed.py [--write] [--quick] [--trace SOURCE.json.gz]

Every figure is processor time, so that other jobs on the machine count little, and stands beside a yardstick measured in the
same run: json.load for traces, `grep -c` for logs, HTA and TraceLens where they are installed.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent), str(HERE)]
os.environ["STALLWISE_CACHE"] = "off"

from grow_trace import grow  # noqa: E402
from log_speed import KINDS, text_of  # noqa: E402
from many_ranks import write_ranks  # noqa: E402
from trace_speed import measured, python_with  # noqa: E402

from stallwise.doctor.examine import diagnose  # noqa: E402

PAGE = HERE.parent / "docs" / "benchmarks.md"
DEMO = HERE.parent / "src/stallwise/surfaces/cli/_demo/loader_slow/trace.json.gz"
OTHERS = {"hta": "HTA", "TraceLens": "TraceLens"}  # module: name; measured where `make others` has installed them
LINEAR = "1 is in proportion; 2 would be four times the time for twice the size"


@dataclass
class Growth:
    """Processor seconds by size, and the exponent of the line through them."""

    what: str
    sizes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def exponent(self) -> float:
        """The slope in logarithms, by least squares."""
        x, y = [math.log(s) for s in self.sizes], [math.log(max(s, 1e-6)) for s in self.seconds]
        middle = sum(x) / len(x)
        return sum((a - middle) * b for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)

    def row(self) -> str:
        """For the table."""
        spent = ", ".join(f"{s:.2f}" for s in self.seconds)
        return f"| {self.what} | {', '.join(f'{s:,.0f}' for s in self.sizes)} | {spent} | {self.exponent:.2f} |"


def spent_s(call: Callable[[], object], repeat: int = 1) -> float:
    """The least processor seconds of this process and its children."""
    best = math.inf
    for _ in range(repeat):
        before = _cpu_s()
        call()
        best = min(best, _cpu_s() - before)
    return best


def _cpu_s() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def doubled(largest: int, times: int = 4) -> list[int]:
    """Sizes up to this one, each twice the one before."""
    return [largest >> n for n in reversed(range(times))]


def traces(source: Path, largest: int, folder: Path, repeat: int) -> Iterator[str | Growth]:
    """Fresh processes, start included: the table, then the growth of the work itself."""
    growth = Growth("events of a trace, file to verdict")
    path = folder / "rank-0.json.gz"
    diagnose(str(source), cache=False)
    for events in doubled(largest):
        growth.sizes.append(grow(source, path, events))
        growth.seconds.append(spent_s(lambda: diagnose(str(path), cache=False, workers=1), 2))
    rows = measured(("json.load", "columns", "verdict"), str(path), repeat)
    pythons = {name: python_with(module) for module, name in OTHERS.items()}
    for name, python in pythons.items():
        rows |= measured((name,), str(path), 1, python) if python else {}
    base = rows["json.load"]
    titles = "CPU s | beside json.load | wall s | beside json.load | peak MB"
    yield f"| {growth.sizes[-1]:,.0f} events | {titles} |\n|---|---:|---:|---:|---:|---:|"
    for name, (wall, cpu, peak) in rows.items():
        shown = {"columns": "stallwise, columns in memory", "verdict": "stallwise, the whole verdict"}.get(name, name)
        yield f"| {shown} | {cpu:.2f} | {cpu / base[1]:.2f} | {wall:.2f} | {wall / base[0]:.2f} | {peak:,.0f} |"
    yield from (f"| {name} | not installed here | | | | |" for name, python in pythons.items() if python is None)
    start = {name: row[1] for name, row in measured(("bare click", "--help"), "", max(repeat, 3)).items()}
    yield f"| `stallwise --help` | {start['--help']:.2f} | {start['--help'] / start['bare click']:.1f} x a bare click program | | | |"
    yield growth


def logs(largest_bytes: int, folder: Path) -> Iterator[str | Growth]:
    """Text logs beside `grep -c`, which reads every byte and understands nothing."""
    path = folder / "run.log"
    for kind in KINDS:  # the books that each kind needs are opened once, as in any process that reads many files
        path.write_text(text_of(kind, 10_000))
        diagnose(str(path), cache=False, workers=1)
    yield "| kind of log | MB | MB/s of CPU | `grep -c` MB/s | times `grep -c` |\n|---|---:|---:|---:|---:|"
    for kind in KINDS:
        path.write_text(text_of(kind, largest_bytes))
        megabytes = path.stat().st_size / 1e6
        ours = spent_s(lambda: diagnose(str(path), cache=False, workers=1))
        grep = (
            spent_s(lambda: [subprocess.run(["grep", "-c", "loss", str(path)], capture_output=True) for _ in range(5)])
            / 5
        )
        grep = max(grep, 1e-4)
        yield (
            f"| {kind.__name__.replace('_', ' ')} | {megabytes:.1f} | {megabytes / ours:.0f} | {megabytes / grep:,.0f} | "
            f"{ours / grep:,.0f} |"
        )
    growth = Growth("bytes of a log, file to verdict")
    for size in doubled(largest_bytes):
        path.write_text(text_of(KINDS[0], size))
        growth.sizes.append(path.stat().st_size)
        growth.seconds.append(spent_s(lambda: diagnose(str(path), cache=False, workers=1), 2))
    yield growth


def ranks(most: int, events: int, folder: Path) -> Iterator[str | Growth]:
    """Folders of more and more rank files."""
    growth = Growth(f"ranks of {events:,} events, one worker")
    for count in doubled(most):
        where = folder / f"ranks-{count}"
        where.mkdir()
        write_ranks(where, count, events)
        growth.sizes.append(count)
        growth.seconds.append(spent_s(lambda where=where: diagnose(str(where), cache=False, workers=1)))  # type: ignore[misc]
    one = spent_s(lambda: diagnose(str(where / "rank-0.json"), cache=False, workers=1), 3)
    yield f"A rank of {most} costs {growth.seconds[-1] / most / one:.2f} times what its file costs by itself."
    yield growth


def layouts(largest: int) -> Iterator[str | Growth]:
    """The planner's search over larger clusters; its size is the number of layouts."""
    from stallwise.physics.specs.cluster import find_cluster
    from stallwise.physics.specs.model import find_model
    from stallwise.physics.specs.recipe import Recipe
    from stallwise.physics.specs.workload import Workload
    from stallwise.planner.search import evaluate
    from stallwise.planner.space import enumerate_layouts

    growth = Growth("layouts of the planner")
    model = find_model("llama-3-70b")
    for gpus in doubled(largest):
        cluster, work = find_cluster(f"h100x{gpus}"), Workload(8192, max(gpus, 512))
        grid = enumerate_layouts(model, cluster, work)
        evaluate(model, cluster, work, grid, Recipe())
        growth.sizes.append(len(grid))
        growth.seconds.append(spent_s(lambda g=grid, c=cluster, w=work: evaluate(model, c, w, g, Recipe()), 2))  # type: ignore[misc]
    yield f"The planner works out {growth.sizes[-1] / growth.seconds[-1]:,.0f} layouts a second on one core."
    yield growth


def requests(most: int) -> Iterator[str | Growth]:
    """The serving simulator over longer traffic."""
    from stallwise.physics.sim.requests import Traffic, lognormal, poisson
    from stallwise.physics.sim.service import simulate
    from stallwise.physics.specs.deployment import Deployment
    from stallwise.physics.specs.hardware import gpu
    from stallwise.physics.specs.model import find_model

    growth = Growth("requests of the serving simulator")
    service = Deployment(find_model("llama-3.1-70b"), gpu("h100-sxm"), tp=8, weights="fp8")
    chat = Traffic(lognormal(1250), lognormal(300))
    simulate(service, poisson(8, chat, 50, 1))
    tokens = 0.0
    for count in doubled(most):
        began = _cpu_s()
        tokens = simulate(service, poisson(8, chat, count, 1)).meter.output_tokens
        growth.sizes.append(count)
        growth.seconds.append(_cpu_s() - began)
    yield f"The simulator serves {tokens / growth.seconds[-1]:,.0f} decode tokens for a second of one core."
    yield growth


def page(parts: dict[str, list[str | Growth]], seconds: float, quick: bool) -> str:
    """The whole page; how it was measured comes first."""
    growths = [x for found in parts.values() for x in found if isinstance(x, Growth)]
    text = [
        "# How fast it is", "",
        "Regenerated by `make bench`. Every figure is processor time of one run on one machine "
        f"({_machine()}, {datetime.date.today():%Y-%m-%d}; {seconds:.0f} s in all), beside a yardstick taken in the same run: the "
        "ratios travel to other machines, the seconds do not. Nothing is read from the cache. Tables of whole programs count "
        "fresh processes with their start; growth counts the work alone, the best of two."
        + (" Small sizes (`--quick`): the start of a process weighs more here than in a long run." if quick else ""),
        "",
    ]  # fmt: skip
    for title, found in parts.items():
        lines = [x for x in found if isinstance(x, str)]
        text += [f"## {title}", "", *lines, ""] if lines else []
    text += [
        "## How it grows", "", f"Sizes double; the exponent is the slope of the logarithms. {LINEAR}.", "",
        "| what | sizes | CPU s | exponent |", "|---|---|---|---:|", *(g.row() for g in growths), "",
    ]  # fmt: skip
    return "\n".join(text)


def _machine() -> str:
    name = next(
        (x.split(":", 1)[1].strip() for x in _read("/proc/cpuinfo").splitlines() if x.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def main() -> None:
    """Prints the page as it comes, and writes it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute instead of several")
    parser.add_argument("--trace", type=Path, default=DEMO, help="the trace that is grown; default: the bundled one")
    chosen = parser.parse_args()
    small = 4 if chosen.quick else 1
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        parts: dict[str, list[str | Growth]] = {}
        for title, work in (
            ("Traces", traces(chosen.trace, 400_000 // small, folder, 1 if chosen.quick else 3)),
            ("Logs", logs(8_000_000 // small, folder)),
            ("Many ranks", ranks(64 // small, 2_000, folder)),
            ("Layouts", layouts(2048 // small)),
            ("Requests", requests(8000 // small)),
        ):
            parts[title] = []
            for found in work:
                parts[title].append(found)
                print(
                    found if isinstance(found, str) else f"  growth exponent {found.exponent:.2f}: {found.what}",
                    flush=True,
                )
    text = page(parts, time.perf_counter() - began, chosen.quick)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
        print(f"written to {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
