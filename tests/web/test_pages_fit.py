"""Reports of every kind of artifact, and the page of every verb, at both widths and in both schemes: nothing overflows, nothing
complains, nothing is asked for, and axe finds no barrier. Some are walked here, in one scheme a width; `make pages` walks all."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from stallwise.surfaces.cli import main
from tests.web.browser import OVERFLOW, ROWS_ALIKE, Watched
from tests.web.test_browser import ENGINE_LOG, UNFOLD

pytestmark = pytest.mark.browser
REPO = Path(__file__).parents[2]
SHARED = REPO.parent / "shared" / "data"
ALL = bool(os.environ.get("STALLWISE_ALL_PAGES"))
SIZES = os.environ.get("STALLWISE_PAGE_SIZES")  # a file to write the reports' sizes to
LOADER, HEALTHY = "examples/traces/loader_slow", "tests/cases/none/compiled_healthy"
FIXTURES = REPO / "tests" / "fixtures"
TWO_LINES = 2 * 1.45 * 15 + 14  # pixels: two lines of a row and its padding
SETS = {
    "input": "examples/traces/loader_slow",
    "checkpoint": "tests/cases/checkpoint-stall/ckpt_stall",
    "misaligned": "tests/cases/misaligned-shapes/misaligned",
    "healthy": "tests/cases/none/compiled_healthy",
    "copies": "tests/cases/h2d-copy-exposed/h2d_pageable",
    "counters": "tests/fixtures/kernels/kernels_raw.csv.gz",
    "memory": "tests/fixtures/memory/oom_logits.pickle.gz",
    "layers": "tests/fixtures/numerics/fp8_long_context.json",
    "card": "tests/fixtures/smi/nvidia_smi_q.xml",
    "stated": "examples/scenarios/02_mfu_collapse/case.toml",
    "serving": "examples/scenarios/03_serving_collapse/case.toml",
}
MORE = {
    "counter details": "tests/fixtures/kernels/kernels_details.csv.gz",
    "counter text": "tests/fixtures/kernels/extra_text.txt.gz",
    "autotune": "tests/fixtures/kernels/triton_sweep.json.gz",
    "fragmentation": "tests/fixtures/memory/oom_fragmentation.pickle.gz",
    "out of memory": "tests/fixtures/memory/oom_fragmentation_message.txt",
    "samples": "tests/fixtures/smi/dmon.txt",
    "topology": "tests/fixtures/smi/topo.txt",
    "trials": "tests/fixtures/trials/nano124_eager.json",
    "collectives": "examples/scenarios/06_allreduce_cliff",
    "pipeline": "examples/scenarios/08_pipeline_bubble",
    "kernel": "examples/scenarios/01_slow_gemm_kernel",
}
VERBS = {
    "compare": ["compare", HEALTHY, LOADER],
    "kernels": ["kernels", str(FIXTURES / "kernels" / "kernels_raw.csv.gz")],
    "plan train": ["plan", "train", "--model", "llama-3-8b", "--cluster", "8xh100", "--explain", "--smaller"],
    "plan memory": ["plan", "memory", "--model", "llama-3-70b", "--cluster", "h100x512", "--tp", "8", "--pp", "4"],
    "plan serve": ["plan", "serve", "--model", "llama-3.1-8b", "--rate", "2"],
    "whatif": ["whatif", LOADER],
    "trend": ["compare", "days"],
}
FEW = (*SETS, "kernels", "trend")
MOST_BYTES = 850_000
WIDTHS = (1920, 1440, 390)
SCHEME = {(0, 1440): ("light",), (1, 390): ("dark",)}  # of every second page, where not all
MOST_HIGH = 1500  # pixels to the end of the first tab, at a desk
ENDS = "document.querySelector('.panel').getBoundingClientRect().bottom + scrollY"
ROWS = "[...document.querySelectorAll('table.ledger tbody tr')].map((r) => r.getBoundingClientRect().height)"


def reported(path: str) -> str:
    return to_html(diagnose(path))


def answered(words: list[str], folder: Path) -> str:
    out = folder / "answer.html"
    (folder / "days").mkdir(exist_ok=True)
    for day, step_s in enumerate((0.2, 0.201, 0.199, 0.24, 0.241, 0.24)):
        lines = "".join(f"step {n} loss {3 - n / 100:.3f} step_time {step_s + n % 3 / 1000:.4f}\n" for n in range(40))
        (folder / "days" / f"day{day}.log").write_text(lines, encoding="utf-8")
    named = [str(folder / w) if w == "days" else str(REPO / w) if (REPO / w).exists() else w for w in words]
    result = CliRunner().invoke(main, [*named, "-o", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return out.read_text(encoding="utf-8")


def tried(folder: Path) -> str:
    found = diagnose(str(FIXTURES / "trials" / "nano124_eager.json"))
    return to_html(found.trials[0], diagnosis=found)


def logged(folder: Path) -> str:
    (folder / "engine.log").write_text(ENGINE_LOG, encoding="utf-8")
    return reported(str(folder / "engine.log"))


def pages() -> dict[str, Callable[[Path], str]]:
    found: dict[str, Callable[[Path], str]] = {n: partial(_of, path=str(REPO / p)) for n, p in {**SETS, **MORE}.items()}
    found |= {verb: partial(answered, words) for verb, words in VERBS.items()} | {"try": tried, "engine": logged}
    if ALL and SHARED.is_dir():  # strangers' artifacts, where they are
        for folder in sorted(p for p in SHARED.glob("*/*") if p.is_dir())[::9]:
            found[f"shared {folder.name}"] = partial(_of, path=str(folder))
    return found if ALL else {name: found[name] for name in FEW}


def _of(folder: Path, path: str) -> str:
    return reported(path)


PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_everywhere(browser: Any, name: str, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text(PAGES[name](tmp_path), encoding="utf-8")
    assert ALL or place.stat().st_size < MOST_BYTES
    if SIZES:
        with Path(SIZES).open("a", encoding="utf-8") as out:
            out.write(f"{place.stat().st_size}\t{name}\n")
    watched = Watched(browser)
    page = watched.page
    page.goto(place.as_uri())
    page.set_viewport_size({"width": 1440, "height": 900})
    if page.locator(".beside").count():
        assert page.evaluate(ENDS) <= MOST_HIGH
    page.evaluate(UNFOLD)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVERFLOW) == [], width
        if width == 390:
            assert all(height <= TWO_LINES for height in page.evaluate(ROWS))
        for scheme in ("light", "dark") if ALL else SCHEME.get((list(PAGES).index(name) % 2, width), ()):
            page.emulate_media(color_scheme=scheme)
            assert watched.violations(rows=None if ALL else ROWS_ALIKE) == [], (width, scheme)
            watched.snapshot(f"{name}-{width}-{scheme}")
    assert watched.problems == [] and watched.dialogs == []
    assert len(watched.requests) == 1, watched.requests
    watched.close()


def test_on_paper_a_report_is_whole_and_light(browser: Any, tmp_path: Path) -> None:
    watched = Watched(browser, color_scheme="dark")
    place = tmp_path / "page.html"
    place.write_text(reported(str(REPO / LOADER)), encoding="utf-8")
    watched.page.goto(place.as_uri())
    watched.page.emulate_media(media="print", color_scheme="dark")
    assert watched.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert watched.page.evaluate("getComputedStyle(document.querySelector('h2')).color") == "rgb(17, 17, 17)"
    paper = watched.page.pdf(format="A4", print_background=True)
    assert (
        paper.startswith(b"%PDF") and paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") <= 16
    )  # what is folded stays folded: no book
    watched.close()
