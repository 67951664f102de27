"""Where the shared data lies, for tests that need it; they are skipped with a message where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
SHARED = Path(os.environ.get("STALLWISE_SHARED", REPO.parent / "shared"))


def shared(*parts: str) -> Path:
    """A path in the shared folder, or a skip."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data is not here: {path.name}")
    return path
