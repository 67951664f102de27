"""Puts the trials into a job: called by `autostart` when PyTorch is there and the job runs under `stallwise try`."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
from typing import Any, Dict, Generator, List, Optional

from stallwise.experiment.endless import Endless
from stallwise.experiment.leaving import leave_job
from stallwise.experiment.options import Options
from stallwise.experiment.ranks import Alone, Ranks
from stallwise.experiment.rehearsal import Rehearsal
from stallwise.experiment.results import Results
from stallwise.experiment.scene import Scene
from stallwise.experiment.session import Session
from stallwise.experiment.throttle import Throttle, gpu_index
from stallwise.experiment.trials import all_changes
from stallwise.experiment.verdict import Verdict, ask
from stallwise.experiment.whole_answers import record_whole_answers
from stallwise.recorder.error_origin import quietly, say

TRACED, TRACED_SHORT, TRACED_S = 4, 40, 0.1  # steps in a window: four, and more of short ones
TRACED_AT_MOST, TRACED_AT_MOST_S = 120, 8.0  # steps and seconds for the recorder's windows


def options_of(text: str) -> Options:
    """What the command line was asked for."""
    asked: Dict[str, Any] = json.loads(text)
    return Options(**asked)


def begin(torch: Any, recorder: Any, folder: str, options: Options) -> Session:
    """From here on the job is tried."""
    from stallwise.recorder.recorder import rank_and_world

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

    def first() -> Generator[int, None, Verdict]:
        if options.trace:
            yield from _trace(recorder, ranks, out, scene.step_s)
        found = Verdict()
        if options.verdict_s > 0 and ranks.leads:
            recorder.writer.flush()
            found = ask(folder, options.verdict_s, recorder.number)
        agreed: Dict[str, Any] = ranks.decide(found.to_dict())
        return Verdict(agreed["state"], agreed["causes"])

    session = Session(scene, changes, options, out, ranks, throttle, first)

    if rehearsing:
        endless = Endless(torch, recorder, scene.iterator_classes(), lambda: session.over)
        recorder.closers.append(endless.remove)
        scene.loader_of = endless.loader_of

    def on_step(number: int) -> None:
        quietly(session.on_step, number)
        if session.over and rehearsing:
            _leave(session)

    record_whole_answers(recorder)
    recorder.step_listeners.append(on_step)
    recorder.closers.append(lambda: session.stop("the job ended before its trials"))
    _undo_at_interrupt(session)
    return session


def _trace(recorder: Any, ranks: Alone, out: Results, step_s: float) -> Generator[int, None, None]:
    """The recorder's windows, before the trials: the verdict needs them. They have gone when the first trial begins."""
    from stallwise.recorder.profile_window import ProfileWindow

    count = max(TRACED, min(TRACED_SHORT, math.ceil(TRACED_S / max(step_s, 1e-9))))
    window = ProfileWindow(recorder, (recorder.number + 2, recorder.number + 1 + count))
    steps, began = 0, time.monotonic()
    while True:
        yield 1
        steps += 1
        late = steps >= TRACED_AT_MOST and time.monotonic() - began > TRACED_AT_MOST_S
        if ranks.decide(window.done or late):
            break
    window.close()
    recorder.step_listeners = [one for one in recorder.step_listeners if one != window.on_step]
    if window.untraced is not None:
        out.about["tracer"] = "CUPTI stays attached beside CUDA graphs: launches are slower on both sides"


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
