"""Rounds keep every event on the disk at once; tests need not wait for the disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def quick_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stallwise.drill.journal.os.fsync", lambda _: None)
        yield
