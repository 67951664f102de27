"""The sliders for what-if under real keys and a real pointer: every position shows the replay of that combination."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.html import to_html
from stallwise.units import Unit, show
from tests.web.browser import Watched

pytestmark = pytest.mark.browser

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return diagnose(str(REPO / "examples" / "traces" / "loader_slow"))


@pytest.fixture(scope="module")
def report(diagnosis: Diagnosis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sliders") / "report.html"
    place.write_text(to_html(diagnosis), encoding="utf-8")
    return place


def test_keys_move_a_slider_and_the_replay_of_that_place_is_shown(
    browser: Any, report: Path, diagnosis: Diagnosis
) -> None:
    table = diagnosis.evidence.table("replayed_together")[0]
    names = list(table.meta["meanings"])
    steps = table.columns["step_s"]
    watched = Watched(browser)
    page = watched.page
    page.goto(report.as_uri() + "#whatif")
    said = page.locator("#sl-step")
    assert show(float(steps[0]), Unit.SECOND) in said.inner_text()
    first = page.locator("#sl-0")
    first.focus()
    page.keyboard.press("End")
    wholly = (table.columns[names[0]] == 1.0) & (sum(table.columns[n] for n in names[1:]) == 0.0)
    fixed = float(steps[wholly][0])
    assert f"takes {show(fixed, Unit.SECOND)} instead of {show(float(steps[0]), Unit.SECOND)}" in said.inner_text()
    assert first.get_attribute("aria-valuetext") == "all of it"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "sl-1"
    page.keyboard.press("End")
    both = (table.columns[names[0]] == 1.0) & (table.columns[names[1]] == 1.0)
    both &= sum((table.columns[n] for n in names[2:]), start=0.0 * steps) == 0.0
    assert show(float(steps[both][0]), Unit.SECOND) in said.inner_text()
    first.focus()
    page.keyboard.press("Home")
    assert first.get_attribute("aria-valuetext") == "as it is"
    assert watched.problems == [] and len(watched.requests) == 1


def test_they_fit_wide_and_narrow_light_and_dark(browser: Any, report: Path) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(report.as_uri() + "#whatif")
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.locator("#whatif").scroll_into_view_if_needed()
        watched.snapshot(f"sliders-{width}-{scheme}")
        inner = "(() => { const s = document.getElementById('whatif'); return s.scrollWidth - s.clientWidth; })()"
        assert page.evaluate(inner) <= 0
        assert watched.violations("#whatif") == []
