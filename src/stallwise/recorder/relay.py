"""Runs a command and passes its output and our signals through, on one thread.

Each stream that is a terminal stays one for the job, each that is not becomes a pipe, and two that are the same stay one, so
that the order of the lines is kept. A helper that outlives the job keeps its pipe: a process of ours goes on reading for it
while we leave with the job's code.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from stallwise.recorder import inherited
from stallwise.recorder.bounded_log import BoundedLog
from stallwise.recorder.group_signals import GroupSignals

CHUNK = 1 << 16
# These mean something to the process that gets them; the rest is forwarded.
NOT_FORWARDED = {
    "SIGKILL", "SIGSTOP", "SIGCHLD", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGPIPE", "SIGSEGV", "SIGBUS", "SIGILL",
    "SIGFPE", "SIGTRAP", "SIGWINCH", "SIGURG", "SIGPROF", "SIGVTALRM", "SIGSYS",
}  # fmt: skip
CANNOT_EXECUTE, NOT_FOUND = 126, 127  # as a shell says it


class Relay:
    """One child, its streams and its signals."""

    def __init__(self, log: BoundedLog) -> None:
        self._log = log
        self._sinks: Dict[int, int] = {}  # what we read -> where it goes
        self._child: Optional["subprocess.Popen[bytes]"] = None
        self._group_signals: Optional[GroupSignals] = None
        self._terminals: List[int] = []

    def run(self, command: Sequence[str], env: Dict[str, str]) -> int:
        """The exit code, negative for a signal; 126 and 127 where the command cannot be run."""
        self._group_signals = GroupSignals()
        out, err, ours = self._streams()
        wake, wakes = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wakes, False)
        before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        old = self._take_signals()
        try:
            # Nothing of ours can be inherited, so that the job gets what we got and no more.
            self._child = subprocess.Popen(list(command), env=env, stdout=out, stderr=err, close_fds=False)
            inherited.let_go(inherited.descriptors())
        except OSError as error:
            return _not_run(command, error)
        finally:
            for descriptor in ours:
                os.close(descriptor)
            if self._child is None:
                self._give_back(old, before)
        try:
            return self._until_the_end(wake)
        finally:
            self._give_back(old, before)
            os.close(wake)
            os.close(wakes)

    # -- streams

    def _streams(self) -> Tuple[Optional[int], Optional[int], List[int]]:
        """What the child gets as its output and errors, and which of our descriptors to close afterwards."""
        out, gives = self._stream(1)
        if out is not None and _same(1, 2):
            return out, out, gives
        err, more = self._stream(2)
        return out, err, [*gives, *more]

    def _stream(self, sink: int) -> Tuple[Optional[int], List[int]]:
        if inherited.is_closed(sink):
            return None, []  # closed for us, so for the job
        reads, writes = _terminal(sink) if os.isatty(sink) else os.pipe()
        if os.isatty(sink):
            self._terminals.append(reads)
        self._sinks[reads] = sink
        return writes, [writes]

    def _until_the_end(self, wake: int) -> int:
        child, chooser = self._child, selectors.DefaultSelector()
        assert child is not None
        chooser.register(wake, selectors.EVENT_READ)
        for source in self._sinks:
            chooser.register(source, selectors.EVENT_READ)
        while child.poll() is None:
            for key, _ in chooser.select(timeout=1.0):
                if key.fd == wake:
                    _drain(wake)
                elif not self._pass_on(key.fd):
                    chooser.unregister(key.fd)
                    self._sinks.pop(key.fd)
        for source in list(self._sinks):  # all that the job itself wrote is in the pipe by now
            os.set_blocking(source, False)
            while (more := self._pass_on(source)) is True:
                pass
            if more is False:
                self._sinks.pop(source)
        if self._sinks:
            self._leave_a_reader()
        return child.returncode

    def _pass_on(self, source: int) -> Optional[bool]:
        """True: some was passed on. False: the stream has ended. None: nothing there now."""
        try:
            data = os.read(source, CHUNK)
        except BlockingIOError:
            return None
        except OSError:  # a pseudo-terminal ends with an error, not with nothing
            return False
        if not data:
            return False
        self._log.write(data)
        if not _write(self._sinks[source], data):
            os.close(
                source
            )  # nobody reads our output any more: the job learns it as it would without us, by its next write
            return False
        return True

    def _leave_a_reader(self) -> None:
        """Somebody still holds the job's output: a process of ours reads on for him until he is done."""
        if sys.stdout is not None:
            sys.stdout.flush()
        try:
            if os.fork() != 0:
                return
        except OSError:
            return
        try:
            os.setsid()
            if self._group_signals is not None:
                self._group_signals = None
            chooser = selectors.DefaultSelector()
            for source in self._sinks:
                os.set_blocking(source, True)
                chooser.register(source, selectors.EVENT_READ)
            while chooser.get_map():
                for key, _ in chooser.select():
                    data = b""
                    try:
                        data = os.read(key.fd, CHUNK)
                    except OSError:
                        pass
                    if not data or not _write(self._sinks[key.fd], data):
                        chooser.unregister(key.fd)
                        os.close(key.fd)
        finally:
            os._exit(0)

    # -- signals

    def _take_signals(self) -> List[Tuple[int, Any]]:
        old: List[Tuple[int, Any]] = []
        for number in sorted(signal.valid_signals()):
            if number not in {int(getattr(signal, n)) for n in NOT_FORWARDED if hasattr(signal, n)}:
                try:
                    if signal.getsignal(number) is not signal.SIG_IGN:  # what is ignored, the job inherits so
                        old.append((number, signal.signal(number, self._forward)))
                except (OSError, ValueError, RuntimeError):
                    continue  # kept by the system
        old.append((signal.SIGCHLD, signal.signal(signal.SIGCHLD, lambda n, f: None)))
        if self._terminals and hasattr(signal, "SIGWINCH"):
            old.append((signal.SIGWINCH, signal.signal(signal.SIGWINCH, self._resize)))
        return old

    def _give_back(self, old: List[Tuple[int, Any]], wakeup: int) -> None:
        for number, handler in old:
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(wakeup)
        if self._group_signals is not None:
            self._group_signals.dismiss()
            self._group_signals = None

    def _forward(self, number: int, frame: Any) -> None:
        if self._group_signals is not None and self._group_signals.saw(number):
            return  # the whole group got it, the job too
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def _resize(self, number: int, frame: Any) -> None:
        for terminal in self._terminals:
            _same_size(terminal)


def _not_run(command: Sequence[str], error: OSError) -> int:
    missing = isinstance(error, FileNotFoundError)
    sys.stderr.write("stallwise: cannot run %s: %s\n" % (command[0], error.strerror))
    return NOT_FOUND if missing else CANNOT_EXECUTE


def _same(one: int, other: int) -> bool:
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:
        return False


def _terminal(like: int) -> Tuple[int, int]:
    """A pseudo-terminal that changes no byte: the real one behind it does what terminals do."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    try:
        settings = termios.tcgetattr(theirs)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        _same_size(ours)
    except (OSError, termios.error):
        pass
    return ours, theirs


def _same_size(terminal: int) -> None:
    import fcntl
    import termios

    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError:
        pass


def _drain(pipe: int) -> None:
    try:
        while os.read(pipe, 4096):
            pass
    except OSError:
        pass


def _write(sink: int, data: bytes) -> bool:
    """False where nobody reads at the other end any more; a disk that is full loses what the job's own write would lose."""
    try:
        while data:
            data = data[os.write(sink, data) :]
    except (BrokenPipeError, ConnectionResetError):
        return False
    except OSError:
        pass
    return True
