"""numpy, loaded when the first array is made: a sentence has none, and numpy is a third of what a start would load."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Late:
        """The module from its first use on; what was asked for once is kept, so it costs no more than the module itself."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Late()

__all__ = ["is_array", "np", "unwarned"]


def is_array(value: object) -> bool:
    """Whether it is one of numpy's; without numpy nothing is."""
    return "numpy" in sys.modules and isinstance(value, np.ndarray)


@contextmanager
def unwarned() -> Iterator[None]:
    """Damaged numbers are judged, not warned of. Where numpy is not there yet, warnings are silenced instead of its error state."""
    if "numpy" in sys.modules:
        with np.errstate(all="ignore"):
            yield
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
