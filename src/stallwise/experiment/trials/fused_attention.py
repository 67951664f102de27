"""Fused attention in the place of one that writes its scores to memory.

Three ways lead there. Models of transformers have a switch. A program that computes softmax(q k^T) v itself is followed through
its own lines, and compared on its own tensors, before one call takes their place. A program that calls
scaled_dot_product_attention and gets the plain kernel (backends switched off, or a causal mask given as a tensor) gets a fused one.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.experiment.change import Change, Undo
from stallwise.experiment.trials._attention_reader import MATH, Fuse, Watch, fused_way, read

SWITCH = "_attn_implementation_internal"
SDPA = "scaled_dot_product_attention"


class FusedAttention(Change):
    """Attention in one call, by whichever way applies."""

    name = "fused-attention"
    title = "fused attention (sdpa)"
    usual = 0.3
    causes = ("attention-materialized",)
    risk = "other rounding; no attention weights in the output"
    needs = "torch.nn.functional.scaled_dot_product_attention in the place of softmax(q @ k.transpose(-2, -1)) @ v"

    def __init__(self) -> None:
        self._watch: Optional[Watch] = None
        self._ways: List[int] = []  # of calls of scaled_dot_product_attention: the kernel PyTorch takes
        self.instead_of: Tuple[str, ...] = ()

    def look(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch
        if _compiled_something():
            return  # compiled code checks that functions are what they were, and would be compiled again
        self._watch = Watch(torch)
        read(torch, self._watch, undo)
        undo.wrap(torch.nn.functional, SDPA, self._seen(torch))

    def _seen(self, torch: Any) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def attention(*args: Any, **kwargs: Any) -> Any:
                given, how = _arguments(args, kwargs)
                if how is not None:
                    self._ways.append(fused_way(torch, given, how))
                return call(*args, **kwargs)

            return attention

        return wrap

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.compiled():
            return "the models are compiled"
        if self._configs(scene):
            self.needs = 'from_pretrained(..., attn_implementation="sdpa")'
            return None
        sites = self._watch.sites if self._watch is not None else {}
        good = [key for key, site in sites.items() if site.good]
        if good:
            self.instead_of = ("compile", "compile-graphs")  # a compiler would look through our hands
            self.needs = "%s (%s)" % (type(self).needs, ", ".join(dict.fromkeys(_line(key) for key in good)))
            return None
        if any(way == MATH for way in self._ways):
            self.needs = "the flash and memory-efficient backends on, and is_causal=True instead of a causal mask"
            return None
        return self._why_not(sites)

    def _why_not(self, sites: Dict[Any, Any]) -> str:
        if self._ways:
            return "attention is fused already: PyTorch takes a fused kernel for %s" % SDPA
        for key, site in sites.items():
            return "the attention at %s cannot be fused: %s" % (_line(key), site.against[0])
        if self._watch is not None and self._watch.passing:
            return "no softmax between two products was seen; %s follows the first" % sorted(self._watch.passing)[0]
        return "no attention was seen in a step"

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
        configs = self._configs(scene)
        for config in configs:
            undo.set(config, SWITCH if SWITCH in vars(config) else "_attn_implementation", "sdpa")
        if configs:
            return
        if self._watch is not None and any(site.good for site in self._watch.sites.values()):
            fuse = Fuse(scene.torch, self._watch.sites)
            undo.later(lambda: _report(scene, fuse))
            read(scene.torch, fuse, undo)
        if any(way == MATH for way in self._ways):
            undo.wrap(scene.torch.nn.functional, SDPA, _with_all_kernels(scene.torch))


def _report(scene: Any, fuse: Fuse) -> None:
    wrong = fuse.wrong()
    if wrong is not None:
        scene.failed(ValueError(wrong))


def _with_all_kernels(torch: Any) -> Callable[..., Any]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    fused = [getattr(SDPBackend, name) for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
             if hasattr(SDPBackend, name)]  # fmt: skip

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        def attention(*args: Any, **kwargs: Any) -> Any:
            with sdpa_kernel([*fused, SDPBackend.MATH]):
                return call(*args, **kwargs)

        return attention

    return wrap


def _arguments(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Optional[Dict[str, Any]]]:
    """Of a call by position or by name: queries, keys and values, and the rest."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args)), **kwargs}
    if any(name not in given for name in names[:3]) or given.get("enable_gqa"):
        return (), None
    how = {
        "attn_mask": given.get("attn_mask"),
        "dropout_p": given.get("dropout_p", 0.0),
        "is_causal": given.get("is_causal", False),
        "scale": given.get("scale"),
    }
    return tuple(given[name] for name in names[:3]), how


def _compiled_something() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo is not None and dynamo.counters["stats"].get("unique_graphs"))


def _line(site: Any) -> str:
    return "%s:%d" % (os.path.basename(site[0].co_filename), site[1])
