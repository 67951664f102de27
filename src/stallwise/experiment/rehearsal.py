"""A rehearsal writes nothing that would outlive it: checkpoints, trackers and event files are held off, and counted.

What is held off stands in `held.csv`, by the module that has it; each is replaced when that module is imported. What goes to
memory (a buffer, not a file) passes.
"""

from __future__ import annotations

import csv
import io
import os
import tempfile
from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.recorder.after_import import after_import
from stallwise.recorder.patches import Patches

# Said to the job before it starts: trackers that read it stay off from their first line on.
VARIABLES = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


class Rehearsal:
    """What is held off, and how often it was asked for."""

    def __init__(self, folder: str) -> None:
        self.held: Dict[str, int] = {}
        self.on_save: Optional[Callable[[], None]] = None
        self.saving: Optional[Callable[..., Any]] = None  # a trial that wants to know what saving costs
        self._folder = folder
        self._patches = Patches()
        self._on = False

    def begin(self) -> None:
        """From here on nothing is written."""
        self._on = True
        rows: Dict[str, List[Tuple[str, str]]] = {}
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "held.csv")
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows.setdefault(row["module"], []).append((row["name"], row["how"]))
        for module, held in rows.items():
            after_import(module, self._holding(held))

    def end(self) -> None:
        """Everything is itself again."""
        self._on = False
        self._patches.remove()

    def _holding(self, held: List[Tuple[str, str]]) -> Callable[[Any], None]:
        def hold(module: Any) -> None:
            for name, how in held:
                self._hold(module, name, how)

        return hold

    def _hold(self, module: Any, name: str, how: str) -> None:
        if not self._on:
            return
        owner: Any = module
        *holders, last = name.split(".")
        for holder in holders:
            owner = getattr(owner, holder, None)
        if owner is None or getattr(owner, last, None) is None:
            return
        module_function = "%s.%s" % (module.__name__.split(".")[0], name)
        if getattr(getattr(owner, last), "_held_off", False):
            return  # the same function under another name
        self._patches.wrap(
            owner, last, self._elsewhere(module_function) if how == "scratch" else self._skipped(module_function)
        )

    def _skipped(self, module_function: str) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def held(*args: Any, **kwargs: Any) -> Any:
                target = args[1] if len(args) > 1 else kwargs.get("f")
                if module_function.startswith("torch.") and isinstance(target, io.IOBase) and not _is_file(target):
                    return call(*args, **kwargs)
                self.held[module_function] = self.held.get(module_function, 0) + 1
                if module_function == "torch.save":
                    if self.on_save is not None:
                        self.on_save()
                    if self.saving is not None:
                        return self.saving(call, *args, **kwargs)
                return None

            held._held_off = True  # type: ignore[attr-defined]
            return held

        return wrap

    def _elsewhere(self, module_function: str) -> Callable[..., Any]:
        """Event files go to a scratch folder of the bundle."""

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def held(writer: Any, logdir: Any, *args: Any, **kwargs: Any) -> Any:
                self.held[module_function] = self.held.get(module_function, 0) + 1
                os.makedirs(self._folder, exist_ok=True)
                return call(writer, tempfile.mkdtemp(prefix="held_", dir=self._folder), *args, **kwargs)

            return held

        return wrap


def _is_file(target: Any) -> bool:
    try:
        target.fileno()
    except (OSError, io.UnsupportedOperation, AttributeError):
        return False
    return True
