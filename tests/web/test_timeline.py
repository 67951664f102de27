"""The timeline under real hands: pointer, wheel, touch and keys in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from tests.web.browser import Watched

pytestmark = pytest.mark.browser

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "report.html"
    place.write_text(to_html(diagnose(str(REPO / "examples" / "traces" / "loader_slow"))), encoding="utf-8")
    return place


def opened(browser: Any, report: Path, width: int, **settings: Any) -> Watched:
    watched = Watched(browser, **settings)
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.page.goto(f"{report.as_uri()}#timeline")
    watched.page.locator("#tl").scroll_into_view_if_needed()
    return watched


def seen(page: Any) -> tuple[float, float]:
    """What part of the step is in view, in nanoseconds."""
    data = page.evaluate("({...document.getElementById('tl').dataset})")
    return float(data["from"]), float(data["to"])


def settled(page: Any) -> tuple[float, float]:
    """The view once a glide has ended."""
    before = seen(page)
    while True:
        page.wait_for_timeout(60)
        if seen(page) == before:
            return before
        before = seen(page)


def test_it_opens_clean(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        watched.snapshot(f"timeline-{width}-{scheme}")
        inner = "(() => { const s = document.getElementById('timeline'); return s.scrollWidth - s.clientWidth; })()"
        assert page.evaluate(inner) <= 0
        assert watched.violations("#timeline") == []
    assert watched.problems == [] and len(watched.requests) == 1
    watched.close()


def test_wheel_and_drag_move_the_view(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    box = page.locator("#tl").bounding_box()
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 70
    whole = seen(page)
    page.mouse.move(x, y)
    scrolled = page.evaluate("scrollY")
    page.mouse.wheel(0, 40)  # nobody has meant the timeline yet: the page scrolls
    page.wait_for_function("was => scrollY !== was", arg=scrolled)
    assert seen(page) == whole
    box = page.locator("#tl").bounding_box()
    y = box["y"] + 70
    page.mouse.click(x, y)
    page.mouse.wheel(0, -400)
    page.wait_for_function("was => Number(document.getElementById('tl').dataset.from) > was", arg=whole[0])
    near = seen(page)
    assert near[1] - near[0] < 0.8 * (whole[1] - whole[0])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y, steps=6)
    page.mouse.up()
    dragged = seen(page)
    assert dragged[0] < near[0] and dragged[1] - dragged[0] == pytest.approx(near[1] - near[0], rel=1e-6)
    assert watched.problems == []
    watched.close()


def test_a_click_tells_the_facts_and_keys_go_on(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    page.fill("#tl-search", "nvjet")
    page.press("#tl-search", "Enter")
    settled(page)
    facts = page.locator("#tl-facts")
    assert facts.locator("h3").inner_text().startswith("nvjet")
    words = facts.inner_text()
    for word in ("lasts", "stream 7", "correlation", "operator", "category", "compute", "grid", "fixed"):
        assert word in words
    assert page.locator("#tl-hits").inner_text().startswith("1 of ")
    first = page.locator("#tl").get_attribute("data-selected")
    page.focus("#tl")
    page.keyboard.press(".")
    assert page.locator("#tl").get_attribute("data-selected") != first
    before = settled(page)
    page.keyboard.press("ArrowRight")
    assert seen(page)[0] > before[0]
    page.keyboard.press("w")
    assert seen(page)[1] - seen(page)[0] < before[1] - before[0]
    page.keyboard.press("Enter")
    close = settled(page)
    page.keyboard.press("0")
    assert seen(page)[1] - seen(page)[0] > 5 * (close[1] - close[0])
    page.keyboard.press("Escape")
    assert facts.is_hidden()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "tl-search"
    assert watched.problems == [] and watched.violations("#timeline") == []
    watched.close()


def test_a_finding_jumps_to_what_proves_it(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    page.click("#tab-why")
    page.locator("a.jump").first.press("Enter")
    settled(page)
    assert page.evaluate("document.activeElement.id") == "tl"
    assert "input wait" in page.locator("#tl-facts").inner_text()
    page.wait_for_function("document.getElementById('tl').getBoundingClientRect().top < innerHeight")
    assert watched.problems == [] and watched.violations("#timeline") == []
    watched.close()


def test_two_fingers_zoom_and_one_pans(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 390, has_touch=True)
    page = watched.page
    box = page.locator("#tl").bounding_box()
    session = watched.context.new_cdp_session(page)

    def touch(kind: str, *xs: float) -> None:
        points = [{"x": box["x"] + x, "y": box["y"] + 60, "id": i} for i, x in enumerate(xs)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    whole = seen(page)
    touch("touchStart", 140, 180)
    for k in range(1, 7):
        touch("touchMove", 140 - 12 * k, 180 + 12 * k)
    touch("touchEnd")
    near = seen(page)
    assert near[1] - near[0] < 0.6 * (whole[1] - whole[0])
    touch("touchStart", 200)
    for k in range(1, 7):
        touch("touchMove", 200 - 15 * k)
    touch("touchEnd")
    assert seen(page)[0] > near[0]
    assert watched.problems == []
    watched.close()


def test_other_times_and_the_critical_path_are_shown(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    words = page.locator("#tl-version option").all_inner_texts()
    assert [w.split(":")[0] for w in words][:2] == ["as traced", "fixed (no-input-wait)"]
    tall = page.locator("#tl canvas").evaluate("c => c.height")
    page.select_option("#tl-beside", "-1")
    assert page.locator("#tl canvas").evaluate("c => c.height") < tall  # the second telling has lanes of its own
    plain = page.locator("#tl canvas").evaluate("c => c.toDataURL()")
    page.check("#tl-path")
    page.wait_for_function("was => document.querySelector('#tl canvas').toDataURL() !== was", arg=plain)
    page.select_option("#tl-version", "1")
    assert seen(page)[1] == pytest.approx(56.1e6, rel=0.03)
    assert watched.problems == []
    watched.close()


def test_a_heading_sorts_its_table(browser: Any, report: Path) -> None:
    watched = opened(browser, report, 1280)
    page = watched.page
    page.click("#tab-kernels")
    names = "[...document.querySelectorAll('#top-kernels tbody tr')].map(r => Number(r.cells[%d].dataset.v))"
    heads = page.locator("#top-kernels th").all_inner_texts()
    count = next(i for i, word in enumerate(heads) if word.startswith("count"))
    by_time = page.evaluate(names % count)
    button = page.locator("#top-kernels th button").nth(count)
    button.click()
    by_count = page.evaluate(names % count)
    assert by_count == sorted(by_time, reverse=True) != by_time
    button.press("Enter")
    assert page.evaluate(names % count) == sorted(by_time)
    assert page.locator("#top-kernels th[aria-sort]").count() == 1
    assert watched.problems == []
    watched.close()


def test_another_step_or_rank_stands_below(browser: Any, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    saved = REPO / "tests" / "cases" / "checkpoint-stall" / "ckpt_stall"
    place.write_text(to_html(diagnose(str(saved / "trace.json.gz"))), encoding="utf-8")
    watched = opened(browser, place, 1280)
    page = watched.page
    assert [o.split(" (")[1].split(")")[0] for o in page.locator("#tl-scene option").all_inner_texts()] == [
        "slowest",
        "median",
    ]
    page.select_option("#tl-beside", "step 1")
    box = page.locator("#tl").bounding_box()
    page.locator("#tl").click(position={"x": 155, "y": box["height"] - 14})  # the last track of the lower step
    page.wait_for_selector("#tl-facts:not([hidden])")
    page.select_option("#tl-scene", "1")
    assert seen(page)[1] == pytest.approx(57.3e6, rel=0.1)
    assert watched.problems == [] and watched.violations("#timeline") == []
    watched.close()
