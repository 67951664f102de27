"""A round and a card on the local page, in a real browser, at a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import Watched
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


def play(page: Any, url: str) -> None:
    """Scenario 2 by clicks, the request and the number typed."""
    page.goto(url)
    page.click("#t-drill")
    page.get_by_role("button", name="2. MFU collapses mid-training").click()
    heard(page, "512 H100")
    page.fill("#text", "can I see the times of each rank")
    page.get_by_role("button", name="Send").click()
    heard(page, "slow_node")
    choose(page, "commit")
    heard(page, "how sure are you?")
    label = page.locator("#drill-form label", has_text="one rank or machine is late").first
    page.fill(f"#{label.get_attribute('for')}", "90")
    assert fits(page)
    choose(page, "Commit to this")
    heard(page, "(straggler-rank) 90%")
    choose(page, "No second fault")
    heard(page, "no second fault")
    page.fill("#text", "zwei")
    page.get_by_role("button", name="Send").click()
    heard(page, "is not a number")
    page.fill("#text", "2,1 times")
    page.get_by_role("button", name="Send").click()
    heard(page, "2.1 ratio")
    for words in ("Compare per-rank", "Check node 17", "Drain it"):
        choose(page, words)
    assert fits(page)
    choose(page, "Commit to this order")
    heard(page, "would prove that diagnosis wrong")
    choose(page, "every rank arrives")
    heard(page, "must not be done first")
    choose(page, "change sharding")
    heard(page, "Tell it as you would")
    page.fill("#text", "One machine is late and holds all 512.")
    page.get_by_role("button", name="Send").click()
    heard(page, "A good account holds these")
    page.check("#tick0")
    choose(page, "That is what I said")
    heard(page, "STAFF")


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
        page.fill("#text", "decode reads weights")
        page.get_by_role("button", name="Send").click()
        heard(page, "What limits?")
        choose(page, "reading weights and KV")
        heard(page, "right: reading weights")
        page.check("#tick0")
        choose(page, "That is what I said")
        heard(page, "pass.")
        assert fits(page) and watched.problems == []
        watched.close()
