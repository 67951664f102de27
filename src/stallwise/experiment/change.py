"""One thing that may be changed in a running job. Each is a file in `instrument/trials`; adding a file adds a trial."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Optional, Tuple

from stallwise.recorder.error_origin import OURS, say
from stallwise.recorder.patches import Patches, Wrap


class Change:
    """What a trial says of itself. Subclasses fill it in; an object lives for one job and may keep what is costly."""

    name = ""
    title = ""  # what is done, in a few words
    causes: Tuple[str, ...] = ()  # what a gain proves, most specific first
    alters = True  # the training (or the answers) come out otherwise: the job is then a rehearsal
    keeps_loss = True  # the loss is to stay what it is, but for rounding: checked in every trial
    removes = False  # takes its first cause away altogether: no difference means that it costs nothing
    needs = ""  # what the user writes to keep the gain
    risk = ""
    instead_of: Tuple[str, ...] = ()  # never together with these
    watch: Tuple[str, ...] = ()  # functions whose calls are counted before: "torch.cuda.empty_cache"
    usual = (
        0.0  # of a step, saved where it applies: the middle of what docs/try.md has measured; decides the order alone
    )
    costly = False  # has a one-off cost, as compiling has
    only_asked = False  # not among the default trials
    asked_late = False  # whether it applies is known only when its turn comes
    work_ratio = 1.0  # work of a changed step relative to one as is

    def refuses(self, scene: Any) -> Optional[str]:
        """Why it cannot be tried here, or None."""
        return None

    def expects(self, scene: Any) -> float:
        """The part of a step that it may save here, as far as the first steps tell."""
        return self.usual

    def apply(self, scene: Any, undo: "Undo") -> None:
        """Changes the job; whatever it does is undone by what it hands to `undo`."""
        raise NotImplementedError

    def look(self, scene: Any, undo: "Undo") -> None:
        """While the job is looked at, as it is: whatever has to be learned to know whether and how it can be changed."""

    def begin(self, scene: Any, undo: "Undo") -> None:
        """Before the first block, for both sides: what has to be in place for as long as the trial lasts."""

    def block_steps(self, scene: Any, steps: int) -> int:
        """How many steps a block of this trial has, given how many the noise asks for."""
        return steps

    def settle_steps(self, scene: Any) -> int:
        """Steps after a switch that count for neither side."""
        return 1

    def on_step(self, scene: Any) -> None:
        """After every changed step."""


class Undo:
    """The way back, last first. Going back twice is once."""

    def __init__(self) -> None:
        self._steps: List[Callable[[], None]] = []

    def later(self, step: Callable[[], None]) -> None:
        """One step of the way back."""
        self._steps.append(step)

    def wrap(self, owner: Any, name: str, wrap: Wrap, also: Tuple[Any, ...] = ()) -> None:
        """Replaces a function until the way back."""
        patches = Patches()
        self.later(patches.remove)
        patches.wrap(owner, name, wrap, also)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute until the way back."""
        patches = Patches()
        self.later(patches.remove)
        patches.put(owner, name, value)

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Sets a switch that lives behind a property, as PyTorch's backend settings do, until the way back."""
        before = getattr(owner, name)
        self.later(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    def back(self) -> None:
        """Everything as before."""
        while self._steps:
            step = self._steps.pop()
            try:
                step()
            except Exception as error:
                say("undoing a trial: %s: %s" % (type(error).__name__, error))


def owner_of(path: str) -> Tuple[Any, str]:
    """The object that holds "torch.Tensor.item", and the name there; (None, "") where it is not imported."""
    import sys

    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is None:
            continue
        owner: Any = module
        for part in parts[cut:-1]:
            owner = getattr(owner, part, None)
            if owner is None:
                return None, ""
        return (owner, parts[-1]) if hasattr(owner, parts[-1]) else (None, "")
    return None, ""


def replaced_by_user(path: str) -> bool:
    """True if neither its library nor we have written what now stands there."""
    owner, name = owner_of(path)
    if owner is None:
        return False
    function = getattr(owner, name)
    while _file(function).startswith(OURS) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    file = _file(function)
    if not file or file.startswith(OURS):
        return False
    import sys

    library = getattr(sys.modules.get(path.split(".")[0]), "__file__", None) or ""
    return not file.startswith(os.path.dirname(library) + os.sep)


def _file(function: Any) -> str:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return os.path.abspath(code.co_filename) if code is not None else ""
