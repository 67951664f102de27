"""Fused attention in models of transformers that run the plain one."""

from __future__ import annotations

from typing import Any, List, Optional

from stallwise.instrument.experiment.change import Change, Undo

SWITCH = "_attn_implementation_internal"


class FusedAttention(Change):
    """`attn_implementation="sdpa"` instead of "eager"."""

    name = "fused-attention"
    title = "fused attention (sdpa)"
    causes = ("attention-materialized",)
    needs = 'from_pretrained(..., attn_implementation="sdpa")'
    risk = "other rounding; no attention weights in the output"

    def refuses(self, scene: Any) -> Optional[str]:
        if not self._configs(scene):
            return "no model of transformers with eager attention was called"
        if scene.compiled():
            return "the models are compiled"
        return None

    def _configs(self, scene: Any) -> List[Any]:
        found: List[Any] = []
        for module in scene.modules():
            config = vars(module).get("config")
            if getattr(config, "_attn_implementation", None) != "eager" or any(config is c for c in found):
                continue
            if getattr(module, "_supports_sdpa", True):
                found.append(config)
        return found

    def apply(self, scene: Any, undo: Undo) -> None:
        for config in self._configs(scene):
            undo.set(config, SWITCH if SWITCH in vars(config) else "_attn_implementation", "sdpa")
