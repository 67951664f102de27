"""Nothing is changed: how often does a trial see a difference where there is none?"""

from __future__ import annotations

from typing import Any

from stallwise.experiment.change import Change, Undo


class Nothing(Change):
    """Both sides are as is."""

    name = "nothing"
    title = "nothing changed"
    alters = False
    only_asked = True

    def apply(self, scene: Any, undo: Undo) -> None:
        pass
