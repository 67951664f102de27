"""Every test runs without the user's own hardware profile and cache."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure: speed is measured in bench/, never by a timed test.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Whoever starts the tests in the background (nohup, a CI runner) hands down an ignored Ctrl-C; jobs in tests are to hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Folders whose tests start processes, browsers or long tables: they go first, so that no worker ends on one while the other waits.
LONG = (
    "tests/recorder",
    "tests/recorder/trials",
    "tests/trust",
    "tests/questions",
    "tests/planner",
    "tests/published",
    "tests/docs",
    "tests/web",
    "tests/jobs",
    "tests/incidents",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parents[1]
    long = tuple(root / folder for folder in LONG)
    items.sort(key=lambda item: not any(item.path.is_relative_to(folder) for folder in long))


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
