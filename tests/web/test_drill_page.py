"""A round and a card on the local page, in a real browser, at a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import SNAPSHOTS, Watched
from tests.web.pages import local_page

pytestmark = pytest.mark.browser
PATIENCE_MS = 90_000  # a shared machine may be slow; nothing here waits when it is not
PHONE = {"width": 390, "height": 844}


def heard(page: Any, words: str) -> None:
    page.wait_for_function("words => document.getElementById('talk').textContent.includes(words)", arg=words)


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def choose(page: Any, words: str) -> None:
    page.locator("#drill-form button", has_text=words).first.click()


ACCOUNT = (
    "Steps take 2.18 times as long and nothing in the code changed, so one card at lower clocks is the likeliest: the other 511 wait "
    "for it in every all-reduce. I would take times per rank, drain that node, then look at the loader, then at checkpoints. "
    "If all ranks were slow alike I would look at the fabric."
)


def send(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.get_by_role("button", name="Send").click()


def play(page: Any, url: str) -> None:
    """Scenario 2: exhibits side by side, a note, the account typed, how sure by a click, the follow-up."""
    page.goto(url)
    page.click("#t-drill")
    page.get_by_role("button", name="2. MFU collapses mid-training").click()
    heard(page, "512 H100")
    assert "of 15:00" in page.locator("#drill-clock").text_content()
    send(page, "think one node is slow")
    heard(page, "noted at")
    send(page, "can I see the times of each rank")
    heard(page, "opened: nccl_inspector.jsonl")
    choose(page, "nvidia-smi")
    heard(page, "nvidia_smi_node17.csv")
    assert "clocks_event_reasons" in page.locator("#paper").text_content()
    page.locator("#artifacts button", has_text="nccl_inspector.jsonl").click()
    assert "coll_exec_time_us" in page.locator("#paper").text_content()
    page.fill("#note-text", "rank 136 hardly waits")
    page.get_by_role("button", name="Keep").click()
    page.wait_for_selector("#notes li:has-text('136')")
    assert fits(page)
    if SNAPSHOTS:
        page.screenshot(path=str(Path(SNAPSHOTS) / "page-round-exhibits.png"))
    choose(page, "commit")
    heard(page, "as you would tell a colleague")
    send(page, ACCOUNT)
    heard(page, "How sure are you")
    choose(page, "90%")
    heard(page, "GPUs' worth")
    send(page, "zwei")
    heard(page, "is not a number")
    send(page, "277")
    page.wait_for_selector("#sheet h3:has-text('strong pass')")
    page.wait_for_selector("#sheet h3:has-text('Your rounds')")
    assert page.locator("#sheet tr").count() == 7


def test_a_round_is_played_on_the_page(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    with local_page(tmp_path) as served:
        watched = Watched(browser)
        watched.page.set_default_timeout(PATIENCE_MS)
        play(watched.page, served.url)
        watched.snapshot("page-round")
        assert watched.page.locator("#reply").is_hidden() and watched.page.locator("#drill-form button").count() == 0
        assert watched.problems == [] and watched.violations() == []
        watched.page.set_viewport_size(PHONE)
        play(watched.page, served.url)
        watched.snapshot("page-round-phone")
        assert fits(watched.page)
        assert watched.problems == [] and watched.violations() == []
        page = watched.page
        page.get_by_role("button", name="serving (4 cards)").click()
        heard(page, "stops growing")
        send(page, "The decode reads all weights for each token, so it is bound by bandwidth.")
        heard(page, "What limits?")
        choose(page, "reading weights and KV")
        heard(page, "How sure are you?")
        choose(page, "90%")
        heard(page, "right: reading weights")
        heard(page, "strong.")
        assert fits(page) and watched.problems == []
        watched.close()
