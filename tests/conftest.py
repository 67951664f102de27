"""Every test runs without the user's own hardware profile and cache."""

from __future__ import annotations

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


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    home: Path = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("STALLWISE_PROFILE", str(home / "hardware.json"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("STALLWISE_HISTORY", "off")
