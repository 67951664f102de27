"""Scores of an attention as a tensor that is not computed until somebody needs its values.

The program's own lines scale, mask, soften and drop them; what they do is written down (`_attention_chain`). Where the last
line multiplies them with the values, one fused call takes the place of all. Where another line asks for the scores
themselves, they are computed as the program would have, so that it never sees other numbers than its own.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.experiment.trials._attention_chain import ALIASES, Chain, Ended
from stallwise.experiment.trials._attention_gemms import NAMES

# Answered by the shape alone.
ABOUT = frozenset(
    ("size", "dim", "ndimension", "numel", "is_floating_point", "is_complex", "element_size", "get_device", "__len__",
     "shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "is_cpu", "layout", "is_sparse", "is_quantized",
     "is_nested", "is_meta", "itemsize")
)  # fmt: skip
Op = Tuple[Callable[..., Any], int, Tuple[Any, ...], Dict[str, Any]]


class Kept:
    """What a tensor of scores stands for."""

    def __init__(self, chain: Optional[Chain], site: Any, make: Callable[[], Any], ops: Tuple[Op, ...] = ()) -> None:
        self.chain = chain  # None: it is only a tensor by now
        self.site = site
        self.made: Any = None  # the values, once computed
        self.soft: Any = None  # the weights before dropout, where they were computed
        self._make = make
        self.ops = ops

    def values(self) -> Any:
        """Computed as the program would have."""
        if self.made is None:
            value = self._make()
            for func, at, args, kwargs in self.ops:
                value = func(*args[:at], value, *args[at + 1 :], **kwargs)
            self.made = value
        return self.made

    def after(self, chain: Chain, op: Op) -> "Kept":
        """With one more operator."""
        return Kept(chain, self.site, self._make, (*self.ops, op))


@functools.lru_cache(maxsize=2)
def scores_class(torch: Any) -> Any:
    """The class, for this PyTorch."""

    class Scores(torch.Tensor):  # type: ignore[misc]
        """See above."""

        kept: Kept
        reader: Any

        @staticmethod
        def __new__(cls: Any, kept: Kept, reader: Any) -> Any:
            chain: Any = kept.chain
            learns = torch.is_grad_enabled() and (chain.q.requires_grad or chain.k.requires_grad)
            made = torch.Tensor._make_wrapper_subclass(
                cls, chain.shape, dtype=chain.dtype, device=chain.q.device, requires_grad=learns
            )
            made.kept, made.reader = kept, reader
            return made

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            if name == "__get__":
                name = getattr(getattr(func, "__self__", None), "__name__", name)
            if name in ABOUT:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **(kwargs or {}))
            return _called(torch, cls, func, name, args, kwargs or {})

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise TypeError("%s was called past PyTorch's Python interface on scores that are not computed" % func)

    return Scores


def _called(torch: Any, cls: Any, func: Any, name: str, args: Any, kwargs: Any) -> Any:
    name = ALIASES.get(name, name)
    inside = name.endswith("_") and not name.startswith("__")
    plain = name[:-1] if inside else name
    places = [n for n, a in enumerate(args) if isinstance(a, cls)]
    alone = len(places) == 1 and not any(isinstance(v, cls) for v in kwargs.values())
    one: Any = args[places[0]] if places else None
    if alone and one.kept.chain is not None:
        try:
            return _followed(torch, cls, func, (plain, inside, places[0]), args, kwargs)
        except Ended as ended:
            one.reader.ended(one.kept, str(ended))
    real_args, real_kwargs = _plain(cls, args), _plain(cls, kwargs)
    if inside or name == "__setitem__":
        for place in places:
            args[place].kept.chain = None
    return func(*real_args, **real_kwargs)


def _followed(torch: Any, cls: Any, func: Any, how: Tuple[str, bool, int], args: Any, kwargs: Any) -> Any:
    name, inside, at = how
    one = args[at]
    kept, reader = one.kept, one.reader
    if name in NAMES and kept.chain.soft:
        return reader.finish(kept, func, name, at, args, kwargs)
    chain = kept.chain.then(torch, name, at, args, kwargs)
    after = kept.after(chain, (func, at, args, kwargs))
    if reader.computes or kept.made is not None:
        after.made = func(*args[:at], kept.values(), *args[at + 1 :], **kwargs)
        after.soft = _without_dropout(kept, after, name, func, at, args, kwargs)
    if inside:
        one.kept = after
        return one
    return cls(after, reader)


def _without_dropout(kept: Kept, after: Kept, name: str, func: Any, at: int, args: Any, kwargs: Any) -> Any:
    """The weights as they would be without dropout: what a comparison can be made with."""
    if name == "dropout":
        return kept.made
    if kept.soft is None or kept.soft is kept.made:
        return after.made
    return func(*args[:at], kept.soft, *args[at + 1 :], **kwargs)


def _plain(cls: Any, value: Any) -> Any:
    """With the values in the place of scores, however deep they lie in lists."""
    if isinstance(value, cls):
        return value.kept.values()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        found: List[Any] = [_plain(cls, v) for v in value]
        return tuple(found) if isinstance(value, tuple) else found
    if isinstance(value, dict):
        return {k: _plain(cls, v) for k, v in value.items()}
    return value
