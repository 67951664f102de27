"""What stands between the two products of an attention, read operator by operator: scale, mask, softmax, dropout.

A chain knows enough to be computed by one fused call. An operator that it does not know ends it: then it is no attention that
could be fused, and the operator's name says why.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

MASKED = -1e4  # a score below this is masked: its weight is zero in every type
MOST_LEADING = 2  # batch and heads
SAME = ("contiguous", "clone")
CASTS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}


class Ended(Exception):
    """The chain goes no further."""


class Chain:
    """Queries and keys of a product, and what has been done to the scores since."""

    def __init__(self, q: Any, k: Any, dtype: Any) -> None:
        lead = tuple(_common(q.shape[:-2], k.shape[:-2]))
        if not 1 <= len(lead) <= MOST_LEADING:
            raise Ended("%d dimensions" % (len(lead) + 2))
        self.q, self.k = q.expand(*lead, *q.shape[-2:]), k.expand(*lead, *k.shape[-2:])
        self.lead = lead  # as the program sees the scores now
        self.dtype = dtype
        self.scale = 1.0
        self.factors: Tuple[Any, ...] = ()  # scales that are tensors
        self.keep: Any = None  # True where a score counts
        self.bias: Any = None  # added to the scores
        self.soft = False
        self.dropped = 0.0

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the scores."""
        return (*self.lead, int(self.q.shape[-2]), int(self.k.shape[-2]))

    def then(self, torch: Any, name: str, at: int, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> "Chain":
        """The chain after one more operator; the scores are its argument number `at`."""
        step = STEPS.get(name)
        if step is None:
            raise Ended(name)
        after = Chain.__new__(Chain)
        after.__dict__.update(self.__dict__)
        step(after, torch, name, at, args, kwargs)
        return after

    def masks(self) -> None:
        """A mask speaks of the scores as they are seen now."""
        if self.soft:
            raise Ended("a mask after the softmax")
        if self.lead != tuple(self.q.shape[:-2]):
            if self.keep is not None or self.bias is not None:
                raise Ended("masks of several shapes")
            self.q = self.q.reshape(*self.lead, *self.q.shape[-2:])
            self.k = self.k.reshape(*self.lead, *self.k.shape[-2:])


def _common(one: Any, other: Any) -> Any:
    """Leading dimensions of two operands, the smaller repeated."""
    wide = max(len(one), len(other))
    a, b = (1,) * (wide - len(one)) + tuple(one), (1,) * (wide - len(other)) + tuple(other)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        raise Ended("operands that do not fit")
    return [max(x, y) for x, y in zip(a, b)]


def _scaled(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    other = args[1 - at]
    if chain.soft or chain.bias is not None or kwargs or (at and name == "div"):
        raise Ended(name)
    if isinstance(other, (int, float)):
        chain.scale = chain.scale * other if name == "mul" else chain.scale / other
    elif torch.is_tensor(other) and other.numel() == 1 and not other.requires_grad:
        chain.factors += (other if name == "mul" else 1.0 / other,)
    else:
        raise Ended("%s with a tensor" % name)


def _biased(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    other = args[1 - at]
    if kwargs or not torch.is_tensor(other) or other.dim() < 2 or not other.is_floating_point():
        raise Ended(name)
    chain.masks()
    chain.dtype = torch.promote_types(chain.dtype, other.dtype)
    chain.bias = other if chain.bias is None else chain.bias + other


def _filled(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    mask = args[1] if len(args) > 1 else kwargs.get("mask")
    value = args[2] if len(args) > 2 else kwargs.get("value")
    if at or not torch.is_tensor(mask) or not _far_below(torch, value):
        raise Ended("%s with another value" % name)
    chain.masks()
    chain.keep = ~mask if chain.keep is None else chain.keep & ~mask


def _chosen(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    if at == 0 or len(args) != 3 or kwargs or not _far_below(torch, args[3 - at]):
        raise Ended(name)
    chain.masks()
    keep = args[0] if at == 1 else ~args[0]
    chain.keep = keep if chain.keep is None else chain.keep & keep


def _far_below(torch: Any, value: Any) -> bool:
    """What a masked score becomes. One that lies on the device is not read: the comparison with the plain result tells."""
    if torch.is_tensor(value):
        return bool(value.dim() == 0)
    return isinstance(value, (int, float)) and value <= MASKED


def _softened(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if chain.soft or dim not in (-1, len(chain.shape) - 1):
        raise Ended("%s over another dimension" % name)
    chain.soft = True
    asked = kwargs.get("dtype") or (args[-1] if len(args) > 2 and isinstance(args[-1], torch.dtype) else None)
    chain.dtype = asked or _softmax_type(
        torch, chain.dtype, chain.q.device, torch.is_autocast_enabled(chain.q.device.type)
    )


@functools.lru_cache(maxsize=16)
def _softmax_type(torch: Any, dtype: Any, device: Any, narrow: bool) -> Any:
    """What a softmax gives here; autocast widens it on some devices."""
    return torch.zeros(1, dtype=dtype, device=device).softmax(-1).dtype


def _dropped(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    given = (*args[1:], *(kwargs[key] for key in ("p", "training", "train") if key in kwargs))
    share, training = given[0] if given else 0.5, given[1] if len(given) > 1 else True
    if not chain.soft or chain.dropped:
        raise Ended(name)
    chain.dropped = float(share) if training else 0.0


def _cast(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    if name in CASTS:
        chain.dtype = getattr(torch, CASTS[name])
        return
    to = args[1] if len(args) > 1 else kwargs.get("dtype")
    if at or (not isinstance(to, torch.dtype) and not torch.is_tensor(to)):
        raise Ended(name)
    chain.dtype = to if isinstance(to, torch.dtype) else to.dtype


def _viewed(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    shape = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
    if kwargs or not all(isinstance(n, int) for n in shape) or len(shape) < 3:
        raise Ended(name)
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    total = 1
    for n in chain.shape:
        total *= n
    new = tuple(n if n != -1 else total // max(known, 1) for n in shape)
    if new[-2:] != chain.shape[-2:] or not 1 <= len(new) - 2 <= MOST_LEADING:
        raise Ended(name)
    chain.lead = new[:-2]


def _same(chain: Chain, torch: Any, name: str, at: int, args: Any, kwargs: Any) -> None:
    pass


Step = Callable[[Chain, Any, str, int, Any, Any], None]
STEPS: Dict[str, Step] = {
    "mul": _scaled, "div": _scaled, "add": _biased, "masked_fill": _filled, "where": _chosen, "softmax": _softened,
    "dropout": _dropped, "to": _cast, "type_as": _cast, "type": _cast, "view": _viewed, "reshape": _viewed,
    **dict.fromkeys(CASTS, _cast), **dict.fromkeys(SAME, _same),
}  # fmt: skip
ALIASES = {"multiply": "mul", "true_divide": "div", "divide": "div", "__truediv__": "div", "__mul__": "mul",
           "__rmul__": "mul", "__add__": "add", "__radd__": "add", "__imul__": "mul_", "__itruediv__": "div_",
           "__iadd__": "add_", "__matmul__": "matmul"}  # fmt: skip


def attended(
    torch: Any, chain: Chain, v: Any, causal: bool, dropped: Optional[float] = None
) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """What `scaled_dot_product_attention` is to be called with. With `causal` the mask is known to be the causal one."""
    if not chain.soft:
        raise Ended("no softmax")
    lead = tuple(chain.q.shape[:-2])
    if tuple(v.shape[:-2]) != chain.lead:
        v = v.expand(*chain.lead, *v.shape[-2:])
    v = v.reshape(*lead, *v.shape[-2:])
    q = chain.q
    for factor in chain.factors:
        q = q * factor
    mask = None if causal else mask_of(torch, chain)
    one = len(lead) == 1  # heads and batch in one: a head each
    q, k, v = ((t.unsqueeze(1) if one else t) for t in (q, chain.k, v))
    if one and mask is not None and mask.dim() == 3:
        mask = mask.unsqueeze(1)
    kinds = {t.dtype for t in (q, k, v)}
    if len(kinds) > 1 and not torch.is_autocast_enabled(q.device.type):
        raise Ended("operands of several types")
    if mask is not None and mask.dtype != torch.bool:
        narrow = torch.is_autocast_enabled(q.device.type)
        mask = mask.to(torch.get_autocast_dtype(q.device.type) if narrow else q.dtype)
    share = chain.dropped if dropped is None else dropped
    return (q, k, v), {"attn_mask": mask, "dropout_p": share, "is_causal": causal, "scale": chain.scale}


def mask_of(torch: Any, chain: Chain) -> Any:
    """Keep and bias as one."""
    if chain.bias is None or chain.keep is None:
        return chain.bias if chain.keep is None else chain.keep
    return chain.bias.masked_fill(~chain.keep, float("-inf"))


def off_causal(torch: Any, chain: Chain) -> Any:
    """On the device: whether the mask is another than the causal one; None where there is no mask, or too large a one to look at."""
    rows, columns = chain.shape[-2:]
    lower = _lower(torch, rows, columns, chain.q.device)
    keep, bias = chain.keep, chain.bias
    if keep is None and bias is None:
        return None
    if any(m is not None and _once(m).numel() != rows * columns for m in (keep, bias)):
        return None
    off = torch.zeros((), dtype=torch.bool, device=chain.q.device)
    if keep is not None:
        off = off | (_once(keep).reshape(rows, columns) != lower).any()
    if bias is not None:
        plain = _once(bias).reshape(rows, columns)
        wrong = plain != 0 if keep is not None else torch.where(lower, plain != 0, plain > MASKED)
        off = off | wrong.any()
    return off


@functools.lru_cache(maxsize=8)
def _lower(torch: Any, rows: int, columns: int, device: Any) -> Any:
    """The causal mask: True where a score counts."""
    return torch.ones(rows, columns, dtype=torch.bool, device=device).tril()


def _once(mask: Any) -> Any:
    """Without the dimensions along which it only repeats itself."""
    for dim in range(mask.dim() - 2):
        if mask.stride(dim) == 0 and mask.shape[dim] > 1:
            mask = mask.narrow(dim, 0, 1)
    return mask
