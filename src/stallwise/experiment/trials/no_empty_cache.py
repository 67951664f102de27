"""No `empty_cache`: the allocator keeps its blocks."""

from __future__ import annotations

from typing import Any, Callable, Optional

from stallwise.experiment.change import Change, Undo, replaced_by_user

FUNCTION = "torch.cuda.empty_cache"


class NoEmptyCache(Change):
    """`torch.cuda.empty_cache()` does nothing."""

    name = "no-empty-cache"
    title = "no torch.cuda.empty_cache()"
    usual = 0.3
    causes = ("allocator-churn",)
    removes = True
    alters = False
    needs = "remove the call, or keep it for out-of-memory handling"
    risk = "more memory stays reserved"
    watch = (FUNCTION,)

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.calls(FUNCTION):
            return "torch.cuda.empty_cache() is not called in a step"
        return "your code has replaced torch.cuda.empty_cache" if replaced_by_user(FUNCTION) else None

    def apply(self, scene: Any, undo: Undo) -> None:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def empty_cache(*args: Any, **kwargs: Any) -> None:
                return None

            return empty_cache

        undo.wrap(scene.torch.cuda, "empty_cache", wrap, also=(scene.torch.cuda.memory,))
