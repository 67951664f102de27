"""How wide the terminal is; `shutil`, which says it too, would load every packer of the standard library."""

from __future__ import annotations

import os
import sys


def terminal_columns(usual: int = 80) -> int:
    """COLUMNS where it is set, else the width of the terminal that is printed to, else the usual one."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or usual  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # closed, captured, or no terminal
        return usual
