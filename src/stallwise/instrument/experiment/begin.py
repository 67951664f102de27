"""Puts the trials into a job: called by `autostart` when PyTorch is there and the job runs under `stallwise try`."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, Dict, Generator, List, Optional

from stallwise.instrument.blame import quietly, say
from stallwise.instrument.experiment.endless import Endless
from stallwise.instrument.experiment.leaving import leave_job
from stallwise.instrument.experiment.options import Options
from stallwise.instrument.experiment.ranks import Alone, Ranks
from stallwise.instrument.experiment.rehearsal import Rehearsal
from stallwise.instrument.experiment.results import Results
from stallwise.instrument.experiment.scene import Scene
from stallwise.instrument.experiment.session import Session
from stallwise.instrument.experiment.throttle import Throttle, gpu_index
from stallwise.instrument.experiment.whole_answers import hear_whole_answers
from stallwise.instrument.trials import all_changes

TRACED_AT_MOST, TRACED_AT_MOST_S = 120, 8.0  # steps and seconds after the trials for the recorder's windows
TRACED_EVERY = 8  # steps between two looks at whether they have


def options_of(text: str) -> Options:
    """What the command line was asked for."""
    asked: Dict[str, Any] = json.loads(text)
    return Options(**asked)


def begin(torch: Any, recorder: Any, folder: str, options: Options) -> Session:
    """From here on the job is tried."""
    from stallwise.instrument.recorder import rank_and_world

    rank, world = rank_and_world()
    changes = all_changes()
    rehearsing = options.rehearsal(changes)
    scene = Scene(torch, recorder, rehearsing, folder)
    ranks: Alone = Ranks(folder, rank or 0, world) if world > 1 else Alone()
    out = Results(folder, writes=ranks.leads)
    rehearsal: Optional[Rehearsal] = None
    if rehearsing:
        rehearsal = Rehearsal(os.path.join(folder, "held_off"))
        rehearsal.on_save = lambda: scene.saves.append(recorder.number)
        rehearsal.begin()
        out.about["held_off"] = rehearsal.held
        scene.held_off = rehearsal
    local = int(os.environ.get("LOCAL_RANK", "0") or 0)
    throttle = Throttle(folder, gpu_index(local))

    def finish() -> Generator[int, None, None]:
        if options.trace and not options.dry_run:
            yield from _trace(recorder, ranks)

    session = Session(scene, changes, options, out, ranks, throttle, finish)

    if rehearsing:
        endless = Endless(torch, recorder, scene.iterator_classes(), lambda: session.over)
        recorder.closers.append(endless.remove)

    def on_step(number: int) -> None:
        quietly(session.on_step, number)
        if session.over and rehearsing:
            _leave(session)

    hear_whole_answers(recorder)
    recorder.step_listeners.append(on_step)
    recorder.closers.append(lambda: session.stop("the job ended before its trials"))
    _undo_at_interrupt(session)
    return session


def _trace(recorder: Any, ranks: Alone) -> Generator[int, None, None]:
    """The windows of the recorder, after the trials: a tracer that stayed attached would have slowed them."""
    from stallwise.instrument.profile_window import ProfileWindow

    window, steps, began = ProfileWindow(recorder), 0, time.monotonic()
    while True:
        yield TRACED_EVERY
        steps += TRACED_EVERY
        late = steps >= TRACED_AT_MOST and time.monotonic() - began > TRACED_AT_MOST_S
        if ranks.decide(window.done or late):
            return


def _leave(session: Session) -> None:
    """The rehearsal is over."""
    if session.out.about.get("ended") == "interrupted":
        return  # the job hears of the interrupt itself
    if not session.left:
        session.left = True
        say("the trials are done; the rehearsal ends here")
        sys.stdout.flush()
    leave_job(0)


def _undo_at_interrupt(session: Session) -> None:
    """Ctrl-C undoes, then does what it would have done."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        return

    def undo_first(number: int, frame: Any) -> None:
        quietly(session.stop, "interrupted")
        if signal.getsignal(number) is undo_first:
            signal.signal(number, before)
        before(number, frame)

    signal.signal(signal.SIGINT, undo_first)


def names() -> List[str]:
    """Every trial, by name."""
    return [change.name for change in all_changes()]
