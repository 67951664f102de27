"""A question in a process of its own: it can be cancelled or given up, and nobody else waits for it.

The page and the MCP server answer several people. Whatever their files hold, the worst they can do is to lose their own
answer: the process has a limit on its time and memory, and is ended when nobody waits for it any more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from stallwise.errors import StallwiseError
from stallwise.render import strict_json

ANSWER_S = 300.0
LOOK_S = 0.2  # how often one looks whether anybody still waits
MEMORY_SHARE = 0.8  # of the machine's memory, for one answer
PRELOADED = [
    "stallwise.doctor.examine",
    "stallwise.render.html",
    "stallwise.render.redact",
    "stallwise.surfaces.web.report",
]

Answer = dict[str, Any]


def _context() -> Any:
    """A clean parent that has loaded the code once; forking a server full of threads would not be safe."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(PRELOADED)
    return context


class WorkerProcess:
    """One call of a module's function in a process of its own."""

    def __init__(self, act: Callable[..., Answer], *arguments: Any, limit_s: float = ANSWER_S) -> None:
        context = _context()
        self.limit_s = limit_s
        self._answers, pipe = context.Pipe(duplex=False)
        self._process = context.Process(target=_answer, args=(pipe, limit_s, act, arguments), daemon=True)
        self._process.start()
        pipe.close()

    def wait(self, gone: Callable[[], bool] = lambda: False) -> Answer:
        """The answer; an error of ours is raised here as it was there."""
        deadline = time.monotonic() + self.limit_s
        try:
            while not self._answers.poll(LOOK_S):
                if gone():
                    raise ConnectionResetError("nobody waits for the answer any more")
                if time.monotonic() > deadline:
                    raise StallwiseError(
                        f"this took longer than {self.limit_s:.0f} s and was given up",
                        hint="ask about fewer or smaller files, or use the command line",
                    )
            reply: Answer = strict_json.loads(self._answers.recv_bytes())
        except (EOFError, OSError) as error:
            if isinstance(error, ConnectionResetError):
                raise
            raise StallwiseError(
                "the answer needed more memory or time than one question may have",
                hint="ask about fewer or smaller files, or use the command line",
            ) from error
        finally:
            self.end()
        if "problem" in reply:
            raise StallwiseError(reply["problem"], hint=reply["hint"])
        answer: Answer = reply["answer"]
        return answer

    @property
    def pid(self) -> int:
        """Of the process."""
        return int(self._process.pid or 0)

    def end(self) -> None:
        """Whatever it does, it stops."""
        with suppress(OSError, ValueError):
            self._process.kill()
            self._process.join(5)
            self._answers.close()


def _answer(pipe: Connection, limit_s: float, act: Callable[..., Answer], arguments: tuple[Any, ...]) -> None:
    """In the other process."""
    os.dup2(sys.stderr.fileno(), 1)  # what a library prints must not disturb a protocol on stdout
    _bound(limit_s)
    try:
        reply: Answer = {"answer": act(*arguments)}
    except StallwiseError as error:
        reply = {"problem": error.problem, "hint": error.hint}
    except MemoryError:
        reply = {"problem": "this does not fit into memory", "hint": "ask about fewer or smaller files"}
    except Exception as error:
        reply = {"problem": f"internal error: {type(error).__name__}", "hint": "file it with the input"}
    with suppress(OSError):
        pipe.send_bytes(strict_json.dumps(reply).encode("utf-8", "replace"))


def _bound(limit_s: float) -> None:
    """Even if the server dies, this process ends; and it never takes the machine's last memory."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = int(MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s) + 1, int(limit_s) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError, AttributeError):
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
