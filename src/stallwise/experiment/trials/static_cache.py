"""A static key-value cache in `generate()`: its tensors are made once, so that shapes and addresses stay."""

from __future__ import annotations

from typing import Any, List, Optional

from stallwise.experiment.change import Change, Undo


class StaticCache(Change):
    """`generation_config.cache_implementation = "static"`."""

    name = "static-cache"
    title = "static key-value cache"
    usual = 0.6
    causes = ("launch-bound",)
    needs = 'model.generation_config.cache_implementation = "static"'
    risk = "memory for the longest answer from the start; transformers compiles the decoding step with it"
    costly = True

    def refuses(self, scene: Any) -> Optional[str]:
        configs = self._configs(scene)
        if scene.trains or not configs:
            return "no model of transformers generates"
        if all(c.cache_implementation is not None for c in configs):
            return "a cache has been chosen already"
        return None

    def _configs(self, scene: Any) -> List[Any]:
        found = [vars(m).get("generation_config") for m in scene.modules()]
        return [c for c in found if c is not None and hasattr(c, "cache_implementation")]

    def apply(self, scene: Any, undo: Undo) -> None:
        for config in self._configs(scene):
            undo.set(config, "cache_implementation", "static")
