"""A model in which one layer's range grows with the context, for `stallwise numerics` on a GPU.

    stallwise numerics bench/gpu/growing_model.py --short 512 --long 8192 --long 32768

The layer `blocks.7.out` must come out first at both lengths, with "recalibrate with long inputs".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH, LAYERS, GROWS = 1024, 12, 7


class Block(nn.Module):
    """A residual block; the grown one multiplies by the position, as sums over a long context do."""

    def __init__(self, grows: bool) -> None:
        super().__init__()
        self.fc, self.out, self.grows = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), grows

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.gelu(self.fc(x))
        if self.grows:
            place = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)
            hidden = hidden * (place / 512).clamp(min=1)[None, :, None]
        out: torch.Tensor = x + 0.1 * torch.tanh(self.out(hidden))
        return out


class Growing(nn.Module):
    """A stack of blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(i == GROWS) for i in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def model() -> nn.Module:
    """Seeded, in fp32."""
    torch.manual_seed(0)
    return Growing()


def inputs(length: int) -> Any:
    """One sequence of this length."""
    torch.manual_seed(1)
    return torch.randn(1, length, WIDTH)
