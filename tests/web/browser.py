"""A real Chromium for the tests that look at pages; they are skipped with a message where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
SNAPSHOTS = os.environ.get("STALLWISE_SNAPSHOTS")  # a folder: screenshots are kept there for people to look at
QUIET = (
    "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-dev-shm-usage",
)  # fmt: skip
# What reaches beyond the page, but for what scrolls by itself.
OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) return ['the page scrolls to ' + document.documentElement.scrollWidth];
  const kept = (e) => e.closest('.scroll') && !e.classList.contains('scroll') || e.closest('.note, .skip');
  return [...document.querySelectorAll('body *')]
    .filter((e) => !kept(e) && e.getBoundingClientRect().width && e.getBoundingClientRect().right > wide + 1)
    .map((e) => e.tagName + ' ' + e.textContent.slice(0, 60)).slice(0, 3);
}"""
ROWS_ALIKE = 6
RUN_AXE = """async (part, rows) => {
  const few = new CSSStyleSheet();
  if (rows) few.replaceSync(`tbody tr:nth-child(n+${rows + 1}) { display: none !important }`);
  document.adoptedStyleSheets = [few];
  const found = await axe.run(part);
  document.adoptedStyleSheets = [];
  return found.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" | "));
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, or a skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = os.environ.get("STALLWISE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        browser.close()


class Watched:
    """A page that remembers what went wrong on it and what it asked the network for."""

    def __init__(self, browser: Any, **settings: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1160, "height": 900}, **settings)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def violations(self, part: str = "body", *, rows: int | None = ROWS_ALIKE) -> list[str]:
        """What axe-core finds in a part of the page, with the element. Rows of a table are made alike: a few stand for all."""
        script = AXE.read_text(encoding="utf-8")
        found: list[str] = self.page.evaluate(
            f"([part, rows]) => {{ {script}; return ({RUN_AXE})(part, rows); }}", [part, rows]
        )
        return found

    def snapshot(self, name: str) -> None:
        """Keeps a picture where asked."""
        if SNAPSHOTS:
            self.page.screenshot(path=str(Path(SNAPSHOTS) / f"{name}.png"))

    def close(self) -> None:
        self.context.close()
