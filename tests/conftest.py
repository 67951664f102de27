"""Every test runs without the user's own hardware profile and cache."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure: speed is measured in bench/, never by a timed test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Folders whose tests start processes, browsers or long tables: they go first, so that no worker ends on one while the other waits.
LONG = ("instrument", "trust", "questions", "search", "published", "docs", "web", "jobs", "incidents")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in LONG)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped, by what it needs: one line a reason."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(r.longrepr[2].removeprefix("Skipped: ") for r in reports if isinstance(r.longrepr, tuple))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    home: Path = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("STALLWISE_PROFILE", str(home / "hardware.json"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("STALLWISE_HISTORY", "off")
