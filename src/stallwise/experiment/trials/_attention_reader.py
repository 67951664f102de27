"""Finds the attention that a program computes itself, checks on its own tensors that a fused call gives the same, and fuses it.

Two readers share the way: `Watch` computes everything as the program does and learns, line by line, which products become
attention; `Fuse` keeps the scores of those lines back.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from stallwise.experiment.change import Undo
from stallwise.experiment.trials import _attention_chain as chains
from stallwise.experiment.trials import _attention_gemms
from stallwise.experiment.trials._attention_chain import Chain, Ended
from stallwise.experiment.trials._scores import Kept, scores_class

PLACES = (
    ("torch", "matmul"), ("torch", "bmm"), ("torch", "baddbmm"), ("torch", "einsum"), ("torch.Tensor", "matmul"),
    ("torch.Tensor", "__matmul__"), ("torch.Tensor", "bmm"), ("torch.Tensor", "baddbmm"),
)  # fmt: skip
CHECKED = 8  # chains of one line that are compared: each costs a fused call and a wait
MATH = 0  # of torch.nn.attention.SDPBackend: the plain way
# The largest difference of two results that differ in rounding alone, of the largest value: sums of a thousand products.
ROUNDING = {8: 1e-9, 4: 1e-3, 2: 3e-2}  # by bytes of the type


class Site:
    """A line whose product gives scores."""

    def __init__(self) -> None:
        self.agreed = 0
        self.against: List[str] = []
        self.causal: Optional[bool] = None

    @property
    def good(self) -> bool:
        return self.agreed > 0 and not self.against


class Watch:
    """Learns."""

    computes = True

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.sites: Dict[Any, Site] = {}
        self.passing: Set[str] = set()  # operators that follow products which became no attention

    def gemm(self, name: str, site: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """One product of the program's: its result, followed from here on."""
        value = call(*args, **kwargs)
        begun = None
        if type(value) is self._torch.Tensor:
            begun = _begun(self._torch, name, args, kwargs, value.dtype)
        if begun is None:
            return value
        kept = Kept(begun, site, lambda: value)
        kept.made = value
        return scores_class(self._torch)(kept, self)

    def ended(self, kept: Kept, why: str) -> None:
        """It is no attention, or none of ours."""
        if kept.chain is not None and kept.chain.soft:
            self._site(kept).against.append("%s follows the softmax" % why)
        else:
            self.passing.add(why)

    def finish(self, kept: Kept, func: Any, name: str, at: int, args: Any, kwargs: Any) -> Any:
        """The second product: as the program computes it, and beside it as one call."""
        plain = func(*args[:at], kept.values(), *args[at + 1 :], **kwargs)
        site = self._site(kept)
        if site.agreed < CHECKED and not site.against:
            try:
                with self._torch.no_grad():
                    self._compare(site, kept, func, name, at, args, kwargs)
            except Ended as ended:
                site.against.append(str(ended))
            except Exception as error:
                site.against.append("%s: %s" % (type(error).__name__, error))
        return plain

    def _site(self, kept: Kept) -> Site:
        return self.sites.setdefault(kept.site, Site())

    def _compare(self, site: Site, kept: Kept, func: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
        torch, chain = self._torch, kept.chain
        assert chain is not None
        v, order = _attention_gemms.end(torch, name, at, args, kwargs)
        off = chains.off_causal(torch, chain)
        causal = off is not None and not bool(off)
        site.causal = causal if site.causal is None else site.causal and causal
        given, how = chains.attended(torch, chain, v, causal, dropped=0.0)
        if fused_way(torch, given, how) == MATH:
            raise Ended("scaled_dot_product_attention has no fused kernel for it (mask, type or head size)")
        expected = func(*args[:at], kept.soft, *args[at + 1 :], **kwargs)
        found = order(_shaped(chain, torch.nn.functional.scaled_dot_product_attention(*given, **how)))
        largest = float(expected.abs().max())
        error = float((found.to(expected.dtype) - expected).abs().max())
        narrowest = min(t.element_size() for t in (*given, expected))
        if not error <= ROUNDING[narrowest] * max(largest, 1e-30):
            raise Ended("the fused result differs by %.1e of the largest value" % (error / max(largest, 1e-30)))
        site.agreed += 1


class Fuse:
    """Fuses what `Watch` has found good."""

    computes = False

    def __init__(self, torch: Any, sites: Dict[Any, Site]) -> None:
        self._torch = torch
        self._sites = {key: site for key, site in sites.items() if site.good}
        self._off: List[Any] = []  # on the device: a mask was not the causal one

    def gemm(self, name: str, site: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A product of a line that is known is kept back."""
        torch = self._torch
        if site not in self._sites or torch.compiler.is_compiling():
            return call(*args, **kwargs)
        kind = args[1].device.type if name == "einsum" else args[0].device.type
        narrow = torch.is_autocast_enabled(kind)
        begun = _begun(torch, name, args, kwargs, torch.get_autocast_dtype(kind) if narrow else args[-1].dtype)
        if begun is None:
            return call(*args, **kwargs)
        return scores_class(torch)(Kept(begun, site, lambda: call(*args, **kwargs)), self)

    def ended(self, kept: Kept, why: str) -> None:
        """The program takes another way than before: its values are computed."""

    def finish(self, kept: Kept, func: Any, name: str, at: int, args: Any, kwargs: Any) -> Any:
        """The one call."""
        torch, chain = self._torch, kept.chain
        assert chain is not None
        v, order = _attention_gemms.end(torch, name, at, args, kwargs)
        causal = bool(self._sites[kept.site].causal)
        if causal:
            off = chains.off_causal(torch, chain)
            if off is None:
                raise Ended("another mask")
            self._off[:] = [self._off[0] | off] if self._off else [off]
        given, how = chains.attended(torch, chain, v, causal)
        return order(_shaped(chain, torch.nn.functional.scaled_dot_product_attention(*given, **how)))

    def wrong(self) -> Optional[str]:
        """Read when the device is empty: a mask that was causal while it was watched was another one since."""
        off, self._off[:] = list(self._off), []
        return "a mask is not always the causal one" if off and bool(off[0]) else None


def _begun(torch: Any, name: str, args: Any, kwargs: Any, dtype: Any) -> Optional[Chain]:
    found = _attention_gemms.start(torch, name, args, kwargs)
    if found is None:
        return None
    q, k, scale, bias = found
    try:
        chain = Chain(q, k, dtype)
    except Ended:
        return None
    chain.scale, chain.bias = scale, bias
    return chain


def _shaped(chain: Chain, out: Any) -> Any:
    """As the program's own product would be."""
    if len(chain.q.shape) == 3:
        out = out.squeeze(1)
    return out if tuple(out.shape[:-2]) == chain.lead else out.reshape(*chain.lead, *out.shape[-2:])


def fused_way(torch: Any, given: Tuple[Any, ...], how: Dict[str, Any]) -> int:
    """Which kernel PyTorch takes for it; 0 is the plain way."""
    kind = given[0].device.type
    if torch.is_autocast_enabled(kind):
        narrow = torch.get_autocast_dtype(kind)
        given = tuple(t.to(narrow) for t in given)
    try:
        return int(torch._fused_sdp_choice(*given, **how))
    except Exception:
        return -1  # not known in this PyTorch: the comparison and the clock tell


def read(torch: Any, reader: Any, undo: Undo) -> None:
    """From here on the reader sees every product, under whatever name the program has it."""

    def wrap_as(name: str) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def gemm(*args: Any, **kwargs: Any) -> Any:
                frame = sys._getframe(1)
                return reader.gemm(name, _site_of(frame), call, args, kwargs)

            return gemm

        return wrap

    functions = torch.autograd.Function
    if "apply" in vars(functions):
        undo.put(functions, "apply", _unfollowed(scores_class(torch), vars(functions)["apply"]))
    for place, name in PLACES:
        owner = torch.Tensor if place == "torch.Tensor" else torch
        if getattr(owner, name, None) is None:
            continue
        original = getattr(owner, name)
        undo.wrap(owner, name, wrap_as("matmul" if name == "__matmul__" else name))
        if owner is torch:
            for module, alias in _held_by_program(torch, original):
                undo.put(module, alias, getattr(owner, name))


def _site_of(frame: Any) -> Any:
    """A line, and the line that called its function: a helper that multiplies is as many sites as have use for it."""
    back = frame.f_back
    return (frame.f_code, frame.f_lineno, back.f_code if back else None, back.f_lineno if back else 0)


def _held_by_program(torch: Any, original: Any) -> List[Tuple[Any, str]]:
    """Modules with `from torch import einsum`."""
    found = []
    for module in list(sys.modules.values()):
        own = getattr(module, "__dict__", None)
        if not isinstance(own, dict) or str(own.get("__name__", "")).split(".")[0] in ("torch", "stallwise"):
            continue
        found += [(module, name) for name, value in list(own.items()) if value is original]
    return found


def _unfollowed(scores: Any, call: Any) -> Any:
    """A function with a gradient of its own takes plain tensors: PyTorch does not ask ours there."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return call.__func__(cls, *(a.kept.values() if isinstance(a, scores) else a for a in args), **kwargs)

    return classmethod(apply)
