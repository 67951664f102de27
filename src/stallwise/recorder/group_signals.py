"""Was a signal meant for us alone, or did the whole group get it? A small process in the group tells.

A terminal's Ctrl-C, `timeout` and batch systems signal every process of a group, the job included: passing it on would give the
job two. `kill PID` reaches only us: not passing it on would give the job none. The witness blocks all signals, waits, and
reports what arrives.
"""

from __future__ import annotations

import os
import select
import signal
from typing import Optional, Set

WAIT_S = 0.05  # signals to a group arrive within microseconds of one another; a busy machine gets some more
LOOK_FOR_PARENT_S = 1.0


class GroupSignals:
    """Forked before any thread exists."""

    def __init__(self) -> None:
        self._pid: Optional[int] = None
        self._pipe = -1
        try:
            reads, writes = os.pipe()
            parent = os.getpid()
            old = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            self._pid = os.fork()
        except OSError:  # no more processes: then every signal is passed on
            return
        if self._pid == 0:
            try:
                _watch(writes, parent)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
        os.close(writes)
        self._pipe = reads

    def saw(self, number: int) -> bool:
        """The witness got this signal too, just now."""
        if self._pipe < 0:
            return False
        while select.select([self._pipe], [], [], WAIT_S)[0]:
            seen = os.read(self._pipe, 64)
            if not seen:
                return False
            if number in seen:
                return True
        return False

    def dismiss(self) -> None:
        """Ends the witness."""
        if self._pid:
            try:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            except OSError:
                pass
            os.close(self._pipe)
            self._pid, self._pipe = None, -1


def _watch(pipe: int, parent: int) -> None:
    keep: Set[int] = {pipe}
    for number in range(256):
        if number not in keep:
            try:
                os.close(number)
            except OSError:
                pass
    wanted = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
    while os.getppid() == parent:
        got = signal.sigtimedwait(wanted, LOOK_FOR_PARENT_S)
        if got is not None:
            os.write(pipe, bytes([got.si_signo]))
