"""One Chromium for all tests of pages: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.browser import chromium


@pytest.fixture(scope="package")  # not the session: while it lives, tests of other packages could run no event loop
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found
