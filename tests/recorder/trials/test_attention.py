"""Attention that a program computes itself: recognised line by line, compared on its own tensors, fused, and undone."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import torch
from tests.recorder.trials.jobs import looked_at, recorded
from torch import einsum, nn  # as many programs hold it
from torch.nn import functional as F

from stallwise.experiment.change import Undo
from stallwise.experiment.trials.fused_attention import FusedAttention

pytestmark = [pytest.mark.torch]
B, H, T, D = 2, 3, 16, 8
Way = Callable[[Any, Any, Any, Any], Any]


def nano(self: Any, q: Any, k: Any, v: Any) -> Any:
    att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
    att = F.softmax(att, dim=-1)
    att = self.dropout(att)
    return att @ v


def eager(self: Any, q: Any, k: Any, v: Any) -> Any:
    """As transformers writes it."""
    weights = torch.matmul(q, k.transpose(2, 3)) * D**-0.5
    weights = weights + torch.zeros(1, 1, T, T).masked_fill(self.mask == 0, torch.finfo(torch.float32).min)
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
    weights = F.dropout(weights, p=0.0, training=self.training)
    return torch.matmul(weights, v)


def bias_of_its_own(self: Any, q: Any, k: Any, v: Any) -> Any:
    """A learned bias for every distance, and padding."""
    scores = torch.matmul(q / math.sqrt(D), k.mT)
    scores += self.bias
    scores = scores.masked_fill_(self.padding, -1e9)
    return torch.matmul(scores.softmax(-1), v)


def folded(self: Any, q: Any, k: Any, v: Any) -> Any:
    """Batch and heads in one for the products, apart for the mask."""
    q, k, v = (t.reshape(B * H, T, D) for t in (q, k, v))
    scores = torch.baddbmm(torch.empty(B * H, T, T), q, k.transpose(1, 2), beta=0, alpha=D**-0.5)
    scores = scores.view(B, H, T, T)
    scores = torch.where(self.mask.bool(), scores, torch.full([], -1e9))
    weights = torch.softmax(scores, dim=-1).view(B * H, T, T)
    return torch.bmm(weights, v).view(B, H, T, D)


def by_letters(self: Any, q: Any, k: Any, v: Any) -> Any:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    scores = einsum("b i h d, b j h d -> b h i j", q, k) * self.scale
    out = einsum("b h i j, b j h d -> b i h d", scores.softmax(dim=-1), v)
    return out.transpose(1, 2)


def capped(self: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.tanh(q @ k.mT).softmax(-1) @ v


def by_hand(self: Any, q: Any, k: Any, v: Any) -> Any:
    scores = torch.exp(q @ k.mT)
    return (scores / scores.sum(-1, keepdim=True)) @ v


def weighted_after(self: Any, q: Any, k: Any, v: Any) -> Any:
    return ((q @ k.mT).softmax(-1) * torch.rand(T, T)) @ v


def over_queries(self: Any, q: Any, k: Any, v: Any) -> Any:
    return (q @ k.mT).softmax(-2) @ v


def by_library(self: Any, q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attending(nn.Module):
    """A layer of attention, written one way or another."""

    def __init__(self, way: Way, dropout: float = 0.0) -> None:
        super().__init__()
        self.way = way
        self.line = nn.Linear(H * D, 3 * H * D)
        self.out = nn.Linear(H * D, H * D)
        self.dropout = nn.Dropout(dropout)
        self.bias = nn.Parameter(torch.randn(1, H, T, T) * 0.1)
        self.scale = D**-0.5
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, T, T)))
        self.register_buffer("padding", (torch.arange(T) > T - 3).expand(B, 1, T, T))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.view(B, T, H, D).transpose(1, 2) for t in self.line(x).chunk(3, dim=-1))
        y = self.way(self, q, k, v)
        return self.out(y.transpose(1, 2).contiguous().view(B, T, H * D))


class Job:
    """Trains it."""

    def __init__(self, way: Way, dropout: float = 0.0) -> None:
        torch.manual_seed(0)
        self.model = Attending(way, dropout)
        self.x = torch.randn(B, T, H * D)
        self.grads: list[torch.Tensor] = []

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.model.zero_grad()
            self.model(self.x).square().mean().backward()
            self.grads = [p.grad.clone() for p in self.model.parameters() if p.grad is not None]


class Counted:
    """How often the library's attention was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[dict[str, Any]] = []
        plain = F.scaled_dot_product_attention

        def attention(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(kwargs)
            return plain(*args, **kwargs)

        monkeypatch.setattr(F, "scaled_dot_product_attention", attention)


@pytest.mark.parametrize("way", [nano, eager, bias_of_its_own, folded, by_letters])
def test_what_is_attention_is_fused_with_the_same_results_and_gradients(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Job(way)
    plain.step()
    product = torch.matmul
    with recorded(tmp_path) as recorder:
        job, change, undo = Job(way), FusedAttention(), Undo()
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene) is None and "test_attention.py:" in change.needs
        # Looked at, it computed what it computes alone, bit for bit.
        assert all(torch.equal(a, b) for a, b in zip(plain.grads, job.grads, strict=True))
        counted = Counted(monkeypatch)
        change.apply(scene, undo)
        job.step()
        undo.back()
        assert len(counted.calls) == 1
        assert counted.calls[0]["is_causal"] is (way in (nano, eager, folded))
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain.grads, job.grads, strict=True))
        job.step()
        assert len(counted.calls) == 1 and torch.matmul is product and einsum is torch.einsum


