"""A step of a job that answers with transformers' `generate()` is a whole answer, not a token.

What a trial changes (a cache, the way attention is computed) is asked for where an answer begins; one that began before the
switch ends as it began. So blocks have to begin and end with answers.
"""

from __future__ import annotations

from typing import Any

from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.after_import import after_import
from stallwise.recorder.patches import Patches

MODULE, CLASS = "transformers.generation.utils", "GenerationMixin"


def record_whole_answers(recorder: Any) -> None:
    """From here on, or from the import of transformers on."""
    patches = Patches()

    def hook(module: Any) -> None:
        patches.wrap(
            getattr(module, CLASS), "generate", recorder.stages.timed(schema.EVALUATION, step_boundaries.ANSWER)
        )

    after_import(MODULE, hook)
    recorder.closers.append(patches.remove)
