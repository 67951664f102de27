"""Reports and the page in a real browser: no error, no request, no barrier, nothing of the input runs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.render.html import to_html
from tests.render.hostile import hostile
from tests.web.browser import OVERFLOW, Watched
from tests.web.pages import local_page

pytestmark = pytest.mark.browser

REPO = Path(__file__).parents[2]
ENGINE_LOG = "".join(
    f"INFO 03-01 10:{i // 6:02d}:{i % 6}0 [loggers.py:118] Engine 000: Avg prompt throughput: {900 - i * 3:.1f} tokens/s, "
    f"Avg generation throughput: {1800 - i * 10:.1f} tokens/s, Running: {min(i * 3, 64)} reqs, Waiting: {max(0, i * 3 - 64)} reqs, "
    f"GPU KV cache usage: {min(99.9, 3.4 * i):.1f}%, Prefix cache hit rate: {max(0, 40 - i):.1f}%\n"
    for i in range(60)
)


UNFOLD = """for (const fold of document.querySelectorAll('details')) fold.open = true;
for (const panel of document.querySelectorAll('.panel')) panel.hidden = false;"""


def opened(browser: Any, html: str, place: Path, **settings: Any) -> Watched:
    place.write_text(html, encoding="utf-8")
    watched = Watched(browser, **settings)
    watched.page.goto(place.as_uri())
    return watched


def clean(watched: Watched) -> None:
    assert watched.problems == []
    assert watched.dialogs == []
    assert len(watched.requests) == 1, watched.requests
    watched.page.evaluate(UNFOLD)
    assert watched.violations() == []


def test_a_serving_report_shows_queue_and_cache(browser: Any, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text(ENGINE_LOG, encoding="utf-8")
    watched = opened(browser, to_html(diagnose(str(log))), tmp_path / "report.html")
    assert watched.page.locator("svg[aria-label*='KV cache']").count() == 1
    watched.page.click("#tab-timeline")
    watched.page.locator("#h-serving-0").scroll_into_view_if_needed()
    watched.snapshot("report-engine")
    clean(watched)
    watched.close()


def test_nothing_of_a_hostile_input_runs(browser: Any, tmp_path: Path) -> None:
    watched = opened(browser, to_html(hostile()), tmp_path / "report.html")
    clean(watched)
    assert watched.page.locator("img").count() == 0
    watched.close()


def test_the_report_works_by_keyboard_and_on_paper(browser: Any, tmp_path: Path) -> None:
    html = to_html(diagnose(str(REPO / "examples/traces/loader_slow")))
    watched = opened(browser, html, tmp_path / "report.html")
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    note = page.locator(".tip").first
    note.focus()
    assert note.locator(".note").is_visible()
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(media="print")
    assert not page.locator("#theme").is_visible()
    assert watched.problems == []
    watched.close()


@pytest.fixture(scope="module")
def at_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    root = tmp_path_factory.mktemp("chosen")
    (root / "engine.log").write_text(ENGINE_LOG, encoding="utf-8")
    with local_page(root) as served:
        watched = Watched(browser)
        watched.page.goto(served.url)
        yield watched
        watched.close()


def test_files_dropped_on_the_page_become_a_report(at_page: Watched, tmp_path: Path) -> None:
    page = at_page.page
    file = tmp_path / "<img src=x onerror=alert(1)>.log"
    file.write_text(ENGINE_LOG + "<script>alert(2)</script>\n", encoding="utf-8")
    page.set_input_files("#file", [str(file)])
    page.wait_for_selector("#frame:not([hidden])")
    page.frame_locator("#frame").locator("#verdict h1").wait_for()
    at_page.snapshot("page-report")
    assert at_page.problems == [] and at_page.dialogs == []


def test_a_folder_picked_on_the_page_becomes_a_report(at_page: Watched, tmp_path: Path) -> None:
    page = at_page.page
    for rank in range(2):  # the same name in each folder
        (tmp_path / "run" / f"rank{rank}").mkdir(parents=True)
        (tmp_path / "run" / f"rank{rank}" / "engine.log").write_text(ENGINE_LOG, encoding="utf-8")
    page.set_input_files("#whole", str(tmp_path / "run"))
    page.wait_for_function(
        "document.getElementById('say').textContent.length > 0 && !document.getElementById('frame').hidden"
    )
    page.frame_locator("#frame").locator("footer:has-text('run/rank1/engine.log')").wait_for()
    assert at_page.problems == []


def test_rubbish_dropped_on_the_page_gets_a_sentence(at_page: Watched, tmp_path: Path) -> None:
    file = tmp_path / "noise.gz"
    file.write_bytes(gzip.compress(bytes(range(256)) * 40))
    at_page.page.set_input_files("#file", [str(file)])
    at_page.page.wait_for_selector("#say.problem")
    assert "noise.gz" in at_page.page.locator("#say").inner_text()
    assert [p for p in at_page.problems if "422" not in p] == []  # the browser itself reports the refusal
    at_page.problems.clear()


def test_planner_sliders_answer_within_a_tenth_of_a_second(at_page: Watched) -> None:
    page = at_page.page
    page.click("#t-plan")
    page.wait_for_selector("#plan-answer .big")
    for _ in range(2):  # the first answers load the catalogues
        took = [_moved(page, "plan-knobs-tp", k % 4) for k in range(6)]
        took += [_moved(page, "plan-knobs-micro_batch", k % 3) for k in range(4)]
    assert min(took) < 100.0, took  # milliseconds; the quickest, since others may keep this machine busy
    assert at_page.problems == []


def _moved(page: Any, knob: str, value: int) -> float:
    found: float = page.evaluate(
        """async ([id, value]) => {
          const form = document.getElementById(id).form, knob = document.getElementById(id);
          delete form.dataset.answered;
          knob.value = value;
          knob.dispatchEvent(new Event("input", { bubbles: true }));
          while (!form.dataset.answered) await new Promise((r) => requestAnimationFrame(r));
          return Number(form.dataset.answered);
        }""",
        [knob, value],
    )
    return found


def test_the_best_layout_can_be_taken_over(at_page: Watched) -> None:
    page = at_page.page
    page.click("#t-plan")
    page.get_by_role("button", name="Find the best layout").click()
    page.get_by_role("button", name="Use layout").first.click()
    label = page.locator("#p-plan tr:has(button) td:first-child").first.inner_text()
    page.wait_for_function("label => document.getElementById('plan-answer').textContent.includes(label)", arg=label)


TABS = {
    "report": "#drop", "plan": "#p-plan tr:has(button)", "serve": "#serve-answer .big", "pipe": "#pipe-answer svg",
    "drill": "#drill-list button",
}  # fmt: skip


@pytest.mark.parametrize("tab", TABS)
def test_every_tab_fits_at_a_desk_and_on_a_phone(at_page: Watched, tab: str) -> None:
    page = at_page.page
    page.click(f"#t-{tab}")
    page.wait_for_selector(TABS[tab])
    for width, scheme in ((390, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(OVERFLOW) == []
        assert at_page.violations() == []
        at_page.snapshot(f"page-{tab}-{width}-{scheme}")
    assert at_page.problems == []


def test_a_drill_is_answered_on_the_page(at_page: Watched) -> None:
    page = at_page.page
    page.click("#t-drill")
    page.locator("#drill-list button").first.click()
    page.wait_for_selector("#talk p")
    page.fill("#text", "<b>bandwidth</b> and latency")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("#talk p.me + p")
    at_page.snapshot("page-drill")
    assert page.locator("#talk b").count() == 0
    assert at_page.problems == [] and at_page.violations() == []


def test_tabs_move_with_the_arrow_keys(at_page: Watched) -> None:
    page = at_page.page
    page.click("#t-report")
    page.keyboard.press("ArrowRight")
    assert page.locator("#t-plan").get_attribute("aria-selected") == "true"
    assert page.locator("#p-report").is_hidden()


def test_the_page_asks_nobody_else(at_page: Watched) -> None:
    assert all(url.startswith(("http://127.0.0.1:", "data:", "blob:")) for url in at_page.requests)


ELSEWHERE = """
<title>elsewhere</title><iframe src="PAGE" id="frame"></iframe><script src="PAGEtool/diagnose"></script>
<form action="PAGEtool/plan" method="post" target="out" id="form"><input name="model" value="x"></form><iframe name="out"></iframe>
<script>
window.told = [];
const tell = (what, ok) => window.told.push(what + ": " + ok);
document.getElementById("form").submit();
Promise.all(["GET", "POST"].map(method => fetch("PAGE", {method, mode: "cors", credentials: "include"})
  .then(r => r.text().then(t => tell(method, t.length)), () => tell(method, "refused"))))
  .then(() => fetch("PAGE", {mode: "no-cors"}).then(r => r.text().then(t => tell("blind", t.length)), () => tell("blind", "refused")))
  .then(() => { let seen; try { seen = document.getElementById("frame").contentDocument.body.innerText } catch (e) { seen = "refused" }
    tell("frame", seen || "refused"); window.done = true });
</script>
"""


def test_another_site_in_the_same_browser_gets_nothing(browser: Any, tmp_path: Path) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    (tmp_path / "secret.log").write_text("step 1 loss 2\n")
    with local_page(tmp_path) as page:
        address = f"http://127.0.0.1:{page.server_port}/"

        class Elsewhere(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(ELSEWHERE.replace("PAGE", address).encode())

            def log_message(self, *_: object) -> None:
                pass

        other = HTTPServer(("127.0.0.1", 0), Elsewhere)
        Thread(target=other.serve_forever, daemon=True).start()
        watched = Watched(browser)
        for host in ("127.0.0.1", "localhost"):
            watched.page.goto(f"http://{host}:{other.server_port}/")
            watched.page.wait_for_function("window.done")
            assert set(watched.page.evaluate("window.told")) <= {
                "GET: refused", "POST: refused", "blind: refused", "blind: 0", "frame: refused",
            }  # fmt: skip
        other.shutdown()
        other.server_close()