@pytest.mark.parametrize(
    ("way", "why"),
    [
        (capped, "tanh"),
        (by_hand, "exp"),
        (weighted_after, "mul"),
        (over_queries, "another dimension"),
        (by_library, "already"),
    ],
)
def test_what_cannot_be_fused_says_why(way: Way, why: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job, change = Job(way), FusedAttention()
        scene = looked_at(job, recorder, change)
        assert why in (change.refuses(scene) or "")


def test_a_program_without_attention_says_so(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job, change = Job(lambda self, q, k, v: q), FusedAttention()
        assert "no attention was seen" in (change.refuses(looked_at(job, recorder, change)) or "")


def test_dropout_is_left_to_the_fused_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(tmp_path) as recorder:
        job, change, undo = Job(nano, dropout=0.25), FusedAttention(), Undo()
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene) is None
        counted = Counted(monkeypatch)
        change.apply(scene, undo)
        job.step()
        job.model.eval()
        job.step()
        undo.back()
        assert [c["dropout_p"] for c in counted.calls] == [0.25, 0.0]


def test_scores_that_are_looked_at_are_computed_as_the_program_would(tmp_path: Path) -> None:
    seen: list[torch.Tensor] = []

    def shown(self: Any, q: Any, k: Any, v: Any) -> Any:
        weights = (q @ k.mT * self.scale).softmax(-1)
        out = weights @ v
        if self.shows:
            seen.append(weights.mean())
        return out

    with recorded(tmp_path) as recorder:
        job, change, undo = Job(shown), FusedAttention(), Undo()
        job.model.shows = False  # type: ignore[assignment]
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene) is None
        job.model.shows = True  # type: ignore[assignment]
        job.step()
        change.apply(scene, undo)
        job.step()
        undo.back()
        assert torch.equal(seen[0], seen[1]) and type(seen[1]) is torch.Tensor


def test_a_mask_that_changes_ends_the_trial(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job, change, undo = Job(nano), FusedAttention(), Undo()
        scene = looked_at(job, recorder, change)
        failed: list[BaseException] = []
        scene.failed = failed.append
        change.apply(scene, undo)
        job.step()
        undo.back()
        assert failed == []
        change.apply(scene, undo)
        job.model.mask[..., 0] = 0  # type: ignore[index]
        job.model.mask[..., 0, 1] = 1  # type: ignore[index]
        job.step()
        undo.back()
        assert "causal" in str(failed[0])


def test_a_library_that_takes_the_plain_kernel_gets_a_fused_one(tmp_path: Path) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    ways: list[int] = []

    def plain_kernel(self: Any, q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    with recorded(tmp_path) as recorder:
        job, change, undo = Job(plain_kernel), FusedAttention(), Undo()
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene) is None and "backends" in change.needs
        function = torch._C._nn.scaled_dot_product_attention
        change.apply(scene, undo)

        def spy(q: Any, k: Any, v: Any, **how: Any) -> Any:
            ways.append(int(torch._fused_sdp_choice(q, k, v, **how)))
            return function(q, k, v, **how)

        wrapped = F.scaled_dot_product_attention.__closure__
        assert wrapped is not None
        cell = next(c for c in wrapped if c.cell_contents is function)
        cell.cell_contents = spy
        job.step()
        undo.back()
        assert ways == [1]  # flash


def test_products_that_are_no_attention_stay_plain_tensors(tmp_path: Path) -> None:
    class Plain(Job):
        def step(self, count: int = 1) -> None:
            out = self.x @ self.x.mT
            self.kept = [out, torch.stack([out, out]), out[0], out.tolist()]

    with recorded(tmp_path) as recorder:
        job, change, undo = Plain(nano), FusedAttention(), Undo()
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene)
        assert torch.equal(job.kept[1][0], job.x @ job.x.mT) and type(job.kept[2]) is torch.Tensor
        change.apply(scene, undo)
        job.step()
        undo.back()
        assert type(job.kept[0]) is torch.Tensor


def test_a_gradient_of_ones_own_is_not_lost(tmp_path: Path) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return grad * 2

    def own(self: Any, q: Any, k: Any, v: Any) -> Any:
        return Twice.apply(q @ k.mT).softmax(-1) @ v  # type: ignore[no-untyped-call]

    plain = Job(own)
    plain.step()
    with recorded(tmp_path) as recorder:
        job, change = Job(own), FusedAttention()
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene)
        assert all(torch.equal(a, b) for a, b in zip(plain.grads, job.grads, strict=True))


def test_under_autocast_the_types_are_the_programs(tmp_path: Path) -> None:
    def typed(self: Any, q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.mT) * self.scale
        types.append(scores.dtype)
        weights = F.softmax(scores, dim=-1)
        types.append(weights.dtype)
        out = weights @ v
        types.append(out.dtype)
        return out

    types: list[torch.dtype] = []
    with recorded(tmp_path) as recorder:
        job, change, undo = Job(typed), FusedAttention(), Undo()
        with torch.autocast("cpu", torch.bfloat16):
            scene = looked_at(job, recorder, change)
            assert change.refuses(scene) is None
            types.clear()
            job.step()
            as_is = list(types)
            types.clear()
            change.apply(scene, undo)
            job.step()
            undo.back()
        assert types == as_is
