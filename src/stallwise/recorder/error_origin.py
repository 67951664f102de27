"""Whose exception is it? Ours is said and forgotten; the user's always passes.

A signal handler of the user's (a loader's dead worker, Ctrl-C, Slurm's warning) runs wherever the main thread is, so also
inside our own lines. What it raises must get through, or a failing job would go on.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any, Callable

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # every file of this package
_STANDARD = sysconfig.get_paths().get("stdlib", "") + os.sep
_INSTALLED = ("site-packages", "dist-packages")


def ours(error: BaseException) -> bool:
    """True if our own code, or the standard library called by it, raised the error."""
    if not isinstance(error, Exception):
        return False
    at = error.__traceback__
    if at is None:
        return False
    while at.tb_next is not None:
        at = at.tb_next
    file = at.tb_frame.f_code.co_filename
    if file.startswith((OURS, "<frozen")):
        return True
    return file.startswith(_STANDARD) and not any(place in file for place in _INSTALLED)


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls our own code; a failure of ours is told in one line, anybody else's goes on its way."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        if not ours(error):
            raise
        say("%s: %s; the job goes on" % (type(error).__name__, error))
        return None


def say(text: str) -> None:
    """One line on standard error, if there is one."""
    try:
        sys.stderr.write("stallwise: %s\n" % text)
        sys.stderr.flush()
    except Exception:
        pass  # closed: nobody to tell
