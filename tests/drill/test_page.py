"""A round on the local page, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.browser import Watched, chromium
from tests.web.pages import local_page

pytestmark = pytest.mark.browser
PATIENCE_MS = 90_000  # a shared machine may be slow; nothing here waits when it is not


def test_a_round_is_played_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    with local_page(tmp_path) as served, chromium() as browser:
        watched = Watched(browser)
        page = watched.page
        page.set_default_timeout(PATIENCE_MS)
        page.goto(served.url)
        page.click("#t-drill")
        page.get_by_role("button", name="2. MFU collapses mid-training").click()
        page.wait_for_function("document.getElementById('talk').textContent.includes('512 H100')")
        for said, answered in (
            ("think most likely a straggler, one degraded node; sharding is less likely", "noted at"),
            ("ask nccl per-rank times", "slow_node"),
            ("calc 48% / 22%", "2.182"),
            (
                "commit a degraded node 17 holds all 512 GPUs: a straggler, 2.18x",
                "root cause: the mechanism, straggler-rank",
            ),
        ):
            page.fill("#text", said)
            page.get_by_role("button", name="Send").click()
            page.wait_for_function("words => document.getElementById('talk').textContent.includes(words)", arg=answered)
        watched.snapshot("page-round")
        assert page.locator("#reply").is_hidden()
        assert watched.problems == [] and watched.violations() == []
        watched.close()
